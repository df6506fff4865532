"""A window knows how warm the board was, and is one in which the time per launch stood still."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fixtures.fake_board import CLOCKS, HEAVY, IDLE_W, LIGHT, FakeBoard

from app.engine.metering.meter import Meter
from app.sensors.channel import Reading
from app.sensors.event_reasons import EventReason
from app.sensors.gpu import Execution, Load


@pytest.mark.parametrize("buffer", [True, False], ids=["buffer", "polled"])
def test_a_window_keeps_what_the_board_drew_before_it(buffer: bool) -> None:
    board = FakeBoard(buffer=buffer)
    meter = Meter(board)
    board.clock.wait(5.0)
    first = meter.measure(LIGHT)
    assert first is not None
    for _ in range(30):
        last = meter.measure(HEAVY)
        assert last is not None
    after = meter.measure(LIGHT)
    assert after is not None
    assert first.condition.gpu_c == after.condition.gpu_c == 60.0
    assert IDLE_W <= first.condition.slow_w < 70.0, "it had idled"
    assert last.condition.fast_w == pytest.approx(200.0, rel=0.05), "the heavy load itself"
    assert 100.0 < after.condition.fast_w < 200.0, "and its trace in the window after it"
    assert first.condition.slow_w < after.condition.slow_w < 200.0


class Disturbed(FakeBoard):
    """Something else runs on it during the first so many windows."""

    def __init__(self, windows: int) -> None:
        super().__init__(buffer=True)
        self.disturbed = windows
        self.ended = 0

    def lap(self) -> Execution:
        load = self._load
        assert load is not None
        execution = self.end()
        self.begin(load)
        return execution

    def end(self) -> Execution:
        self.ended += 1
        return replace(super().end(), change=0.04 if self.disturbed else 0.0)


def test_a_window_within_which_the_time_per_launch_changed_is_measured_again() -> None:
    class Once(Disturbed):
        def begin(self, load: Load) -> None:
            self.disturbed = len(self.launched) <= 2  # the first window
            super().begin(load)

    board = Once(1)
    window = Meter(board).measure(HEAVY)
    assert window is not None
    assert window.change == 0.0
    always = Meter(Disturbed(1_000)).measure(HEAVY)
    assert always is not None
    assert always.change == pytest.approx(0.04), "and said where it stays so"


class Recovering(FakeBoard):
    """After the heavy load, which runs into a limit, the clock climbs so slowly that no window sees it move."""

    def begin(self, load: Load) -> None:
        super().begin(load)
        if load is not HEAVY and self._cap_clocks:
            self.freed_ns = self.clock.now_ns()
        self._cap_clocks = [1200.0] if load is HEAVY else []

    @property
    def clock_mhz(self) -> float:
        if self._cap_clocks:
            return self._cap_clocks[0]
        since_s = (self.clock.now_ns() - getattr(self, "freed_ns", 0)) / 1e9
        return min(float(CLOCKS[-1]), 1485.0 + 20.0 * since_s) if "heavy" in self.launched else float(CLOCKS[-1])

    def read(self) -> Reading:
        reading = super().read()
        names = [described.name for described in self.channels]
        values = list(reading.values)
        if not self._cap_clocks and self.busy:
            values[names.index("event_reasons")] = float(EventReason.NONE)
        return Reading(reading.time_ns, tuple(values))


def test_a_clock_that_a_limit_held_back_is_waited_for() -> None:
    board = Recovering(buffer=True)
    meter = Meter(board)
    assert meter.measure(LIGHT) is not None
    assert meter.measure(HEAVY) is not None
    after = meter.measure(LIGHT)
    assert after is not None
    assert after.observed_clock_mhz >= 1494.0
    assert after.time_s == pytest.approx(LIGHT.work_flop / 1e14, rel=0.005)
    assert not after.event_reasons
    assert not after.unsteady


class SlowForOnce(FakeBoard):
    """Something else slows the board from the beginning to the end of one window: both of its halves alike."""

    slow_begin = -1  # the window that begins with so many loads launched

    def time_s(self, load: Load) -> float:
        return super().time_s(load) * (1.04 if self.slow_begin == len(self.launched) else 1.0)


@pytest.mark.parametrize("buffer", [True, False], ids=["buffer", "polled"])
def test_a_window_whose_time_a_second_look_does_not_confirm_is_measured_again(buffer: bool) -> None:
    board = SlowForOnce(buffer=buffer)
    meter = Meter(board)
    meter.warm(HEAVY)
    warm = len(board.launched)
    board.slow_begin = warm + 2  # the window opens with a new lap
    window = meter.measure(HEAVY)
    assert window is not None
    assert window.time_s == pytest.approx(HEAVY.work_flop / 1e14)
    assert not window.unsteady
    assert len(board.launched) > warm + 4, "it was measured twice"


def test_a_second_look_while_a_clock_returns_from_a_limit_shows_nothing() -> None:
    board = Recovering(buffer=True)
    meter = Meter(board)
    light, heavy = meter.run(LIGHT), meter.run(HEAVY)
    assert light is not None
    assert heavy is not None
    looks = len(board.launched)
    meter.look_again(heavy)
    assert len(board.launched) == looks, "a limit held it back: its time is the limit's"
    meter.look_again(light)
    assert len(board.launched) == looks + 1
    assert light.again == 0.0, "the clock is at 1485 MHz still"
    board.clock.wait(2.0)
    meter.look_again(light)
    assert abs(light.again) < 0.01
