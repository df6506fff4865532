"""Search spaces: exactly the valid configurations, whatever the restrictions, and never by looking at all of them."""

from __future__ import annotations

import itertools
import json
import math
import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.base.errors import InputError
from app.engine.space import build, factors
from app.engine.space import factors as checking
from app.engine.space.build import build_space
from app.engine.space.expression import parse
from app.engine.space.search_space import SearchSpace, space_of_table
from app.sensors.limits import limits_of

LIMITS = limits_of((8, 0))


def space_of(
    parameters: Mapping[str, Any], restrictions: Sequence[str] = (), constants: Mapping[str, Any] | None = None
) -> SearchSpace:
    return build_space(parameters, restrictions, constants or {}, LIMITS)


def rows_of(space: SearchSpace) -> list[tuple[Any, ...]]:
    return [tuple(space.configuration(row).values()) for row in range(space.size)]


def test_eight_published_spaces_have_exactly_their_published_sizes(
    shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With little work each, though the largest has 2.4 * 10^9 combinations."""
    monkeypatch.setattr(checking, "MAX_COST", 2 * 10**7)
    published = json.loads((shared_data / "kernel-tuner/searchspaces_kernel_tuner_paper.json").read_text())
    assert len(published) == 8
    for name, facts in published.items():
        space = space_of(facts["tune_params"], facts["restrictions"])
        assert space.size == facts["valid_with_max_threads_1024_kt150"], name
        assert space.cartesian == facts["cartesian"], name
        assert space.cartesian - sum(space.removed_by.values()) == space.size
        assert np.array_equal(space.rows_of_codes(space.codes), np.arange(space.size))  # none twice


def test_one_string_of_conjunctions_prunes_as_well_as_four() -> None:
    parameters = {f"p{i}": list(range(1, 9)) for i in range(8)}
    together = "p0 * p1 == 16 and p2 < p3 and p4 + p5 == 9 and p6 % p7 == 0"
    space = space_of(parameters, [together])
    assert (space.size, space.cartesian) == (13_440, 8**8)
    assert space.removed_by == {together: 8**8 - 13_440}
    apart = space_of(parameters, together.split(" and "))
    assert np.array_equal(apart.codes, space.codes)


def test_configurations_come_in_the_users_order_of_parameters_and_values() -> None:
    space = space_of({"b": [3, 1], "a": ["y", "x"], "c": True}, ["b == 1 or a != 'x'"])
    assert rows_of(space) == [(3, "y", True), (1, "y", True), (1, "x", True)]
    assert space.configuration(0) == {"b": 3, "a": "y", "c": True}
    assert space.names == ("b", "a", "c")


def test_dependent_ranges_may_name_later_parameters_constants_and_limits() -> None:
    space = space_of(
        {"blk": "range(dim, top + 1, dim)", "dim": [2, 3], "w": "warp_size // 16", "down": "range(blk, 0, -dim)"},
        constants={"top": 6},
    )
    expected = [(blk, dim, 2, down) for dim in (2, 3) for blk in range(dim, 7, dim) for down in range(blk, 0, -dim)]
    assert sorted(rows_of(space)) == sorted(expected)
    assert space.cartesian == len(expected)


def test_restrictions_on_dependent_ranges_count_what_they_remove() -> None:
    space = space_of({"a": [1, 2, 3], "b": "range(a, 4)", "c": "range(b, 0, -1)"}, ["a != b", "c > 1"])
    assert space.cartesian == 14
    assert space.removed_by == {"a != b": 6, "c > 1": 3}
    assert rows_of(space) == [(1, 2, 2), (1, 3, 3), (1, 3, 2), (2, 3, 3), (2, 3, 2)]


def test_a_deep_chain_of_ranges_is_pruned_without_enumerating_it() -> None:
    """A DGEMM-like space: far more combinations than could be held, few of them valid."""
    parameters = {
        "dim_m": "range(16, 257, 16)",
        "dim_n": "range(16, 257, 16)",
        "blk_m": "range(dim_m, 257, dim_m)",
        "blk_n": "range(dim_n, 257, dim_n)",
        "blk_k": "range(16, 257, 16)",
        "a_m": "range(blk_m, 0, -1)",
        "b_n": "range(blk_n, 0, -1)",
    }
    restrictions = ["dim_m * dim_n <= 256", "(blk_m + blk_n) * blk_k * 8 <= 49152", "a_m == dim_m", "b_n == dim_n"]
    space = space_of(parameters, restrictions)
    dims = [(m, n) for m in range(16, 257, 16) for n in range(16, 257, 16) if m * n <= 256]
    expected = sum(
        (bm + bn) * k * 8 <= 49152
        for m, n in dims
        for bm in range(m, 257, m)
        for bn in range(n, 257, n)
        for k in range(16, 257, 16)
    )
    assert space.size == expected
    assert space.cartesian > 10**8


def test_block_sizes_above_the_device_limit_are_never_valid() -> None:
    space = space_of({"block_size_x": [256, 512], "block_size_y": [2, 4]})
    assert rows_of(space) == [(256, 2), (256, 4), (512, 2)]
    assert sum(space.removed_by.values()) == 1
    assert space_of({"BLOCK_SIZE_X": [1024], "BLOCK_SIZE_Y": [4]}).size == 1
    renamed = build_space({"bx": [256, 512], "by": [4]}, [], {}, LIMITS, block_size_names=("bx", "by", "bz"))
    assert renamed.size == 1


def test_device_settings_are_dimensions_after_the_parameters() -> None:
    space = build_space(
        {"a": [1, 2]}, ["a * graphics_clock_mhz < 2000"], {}, LIMITS, {"graphics_clock_mhz": (900, 1200)}
    )
    assert [p.device_setting for p in space.parameters] == [False, True]
    assert rows_of(space) == [(1, 900), (1, 1200), (2, 900)]


@pytest.mark.parametrize(
    ("parameters", "restrictions", "words"),
    [
        ({"a": "b", "b": "a + 1"}, [], "refer to one another"),
        ({"a": "range(a)"}, [], "refer to one another"),
        ({"a": [1, 2]}, ["a > 2"], "'a > 2' removes the last"),
        ({"a": [1, 2]}, ["1 > 2"], "never true"),
        ({"a": [1], "b": "range(a, 1)"}, [], "no values"),
        ({"a": []}, [], "empty list"),
        ({"a": [1, 1]}, [], "listed twice"),
        ({"a": [1.0, float("nan")]}, [], "nan"),
        ({"a": [[1]]}, [], "value"),
        ({"a": "range(0, 10, 0)"}, [], "step 0"),
        ({"a b": [1]}, [], "not a name"),
        ({"a": [1]}, ["b > 1"], "unknown name 'b'"),
        ({"a": ["x", "y"]}, ["a < 3"], "no order"),
        ({"a": ["x", "y"]}, ["a * 3 == 3"], "compared"),
        ({}, [], "no parameters"),
        ({f"p{i}": list(range(100)) for i in range(9)}, [], "more than"),
        ({"a": list(range(5000)), "b": list(range(5000))}, ["a != b"], "more than"),
    ],
)
def test_what_is_wrong_is_one_clear_line(parameters: dict[str, Any], restrictions: list[str], words: str) -> None:
    with pytest.raises(InputError) as caught:
        space_of(parameters, restrictions)
    assert words in str(caught.value)
    assert caught.value.where
    assert caught.value.remedy


def test_a_name_cannot_be_defined_twice() -> None:
    with pytest.raises(InputError, match="defined twice"):
        space_of({"a": [1]}, constants={"a": 2})


def test_values_of_mixed_kinds_keep_their_kind() -> None:
    space = space_of({"a": [1, "x", 2.5, True and "y"]}, ["a != 'x'"])
    assert [(type(v), v) for (v,) in rows_of(space)] == [(int, 1), (float, 2.5), (str, "y")]


def test_more_combinations_than_an_integer_holds() -> None:
    parameters = {f"p{i}": list(range(10)) for i in range(30)}
    space = space_of(parameters, [f"p{i} == p{i + 1}" for i in range(29)])
    assert space.size == 10
    assert space.cartesian == 10**30
    assert [space.row_of(space.configuration(row)) for row in range(10)] == list(range(10))


def test_the_bound_on_rows_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "MAX_ROWS", 1000)
    with pytest.raises(InputError, match="more than 1,000 configurations"):
        space_of({"a": list(range(40)), "b": list(range(40))})
    assert space_of({"a": list(range(40)), "b": list(range(40))}, ["a + b < 40"]).size == 820


def test_the_bound_on_work_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = {"a": list(range(3000)), "b": list(range(3000))}
    assert space_of(parameters, ["a == b"]).size == 3000
    monkeypatch.setattr(checking, "MAX_COST", 10**7)
    with pytest.raises(InputError, match="too large to check"):
        space_of(parameters, ["a == b"])


def test_a_recorded_table_is_a_space_too() -> None:
    space = space_of_table({"a": [1, 2, 4], "b": ["x", "y"]}, [(4, "x"), (1, "y"), (4, "x")])
    assert rows_of(space) == [(1, "y"), (4, "x")]
    assert space.cartesian == 6
    with pytest.raises(InputError):
        space_of_table({"a": [1]}, [])


def test_rows_of_a_joined_table_that_do_not_lie_in_order_stay_whole() -> None:
    """`a + b == 5` leaves four rows with a falling; joined by `a` alone they were once taken as if a were rising."""
    space = space_of({"b": [1, 2, 3, 4], "a": [1, 2, 3, 4], "c": [1, 2, 3, 4, 5]}, ["a + b == 5", "a + 3 <= c"])
    assert rows_of(space) == [(3, 2, 5), (4, 1, 4), (4, 1, 5)]


def ways(names: int, values: range, join: Callable[[int, int], int]) -> Counter[int]:
    """How many combinations of so many parameters give each sum or product."""
    found = Counter(values)
    for _ in range(names - 1):
        grown: Counter[int] = Counter()
        for total, count in found.items():
            for value in values:
                grown[join(total, value)] += count
        found = grown
    return found


@pytest.mark.parametrize(
    ("names", "values", "symbol", "bound"),
    [(9, range(10), "+", "<= 12"), (9, range(1, 11), "*", "== 5040"), (20, range(10), "+", "<= 4")],
)
def test_a_sum_or_product_over_everything_prunes_as_soon_as_it_cannot_hold_any_more(
    names: int, values: range, symbol: str, bound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """10^9 to 10^20 combinations: bounds of the sum or product rule out what cannot become valid."""
    monkeypatch.setattr(checking, "MAX_COST", 2 * 10**9)  # about ns
    parameters = {f"p{i}": list(values) for i in range(names)}
    space = space_of(parameters, [f"{f' {symbol} '.join(parameters)} {bound}"])
    counts = ways(names, values, operator.add if symbol == "+" else operator.mul)
    limit = int(bound.split()[1])
    assert space.size == sum(n for total, n in counts.items() if total == limit or (total < limit and "<" in bound))
    assert space.cartesian == 10**names


def test_what_joins_the_same_tables_is_applied_while_they_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first condition alone would leave more rows than can be held."""
    monkeypatch.setattr(build, "MAX_ROWS", 20_000)
    parameters = {f"{side}{i}": list(range(1, 11)) for side in "ab" for i in range(3)}
    sums, products = "a0 + a1 + a2 == b0 + b1 + b2", "a0 * a1 * a2 == b0 * b1 * b2"
    with pytest.raises(InputError, match="more than 20,000"):
        space_of(parameters, [sums])
    space = space_of(parameters, [sums, products])
    every = [(sum(row), math.prod(row)) for row in itertools.product(range(1, 11), repeat=3)]
    pairs = Counter(every)
    assert space.size == sum(count**2 for count in pairs.values())
    same_sum = sum(count**2 for count in Counter(total for total, _ in every).values())
    assert space.removed_by == {sums: 10**6 - same_sum, products: same_sum - space.size}


def test_what_each_restriction_removes_is_counted_in_the_order_applied() -> None:
    space = space_of({"a": [1, 2, 3, 4], "b": [1, 2, 3, 4], "c": [1, 2]}, ["a + b + c < 7", "c == 1", "a * b > 2"])
    left = space.cartesian
    rows = list(itertools.product(range(1, 5), range(1, 5), (1, 2)))
    meaning = {
        "a + b + c < 7": lambda a, b, c: a + b + c < 7,
        "c == 1": lambda a, b, c: c == 1,
        "a * b > 2": lambda a, b, c: a * b > 2,
    }
    for text, removed in space.removed_by.items():
        rows = [row for row in rows if meaning[text](*row)]
        left -= removed
        assert left == len(rows)
    assert left == space.size


def test_combinations_of_ranges_are_counted_beyond_what_an_integer_of_the_machine_holds() -> None:
    wide = {f"w{i}": "range(a, a + 60000)" for i in range(6)}
    with pytest.raises(InputError, match="more than"):
        space_of({"a": [0, 1], **wide})
    space = space_of({"a": [0, 1], **wide}, [f"w{i} == 7" for i in range(6)])
    assert space.size == 2
    assert space.cartesian == 2 * 60000**6


def test_conditions_that_share_one_small_parameter_do_not_join_what_they_need_not() -> None:
    """`simd` stands in two conditions of otherwise unrelated parameters; joined by it alone, the tables explode."""
    parameters = {
        "m": "range(16, 1025, 16)",
        "m_a": "range(m, 0, -1)",
        "k": "range(1, 65)",
        "k_b": "range(k, 0, -1)",
        "n": "range(16, 1025, 16)",
        "simd": [0, 1],
    }
    restrictions = ["m % (m_a * (1 + simd)) == 0", "k % (k_b * (1 + simd)) == 0", "m * n <= 512", "m_a * k_b == n"]
    space = space_of(parameters, restrictions)
    expected = [
        (m, m_a, k, k_b, n, simd)
        for simd in (0, 1)
        for m in range(16, 1025, 16)
        for m_a in range(m, 0, -1)
        if m % (m_a * (1 + simd)) == 0
        for k in range(1, 65)
        for k_b in range(k, 0, -1)
        if k % (k_b * (1 + simd)) == 0
        for n in [m_a * k_b]
        if n % 16 == 0 and m * n <= 512
    ]
    assert sorted(rows_of(space)) == sorted(expected)
    assert space.cartesian - sum(space.removed_by.values()) == space.size


# --- against plain enumeration -------------------------------------------------------------------------------------

_ATOMS = (
    "a * b <= 6",
    "b % c == 0",
    "a < b < c",
    "d == 'x' or a > 1",
    "(a + b + c) % 2 == 0",
    "c in [1, a]",
    "a / b == c",
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(range(1, 8)), min_size=1, max_size=4, unique=True),
    st.lists(st.sampled_from(range(6)), min_size=1, max_size=4, unique=True),
    st.lists(st.sampled_from(_ATOMS), max_size=4, unique=True),
    st.permutations(["a", "b", "c", "d"]),
)
def test_a_space_is_what_enumeration_finds(a: list[int], b: list[int], chosen: list[str], order: list[str]) -> None:
    lists: dict[str, Any] = {"a": a, "b": b, "c": "range(1, a + 2)", "d": ["x", "y"]}
    meaning = {
        _ATOMS[0]: lambda a, b, c, d: a * b <= 6,
        _ATOMS[1]: lambda a, b, c, d: b % c == 0,
        _ATOMS[2]: lambda a, b, c, d: a < b < c,
        _ATOMS[3]: lambda a, b, c, d: d == "x" or a > 1,
        _ATOMS[4]: lambda a, b, c, d: (a + b + c) % 2 == 0,
        _ATOMS[5]: lambda a, b, c, d: c in [1, a],
        _ATOMS[6]: lambda a, b, c, d: b != 0 and a / b == c,
    }
    every = [{"a": x, "b": y, "c": z, "d": w} for x, y, w in itertools.product(a, b, "xy") for z in range(1, x + 2)]
    expected = [point for point in every if all(meaning[text](**point) for text in chosen)]
    parameters = {name: lists[name] for name in order}
    if not expected:
        with pytest.raises(InputError):
            space_of(parameters, chosen)
    else:
        space = space_of(parameters, chosen)
        found = [tuple(space.configuration(row)[name] for name in "abcd") for row in range(space.size)]
        check_space(space, found, [tuple(point.values()) for point in expected], len(every))


