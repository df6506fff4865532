"""A simulated board's clock: it runs at any speed, which can be changed while something waits on it."""

from __future__ import annotations

import threading
import time

import pytest

from app.sensors.clock import HostClock, ScaledClock, VirtualClock, make_clock


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The host's clock, in ns, as the test sets it; sleeping lets it pass."""
    now = [5_000_000_000]
    monkeypatch.setattr(time, "monotonic_ns", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: now.__setitem__(0, now[0] + round(seconds * 1e9)))
    return now


def test_another_speed_goes_on_from_the_present_instant(wall: list[int]) -> None:
    clock = ScaledClock(1.0)
    wall[0] += 2_000_000_000
    assert clock.now_ns() == 7_000_000_000
    clock.set_speed(60.0)
    assert clock.now_ns() == 7_000_000_000, "no instant is skipped"
    wall[0] += 1_000_000_000
    assert clock.now_ns() == 67_000_000_000
    clock.set_speed(1.0)
    wall[0] += 1_000_000_000
    assert clock.now_ns() == 68_000_000_000


def test_what_waits_notices_another_speed(wall: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    clock, slept = ScaledClock(1.0), []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        wall[0] += round(seconds * 1e9)
        if len(slept) == 2:
            clock.set_speed(100.0)

    monkeypatch.setattr(time, "sleep", sleep)
    before = clock.now_ns()
    assert not clock.wait(60.0)
    assert clock.now_ns() - before == pytest.approx(60e9, abs=1e6)
    assert sum(slept) < 1.0, "not the minute that it would have been"


def test_waiting_ends_as_soon_as_it_is_stopped() -> None:
    stop = threading.Event()
    stop.set()
    assert ScaledClock(1.0).wait(3600.0, stop)


@pytest.mark.parametrize("speed", [0.0, -1.0, float("inf"), float("nan")])
def test_a_speed_that_makes_no_sense_is_refused_and_changes_nothing(speed: float) -> None:
    clock = ScaledClock(2.0)
    with pytest.raises(ValueError, match="positive and finite"):
        clock.set_speed(speed)
    assert clock.speed == 2.0


def test_only_a_clock_that_never_left_the_wall_s_pace_has_times_of_day() -> None:
    clock = ScaledClock(1.0)
    assert HostClock().kept_pace
    assert clock.kept_pace
    clock.set_speed(10.0)
    clock.set_speed(1.0)
    assert not clock.kept_pace, "its instants are not the wall's any more"
    assert not VirtualClock().kept_pace


def test_what_is_not_real_can_be_given_another_speed() -> None:
    assert isinstance(make_clock(1.0), ScaledClock)
    assert isinstance(make_clock(float("inf")), VirtualClock)


def test_a_stepped_clock_goes_no_further_than_its_thread_waits(wall: list[int]) -> None:
    clock = ScaledClock(200.0)
    before_ns = clock.now_ns()
    with clock.stepped():
        for step in range(1, 4):
            assert not clock.wait(0.025)
            wall[0] += 3_000_000_000  # the machine is busy with something else
            assert clock.now_ns() - before_ns == step * 25_000_000
    wall[0] += 1_000_000
    assert clock.now_ns() - before_ns == 75_000_000 + 200_000_000, "and then as before, from where it is"


def test_what_waits_on_a_clock_that_another_thread_steps_waits_until_then() -> None:
    clock, reached = ScaledClock(100.0), []
    end_ns = clock.now_ns() + 2_000_000_000

    def wait() -> None:
        clock.wait((end_ns - clock.now_ns()) / 1e9)
        reached.append(clock.now_ns())

    with clock.stepped():
        other = threading.Thread(target=wait)
        other.start()
        while clock.now_ns() < end_ns + 500_000_000:
            assert reached == [] or reached[0] >= end_ns
            clock.wait(0.1)
    other.join(20.0)
    assert reached
    assert reached[0] >= end_ns
