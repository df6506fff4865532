"""What users may write as an expression, what it means, and that nothing else is ever carried out."""

from __future__ import annotations

import contextlib
import math
import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.base.errors import InputError
from app.engine.space.array_expressions import parse_array_expression
from app.engine.space.expression import MAX_LENGTH, parse, parse_conjuncts
from app.engine.space.values import MAX_VALUES, parse_values


def value(text: str, **names: Any) -> Any:
    return parse(text, "here").evaluate(names)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2 + 3 * 4", 14),
        ("-x ** 2", -9),
        ("7 // 2 + 7 % 4", 6),
        ("-7 // 2", -4),
        ("x / 2", 1.5),
        ("2 <= x <= 4", True),
        ("2 <= x < 3", False),
        ("x == 3 and not x > 5", True),
        ("x in [1, 2, 3]", True),
        ("x not in (1, 2)", True),
        ("'row' if x > 5 else 'column'", "column"),
        ("layout == 'row'", True),
        ("layout == 3", False),
        ("layout in ['row', 'column']", True),
        ("min(x, 2, 5) + max([1, x])", 5),
        ("abs(-x) + len([1, 2]) + len('ab')", 7),
        ("round(2.5) + int(7.9) + ceil(0.1) + floor(1.9)", 11),
        ("sqrt(16) + log2(8)", 7.0),
        ("x or 1 / 0", 3),
        ("flag and x", 3),
    ],
)
def test_means_what_it_means_in_python(text: str, expected: object) -> None:
    found = value(text, x=3, layout="row", flag=True)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "open('/etc/passwd')",
        "x.__class__",
        "x[0]",
        "lambda: 1",
        "(x := 1)",
        "[i for i in range(9)]",
        "f'{x}'",
        "print(x)",
        "eval('1')",
        "x is 1",
        "None",
        "1j",
        "b'bytes'",
        "...",
        "*x",
        "import os",
        "x = 1",
        "x; x",
        "await x",
        "{1: 2}",
        "[1, 2]",
        "x in y",
        "min(*[1])",
        "round(x, ndigits=1)",
        "sqrt()",
        "(x)(1)",
        "x << 2",
        "'\\n' == x",
        "",
        "x +",
        "x\0",
    ],
)
def test_anything_else_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(text, "spec.toml: restrictions[0]")
    assert caught.value.where == "spec.toml: restrictions[0]"
    assert caught.value.remedy
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["-" * 3000 + "x", "(" * 190 + "x" + ")" * 190, "(" * 3000, "not " * 900 + "x"])
def test_deep_nesting_is_refused_or_read_but_never_a_crash(text: str) -> None:
    with contextlib.suppress(InputError):
        parse(text, "here").evaluate({"x": 1})


def test_length_is_bounded_and_long_chains_are_read() -> None:
    with pytest.raises(InputError, match="characters"):
        parse("x + " * MAX_LENGTH + "x", "here")
    assert value(" and ".join(["x"] * 500), x=1) == 1
    assert value(" or ".join(["x == 2"] * 300), x=1) is False


@pytest.mark.parametrize("text", ["10**10**10", "9**9**9**9", "x**x**x", "(10**300)**300", "9" * 400])
def test_numbers_cannot_grow_without_bound(text: str) -> None:
    assert value(text, x=1000) == math.inf


@pytest.mark.parametrize("text", ["'a' * 10", "'a' + 'b'", "-'a'", "'a' < 3", "abs('a')", "min('a', 'b')", "'%s' % x"])
def test_text_is_compared_never_calculated_with(text: str) -> None:
    with pytest.raises(InputError):
        value(text, x=3)


def test_what_is_undefined_is_nan_in_a_metric_and_false_in_a_restriction() -> None:
    for text in ("1 / x", "1 % x", "1 // x", "x ** -1", "sqrt(x - 1)", "log(x)", "min(1, 1 / x)"):
        assert math.isnan(parse(text, "here").number({"x": 0})), text
        assert not parse(f"({text}) != 7", "here").mask({"x": 0}, ())
        assert not parse(f"not ({text}) == 7", "here").mask({"x": np.zeros(3, int)}, (3,)).any()
    assert parse("x == 0 or 4 % x == 0", "here").mask({"x": np.array([0, 2, 3])}, (3,)).tolist() == [True, True, False]


def test_columns_of_large_integers_do_not_wrap_around() -> None:
    column = np.array([2**31, 2**40], dtype=np.int64)
    assert (parse("x * x > 0", "here").mask({"x": column}, (2,))).all()
    assert (parse("x ** 3 > x", "here").mask({"x": column}, (2,))).all()


def test_names_are_listed_and_unknown_ones_get_a_suggestion() -> None:
    expression = parse("block_size_x * n + min(n, 3)", "here")
    assert expression.names == ("block_size_x", "n")
    with pytest.raises(InputError, match="did you mean 'block_size_x'"):
        parse("blok_size_x", "here").check_names(["block_size_x", "n"])


