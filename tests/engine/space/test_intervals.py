"""Bounds of expressions: what an expression may be while some of its names are only known to lie in an interval."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from app.base.errors import InputError
from app.engine.space.arithmetic import column_of
from app.engine.space.expression import parse
from app.engine.space.intervals import hull_of

NAMES = ("x", "y", "z", "w")


def possible(text: str, **values: object) -> bool:
    """Lists stand for what is only known to lie between their least and greatest value."""
    scope = {n: hull_of(column_of(v)) if isinstance(v, list) else v for n, v in values.items()}
    return bool(parse(text, "here").possibility()(scope, ()))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("x * y <= 20", {"x": 7, "y": [3, 9]}, False),
        ("x * y <= 20", {"x": 7, "y": [2, 9]}, True),
        ("x + y + z == 10", {"x": 1, "y": [1, 4], "z": [1, 4]}, False),
        ("x - y > 3", {"x": [1, 5], "y": 2}, False),
        ("x - y >= 3", {"x": [1, 5], "y": 2}, True),
        ("x % y == 7", {"x": [1, 100], "y": 5}, False),
        ("x % 32 > 9", {"x": [64, 72], "y": 5}, False),
        ("x // y == 0", {"x": [8, 9], "y": [2, 4]}, False),
        ("x / y == 1", {"x": 5, "y": [-1, 1]}, True),  # the divisor may be zero: nothing is known
        ("x ** 2 > 100", {"x": [1, 9]}, False),
        ("x == 0 or (y > 3 and z > 3)", {"x": 1, "y": [1, 3], "z": [1, 9]}, False),
        ("not (x < y)", {"x": 1, "y": [2, 3]}, False),
        ("not (x == y)", {"x": 1, "y": [1, 1]}, False),
        ("x in [1, 2, y]", {"x": 5, "y": [6, 8]}, False),
        ("x not in [1, 2]", {"x": [1, 2]}, True),
        ("(x if mode == 'a' else y) > 4", {"x": [1, 4], "y": [1, 9], "mode": "a"}, False),
        ("(x if mode == 'a' else y) > 4", {"x": [1, 4], "y": [1, 9], "mode": ["a", "b"]}, True),
        ("min(x, y) > 4", {"x": [1, 4], "y": [1, 9]}, False),
        ("max(x, y) < 4", {"x": [4, 5], "y": [1, 9]}, False),
        ("abs(x) < 2", {"x": [-5, -2]}, False),
        ("abs(x) < 2", {"x": [-5, 2]}, True),
        ("ceil(x / 3) > 2", {"x": [1, 6]}, False),
        ("sqrt(x) > 4", {"x": [1, 16]}, False),
        ("sqrt(x) > 4", {"x": [-1, 16]}, True),  # undefined somewhere: nothing is known
        ("round(x, 1) > 4", {"x": [1, 2]}, True),
        ("mode * 2 == 4", {"mode": ["a", "b"]}, True),  # the expression itself says that text is not calculated with
    ],
)
def test_what_cannot_become_true_is_seen(text: str, values: dict[str, object], expected: bool) -> None:
    assert possible(text, **values) is expected


def test_bounds_beyond_what_floats_hold_exactly_rule_nothing_out() -> None:
    large = 2**60
    assert parse("x < y", "here").mask({"x": large, "y": large + 1}, ())
    assert possible("x < y", x=large, y=[large + 1, large + 1])
    assert possible("x != y", x=large, y=[large + 1, large + 1])
    assert possible("not (x == y)", x=large, y=[large + 1, large + 1])


_LEAVES = st.sampled_from(NAMES) | st.integers(-6, 12).map(str) | st.sampled_from(["0.5", "True"])
_BINARY = st.sampled_from(["+", "-", "*", "//", "%", "/", "**", "<", "<=", ">", ">=", "==", "!=", "and", "or"])


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return (
        st.tuples(inner, _BINARY, inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})")
        | st.tuples(st.sampled_from(["not ", "-", "abs", "ceil", "sqrt"]), inner).map(lambda t: f"({t[0]}({t[1]}))")
        | st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(lambda t: f"{t[0]}({t[1]}, {t[2]})")
        | st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} if {t[1]} else {t[2]})")
        | st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} in [{t[1]}, {t[2]}])")
    )


@settings(max_examples=300, deadline=None)
@given(
    st.recursive(_LEAVES, _grown, max_leaves=9),
    st.lists(st.lists(st.integers(-4, 9), min_size=1, max_size=4), min_size=4, max_size=4),
    st.integers(0, 4),
)
def test_nothing_that_is_true_somewhere_is_ruled_out(text: str, values: list[list[int]], known: int) -> None:
    """For each combination of the first `known` names: where any values of the others make it true, it is possible."""
    expression = parse(text, "here")
    grid = np.array(list(itertools.product(*values)))
    columns = {name: grid[:, axis] for axis, name in enumerate(NAMES)}
    try:
        true = expression.mask(columns, (len(grid),))
    except InputError:  # such as arithmetic with text
        reject()
    hulls = {name: hull_of(np.array(values[axis])) for axis, name in enumerate(NAMES) if axis >= known}
    seen = expression.possibility()({**columns, **hulls}, (len(grid),))
    assert not (true & ~seen).any()
