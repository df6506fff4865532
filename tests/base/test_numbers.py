"""Numbers are written the same way in the terminal, the report and the window."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.base.formatting import (
    change,
    count_text,
    counted,
    duration,
    finite_or_none,
    name_and_unit,
    number,
    percent,
    round_ticks,
    unit_of_name,
)
from app.base.records import as_json


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (math.nan, "–"),
        (-math.inf, "–"),
        (0.0123456, "0.01235"),
        (12.3456, "12.35"),
        (1234.5, "1234"),
        (123456.7, "123457"),
        (349853, "349853"),
        (1.2e12, "1.2e+12"),
        (-0.5, "-0.5"),
    ],
)
def test_a_figure_has_four_digits_and_a_dash_where_it_is_unknown(value: float | None, text: str) -> None:
    assert number(value) == text


def test_counts_are_in_groups_of_three_and_powers_of_ten_beyond_reading() -> None:
    assert [count_text(count) for count in (7, 1234567, 10**15)] == ["7", "1\u202f234\u202f567", "1.00·10¹⁵"]


def test_more_digits_are_given_where_they_are_asked_for() -> None:
    assert number(0.998317, 5) == "0.99832"
    assert number(1234.567, 6) == "1234.57"


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_a_written_figure_reads_back_within_its_digits(value: float) -> None:
    assert float(number(value)) == pytest.approx(value, rel=5.1e-4)


def test_shares_and_changes_are_percentages() -> None:
    assert (percent(0.1234), percent(math.nan), percent(None)) == ("12.3 %", "–", "–")
    assert (change(0.82), change(1.05), change(None)) == ("-18.0 %", "+5.0 %", "–")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.35, "350 ms"), (12.4, "12.4 s"), (59.99, "1 min 00 s"), (185, "3 min 05 s"), (7620, "2 h 07 min"), (None, "–")],
)
def test_a_length_of_time_has_the_unit_it_needs(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


@given(st.floats(-1e9, 1e9), st.floats(1.0, 1e9), st.integers(1, 20))
def test_ticks_are_round_lie_within_the_axis_and_are_not_too_many(low: float, length: float, at_most: int) -> None:
    ticks = round_ticks(low, low + length, at_most)
    assert len(ticks) <= at_most
    assert all(low - 1e-6 * length <= tick <= low + length * (1 + 1e-6) for tick in ticks)


def test_an_unknown_number_is_none_in_json() -> None:
    @dataclass(frozen=True, slots=True)
    class Point:
        watts: float
        clocks: tuple[int, ...]

    document = as_json({1: Point(math.nan, (1, 2)), "array": np.array([1.0, np.inf]), "scalar": np.int64(3)})
    assert json.loads(json.dumps(document, allow_nan=False)) == {
        "1": {"watts": None, "clocks": [1, 2]},
        "array": [1.0, None],
        "scalar": 3,
    }
    assert finite_or_none(math.inf) is None
    assert finite_or_none(2.0) == 2.0


def test_the_end_of_a_name_is_its_unit() -> None:
    assert name_and_unit("power_limit_w") == ("power_limit", "W")
    assert name_and_unit("graphics_clock_mhz") == ("graphics_clock", "MHz")
    assert name_and_unit("block_size_x") == ("block_size_x", "")
    assert unit_of_name("temperature_c") == "°C"
    assert unit_of_name("_w") == ""  # nothing but the ending


def test_a_count_agrees_with_its_noun() -> None:
    assert [counted(n, "session") for n in (0, 1, 2)] == ["0 sessions", "1 session", "2 sessions"]
    assert counted(5120, "entry", "entries") == "5\u202f120 entries"
