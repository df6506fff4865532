"""The helper with rights, as a process: what it answers and refuses, and that the board is put back however it ends."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from boards import StandIn
from fixtures.helper_process import HELPER, Process, changed, killed_whole, until_back
from hostile import hostile

from app.engine.control.helper.record import started
from app.engine.control.helper.serve import BEAT_S

Boards = Callable[..., StandIn]


def test_five_verbs(boards: Boards, helper: Callable[..., Process]) -> None:
    stand_in = boards("h200")
    process = helper(stand_in)
    assert process.hello["hello"] == 1
    before = changed(stand_in, process)
    state = process.ask("state")["state"]
    assert state["applied"] == {"power_limit_w": 300, "graphics_clock_mhz": [1200, 1200]}
    assert state["prior"] == {"power_limit_mw": 650_000, "locked_graphics_mhz": None}
    process.ask("reset", settings=["graphics_clock_mhz"])
    assert stand_in.settings() == {**before, "limit": 300_000}
    process.ask("reset")
    assert stand_in.settings() == before
    changed(stand_in, process)
    process.ask("confirm")
    process.ask("quit")
    assert process.gone() == 0
    assert stand_in.settings() == {**before, "lock": (1200, 1200), "limit": 300_000}
    again = helper(stand_in)
    again.ask("reset", to="prior")
    assert stand_in.settings() == before
    assert again.end() == 0


def test_the_prior_state_is_on_disk_before_the_first_setting(boards: Boards, helper: Callable[..., Process]) -> None:
    stand_in = boards("h200")
    process = helper(stand_in)
    stand_in.fault("nvmlDeviceSetPowerManagementLimit", delay_s=1.0)
    process.send(b'{"id": 1, "do": "set", "settings": {"power_limit_w": 300}}\n')
    deadline = time.monotonic() + 10.0
    while not (found := list(process.records.glob("*.json"))):
        assert time.monotonic() < deadline
    assert stand_in.settings()["limit"] == 650_000  # the driver has not answered yet
    [record] = found
    document = json.loads(record.read_text())
    assert document["prior"] == {"power_limit_mw": 650_000}
    assert document["open"]
    assert record.stat().st_mode & 0o777 == 0o644
    process.reply()


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("serving", "SIGTERM"),
        ("serving", "SIGKILL"),
        ("serving", "SIGSEGV"),
        ("waiting", "SIGTERM"),
        ("waiting", "SIGKILL"),
        ("both", "SIGSEGV"),
        ("both", "SIGTERM"),
        ("client", "SIGKILL"),
    ],
)
def test_however_one_of_its_processes_ends_the_board_is_put_back(
    target: str, name: str, boards: Boards, helper: Callable[..., Process]
) -> None:
    stand_in = boards("b200")
    process = helper(stand_in)
    before = changed(stand_in, process)
    pids = {
        "serving": [process.serving],
        "waiting": [process.waiting],
        "both": [process.serving, process.waiting],
        "client": [],
    }[target]
    if target == "client":
        process.input.close()
    for pid in pids:
        os.kill(pid, getattr(signal, name))
    until_back(stand_in, before)
    deadline = time.monotonic() + 10.0
    while list(process.records.glob("*.json")):  # it goes after the board is back
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def stopped() -> Iterator[list[int]]:
    """Processes that a test has stopped; in the end they are let go."""
    pids: list[int] = []
    yield pids
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def hung(stand_in: StandIn, process: Process, how: str, stopped: list[int]) -> None:
    """Have the serving process hang: stopped, or in a call of the driver."""
    if how == "SIGSTOP":
        stopped.append(process.serving)
        os.kill(process.serving, signal.SIGSTOP)
    else:
        stand_in.fault(how, delay_s=3600.0, times=1)
        process.send(b'{"id": 9, "do": "set", "settings": {"power_limit_w": 400}}\n')


@pytest.mark.parametrize(
    "how", ["SIGSTOP", "nvmlDeviceGetPowerManagementLimitConstraints", "nvmlDeviceSetPowerManagementLimit"]
)
def test_a_serving_process_that_hangs_is_killed_and_the_board_is_back_within_ten_seconds(
    how: str, boards: Boards, helper: Callable[..., Process], stopped: list[int]
) -> None:
    stand_in = boards("b200")
    process = helper(stand_in)
    before = changed(stand_in, process)
    serving = process.serving
    hung(stand_in, process, how, stopped)
    until_back(stand_in, before, 10.0)
    assert process.gone() == 1
    assert started(serving) is None
    assert list(process.records.glob("*.json")) == []


def test_a_driver_that_is_slow_does_not_count_as_hung(boards: Boards, helper: Callable[..., Process]) -> None:
    stand_in = boards("b200")
    process = helper(stand_in, STAND_IN_STALL_S="2.5")
    serving = process.serving
    stand_in.fault("nvmlDeviceSetPowerManagementLimit", delay_s=1.0)
    stand_in.fault("nvmlDeviceSetGpuLockedClocks", delay_s=1.0)
    stand_in.fault("nvmlDeviceGetSupportedGraphicsClocks", delay_s=1.0)
    changed(stand_in, process)  # 3 s or more altogether
    time.sleep(3.0)  # and nothing to do for longer than that
    process.ask("state")
    assert process.serving == serving


@pytest.mark.parametrize("how", ["SIGSTOP", "nvmlDeviceSetPowerManagementLimit"])
def test_a_hung_process_that_cannot_be_killed_is_not_waited_for(
    how: str, boards: Boards, helper: Callable[..., Process], stopped: list[int]
) -> None:
    stand_in = boards("b200")
    process = helper(stand_in, STAND_IN_UNKILLABLE="1", STAND_IN_STALL_S="2.5", STAND_IN_STUCK_S="30")
    before, serving = changed(stand_in, process), process.serving
    hung(stand_in, process, how, stopped)
    until_back(stand_in, before, 10.0)
    assert started(serving) is not None
    [record] = process.records.glob("*.json")
    assert json.loads(record.read_text())["open"]  # it may yet set the board
    board = stand_in.boards[0]
    board.limit = 400_000  # as the call in which it hung, when that returns
    os.kill(serving, signal.SIGKILL)
    until_back(stand_in, before, 10.0)
    assert process.gone() == 1
    assert list(process.records.glob("*.json")) == []


def test_a_process_that_stays_stuck_is_given_up_and_the_record_stays(
    boards: Boards, helper: Callable[..., Process], stopped: list[int]
) -> None:
    stand_in = boards("b200")
    process = helper(stand_in, STAND_IN_UNKILLABLE="1", STAND_IN_STALL_S="2.5", STAND_IN_STUCK_S="0.5")
    before, serving = changed(stand_in, process), process.serving
    hung(stand_in, process, "SIGSTOP", stopped)
    assert process.gone() == 1
    assert stand_in.settings() == before
    [record] = process.records.glob("*.json")
    assert json.loads(record.read_text())["open"]
    os.kill(serving, signal.SIGKILL)


@pytest.mark.parametrize(
    ("function", "left"),
    [
        ("nvmlDeviceResetGpuLockedClocks", {"lock": (1200, 1200)}),
        ("nvmlDeviceSetPowerManagementLimit", {"limit": 300_000}),
        ("nvmlDeviceGetName", {"lock": (1200, 1200), "limit": 300_000, "requested": 1 << 1}),
    ],
)
def test_where_the_driver_hangs_for_good_all_else_is_put_back_and_the_record_stays(
    function: str, left: dict[str, Any], boards: Boards, helper: Callable[..., Process]
) -> None:
    stand_in = boards("b200")
    process = helper(stand_in, STAND_IN_STALL_S="2")
    before = changed(stand_in, process)
    stand_in.fault(function, delay_s=3600.0)
    os.kill(process.serving, signal.SIGKILL)
    assert process.gone(60.0) == 1  # the guardian does not hang with it
    assert stand_in.settings() == {**before, **left}
    [record] = process.records.glob("*.json")
    assert json.loads(record.read_text())["open"]
    boot = helper(stand_in, "--restore", STAND_IN_STALL_S="2")
    assert boot.gone(60.0) == 1
    stand_in.no_faults()
    assert helper(stand_in, "--restore").gone() == 0
    assert stand_in.settings() == before


def test_a_driver_that_comes_back_after_a_while_is_waited_for(boards: Boards, helper: Callable[..., Process]) -> None:
    stand_in = boards("b200")
    process = helper(stand_in, STAND_IN_UNKILLABLE="1", STAND_IN_STALL_S="2.5", STAND_IN_STUCK_S="30")
    before = changed(stand_in, process)
    stand_in.fault("nvmlDeviceResetGpuLockedClocks", delay_s=5.0, times=1)
    os.kill(process.serving, signal.SIGKILL)
    assert process.gone(60.0) == 1
    assert stand_in.settings() == before
    assert list(process.records.glob("*.json")) == []


def test_a_start_in_which_the_driver_hangs_ends(boards: Boards, helper: Callable[..., Process]) -> None:
    stand_in = boards("b200")
    stand_in.fault("nvmlDeviceGetName", delay_s=3600.0, times=1)
    process = helper(stand_in, STAND_IN_STALL_S="0.5")
    assert process.hello == {}
    assert process.gone() == 1
    assert helper(stand_in).hello["hello"] == 1  # nobody holds the board


def test_killed_whole_it_leaves_a_record_and_the_next_one_puts_the_board_back(
    boards: Boards, helper: Callable[..., Process]
) -> None:
    stand_in = boards("b200")
    process = helper(stand_in)
    before = changed(stand_in, process)
    killed_whole(process)
    process.gone()
    assert stand_in.settings() != before
    again = helper(stand_in)
    assert again.hello["state"]["left_over"]
    assert again.hello["state"]["prior"]["power_limit_mw"] == 950_000  # not the 300 W that the board has now
    again.ask("reset")
    assert stand_in.settings() == before
    assert not again.ask("state")["state"]["left_over"]


def test_at_boot_every_board_is_put_back(boards: Boards, helper: Callable[..., Process]) -> None:
    stand_in = boards("b200")
    process = helper(stand_in)
    before = changed(stand_in, process)
    killed_whole(process)
    process.gone()
    boot = helper(stand_in, "--restore")
    assert b"nothing is left set" in boot.last_line
    assert boot.gone() == 0
    assert stand_in.settings() == before
    assert list(process.records.glob("*.json")) == []


def test_without_a_restart_what_was_confirmed_stays_and_is_not_said_to_be_back(
    boards: Boards, helper: Callable[..., Process]
) -> None:
    stand_in = boards("b200")
    process = helper(stand_in)
    before = changed(stand_in, process)
    process.ask("confirm")
    process.end()
    boot = helper(stand_in, "--restore")
    assert b"kept as it was set and confirmed" in boot.last_line
    assert boot.gone() == 0
    assert stand_in.settings() != before
    assert len(list(process.records.glob("*.json"))) == 1


@pytest.mark.parametrize("way", ["--restore", "a session", "a reset"])
@pytest.mark.parametrize("confirmed", [True, False])
def test_a_restart_of_the_machine_ends_what_was_set_and_what_was_set_since_stays(
    confirmed: bool, way: str, boards: Boards, helper: Callable[..., Process]
) -> None:
    stand_in = boards("b200")
    process = helper(stand_in)
    changed(stand_in, process)
    if confirmed:
        process.ask("confirm")
        process.end()
    else:
        killed_whole(process)
        process.gone()
    [record] = process.records.glob("*.json")
    record.write_text(json.dumps({**json.loads(record.read_text()), "boot": "another"}))
    board = stand_in.boards[0]
    board.lock[0] = board.lock[1] = 0
    board.requested = 0  # what the driver comes up with
    board.limit = 800_000  # what a service of the machine sets when it starts
    found = stand_in.settings()
    if way == "--restore":
        boot = helper(stand_in, "--restore")
        assert b"nothing is left set" in boot.last_line
        assert boot.gone() == 0
    else:
        again = helper(stand_in)
        assert not again.hello["state"]["left_over"]
        assert again.hello["state"]["kept"] == {}
        if way == "a session":
            again.ask("set", settings={"power_limit_w": 300, "graphics_clock_mhz": [900, 900]})
            assert again.end() == 0
        else:
            again.ask("reset", to="prior")
    assert stand_in.settings() == found
    assert not record.exists()


def test_silence_is_death(boards: Boards, helper: Callable[..., Process]) -> None:
    assert BEAT_S == 5.0
    stand_in = boards("b200")
    process = helper(stand_in, STAND_IN_BEAT_S="1.5")
    before = changed(stand_in, process)
    for _ in range(5):
        time.sleep(0.4)
        process.ask("state")
    assert stand_in.settings() != before  # each request is a sign of life
    process.send(b"what is not a request is none\n")
    until_back(stand_in, before)
    assert process.gone() == 0


def test_a_reader_that_does_not_read_is_dead(boards: Boards, helper: Callable[..., Process]) -> None:
    stand_in = boards("b200")
    process = helper(stand_in, STAND_IN_BEAT_S="0.6")
    before = changed(stand_in, process)
    os.set_blocking(process.input.fileno(), False)
    line = b'{"id": 1, "do": "state"}\n' * 40
    deadline = time.monotonic() + 3.0
    while time.monotonic() < deadline:  # until its output, and then its input, are full
        try:
            os.write(process.input.fileno(), line)
        except BlockingIOError:
            break
    until_back(stand_in, before)


def test_hostile_requests_change_nothing_and_stop_nothing(boards: Boards, helper: Callable[..., Process]) -> None:
    stand_in = boards("h200")
    process, before, rng = helper(stand_in), stand_in.settings(), random.Random(6)
    for _ in range(400):
        line = hostile(rng)
        process.send(line)
        if line.strip():
            assert "error" in process.reply(), line
    assert "error" not in process.ask("state")
    assert stand_in.settings() == before
    assert stand_in.calls() == []
    assert list(process.records.glob("*.json")) == []


def test_lines_in_pieces_and_lines_in_heaps(boards: Boards, helper: Callable[..., Process]) -> None:
    stand_in = boards("h200")
    process = helper(stand_in)
    for piece in (b'{"id": 7, ', b'"do"', b': "sta', b'te"}'):
        process.send(piece)
        time.sleep(0.01)
    process.send(b"\n" + b'{"id": 8, "do": "state"}\n\n \n{"id": 9, "do": "state"}\n')
    assert [process.reply()["id"] for _ in range(3)] == [7, 8, 9]
    process.send(b"x" * 100_000 + b"\n" + b'{"id": 10, "do": "state"}\n')
    assert "longer than" in process.reply()["error"]["what"]
    assert process.reply()["id"] == 10


@pytest.mark.parametrize(
    ("words", "environment", "why"),
    [
        ((), {"WATTRIDGE_READ_ONLY": "1"}, "WATTRIDGE_READ_ONLY=1"),
        ((), {"SUDO_UID": "1000", "LD_PRELOAD": ""}, "another user's libraries"),
        (("GPU-0",), {}, "UUID"),
        (("../../etc/passwd",), {}, "UUID"),
        (("MIG-41b3359c-e721-56e5-8009-12e5797ed514",), {}, "UUID"),
        (("GPU-00000000-0000-0000-0000-000000000000",), {}, "nvmlDeviceGetHandleByUUID"),
    ],
)
def test_it_does_not_even_start(
    words: tuple[str, ...],
    environment: dict[str, str],
    why: str,
    boards: Boards,
    helper: Callable[..., Process],
) -> None:
    stand_in = boards("h200")
    process = helper(stand_in, *words, **environment)
    assert why in process.hello["error"]["what"]
    assert process.gone() == 1
    assert stand_in.calls() == []


def test_it_needs_nothing_but_python_and_pynvml() -> None:
    """No site-packages but for pynvml, none of this project but its own folder."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-X", "importtime", str(HELPER), "not a board"],
        capture_output=True,
        text=True,
        env={},
    )
    assert "UUID" in json.loads(done.stdout)["error"]["what"]
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time")}
    ours = {name for name in loaded if name.startswith("app")}
    assert ours <= {"app", "app.engine", "app.engine.control"} | {n for n in ours if ".control.helper" in n}
    assert not {name for name in loaded if name.split(".")[0] in ("numpy", "scipy", "PySide6", "site", "subprocess")}
