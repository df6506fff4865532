"""What other tools have set or hold is named, and a clock that one of them locked is set when the user agrees."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from boards import StandIn

from app.base.errors import LockedOutside
from app.cli import main
from app.engine.control.guard import DeviceGuard
from app.engine.control.outside import held_elsewhere, locked_at, monitors
from app.engine.models.clock_fits import fit_of_sweep
from app.engine.session.on_board import OneBoard
from app.sensors.event_reasons import EventReason
from app.sensors.nvml.gpu import NvmlGpu
from app.sensors.nvml.library import LIBRARY

Boards = Callable[..., StandIn]
Opened = Callable[..., NvmlGpu]
GRAPHICS, MEMORY = "graphics_clock_mhz", "memory_clock_mhz"
H200 = tuple(range(345, 1981, 15))
SETTERS = ("SetGpuLockedClocks", "ResetGpuLockedClocks", "SetMemoryLockedClocks", "ResetMemoryLockedClocks")


@pytest.fixture(autouse=True)
def a_short_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in drops its clocks within 20 ms of the end of work; real boards take a second or two."""
    monkeypatch.setattr("app.engine.control.outside.LOOK_S", 0.3)


def lock(stand_in: StandIn) -> None:
    """Another tool locks the graphics clock at 1200 MHz; the clock is there."""
    board = stand_in.boards[0]
    board.lock[0] = board.lock[1] = board.from_mhz = board.to_mhz = 1200


# --- a lock by its effect ---------------------------------------------------------------------------------------------


def readings(
    clocks_mhz: list[float],
    *,
    busy: float = 100.0,
    reasons: EventReason = EventReason.NONE,
    application: float | None = 1980.0,
    state: float | None = 0.0,
    name: str = GRAPHICS,
) -> list[dict[str, float | None]]:
    same = {"utilisation_percent": busy, "event_reasons": float(reasons), "performance_state": state}
    return [{**same, name: mhz, f"requested_{name}": application} for mhz in clocks_mhz]


def test_under_load_a_clock_that_stands_below_the_highest_without_a_limit_is_locked() -> None:
    assert locked_at(readings([1200.0] * 20), GRAPHICS, H200) == 1200.0
    assert locked_at(readings([1980.0] * 20), GRAPHICS, H200) is None, "it is the highest"
    assert locked_at(readings([1200.0] * 19 + [1215.0]), GRAPHICS, H200) is None, "it moves"
    assert locked_at(readings([1200.0] * 20, busy=50.0), GRAPHICS, H200) is None, "it may not need more"


@pytest.mark.parametrize(
    "reason", [EventReason.POWER_CAP, EventReason.SOFTWARE_THERMAL, EventReason.POWER_BRAKE, EventReason.SYNC_BOOST]
)
def test_a_limit_that_acts_explains_the_clock(reason: EventReason) -> None:
    assert locked_at(readings([1200.0] * 20, reasons=reason), GRAPHICS, H200) is None


def test_application_clocks_and_the_reach_of_boards_without_them_explain_it_too() -> None:
    assert locked_at(readings([1200.0] * 20, application=1200.0), GRAPHICS, H200) is None
    geforce = tuple(range(210, 3106, 15))
    assert locked_at(readings([2730.0] * 20, application=None), GRAPHICS, geforce) is None, "no board reaches all"
    assert locked_at(readings([2100.0] * 20, application=None), GRAPHICS, geforce) == 2100.0


def test_an_idle_board_whose_clock_stays_up_is_locked_unless_a_program_keeps_it_ready() -> None:
    idle = readings([1980.0] * 20, busy=0.0, reasons=EventReason.IDLE)
    assert locked_at(idle, GRAPHICS, H200) == 1980.0
    assert locked_at(idle, GRAPHICS, H200, in_use=True) is None
    assert locked_at(readings([345.0] * 20, busy=0.0), GRAPHICS, H200) is None
    assert locked_at(readings([1980.0] * 9 + [345.0], busy=0.0), GRAPHICS, H200) is None, "it was about to drop"


def test_a_memory_clock_is_judged_by_the_performance_state() -> None:
    rtx, hbm = (405, 810, 5001, 9501, 9751), (2201, 3201)
    memory: dict[str, Any] = {"name": MEMORY, "application": None}
    assert locked_at(readings([9501.0] * 20, state=2.0, **memory), MEMORY, rtx) is None, "as GeForce boards compute"
    assert locked_at(readings([5001.0] * 20, state=3.0, **memory), MEMORY, rtx) == 5001.0
    assert locked_at(readings([405.0] * 20, busy=0.0, state=8.0, **memory), MEMORY, rtx) is None, "it is idle"
    assert locked_at(readings([2201.0] * 20, busy=0.0, name=MEMORY, application=3201.0), MEMORY, hbm) == 2201.0
    assert locked_at(readings([3201.0] * 20, name=MEMORY, application=3201.0), MEMORY, hbm) is None


