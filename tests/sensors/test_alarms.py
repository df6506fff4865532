"""Alarms: once per crossing, with a margin and a time of calm; nothing where nothing is known."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from app.sensors.channel import Reading, channel
from app.sensors.event_reasons import EventReason
from app.sensors.trace.alarms import AlarmRules, AlarmWatch
from app.sensors.trace.trace import Trace

SECOND = 1_000_000_000
CHANNELS = tuple(channel(name) for name in ("power_instant_w", "temperature_c", "event_reasons"))


class Board:
    """A trace at 50 Hz whose figures the test decides, looked at twice a second."""

    def __init__(self, rules: AlarmRules) -> None:
        self.rules = rules
        self.trace = Trace(CHANNELS)
        self.now_ns = 1000 * SECOND
        self.watch = AlarmWatch(self.trace)

    def read(self, seconds: float, *, lost: bool = False, **values: float) -> list[str]:
        """Texts of the alarms raised while these values are read for that long."""
        usual: Mapping[str, float] = {"power_instant_w": 100.0, "temperature_c": 40.0, "event_reasons": 0.0, **values}
        raised = []
        for place in range(1, round(seconds * 50) + 1):
            self.now_ns += SECOND // 50
            self.trace.append(Reading(self.now_ns, tuple(usual[c.name] for c in CHANNELS)))
            if place % 25 == 0:
                raised += [alarm.text for alarm in self.watch.check(self.rules, lost=lost)]
        return raised


def test_a_crossing_is_raised_once_however_long_it_lasts() -> None:
    board = Board(AlarmRules(power_above_w=240.0))
    assert board.read(3) == []
    assert board.read(20, power_instant_w=247.0) == ["power above 240 W"]


def test_a_single_reading_above_is_a_crossing_at_its_own_instant() -> None:
    board = Board(AlarmRules(power_above_w=240.0))
    board.read(3)
    board.read(0.02, power_instant_w=300.0)
    spike_ns = board.now_ns
    board.now_ns += SECOND // 50
    board.trace.append(Reading(board.now_ns, (100.0, 40.0, 0.0)))
    (alarm,) = board.watch.check(board.rules)
    assert alarm.time_ns == pytest.approx(spike_ns, abs=2000)
    assert alarm.value == "300.0 W"


def test_it_is_raised_again_only_after_a_time_of_calm_clearly_below() -> None:
    board = Board(AlarmRules(temperature_above_c=80.0))
    assert board.read(2, temperature_c=81.0) == ["temperature above 80 °C"]
    assert board.read(2, temperature_c=70.0) == []
    assert board.read(2, temperature_c=81.0) == [], "calm for two seconds only"
    assert board.read(20, temperature_c=79.5) == []
    assert board.read(2, temperature_c=81.0) == [], "never clearly below"
    assert board.read(8, temperature_c=70.0) == []
    assert board.read(2, temperature_c=81.0) == ["temperature above 80 °C"]


def test_the_cap_and_a_lost_board() -> None:
    board = Board(AlarmRules(cap_reached=True, board_lost=True))
    assert board.read(2) == []
    assert board.read(4, event_reasons=float(EventReason.POWER_CAP)) == ["power cap reached"]
    unknown = {channel.name: math.nan for channel in CHANNELS}
    assert board.read(4, lost=True, **unknown) == ["the board does not answer"]
    assert board.read(2) == []
    assert board.read(4, lost=True, **unknown) == ["the board does not answer"]


def test_what_is_unknown_or_not_wanted_raises_nothing() -> None:
    board = Board(AlarmRules(power_above_w=240.0))
    assert board.read(4, power_instant_w=math.nan, temperature_c=200.0) == []
    board.rules = AlarmRules()
    assert board.read(4, power_instant_w=300.0, lost=True, event_reasons=float(EventReason.POWER_CAP)) == []
    board.rules = AlarmRules(power_above_w=240.0)
    assert board.read(1, power_instant_w=300.0) == ["power above 240 W"], "switched on while it is above"
