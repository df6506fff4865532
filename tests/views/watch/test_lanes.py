"""Which traces a GPU gets, and how far their axes reach."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from app.sensors.channel import CHANNELS, channel
from app.views.watch.lanes import ESTIMATED_VOLTAGE, LANES, POWER, Lane, Line, axis_range, shown_lanes

ALL = tuple(CHANNELS.values())


def without(*names: str, reason: str = "the driver does not tell it"):
    return tuple(channel(name, reason if name in names else None) for name in CHANNELS)


def test_a_board_that_tells_everything_shows_every_lane() -> None:
    shown = shown_lanes(ALL)
    assert [s.lane.title for s in shown] == [
        "Power", "Graphics clock", "Memory clock", "Core voltage", "Temperature", "Utilisation",
    ]  # fmt: skip
    assert not any(s.note for s in shown)
    assert [line.channel for line in shown[0].lines] == [POWER, "memory_power_w", "power_limit_w"]


def test_a_channel_that_is_not_told_has_no_line_and_its_lane_says_why() -> None:
    shown = {s.lane.title: s for s in shown_lanes(without("core_voltage_mv", "memory_power_w"))}
    assert shown["Core voltage"].lines == ()
    assert shown["Core voltage"].note.startswith("not available: the driver does not tell it")
    assert [line.channel for line in shown["Power"].lines] == [POWER, "power_limit_w"]


def test_a_lane_never_shows_a_request_alone_as_if_it_were_measured() -> None:
    shown = {s.lane.title: s for s in shown_lanes(without("memory_clock_mhz"))}
    assert shown["Memory clock"].lines == ()
    assert "not available" in shown["Memory clock"].note


def test_after_a_fit_an_estimate_stands_in_for_the_voltage_dashed_as_a_ratio_and_with_its_source() -> None:
    shown = shown_lanes(without("core_voltage_mv"), estimate="sweep of 10 clocks, simulated")[3]
    assert shown.lane.unit == "V/V₀"
    (line,) = shown.lines
    assert line.channel == ESTIMATED_VOLTAGE.name
    assert line.dashed
    assert line.label == "estimated"
    assert shown.source == "from a sweep of 10 clocks, simulated; V₀ is the voltage below the ridge"


def test_a_board_with_a_voltage_sensor_keeps_it_after_a_fit() -> None:
    shown = shown_lanes(ALL, estimate="sweep of 10 clocks")[3]
    assert [line.channel for line in shown.lines] == ["core_voltage_mv"]
    assert shown.lane.unit == "mV"
    assert shown.source == ""


def test_a_channel_unknown_to_the_gpu_is_said_to_be_not_told() -> None:
    shown = shown_lanes((channel("power_instant_w"),))
    assert shown[0].lines == (Line(POWER, "board"),)
    assert all("not available" in s.note for s in shown[1:])


@given(st.sampled_from(LANES), st.floats(0, 4000), st.floats(0, 4000))
def test_an_axis_holds_every_value(lane: Lane, a: float, b: float) -> None:
    low, high = sorted((a, b))
    bottom, top = axis_range(lane, low, high)
    assert bottom <= low
    assert high <= top
    assert top - bottom >= min(lane.least_span, lane.top or math.inf)


def test_an_axis_grows_at_once_and_shrinks_only_when_half_empty() -> None:
    power = LANES[0]
    first = axis_range(power, 30, 240)
    assert axis_range(power, 30, 230, first) == first, "a little less: the axis stays calm"
    assert axis_range(power, 30, 400, first)[1] >= 400
    assert axis_range(power, 30, 60, first)[1] < first[1]


def test_an_axis_without_values_still_is_one() -> None:
    for lane in LANES:
        low, high = axis_range(lane, math.nan, math.nan)
        assert high > low
