"""The level 'untouched' of a device setting: which rows a space has by it, and what they are near to."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.base.errors import InputError
from app.engine.results.settings import UNTOUCHED
from app.engine.space.build import build_space
from app.engine.space.search_space import SearchSpace, space_from_row, space_to_row
from app.sensors.limits import limits_of

LIMITS = limits_of((8, 0))
CLOCK, MEMORY, CAP = "graphics_clock_mhz", "memory_clock_mhz", "power_limit_w"
Given = dict[str, tuple[Any, ...]]


def built(
    parameters: dict[str, Any], given_settings: Given, *restrictions: str, untouched: bool = False
) -> SearchSpace:
    return build_space(parameters, restrictions, {}, LIMITS, given_settings, untouched=untouched)


def rows_of(space: SearchSpace) -> list[tuple[Any, ...]]:
    return [tuple(space.configuration(row).values()) for row in range(space.size)]


def test_a_listed_untouched_is_a_level_as_any_other_and_comes_last() -> None:
    space = built({"a": [2, 1]}, {CLOCK: (1200, UNTOUCHED, 900)})
    assert rows_of(space) == list(itertools.product((2, 1), (1200, 900, UNTOUCHED)))
    assert space.parameters[-1].values == (1200, 900, UNTOUCHED)
    assert space.parameters[-1].device_setting
    assert [row for row in range(space.size) if math.isnan(space.numbers(CLOCK)[row])] == [2, 5]
    assert (space.cartesian, sum(space.removed_by.values())) == (6, 0)


def test_listed_for_several_settings_every_combination_is_a_row() -> None:
    space = built({"a": [1, 2]}, {CLOCK: (1200, UNTOUCHED), CAP: (200, 300, UNTOUCHED)})
    assert rows_of(space) == list(itertools.product((1, 2), (1200, UNTOUCHED), (200, 300, UNTOUCHED)))


def test_where_no_setting_lists_it_only_the_rows_with_every_setting_untouched_are_added() -> None:
    space = built({"a": [1, 2]}, {CLOCK: (900, 1200), CAP: (200, 300)}, untouched=True)
    searched = list(itertools.product((1, 2), (900, 1200), (200, 300)))
    assert set(rows_of(space)) == {*searched, (1, UNTOUCHED, UNTOUCHED), (2, UNTOUCHED, UNTOUCHED)}
    assert space.size == len(searched) + 2
    without = built({"a": [1, 2]}, {CLOCK: (900, 1200), CAP: (200, 300)})
    assert rows_of(without) == searched


def test_a_row_that_is_listed_already_is_not_added_again() -> None:
    given_settings: Given = {CLOCK: (900, UNTOUCHED), CAP: (200, UNTOUCHED)}
    assert rows_of(built({"a": [1]}, given_settings, untouched=True)) == rows_of(built({"a": [1]}, given_settings))
    one_of_two = built({"a": [1]}, {CLOCK: (900, UNTOUCHED), CAP: (200,)}, untouched=True)
    assert set(rows_of(one_of_two)) == {(1, 900, 200), (1, UNTOUCHED, 200), (1, UNTOUCHED, UNTOUCHED)}


def test_a_setting_may_have_no_other_level() -> None:
    space = built({"a": [1, 2]}, {CLOCK: (UNTOUCHED,)}, f"{CLOCK} > 1000")
    assert rows_of(space) == [(1, UNTOUCHED), (2, UNTOUCHED)]


def test_without_settings_there_is_nothing_to_leave_untouched() -> None:
    assert rows_of(built({"a": [1, 2]}, {}, untouched=True)) == [(1,), (2,)]


def test_a_restriction_that_names_a_setting_does_not_apply_where_it_is_untouched() -> None:
    space = built({"a": [1, 2]}, {CLOCK: (900, 1200), CAP: (200, UNTOUCHED)}, f"a * {CLOCK} < 2000", f"{CAP} > a * 150")
    assert set(rows_of(space)) == {(1, 900, 200), (1, 1200, 200), (1, 900, UNTOUCHED), (1, 1200, UNTOUCHED)} | {
        (2, 900, UNTOUCHED)
    }
    assert space.cartesian - sum(space.removed_by.values()) == space.size


def test_what_such_a_restriction_says_of_parameters_alone_applies_there_too() -> None:
    space = built({"a": [1, 2], "b": [1, 2]}, {CLOCK: (900, 1200)}, f"a != b and a * {CLOCK} < 1000", untouched=True)
    assert set(rows_of(space)) == {(1, 2, 900), (1, 2, UNTOUCHED), (2, 1, UNTOUCHED)}


def test_a_name_that_is_nothing_is_wrong_there_too() -> None:
    with pytest.raises(InputError, match="unknown name 'clock'"):
        built({"a": [1, 2]}, {CLOCK: (UNTOUCHED,)}, "clock > 1000")


def test_the_level_is_kept_with_the_space() -> None:
    space = built({"a": [1, 2]}, {CLOCK: (900, 1200), CAP: (200,)}, untouched=True)
    again = space_from_row(*space_to_row(space))
    assert rows_of(again) == rows_of(space)
    assert again.parameters == space.parameters
    assert space.row_of({"a": 2, CLOCK: UNTOUCHED, CAP: UNTOUCHED}) is not None
    assert space.row_of({"a": 2, CLOCK: UNTOUCHED, CAP: 200}) is None


LEVELS = st.lists(st.integers(1, 5), min_size=1, max_size=3, unique=True).map(tuple)
RESTRICTIONS = ("a <= b", "a + c < 8", "b != d", "c >= d", "c % 2 == 1 or a == 1", "a > 1 and d < 5")


@settings(deadline=None)
@given(
    st.fixed_dictionaries({"a": LEVELS, "b": LEVELS}),
    st.fixed_dictionaries({"c": LEVELS}, optional={"d": LEVELS}),
    st.lists(st.sampled_from(RESTRICTIONS), max_size=3, unique=True),
)
def test_with_the_level_there_is_every_row_and_more_that_leave_every_setting_untouched(
    parameters: Given, given_settings: Given, restrictions: list[str]
) -> None:
    named = [text for text in restrictions if "d" in given_settings or "d" not in text.replace("and", "")]
    try:
        before = built(parameters, given_settings, *named)
    except InputError:
        return
    space = built(parameters, given_settings, *named, untouched=True)
    kept, added = set(rows_of(before)), set(rows_of(space)) - set(rows_of(before))
    assert kept <= set(rows_of(space))
    assert space.size == len(kept) + len(added), "none twice"
    left = len(given_settings)
    assert {row[-left:] for row in added} == {(UNTOUCHED,) * left}
    assert {row[:-left] for row in kept} <= {row[:-left] for row in added}, "each kernel is measured untouched, too"
    assert [space.row_of(space.configuration(row)) for row in range(space.size)] == list(range(space.size))


def test_settings_alone_are_a_space_too() -> None:
    """As of a service, of which only the board is varied."""
    space = built({}, {CLOCK: (900, 1200), CAP: (200,)}, untouched=True)
    assert rows_of(space) == [(900, 200), (1200, 200), (UNTOUCHED, UNTOUCHED)]
    assert rows_of(built({}, {CLOCK: (900, UNTOUCHED)})) == [(900,), (UNTOUCHED,)]


def test_values_stay_in_the_users_order_also_where_a_restriction_leaves_some_to_the_untouched_rows_alone() -> None:
    space = built({"order": ["row", "column"]}, {CLOCK: (900, 1200)}, f"order == 'column' or {CLOCK} > 2000")
    assert rows_of(space) == [("column", 900), ("column", 1200)]
    space = built(
        {"order": ["row", "column"]}, {CLOCK: (900, 1200)}, f"order == 'column' or {CLOCK} > 2000", untouched=True
    )
    assert space.parameters[0].values == ("row", "column")
    assert rows_of(space) == [("row", UNTOUCHED), ("column", 900), ("column", 1200), ("column", UNTOUCHED)]


def test_a_step_along_a_setting_is_to_the_next_value_in_whatever_order_they_are_listed() -> None:
    def near(listed: tuple[Any, ...]) -> dict[Any, set[Any]]:
        space = built({"a": [1]}, {CLOCK: listed}, untouched=True)
        return {
            space.configuration(row)[CLOCK]: {
                space.configuration(int(other))[CLOCK] for other in space.neighbours(row, "adjacent")
            }
            for row in range(space.size)
        }

    sorted_ = near((900, 1200, 1500))
    assert 1500 not in sorted_[900]
    assert {clock: others - {UNTOUCHED} for clock, others in near((1500, 900, 1200)).items() if clock != UNTOUCHED} == {
        clock: others - {UNTOUCHED} for clock, others in sorted_.items() if clock != UNTOUCHED
    }