def test_conjunctions_split_so_that_parts_apply_early() -> None:
    parts = parse_conjuncts("p0 * p1 == 16 and (p2 < p3 < p4) and p5", "here")
    assert [part.names for part in parts] == [("p0", "p1"), ("p2", "p3"), ("p3", "p4"), ("p5",)]
    assert len(parse_conjuncts("32 <= x * y <= 1024", "here")) == 1  # one pass is quicker than two
    assert len(parse_conjuncts("a or b and c", "here")) == 1


def test_values_of_a_parameter_as_text() -> None:
    def expanded(text: str, rows: int, **names: Any) -> tuple[list[Any], list[int]]:
        flat, counts = parse_values(text, "here").expand(names, rows)
        return flat.tolist(), counts.tolist()

    assert expanded("range(4)", 1) == ([0, 1, 2, 3], [4])
    assert expanded("range(a, 20, a)", 3, a=np.array([5, 9, 30])) == ([5, 10, 15, 9, 18], [3, 2, 0])
    assert expanded("range(b, 0, -2)", 1, b=5) == ([5, 3, 1], [3])
    assert expanded("[a, 2 * a]", 2, a=np.array([1, 2])) == ([1, 2, 2, 4], [2, 2])
    assert expanded("2 * a", 2, a=np.array([1, 2])) == ([2, 4], [1, 1])
    assert expanded("['x', a]", 1, a=1) == (["x", 1], [2])


@pytest.mark.parametrize(
    "text", ["range(1, 9, 0)", "range(1.5)", f"range({MAX_VALUES + 1})", "range(1 / 0)", "range()"]
)
def test_ranges_are_checked(text: str) -> None:
    with pytest.raises(InputError):
        parse_values(text, "here").expand({}, 1)


def test_array_expressions_are_checked() -> None:
    assert parse_array_expression("a @ b + sqrt(sum(c))", "here") == ("a", "b", "c")
    for text in ("a.T", "a[0]", "open(a)", "a @ 'b'", "sum(a, axis=0)", "a if b else c"):
        with pytest.raises(InputError):
            parse_array_expression(text, "here")


# --- hypothesis ----------------------------------------------------------------------------------------------------


@given(st.text(alphabet="xy0123456789.+-*/%<>=!()[],' andortifelsm", max_size=60))
def test_any_text_gives_a_value_or_one_clear_error(text: str) -> None:
    with contextlib.suppress(InputError):
        found = parse(text, "here").evaluate({"x": 3, "y": np.array([0, 1, 2])})
        assert isinstance(found, (bool, int, float, str, np.ndarray))


_LEAVES = st.sampled_from(["x", "y", "z"]) | st.integers(-9, 9).map(str)
_OPERATORS = st.sampled_from(["+", "-", "*", "//", "%", "/", "<", "<=", "==", "!=", "and", "or"])
_TREES = st.recursive(
    _LEAVES, lambda inner: st.tuples(inner, _OPERATORS, inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"), max_leaves=12
)


@given(_TREES, st.lists(st.tuples(*[st.integers(-5, 5)] * 3), min_size=1, max_size=8))
def test_columns_give_what_single_values_and_python_give(text: str, rows: list[tuple[int, int, int]]) -> None:
    expression = parse(text, "here")
    columns = dict(zip("xyz", np.array(rows).T, strict=True))
    true = expression.mask(columns, (len(rows),)).tolist()
    assert true == [bool(expression.mask(dict(zip("xyz", row, strict=True)), ())) for row in rows]
    for row, found in zip(rows, true, strict=True):
        try:
            expected = bool(_python(text, dict(zip("xyz", row, strict=True))))
        except ZeroDivisionError:
            expected = False
        assert found == expected


def _python(text: str, names: dict[str, int]) -> Any:
    """The tree's own text carried out step by step with Python's operators, so that the test needs no eval."""
    table = {
        "+": operator.add,
        "-": operator.sub,
        "*": operator.mul,
        "//": operator.floordiv,
        "%": operator.mod,
        "/": operator.truediv,
        "<": operator.lt,
        "<=": operator.le,
        "==": operator.eq,
        "!=": operator.ne,
    }

    def read(at: int) -> tuple[Any, int]:
        if text[at] != "(":
            end = at + 1
            while end < len(text) and text[end] not in " )":
                end += 1
            word = text[at:end]
            return (lambda: names[word]) if word in names else (lambda: int(word)), end
        left, at = read(at + 1)
        symbol, at = text[at + 1 : text.index(" ", at + 1)], text.index(" ", at + 1)
        right, at = read(at + 1)
        if symbol == "and":
            return (lambda: left() and right()), at + 1
        if symbol == "or":
            return (lambda: left() or right()), at + 1
        return (lambda: table[symbol](left(), right())), at + 1

    return read(0)[0]()