def check_space(
    space: SearchSpace, found: Sequence[tuple[Any, ...]], expected: Sequence[tuple[Any, ...]], cartesian: int
) -> None:
    assert sorted(found) == sorted(expected)
    assert space.cartesian == cartesian
    assert sum(space.removed_by.values()) == cartesian - len(expected)
    keys = space.codes.tolist()
    assert keys == sorted(keys)


_TESTS = (
    "{0} + {1} == {n}",
    "{0} * {1} <= {n}",
    "{0} % ({1} + 1) == 0",
    "{0} < {1} <= {2}",
    "({0} + {1} + {2}) % 3 != 1",
    "{0} + 2 <= {1} or {2} == {0}",
    "{0} in ({1}, {n}) and {1} != {2}",
    "({0} if {1} > 2 else {2}) >= {n} // 3",
    "min({0}, {1}) < {2} * {3}",
)


@pytest.mark.parametrize("small", [False, True])
@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 7), min_size=1, max_size=5, unique=True), min_size=4, max_size=5),
    st.lists(st.tuples(st.sampled_from(_TESTS), st.permutations(range(4)), st.integers(0, 9)), min_size=1, max_size=5),
    st.booleans(),
)
def test_any_order_of_joins_gives_what_enumeration_gives(
    small: bool, lists: list[list[int]], chosen: list[tuple[str, list[int], int]], ranged: bool
) -> None:
    """Also with the sizes of blocks so small that every way of joining, pruning and thinning out is taken."""
    parameters: dict[str, Any] = {f"p{axis}": values for axis, values in enumerate(lists)}
    grid = np.array(list(itertools.product(*lists)))
    if ranged:
        parameters["r"] = "range(p0, p0 + p1, 2)"
        pieces = [[(*row, r) for r in range(row[0], row[0] + row[1], 2)] for row in grid.tolist()]
        grid = np.array([row for piece in pieces for row in piece]).reshape(-1, len(parameters))
    texts = [text.format(*(f"p{axis}" for axis in axes), n=n) for text, axes, n in chosen]
    columns = {name: grid[:, axis] for axis, name in enumerate(parameters)}
    true = np.ones(len(grid), dtype=bool)
    for text in texts:
        true &= parse(text, "here").mask(columns, true.shape)
    with pytest.MonkeyPatch.context() as patch:
        if small:
            for module, name, size in ((build, "LARGE", 0), (checking, "_BLOCK", 7), (factors, "_BLOCK", 5)):
                patch.setattr(module, name, size)
        if true.any():
            space = space_of(parameters, texts)
            check_space(space, rows_of(space), [tuple(row) for row in grid[true].tolist()], len(grid))
        else:
            with pytest.raises(InputError):
                space_of(parameters, texts)


