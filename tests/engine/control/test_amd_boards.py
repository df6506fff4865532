"""AMD boards are set by the same helper, record and watchdog as NVIDIA's: what is AMD's own, kills, hostility."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from boards import StandIn
from fixtures.helper_process import Process, killed_whole, until_back
from hostile import hostile

from app.base.errors import PermissionRefused, WattridgeError
from app.cli import main
from app.engine.control.controls import UNLOCKING
from app.engine.control.guard import DeviceGuard
from app.engine.control.left_over import left_over
from app.sensors.amd.gpu import AmdGpu
from app.sensors.gpu import GpuLost, NotSupported

Boards = Callable[..., StandIn]
Helper = Callable[..., Process]
IO_ERROR, TIMED_OUT, AUTO, HIGH, MANUAL = 12, 8, 0, 2, 3


@pytest.fixture
def guarded(opened_amd: Callable[..., AmdGpu]) -> Iterator[Callable[..., DeviceGuard]]:
    """A guard that may set a board, closed in the end."""
    guards: list[DeviceGuard] = []

    def make(index: int = 0) -> DeviceGuard:
        guards.append(DeviceGuard(opened_amd(index), allow_control=True))
        return guards[-1]

    yield make
    for guard in guards:
        guard.close()


Guarded = Callable[..., DeviceGuard]


def test_a_board_is_set_obeys_and_is_as_it_was_again(with_either_right: Boards, guarded: Guarded) -> None:
    stand_in = with_either_right("mi210")
    before = stand_in.settings()
    guard = guarded()
    assert UNLOCKING not in guard.open()  # the performance level says whether a range is set
    stand_in.work(30.0)
    guard.apply(graphics_clock_mhz=1200, power_limit_w=200.0)
    assert stand_in.settings() == {"limit": 200_000, "lock": (1199, 1200), "level": MANUAL}
    seen = guard.watch()
    assert seen.obeyed, seen.message
    assert (seen.observed["graphics_clock_mhz"], seen.observed["power_limit_w"]) == (1200, 200)
    assert guard.prior == {"power_limit_w": 280.0, "graphics_clock_mhz": None}
    found = left_over(stand_in.uuids[0])
    assert found is not None
    assert found.held_by is not None
    guard.restore()
    assert stand_in.settings() == before
    assert left_over(stand_in.uuids[0]) is None


@pytest.mark.parametrize(("asked", "lock"), [((600.0, 900.0), (600, 900)), (500, (500, 501)), (1700, (1699, 1700))])
def test_a_range_is_a_range_and_one_clock_the_narrowest(
    asked: Any, lock: tuple[int, int], with_rights: Boards, guarded: Guarded
) -> None:
    stand_in = with_rights("mi210")
    guarded().apply(graphics_clock_mhz=asked)
    assert stand_in.settings()["lock"] == lock


def test_a_range_that_somebody_had_set_is_put_back(with_rights: Boards, guarded: Guarded) -> None:
    stand_in = with_rights("mi210")
    board = stand_in.boards[0]
    board.level, board.lock[0], board.lock[1] = MANUAL, 700, 1500
    before = stand_in.settings()
    guard = guarded()
    guard.apply(graphics_clock_mhz=1000)
    assert guard.prior == {"graphics_clock_mhz": 1500.0}
    guard.close()
    assert stand_in.settings() == before


def test_a_level_that_could_not_be_put_back_is_not_left(with_rights: Boards, guarded: Guarded) -> None:
    stand_in = with_rights("mi210")
    stand_in.boards[0].level = HIGH
    guard = guarded()
    guard.apply(power_limit_w=200.0)  # has nothing to do with it
    with pytest.raises(PermissionRefused, match="performance level is 2"):
        guard.apply(graphics_clock_mhz=1000)
    guard.close()
    assert stand_in.settings() == {"limit": 280_000, "lock": (0, 0), "level": HIGH}
    assert not [call for call in stand_in.calls() if call.function != "amdsmi_set_power_cap"]


def test_memory_clocks_are_refused_with_the_reason(with_rights: Boards, guarded: Guarded) -> None:
    stand_in = with_rights("mi210")
    with pytest.raises(NotSupported, match="memory clocks of AMD boards are not set"):
        guarded().apply(memory_clock_mhz=1600)
    assert stand_in.calls() == []


def test_what_is_confirmed_stays_until_it_is_undone(with_either_right: Boards, guarded: Guarded) -> None:
    stand_in = with_either_right("mi210")
    before = stand_in.settings()
    first = guarded()
    first.apply(graphics_clock_mhz=1200, power_limit_w=200.0)
    first.confirm()
    first.close()
    kept = {"limit": 200_000, "lock": (1199, 1200), "level": MANUAL}
    assert stand_in.settings() == kept
    second = guarded()
    second.apply(graphics_clock_mhz=900)
    second.close()
    assert stand_in.settings() == kept
    third = guarded()
    third.restore_prior()
    assert stand_in.settings() == before


def test_faults_of_the_driver_are_reported_and_cost_nothing(by_sudo: Boards, guarded: Guarded) -> None:
    stand_in = by_sudo("mi210")
    before = stand_in.settings()
    guard = guarded()
    stand_in.fault("amdsmi_set_gpu_clk_range", TIMED_OUT, times=1)
    with pytest.raises(WattridgeError, match="in time"):
        guard.apply(graphics_clock_mhz=1200)
    guard.apply(graphics_clock_mhz=1200)
    stand_in.fault("amdsmi_set_gpu_perf_level", TIMED_OUT, times=2)  # putting back is tried three times
    guard.restore()
    assert stand_in.settings() == before


def test_a_lost_board_keeps_its_record_until_it_is_back(by_sudo: Boards, guarded: Guarded) -> None:
    stand_in = by_sudo("mi210")
    before = stand_in.settings()
    guard = guarded()
    guard.apply(graphics_clock_mhz=1200)
    stand_in.boards[0].lost = 1
    with pytest.raises(GpuLost):
        guard.restore()
    guard.close()
    stand_in.boards[0].lost = 0
    assert any("left over" in note for note in guarded().open())
    assert stand_in.settings() == before


# --- the helper as such -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("victim", ["serving", "waiting", "input"])
def test_however_the_helper_ends_the_board_is_as_it_was(victim: str, boards: Boards, helper: Helper) -> None:
    stand_in = boards("mi210")
    process, before = helper(stand_in), stand_in.settings()
    assert "error" not in process.ask("set", settings={"graphics_clock_mhz": [900, 1200], "power_limit_w": 150})
    assert stand_in.settings() == {"limit": 150_000, "lock": (900, 1200), "level": MANUAL}
    if victim == "input":
        process.end()
    else:
        os.kill(getattr(process, victim), signal.SIGKILL)
    until_back(stand_in, before)


def test_after_both_its_processes_were_killed_the_next_start_puts_it_back(boards: Boards, helper: Helper) -> None:
    stand_in = boards("mi210")
    first, before = helper(stand_in), stand_in.settings()
    first.ask("set", settings={"graphics_clock_mhz": [900, 1200], "power_limit_w": 150})
    killed_whole(first)
    first.gone()
    assert stand_in.settings() != before
    second = helper(stand_in)
    assert second.hello["state"]["left_over"]
    assert "error" not in second.ask("reset")
    assert stand_in.settings() == before


def test_what_was_left_over_is_put_back_when_the_machine_starts(boards: Boards, helper: Helper) -> None:
    stand_in = boards("h200", "mi210")
    process, before = helper(stand_in, stand_in.uuids[1]), stand_in.settings(1)
    process.ask("set", settings={"graphics_clock_mhz": [900, 1200], "power_limit_w": 150})
    killed_whole(process)
    process.gone()
    assert helper(stand_in, "--restore").gone() == 0
    assert stand_in.settings(1) == before


def test_hostile_requests_change_nothing_and_stop_nothing(boards: Boards, helper: Helper) -> None:
    stand_in, rng = boards("mi210"), random.Random(18)
    process, before = helper(stand_in), stand_in.settings()
    for _ in range(400):
        line = hostile(rng, "mi210")
        if not line.strip():
            continue
        process.send(line)
        assert "error" in process.reply(), line
    assert stand_in.settings() == before
    assert stand_in.calls() == []
    assert "error" not in process.ask("state")


def test_both_makers_boards_are_set_at_the_same_time(boards: Boards, helper: Helper) -> None:
    stand_in = boards("h200", "mi210")
    before = [stand_in.settings(at) for at in (0, 1)]
    nvidia, amd = (helper(stand_in, uuid) for uuid in stand_in.uuids)
    for process in (nvidia, amd):
        assert "error" not in process.ask("set", settings={"graphics_clock_mhz": [1200, 1200]})
    assert stand_in.settings(0)["lock"] == (1200, 1200)
    assert stand_in.settings(1)["lock"] == (1199, 1200)
    nvidia.end()
    assert stand_in.settings(0) == before[0]
    assert stand_in.settings(1) != before[1]
    amd.end()
    assert stand_in.settings(1) == before[1]


@pytest.mark.parametrize("uuids", [0, 2])
def test_a_uuid_that_is_not_one_boards_own_sets_nothing(uuids: int, boards: Boards, helper: Helper) -> None:
    """Boards without a serial number share one."""
    stand_in = boards("mi210", "mi210")
    if uuids == 2:
        stand_in.boards[1].uuid = stand_in.boards[0].uuid
        own = stand_in.uuids[0]
    else:
        own = "AMD-00000000-0000-1000-8000-000000000000"
    process = helper(stand_in, own)
    assert "one is needed" in process.hello["error"]["what"]
    assert process.gone() == 1


# --- commands ---------------------------------------------------------------------------------------------------------

SPECIFICATION = f"""
[command]
run = "{sys.executable} -c 'import time; time.sleep(0.05 * {{n}})'"
[parameters]
n = [1, 2]
[device_settings]
graphics_clock_mhz = [900, 1500]
[objective]
minimise = "energy_j"
[search]
strategy = "brute_force"
"""


def test_a_session_of_a_program_steers_the_clock_and_leaves_the_board_as_it_was(
    with_rights: Boards, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in = with_rights("mi210")
    before = stand_in.settings()
    stand_in.work(60.0)
    path = tmp_path / "program.toml"
    path.write_text(SPECIFICATION)
    assert main(["tune", str(path), "--gpu", "amd:0", "--allow-control", "--json"]) == 0
    session = json.loads(capsys.readouterr().out)
    assert (session["source"], session["evaluated"], session["failed"]) == ("amd", 6, {})  # two clocks, untouched
    assert {call.b for call in stand_in.calls() if call.function == "amdsmi_set_gpu_clk_range"} == {900, 1500}
    assert stand_in.settings() == before


def test_clocks_are_applied_and_restored_by_commands(with_rights: Boards, capsys: pytest.CaptureFixture[str]) -> None:
    stand_in = with_rights("mi210")
    before = stand_in.settings()
    apply = [
        "apply",
        "--json",
        "--gpu",
        "amd:0",
        "--clock",
        "1200",
        "--power-limit",
        "200",
        "--allow-control",
        "--keep",
    ]
    assert main(apply) == 0
    assert json.loads(capsys.readouterr().out)["obeyed"]
    assert stand_in.settings() == {"limit": 200_000, "lock": (1199, 1200), "level": MANUAL}
    assert main(["restore", "--gpu", "amd:0"]) == 0
    assert stand_in.settings() == before


def test_no_script_of_nvidia_smi_is_written_for_it(
    with_rights: Boards, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with_rights("mi210")
    assert main(["apply", "--gpu", "amd:0", "--clock", "1200", "--out", str(tmp_path)]) != 0
    assert "nvidia-smi" in capsys.readouterr().err
    assert list(tmp_path.glob("*.sh")) == []