@pytest.mark.parametrize("unknown", [GRAPHICS, "utilisation_percent", "event_reasons"])
def test_what_is_not_known_shows_no_lock(unknown: str) -> None:
    assert locked_at([{**values, unknown: None} for values in readings([1200.0] * 20)], GRAPHICS, H200) is None
    assert locked_at([], GRAPHICS, H200) is None
    assert locked_at(readings([1200.0] * 20), GRAPHICS, ()) is None


# --- what is listed ---------------------------------------------------------------------------------------------------


def found(gpu: NvmlGpu) -> dict[str, str]:
    return {held.what: held.text for held in held_elsewhere(gpu)}


@pytest.mark.parametrize("load_s", [0.0, 30.0])
def test_settings_and_a_lock_of_another_tool_are_named(boards: Boards, opened: Opened, load_s: float) -> None:
    stand_in = boards("h200")
    board = stand_in.boards[0]
    board.application[1], board.limit, board.persistence = 1980, board.limit_default, 0
    assert found(opened()) == {}
    board.application[1], board.limit, board.persistence = 1500, 650_000, 1
    lock(stand_in)
    stand_in.work(load_s)
    named = found(opened())
    assert named["power_limit_w"] == "NVIDIA H200: power limit 650 W, by default 700 W: it holds for what is measured"
    assert "1500 MHz, by default 1980 MHz" in named["application_graphics_clock_mhz"]
    assert "application_memory_clock_mhz" not in named
    assert named[GRAPHICS].startswith("NVIDIA H200: graphics clock stands at 1200 MHz as if locked")
    assert "sudo nvidia-smi -rgc" in named[GRAPHICS]
    assert "persistence mode is on" in named["persistence_mode"]


def test_a_memory_lock_is_named_and_a_board_that_is_lost_has_nothing(boards: Boards, opened: Opened) -> None:
    stand_in = boards("h200")
    stand_in.boards[0].memory_lock[0] = stand_in.boards[0].memory_lock[1] = 2201
    gpu = opened()
    assert "memory clock stands at 2201 MHz" in found(gpu)[MEMORY]
    stand_in.boards[0].lost = 1
    assert found(gpu) == {}


def test_what_this_program_has_set_or_kept_is_not_of_another_tool(with_rights: Boards, opened: Opened) -> None:
    stand_in = with_rights("h200")
    gpu = opened()
    settings = {GRAPHICS, "power_limit_w"}
    with DeviceGuard(gpu, allow_control=True) as guard:
        guard.apply(graphics_clock_mhz=1200.0, power_limit_w=500.0)
        assert not settings & found(gpu).keys()
        guard.confirm()
        guard.close()
    assert stand_in.settings()["lock"] == (1200, 1200)
    assert not settings & found(gpu).keys()
    guard.require_unlocked((GRAPHICS,))


def test_other_tools_processes_are_named(tmp_path: Path) -> None:
    processes = {
        "7": ("nvtop", ["nvtop"]),
        "12": ("nvitop", ["/usr/bin/python3", "/usr/bin/nvitop", "-m"]),
        "30": ("nvidia-smi", ["nvidia-smi", "dmon", "-s", "p"]),
        "31": ("nvidia-smi", ["nvidia-smi", "-q"]),
        "45": ("lact", ["/usr/bin/lact", "daemon"]),
        "46": ("lact", ["/usr/bin/lact", "gui"]),
        "50": ("vim", ["vim", "nvtop"]),
    }
    for number, (name, words) in processes.items():
        (tmp_path / number).mkdir()
        (tmp_path / number / "comm").write_text(f"{name}\n")
        (tmp_path / number / "cmdline").write_bytes("\0".join(words).encode() + b"\0")
    (tmp_path / "99").mkdir()  # it has just ended
    lines = [held.text for held in monitors(tmp_path)]
    assert [line.partition(")")[0] for line in lines] == [
        "nvtop (process 7",
        "nvitop (process 12",
        "nvidia-smi dmon (process 30",
        "lact daemon (process 45",
    ]
    assert "reads boards too" in lines[0]
    assert "end it before a session" in lines[3]


