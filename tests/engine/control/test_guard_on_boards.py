"""`DeviceGuard` on boards of every kind, through NVML and the helper with rights."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from boards import LOST, NOT_SUPPORTED, TIMEOUT, StandIn

from app.base.errors import InputError, PermissionRefused, WattridgeError
from app.engine.control.client import Asking, HelperGone
from app.engine.control.controls import UNLOCKING
from app.engine.control.guard import DeviceGuard
from app.engine.control.left_over import left_over
from app.sensors.gpu import GpuLost, NotSupported, SensorError
from app.sensors.nvml.gpu import NvmlGpu

Boards = Callable[..., StandIn]
Opened = Callable[..., NvmlGpu]


@pytest.fixture
def guarded(opened: Opened) -> Iterator[Callable[..., DeviceGuard]]:
    """A guard that may set a board, closed in the end."""
    guards: list[DeviceGuard] = []

    def make(index: int = 0) -> DeviceGuard:
        guards.append(DeviceGuard(opened(index), allow_control=True))
        return guards[-1]

    yield make
    for guard in guards:
        guard.close()


@pytest.mark.parametrize("kind", ["h200", "a100", "a4000"])
def test_a_board_with_locks_is_set_obeys_and_is_as_it_was_again(
    kind: str, with_either_right: Boards, guarded: Callable[..., DeviceGuard]
) -> None:
    stand_in = with_either_right(kind)
    board, before = stand_in.boards[0], stand_in.settings()
    guard = guarded()
    assert UNLOCKING in guard.open()
    clock = board.graphics_max - 20 * board.graphics_step
    limit_w = board.limit_min / 1000 + 10
    stand_in.work(30.0)
    guard.apply(graphics_clock_mhz=clock, power_limit_w=limit_w)
    assert stand_in.settings()["lock"] == (clock, clock)
    assert stand_in.settings()["limit"] == limit_w * 1000
    seen = guard.watch()
    assert seen.obeyed, seen.message
    assert seen.observed["power_limit_w"] == pytest.approx(limit_w)
    assert guard.prior == {"power_limit_w": before["limit"] / 1000, "graphics_clock_mhz": None}
    found = left_over(stand_in.uuids[0])
    assert found is not None
    assert found.held_by is not None
    assert not found.unfinished
    guard.restore()
    assert stand_in.settings() == before
    assert left_over(stand_in.uuids[0]) is None


def test_a_board_without_locks_is_set_by_application_clocks(
    with_rights: Boards, guarded: Callable[..., DeviceGuard]
) -> None:
    stand_in = with_rights("old")
    before = stand_in.settings()
    guard = guarded()
    assert guard.open() == ()  # what it had before can be read
    stand_in.work(30.0)
    guard.apply(graphics_clock_mhz=450, memory_clock_mhz=2600)
    assert stand_in.settings()["application"] == (2600, 450)
    assert guard.prior == {"memory_clock_mhz": 2600, "graphics_clock_mhz": before["application"][1]}
    assert guard.watch().observed["graphics_clock_mhz"] == 450
    assert guard.watch().obeyed
    guard.restore()
    assert stand_in.settings() == before


@pytest.mark.parametrize(
    ("kind", "setting", "why"),
    [
        ("laptop", {"power_limit_w": 60.0}, "power limit"),
        ("laptop", {"memory_clock_mhz": 405}, "Ampere or newer"),
        ("mig", {"graphics_clock_mhz": 900}, "partitioned"),
    ],
)
def test_what_a_board_refuses_has_its_reason_and_changes_nothing(
    kind: str,
    setting: dict[str, float],
    why: str,
    with_rights: Boards,
    guarded: Callable[..., DeviceGuard],
) -> None:
    stand_in = with_rights(kind)
    before = stand_in.settings()
    guard = guarded()
    assert why in str(guard.why_not(next(iter(setting))))
    with pytest.raises(NotSupported):
        guard.apply(**setting)  # type: ignore[arg-type]
    guard.restore()
    guard.close()
    assert stand_in.settings() == before
    assert left_over(stand_in.uuids[0]) is None


def test_a_clock_between_two_supported_ones_is_snapped_and_said(
    with_rights: Boards, guarded: Callable[..., DeviceGuard]
) -> None:
    stand_in = with_rights("h200")
    guard = guarded()
    guard.apply(graphics_clock_mhz=1201)
    assert guard.applied == {"graphics_clock_mhz": 1200}
    assert stand_in.settings()["lock"] == (1200, 1200)
    assert "1201 MHz lies between two supported clocks: 1200" in guard.watch().message


@pytest.mark.parametrize("setting", [{"graphics_clock_mhz": 2500}, {"power_limit_w": 900.0}, {"power_limit_w": 10.0}])
def test_values_outside_the_board_never_leave_the_program(
    setting: dict[str, float], with_rights: Boards, guarded: Callable[..., DeviceGuard]
) -> None:
    stand_in = with_rights("h200")
    with pytest.raises(InputError):
        guarded().apply(**setting)  # type: ignore[arg-type]
    assert stand_in.calls() == []


def test_success_does_not_mean_obeyed(with_rights: Boards, guarded: Callable[..., DeviceGuard]) -> None:
    stand_in = with_rights("h200")
    stand_in.boards[0].obeys, stand_in.boards[0].clamp = 0, 500_000
    stand_in.work(30.0)
    guard = guarded()
    guard.apply(graphics_clock_mhz=1005)
    seen = guard.watch()
    assert not seen.obeyed
    assert "not obeyed: the clock runs at 1920 MHz instead of 1005" in seen.message
    guard.apply(power_limit_w=600.0)
    seen = guard.watch()
    assert not seen.obeyed
    assert "the power limit is 500 W instead of 600" in seen.message


def test_a_clock_below_for_a_reason_is_obeyed_and_the_reason_is_shown(
    with_rights: Boards, guarded: Callable[..., DeviceGuard]
) -> None:
    stand_in = with_rights("h200", "a4000")
    stand_in.work(30.0)
    guard = guarded()
    guard.apply(graphics_clock_mhz=1980, power_limit_w=250.0)
    seen = guard.watch()
    assert seen.obeyed
    assert "power cap" in seen.message
    idle = guarded(1)
    idle.apply(graphics_clock_mhz=1200)
    seen = idle.watch()
    assert seen.obeyed
    assert "idle" in seen.message


def test_what_is_locked_shows_in_the_readings(with_rights: Boards, guarded: Callable[..., DeviceGuard]) -> None:
    with_rights("h200")
    guard = guarded()
    gpu = guard.gpu
    at = [channel.name for channel in gpu.channels].index("requested_graphics_clock_mhz")
    assert gpu.read().values[at] == 1920  # the application clock
    guard.apply(graphics_clock_mhz=1200)
    assert gpu.read().values[at] == 1200
    guard.restore()
    assert gpu.read().values[at] == 1920


def test_what_was_confirmed_shows_in_the_readings_of_every_reader(
    with_either_right: Boards, guarded: Callable[..., DeviceGuard]
) -> None:
    with_either_right("h200")
    first = guarded()

    def requested_mhz(guard: DeviceGuard) -> float:
        gpu = guard.gpu
        at = [channel.name for channel in gpu.channels].index("requested_graphics_clock_mhz")
        return gpu.read().values[at]

    first.apply(graphics_clock_mhz=1200)
    first.confirm()
    assert requested_mhz(first) == 1200
    first.apply(graphics_clock_mhz=900)
    assert requested_mhz(first) == 900
    first.restore()
    assert requested_mhz(first) == 1200  # it went back to what was confirmed
    first.close()
    next_one = guarded()
    assert requested_mhz(next_one) == 1200  # no driver reports it, our record does
    next_one.restore_prior()
    assert requested_mhz(next_one) == 1920


def test_a_range_of_clocks_is_a_range_for_the_board(with_rights: Boards, guarded: Callable[..., DeviceGuard]) -> None:
    stand_in = with_rights("h200")
    guard = guarded()
    guard.apply(graphics_clock_mhz=(900.0, 1203.0))
    assert stand_in.settings()["lock"] == (900, 1200)
    stand_in.work(30.0)
    assert guard.watch().obeyed


def test_nested_guards_put_back_what_the_outer_one_set(
    with_rights: Boards, guarded: Callable[..., DeviceGuard]
) -> None:
    stand_in = with_rights("h200")
    before = stand_in.settings()
    outer = guarded()
    outer.apply(graphics_clock_mhz=1500)
    with outer.nested() as inner:
        inner.apply(graphics_clock_mhz=900, power_limit_w=300.0)
        inner.apply(graphics_clock_mhz=600)
        assert stand_in.settings()["lock"] == (600, 600)
    assert stand_in.settings() == {**before, "lock": (1500, 1500)}
    outer.restore()
    assert stand_in.settings() == before


def test_settings_held_alone_leave_the_others_as_they_were_found(
    with_rights: Boards, guarded: Callable[..., DeviceGuard]
) -> None:
    stand_in = with_rights("h200")
    stand_in.boards[0].limit = 500_000  # by another tool
    before = stand_in.settings()
    guard = guarded()
    assert guard.hold(graphics_clock_mhz=900, power_limit_w=300.0)
    assert (stand_in.settings()["lock"], stand_in.settings()["limit"]) == ((900, 900), 300_000)
    assert guard.hold(graphics_clock_mhz=900)
    assert stand_in.settings() == {**before, "lock": (900, 900)}
    assert guard.applied == {"graphics_clock_mhz": 900}
    assert guard.hold()
    assert stand_in.settings() == before
    made = len(stand_in.calls())
    assert not guard.hold()
    guard.restore()
    assert len(stand_in.calls()) == made, "what is as it was is not set again"


def test_held_within_another_guard_the_outer_ones_settings_are_in_force_again(
    with_rights: Boards, guarded: Callable[..., DeviceGuard]
) -> None:
    stand_in = with_rights("h200")
    before = stand_in.settings()
    outer = guarded()
    outer.apply(graphics_clock_mhz=1500)
    with outer.nested() as inner:
        inner.hold(graphics_clock_mhz=900, power_limit_w=300.0)
        inner.hold()
        assert stand_in.settings() == {**before, "lock": (1500, 1500)}
        inner.hold(power_limit_w=300.0)
        assert stand_in.settings() == {**before, "lock": (1500, 1500), "limit": 300_000}
    assert stand_in.settings() == {**before, "lock": (1500, 1500)}
    outer.restore()
    assert stand_in.settings() == before


def test_what_is_confirmed_stays_is_known_to_the_next_and_can_be_undone(
    with_either_right: Boards, guarded: Callable[..., DeviceGuard]
) -> None:
    stand_in = with_either_right("h200")
    stand_in.boards[0].persistence = 0
    before = stand_in.settings()
    first = guarded()
    first.apply(graphics_clock_mhz=1200, power_limit_w=400.0)
    first.confirm()
    first.close()
    kept = {**before, "lock": (1200, 1200), "limit": 400_000, "persistence": 1}
    assert stand_in.settings() == kept  # persistence, or a driver that nobody uses forgets it all
    second = guarded()
    assert UNLOCKING not in second.open()  # our record has the lock that NVML does not report
    second.apply(graphics_clock_mhz=900)
    assert second.prior == {"graphics_clock_mhz": 1200}
    second.close()
    assert stand_in.settings() == kept
    third = guarded()
    third.restore_prior()
    third.close()
    assert stand_in.settings() == before
    assert left_over(stand_in.uuids[0]) is None


@pytest.mark.usefixtures("as_root")
def test_after_a_helper_was_killed_the_next_setting_starts_another(
    boards: Boards, guarded: Callable[..., DeviceGuard]
) -> None:
    stand_in = boards("h200")
    before = stand_in.settings()
    guard = guarded()

    def kill_the_helper() -> None:
        assert guard.holder is not None
        [serving] = Path(f"/proc/{guard.holder}/task/{guard.holder}/children").read_text().split()
        for process in (guard.holder, int(serving)):
            os.kill(process, signal.SIGKILL)

    guard.apply(graphics_clock_mhz=1200, power_limit_w=300.0)
    kill_the_helper()
    with pytest.raises(HelperGone):
        guard.apply(graphics_clock_mhz=900)
    assert stand_in.settings() == before
    assert guard.applied == {}
    guard.apply(power_limit_w=300.0)  # which is no longer in force
    assert stand_in.settings() == {**before, "limit": 300_000}
    guard.confirm()
    kill_the_helper()
    guard.restore_prior()
    assert stand_in.settings() == before


def test_where_control_cannot_be_switched_on_nobody_keeps_the_rights(
    by_sudo: Boards, guarded: Callable[..., DeviceGuard], opened: Opened
) -> None:
    stand_in = by_sudo("h200")
    first = guarded()
    first.apply(power_limit_w=300.0)
    stand_in.fault("nvmlDeviceSetPowerManagementLimit", TIMEOUT)
    first.close()  # it cannot be put back: the record stays
    second = DeviceGuard(opened())
    with pytest.raises(SensorError, match="not put back"):
        second.allow(Asking.NEVER)
    assert (second.allowed, second.holder) == (False, None)
    stand_in.no_faults()
    third = guarded()
    assert "put back first" in third.open()[0]
    assert stand_in.settings()["limit"] == 650_000


def test_one_writer_per_board(
    by_sudo: Boards, guarded: Callable[..., DeviceGuard], monkeypatch: pytest.MonkeyPatch
) -> None:
    by_sudo("h200", "a100")
    first, second, other = guarded(), guarded(), guarded(1)
    first.apply(graphics_clock_mhz=1200)
    other.apply(graphics_clock_mhz=1200)
    with pytest.raises(PermissionRefused, match=f"another session is setting this board, process {first.holder}"):
        second.apply(graphics_clock_mhz=900)


def test_faults_of_the_driver_are_reported_and_cost_nothing(
    by_sudo: Boards, guarded: Callable[..., DeviceGuard]
) -> None:
    stand_in = by_sudo("h200")
    before = stand_in.settings()
    guard = guarded()
    stand_in.fault("nvmlDeviceSetGpuLockedClocks", 10, times=1)
    with pytest.raises(SensorError, match="in time"):
        guard.apply(graphics_clock_mhz=1200)
    stand_in.fault("nvmlDeviceSetPowerManagementLimit", 4, times=1)
    with pytest.raises(WattridgeError, match="refuses it to this user"):
        guard.apply(power_limit_w=300.0)
    guard.apply(power_limit_w=300.0)
    stand_in.fault("nvmlDeviceSetPowerManagementLimit", 10, times=2)  # putting back is tried three times
    guard.restore()
    assert stand_in.settings() == before


def test_a_setting_that_failed_is_made_when_it_is_asked_for_again(
    with_rights: Boards, guarded: Callable[..., DeviceGuard]
) -> None:
    stand_in = with_rights("h200")
    guard = guarded()
    stand_in.fault("nvmlDeviceSetGpuLockedClocks", 10, times=1)
    with pytest.raises(SensorError):
        guard.apply(graphics_clock_mhz=1200)
    assert guard.applied == {}
    assert guard.apply(graphics_clock_mhz=1200)
    assert stand_in.settings()["lock"] == (1200, 1200)


def test_a_lost_board_keeps_its_record_until_it_is_back(by_sudo: Boards, guarded: Callable[..., DeviceGuard]) -> None:
    stand_in = by_sudo("h200")
    before = stand_in.settings()
    guard = guarded()
    guard.apply(graphics_clock_mhz=1200, power_limit_w=300.0)
    stand_in.boards[0].lost = 1
    with pytest.raises(GpuLost):
        guard.restore()
    guard.close()
    found = left_over(stand_in.uuids[0])
    assert found is not None
    assert found.unfinished
    assert found.prior == {"power_limit_w": 650.0, "graphics_clock_mhz": None}
    stand_in.boards[0].lost = 0
    again = guarded()
    notes = again.open()
    assert any("left over" in note for note in notes)
    assert stand_in.settings() == before


def test_a_driver_without_locks_falls_back_to_application_clocks(
    with_rights: Boards, guarded: Callable[..., DeviceGuard]
) -> None:
    stand_in = with_rights("a100", missing=("nvmlDeviceSetGpuLockedClocks", "nvmlDeviceResetGpuLockedClocks"))
    before = stand_in.settings()
    guard = guarded()
    guard.apply(graphics_clock_mhz=900)
    assert stand_in.settings()["application"] == (1215, 900)
    stand_in.work(10.0)
    assert guard.watch().obeyed
    guard.close()
    assert stand_in.settings() == before


def test_a_setting_that_turns_out_unsupported_is_known_from_then_on(
    with_rights: Boards, guarded: Callable[..., DeviceGuard]
) -> None:
    stand_in = with_rights("a4000")
    stand_in.fault("nvmlDeviceSetGpuLockedClocks", NOT_SUPPORTED)
    guard = guarded()
    assert guard.why_not("graphics_clock_mhz") is None
    with pytest.raises(NotSupported):
        guard.apply(graphics_clock_mhz=1200)
    assert "does not support" in str(guard.why_not("graphics_clock_mhz"))


def test_a_board_lost_while_it_is_set(with_rights: Boards, guarded: Callable[..., DeviceGuard]) -> None:
    stand_in = with_rights("h200")
    guard = guarded()
    stand_in.fault("nvmlDeviceSetPowerManagementLimit", LOST, times=1)
    with pytest.raises(GpuLost) as lost:
        guard.apply(power_limit_w=300.0)
    assert "wattridge restore" in lost.value.remedy
