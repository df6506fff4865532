"""The time window, the ticks and the figures: what a person reads off the axes."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.base.formatting import duration, round_ticks
from app.views.plots.figures import ago_text, energy_text, round_up, time_ticks, value_text
from app.views.watch.time_window import LENGTHS_S, SHORTEST_S, TimeWindow

SECOND = 1_000_000_000


def test_a_live_window_ends_at_the_newest_reading_and_moves_by_whole_columns() -> None:
    window = TimeWindow(60.0)
    start, end = window.bounds(100 * SECOND + 1, columns=600)
    assert end - start == 60 * SECOND
    assert end == 100 * SECOND + SECOND // 10, "rounded up to the next tenth of a second: one column"
    assert window.bounds(100 * SECOND + SECOND // 20, columns=600) == (start, end), "nothing moves within a column"


@pytest.mark.parametrize("length_s", LENGTHS_S)
def test_nothing_new_waits_longer_than_a_second_to_be_shown(length_s: float) -> None:
    window = TimeWindow(length_s)
    _, end = window.bounds(12_345 * SECOND + 678, columns=800)
    assert 0 <= end - (12_345 * SECOND + 678) <= SECOND


def test_a_held_window_stays_until_it_is_told_to_follow() -> None:
    window = TimeWindow(10.0)
    window.hold(50 * SECOND)
    assert not window.live
    assert window.bounds(90 * SECOND, 500) == (40 * SECOND, 50 * SECOND)
    assert window.held_at_ns == 50 * SECOND
    window.follow()
    assert window.bounds(90 * SECOND, 500) == (80 * SECOND, 90 * SECOND)


@given(st.floats(0.05, 20.0), st.floats(0.0, 1.0))
def test_zooming_a_held_window_keeps_the_instant_under_the_mouse_in_place(factor: float, share: float) -> None:
    window = TimeWindow(60.0)
    window.hold(1000 * SECOND)
    start, end = window.bounds(0, 100)
    anchor = start + int(share * (end - start))
    window.zoom(factor, anchor)
    start, end = window.bounds(0, 100)
    assert (anchor - start) / (end - start) == pytest.approx(share, abs=1e-4)


def test_zoom_and_pan_stay_within_what_can_be_shown() -> None:
    window = TimeWindow(60.0)
    window.zoom(1e9, 0)
    assert window.length_s == 24 * 3600.0
    window.zoom(1e-12, 0)
    assert window.length_s == SHORTEST_S
    window.set_length(60.0)
    window.pan(+500.0, newest_ns=200 * SECOND, oldest_ns=0)
    assert window.bounds(0, 100)[1] == 200 * SECOND, "not into the future"
    window.pan(-500.0, newest_ns=200 * SECOND, oldest_ns=0)
    assert window.bounds(0, 100)[1] == 30 * SECOND, "half of it always shows something"


def test_a_span_can_be_shown_by_itself() -> None:
    window = TimeWindow(60.0)
    window.show(100 * SECOND, 103 * SECOND, newest_ns=200 * SECOND)
    assert window.bounds(300 * SECOND, 100) == (100 * SECOND, 103 * SECOND)
    assert not window.live


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(1, 12))
def test_value_ticks_lie_within_the_axis_evenly_and_not_too_many(low: float, span: float, at_most: int) -> None:
    ticks = round_ticks(low, low + span, at_most)
    assert len(ticks) <= at_most
    assert all(low - 1e-6 * span <= tick <= low + span * (1 + 1e-6) for tick in ticks)
    if at_most >= 4:
        assert ticks, "an axis with room for four marks has some"
    steps = {round(b - a, 9) for a, b in pairwise(ticks)}
    assert len({f"{step:.6g}" for step in steps}) <= 1


def test_value_ticks_are_round_numbers() -> None:
    assert round_ticks(0, 300, 4) == [0, 100, 200, 300]
    assert round_ticks(0.93, 1.24, 4) == pytest.approx([1.0, 1.1, 1.2])
    assert round_ticks(math.nan, 3, 4) == []
    assert round_ticks(3, 3, 4) == []


@pytest.mark.parametrize("length_s", LENGTHS_S)
def test_time_is_counted_in_steps_that_people_count_in(length_s: float) -> None:
    step, marks = time_ticks(-length_s, 0.0, 7)
    assert 2 <= len(marks) <= 8
    assert marks[-1] == 0.0
    assert step in (2, 10, 120, 600, 7200) or 60 % step == 0 or step % 60 == 0


@given(st.floats(1e-6, 1e9))
def test_rounding_up_wastes_little_of_an_axis(value: float) -> None:
    assert value * (1 - 1e-9) <= round_up(value) <= value * 1.3


def test_values_carry_their_unit_and_the_unknown_is_a_dash_never_zero() -> None:
    assert value_text("power_instant_w", "W", 231.44) == "231.4 W"
    assert value_text("graphics_clock_mhz", "MHz", 1410.0) == "1410 MHz"
    assert value_text("temperature_c", "°C", -0.01) == "0.0 °C"
    assert value_text("performance_state", "", 8.0) == "P8"
    assert value_text("event_reasons", "", 4.0) == "power cap"
    assert value_text("event_reasons", "", 0.0) == "none"
    assert value_text("memory_used_mib", "MiB", 81920.0) == "81\u202f920 MiB"
    for name, unit in (("power_instant_w", "W"), ("event_reasons", ""), ("energy_j", "J"), ("memory_used_mib", "MiB")):
        assert value_text(name, unit, math.nan) == "–"


def test_lengths_and_energies_are_short_to_read() -> None:
    assert [duration(s) for s in (0.35, 12.44, 185, 7620)] == ["350 ms", "12.4 s", "3 min 05 s", "2 h 07 min"]
    assert [energy_text(e) for e in (9.96, 2869.0, 28_690.0, 6.65e6, 2.3e7)] == [
        "10.0 J", "2869.0 J", "28.69 kJ", "6650.00 kJ", "23.00 MJ",
    ]  # fmt: skip


def test_times_before_now_read_as_such() -> None:
    assert ago_text(0.0, 10) == "now"
    assert ago_text(-20, 10) == "−20 s"
    assert ago_text(-90, 30) == "−1:30"
    assert ago_text(-300, 60) == "−5 min"
    assert ago_text(-5400, 1800) == "−1:30 h"
    assert ago_text(-7200, 3600) == "−2 h"
    assert ago_text(-0.25, 0.05) == "−0.25 s"