def test_gpus_and_monitor_show_it(boards: Boards, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stand_in = boards("h200")
    lock(stand_in)
    (tmp_path / "proc/7").mkdir(parents=True)
    (tmp_path / "proc/7/comm").write_text("nvtop\n")
    (tmp_path / "proc/7/cmdline").write_bytes(b"nvtop\0")
    assert main(["gpus"]) == 0
    shown = capsys.readouterr().out
    assert "NVIDIA H200: graphics clock stands at 1200 MHz as if locked" in shown
    assert "nvtop (process 7) reads boards too" in shown
    assert main(["gpus", "--json"]) == 0
    [board] = json.loads(capsys.readouterr().out)
    whats = ["power_limit_w", "application_graphics_clock_mhz", GRAPHICS, "persistence_mode", "monitor"]
    assert [held["what"] for held in board["held_elsewhere"]] == whats
    assert main(["monitor", "--gpu", "0", "--duration", "0.2", "--json"]) == 0
    assert [held["what"] for held in json.loads(capsys.readouterr().out)["held_elsewhere"]] == whats
    assert main(["monitor", "--gpu", "0", "--duration", "0.2"]) == 0
    assert "graphics clock stands at 1200 MHz" in capsys.readouterr().err


# --- before a clock is set --------------------------------------------------------------------------------------------


@pytest.fixture
def guard(with_rights: Boards, opened: Opened) -> Iterator[tuple[StandIn, DeviceGuard]]:
    """A board whose graphics clock another tool has locked, and its guard."""
    stand_in = with_rights("h200")
    lock(stand_in)
    made = DeviceGuard(opened(), allow_control=True)
    yield stand_in, made
    made.close()


def locks_made(stand_in: StandIn) -> list[str]:
    return [call.function for call in stand_in.calls() if call.function.removeprefix("nvmlDevice") in SETTERS]


def test_a_session_over_a_clock_that_is_locked_is_not_planned_before_the_user_agrees(
    guard: tuple[StandIn, DeviceGuard],
) -> None:
    stand_in, its_guard = guard
    board = OneBoard(its_guard.gpu, its_guard)
    with pytest.raises(LockedOutside, match="graphics clock stands at 1200 MHz") as locked:
        board.allowed_settings({GRAPHICS: (900, 1800)})
    assert "sudo nvidia-smi -rgc" in locked.value.remedy
    assert "--over-locks" in locked.value.remedy
    with pytest.raises(LockedOutside):
        board.require_settings((GRAPHICS,))  # to resume one
    with pytest.raises(LockedOutside):
        fit_of_sweep(its_guard.gpu, guard=its_guard)
    assert locks_made(stand_in) == []
    assert board.allowed_settings({"power_limit_w": (500, 600), MEMORY: (2201, 3201)})[0].keys() == {
        "power_limit_w",
        MEMORY,
    }
    its_guard.over_locks = True
    assert board.allowed_settings({GRAPHICS: (900, 1800)})[0] == {GRAPHICS: (900, 1800)}
    its_guard.forbid()
    its_guard.allow(its_guard._shared.asking)
    with pytest.raises(LockedOutside):
        board.allowed_settings({GRAPHICS: (900, 1800)})


def test_a_lock_that_no_setting_is_about_is_never_reset(guard: tuple[StandIn, DeviceGuard]) -> None:
    stand_in, its_guard = guard
    before = stand_in.settings()
    its_guard.hold(power_limit_w=500.0, memory_clock_mhz=2201.0)
    its_guard.hold()
    its_guard.restore()
    assert stand_in.settings() == before
    assert not [call for call in locks_made(stand_in) if "Gpu" in call]


@pytest.fixture
def apply(with_rights: Boards, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[StandIn, int]]:
    """`apply("y")`: a command that locks a clock, with that answer to whatever is asked; None without a terminal."""

    def run(answer: str | None, *words: str) -> tuple[StandIn, int]:
        stand_in = with_rights("h200")
        lock(stand_in)
        LIBRARY.close()
        monkeypatch.setattr("app.commands.terminal.at_terminal", lambda: answer is not None)
        monkeypatch.setattr(sys, "stdin", io.StringIO(f"{answer}\n"))
        line = ["apply", "--gpu", "0", "--clock", "900", "--countdown", "0.1", "--allow-control", *words]
        return stand_in, main(line)

    return run


def test_on_a_terminal_it_is_a_question(
    apply: Callable[..., tuple[StandIn, int]], capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in, status = apply("n")
    assert (status, stand_in.settings()["lock"], locks_made(stand_in)) == (1, (1200, 1200), [])
    assert "Set it all the same, and leave it unlocked? [y/N]" in capsys.readouterr().err
    stand_in, status = apply("y")
    assert (status, stand_in.settings()["lock"]) == (0, (0, 0))
    assert [call.a for call in stand_in.calls() if call.function == "nvmlDeviceSetGpuLockedClocks"] == [900]


def test_without_one_it_ends_with_one_line_that_names_the_option(
    apply: Callable[..., tuple[StandIn, int]], capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in, status = apply(None)
    assert (status, stand_in.settings()["lock"], locks_made(stand_in)) == (1, (1200, 1200), [])
    [line] = [line for line in capsys.readouterr().err.splitlines() if "as if another tool had locked it" in line]
    assert "--over-locks" in line
    stand_in, status = apply(None, "--json")
    assert status == 1
    assert "--over-locks" in json.loads(capsys.readouterr().out)["error"]["remedy"]
    stand_in, status = apply(None, "--over-locks")
    assert (status, stand_in.settings()["lock"]) == (0, (0, 0))
