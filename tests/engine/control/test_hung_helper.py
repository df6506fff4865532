"""A helper that hangs, as the session sees it: the wait for it is bounded, and what is said of the board is true."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from boards import AS_ROOT, StandIn

from app.engine.control import client, controls
from app.engine.control.client import HelperGone
from app.engine.control.guard import DeviceGuard
from app.engine.control.helper import record
from app.engine.control.left_over import left_over
from app.sensors.nvml.gpu import NvmlGpu

Boards = Callable[..., StandIn]
pytestmark = pytest.mark.skipif(not AS_ROOT, reason="root's helper is stopped")


@pytest.fixture
def stop() -> Iterator[Callable[[int], None]]:
    """`stop(pid)`: that process goes no further; in the end it is killed."""
    pids: list[int] = []

    def send(pid: int) -> None:
        pids.append(pid)
        os.kill(pid, signal.SIGSTOP)

    yield send
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def guard(boards: Boards, opened: Callable[..., NvmlGpu]) -> Iterator[tuple[StandIn, DeviceGuard]]:
    """A guard of a board that has been set."""
    stand_in = boards("h200")
    one = DeviceGuard(opened(), allow_control=True)
    one.apply(graphics_clock_mhz=1200, power_limit_w=300.0)
    yield stand_in, one
    one.close()


def processes(guard: DeviceGuard) -> tuple[int, int]:
    """The guardian and the process that serves."""
    assert guard.holder is not None
    [serving] = Path(f"/proc/{guard.holder}/task/{guard.holder}/children").read_text().split()
    return guard.holder, int(serving)


def test_a_session_whose_helper_is_stopped_learns_that_the_board_is_back(
    guard: tuple[StandIn, DeviceGuard], stop: Callable[[int], None]
) -> None:
    stand_in, one = guard
    stop(processes(one)[1])
    began = time.monotonic()
    with pytest.raises(HelperGone, match="has ended, and what was there before is back"):
        one.apply(power_limit_w=400.0)
    assert time.monotonic() - began < client.ANSWER_S  # it was killed before that
    assert (stand_in.settings()["lock"], stand_in.settings()["limit"]) == ((0, 0), 650_000)
    assert one.applied == {}
    one.apply(power_limit_w=400.0)  # by another helper
    assert stand_in.settings()["limit"] == 400_000


def test_a_session_whose_helper_is_stopped_whole_is_not_held_up(
    guard: tuple[StandIn, DeviceGuard], stop: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in, one = guard
    monkeypatch.setattr(client, "ANSWER_S", 1.0)
    monkeypatch.setattr(controls, "_GUARDIAN_S", 0.2)
    guardian, serving = processes(one)
    stop(guardian)
    stop(serving)
    began = time.monotonic()
    with pytest.raises(HelperGone, match="does not answer, and what it set may still be in force") as gone:
        one.restore()
    assert time.monotonic() - began < 30.0
    assert str(guardian) in gone.value.what
    assert "wattridge restore" in gone.value.remedy
    assert stand_in.settings()["limit"] == 300_000
    found = left_over(stand_in.uuids[0])
    assert found is not None
    began = time.monotonic()
    one.close()  # nor by that
    assert time.monotonic() - began < 30.0


def test_a_session_does_not_learn_that_the_board_is_back_where_the_driver_hangs(
    guard: tuple[StandIn, DeviceGuard], monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in, one = guard
    monkeypatch.setattr(controls, "_GUARDIAN_S", 0.2)
    monkeypatch.setattr(client, "ANSWER_S", 8.0)
    stand_in.fault("nvmlDeviceSetPowerManagementLimit", delay_s=3600.0)
    guardian, serving = processes(one)
    os.kill(serving, signal.SIGKILL)
    with pytest.raises(HelperGone, match="what it set may still be in force"):
        one.apply(power_limit_w=400.0)
    deadline = time.monotonic() + 60.0
    while record.started(guardian) is not None:
        assert time.monotonic() < deadline, "the guardian hangs with the driver"
        time.sleep(0.1)
    found = left_over(stand_in.uuids[0])
    assert found is not None
    assert found.unfinished
    assert found.prior["power_limit_w"] == 650.0
    stand_in.no_faults()
    one.restore_prior()
    assert stand_in.settings()["limit"] == 650_000
    assert left_over(stand_in.uuids[0]) is None