def test_functions_give_values_as_the_same_lists_of_combinations_would() -> None:
    """Closure iterators: plain, of other parameters and the device's limits, and of each other."""

    def multiples(block: int, wide: int, max_threads_per_block: int) -> Any:
        """Goes upwards, and repeats its first value, which counts once."""
        yield block
        yield from range(block, max_threads_per_block // wide + 1, block)

    space = space_of(
        {"blk": lambda tile, unit=3: [tile * unit], "tile": multiples, "block": [128, 256], "wide": lambda: (1, 2, 4)},
        ["blk % 9 != 0"],
    )
    expected = {
        (tile * 3, tile, block, wide)
        for block in (128, 256)
        for wide in (1, 2, 4)
        for tile in range(block, LIMITS.max_threads_per_block // wide + 1, block)
        if tile * 3 % 9
    }
    assert set(rows_of(space)) == expected
    assert space.size == len(expected)
    assert space.cartesian == sum(1024 // wide // block for block in (128, 256) for wide in (1, 2, 4))


def test_a_function_is_called_once_for_each_combination_of_its_arguments_that_is_left() -> None:
    """Two milliards of combinations are not looked at, and what restrictions exclude is not asked for."""
    calls: Counter[int] = Counter()

    def near(a: int) -> list[int]:
        calls[a] += 1
        return [a, a + 1]

    many = list(range(1000))
    space = space_of({"a": many, "b": near, "c": many, "d": many}, ["a < 5", "c == d", "c < 3"])
    assert space.size == 5 * 2 * 3
    assert set(calls.values()) == {1}
    assert calls.keys() >= set(range(5))


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"a": lambda b: [b], "b": lambda a: [a]}, "a, b refer to one another"),
        ({"a": lambda a: [a]}, "refer to one another"),
        ({"tile": [1, 2], "b": lambda tiles: [tiles]}, "unknown name 'tiles'.*did you mean 'tile'"),
        ({"a": [1, 2], "b": lambda *several: [1]}, "arguments without names"),
        ({"a": [1, 2], "b": lambda a: itertools.count(a)}, "has no end"),
        ({"a": [1, 2], "b": lambda a: [[a]]}, r"gave \[1\]"),
        ({"a": [1, 2], "b": lambda a: None}, "gave None"),
        ({"a": [1, 2], "b": lambda a: []}, "has no values"),
    ],
)
def test_a_function_that_gives_no_values_is_one_line(parameters: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said) as error:
        space_of(parameters)
    assert "\n" not in str(error.value)
