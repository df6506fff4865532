"""The helper in what may be around it: limits, signals, descriptors, another user, lost locks, a clock that jumps."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from boards import StandIn
from fixtures.helper_process import Process, changed, killed_whole, until_back
from installation import as_nobody
from test_installed_helper import PATHS, Machine, machine, set_limit
from test_keeper import HOLDER, UUID, Driver

from app.engine.control.helper import record
from app.engine.control.helper.keeper import Keeper
from app.engine.control.helper.nvml_board import NvmlBoard
from app.engine.control.helper.record import Records
from app.engine.control.left_over import left_over

__all__ = ["machine"]

Boards = Callable[..., StandIn]
OTHER_USER = 1  # daemon, which every system has


def ignored(*names: str) -> Callable[[], None]:
    def do() -> None:
        for name in names:
            signal.signal(getattr(signal, name), signal.SIG_IGN)

    return do


def blocked() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})


def limited(name: str, value: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(getattr(resource, name), (value, value))


# What is done to the process before it becomes sudo; and whether the helper can then set a board at all.
SURROUNDINGS: dict[str, tuple[Callable[[], object], bool]] = {
    "nothing": (lambda: None, True),
    "umask 000": (lambda: os.umask(0), True),
    "umask 777": (lambda: os.umask(0o777), True),
    "no standard error": (lambda: os.close(2), True),
    "ended children are not reported": (ignored("SIGCHLD"), True),
    "signals ignored": (ignored("SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGPIPE", "SIGCHLD"), True),
    "signals blocked": (blocked, True),
    "no file may grow": (limited("RLIMIT_FSIZE", 0), False),
    "half a record fits": (limited("RLIMIT_FSIZE", 150), False),
    "ten open files": (limited("RLIMIT_NOFILE", 10), False),
    "no processes": (limited("RLIMIT_NPROC", 0), True),
    "a second of the processor": (limited("RLIMIT_CPU", 1), True),
}


@contextmanager
def helper_of(one: Machine, prefix: list[str], before: Callable[[], object]) -> Iterator[Callable[[str], Any]]:
    """The installed helper in such surroundings: `ask(line)` gives a reply, and without a line its greeting."""
    process = subprocess.Popen(
        [*prefix, str(one.launcher), one.board],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd="/",
        env=PATHS,
        preexec_fn=before,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    stdin, stdout = process.stdin, process.stdout

    def ask(line: str) -> Any:
        if line:
            stdin.write(line)
            stdin.flush()
        return json.loads(stdout.readline())

    with stdout:
        with stdin:
            yield ask
        process.wait(20)


def serving(holder: int) -> int:
    return int(Path(f"/proc/{holder}/task/{holder}/children").read_text().split()[0])


@pytest.mark.parametrize("by", ["sudo", "root"])
@pytest.mark.parametrize("name", SURROUNDINGS)
def test_a_board_is_put_back_or_was_never_set_whatever_the_helper_inherits(
    name: str, by: str, machine: Machine
) -> None:
    before, can = SURROUNDINGS[name]
    machine.install()
    stand_in = machine.stand_in
    settings = stand_in.settings()
    records = Path(machine.places.records)
    with helper_of(machine, as_nobody("sudo", "-n", "--") if by == "sudo" else [], before) as ask:
        greeting = ask("")
        reply = ask(set_limit(300))
        assert ("error" not in reply) == can, reply
        assert (stand_in.settings() != settings) == can
        for path in records.glob("*"):
            assert path.stat().st_mode & 0o777 == 0o644
        os.kill(serving(greeting["state"]["holder"]), signal.SIGKILL)
        until_back(stand_in, settings)
    assert list(records.glob("*")) == []


def test_a_helper_that_hangs_is_killed_though_ended_children_are_not_reported(machine: Machine) -> None:
    machine.install()
    settings = machine.stand_in.settings()
    with helper_of(machine, as_nobody("sudo", "-n", "--"), ignored("SIGCHLD")) as ask:
        holder = ask("")["state"]["holder"]
        assert "error" not in ask(set_limit(300))
        os.kill(serving(holder), signal.SIGSTOP)
        until_back(machine.stand_in, settings, 10.0)
    assert list(Path(machine.places.records).glob("*")) == []


@pytest.mark.parametrize("closed", [(0,), (1,), (0, 1), (0, 1, 2)])
def test_a_helper_without_a_conversation_ends_and_sets_nothing(closed: tuple[int, ...], machine: Machine) -> None:
    machine.install()

    def close() -> None:
        for descriptor in closed:
            os.close(descriptor)

    done = subprocess.run(
        [str(machine.launcher), machine.board],
        input=set_limit(300).encode(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env=PATHS,
        preexec_fn=close,
        timeout=60,
    )
    assert done.returncode in (0, 1)
    assert machine.stand_in.settings()["limit"] == 650_000
    assert list(Path(machine.places.records).glob("*")) == []


# --- two users --------------------------------------------------------------------------------------------------------


def as_other(*words: str) -> list[str]:
    return ["setpriv", f"--reuid={OTHER_USER}", f"--regid={OTHER_USER}", "--clear-groups", *words]


@pytest.fixture
def two_users(machine: Machine) -> Iterator[Machine]:
    """Both may start the helper."""
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed")
    machine.install()
    [rules] = [path for path in Path("/etc/sudoers.d").iterdir() if path.name == machine.folder.name]
    other = rules.with_name(f"{rules.name}-2")
    other.write_text(rules.read_text().replace("nobody ALL", f"#{OTHER_USER} ALL"))
    other.chmod(0o440)
    yield machine
    other.unlink()


def asked_by_the_other(one: Machine, *lines: str) -> list[dict[str, Any]]:
    words = as_other("sudo", "-n", "--", str(one.launcher), one.board)
    ran = subprocess.run(words, input="".join(lines), stdout=subprocess.PIPE, text=True, cwd="/", env=PATHS)
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_while_one_user_holds_a_board_the_other_can_look_and_nothing_else(two_users: Machine) -> None:
    stand_in = two_users.stand_in
    before = stand_in.settings()
    with helper_of(two_users, as_nobody("sudo", "-n", "--"), lambda: None) as ask:
        holder = ask("")["state"]["holder"]
        assert "error" not in ask(set_limit(300))
        found = left_over(two_users.board)
        assert found is not None
        assert (found.held_by, found.unfinished) == (holder, False)
        [refused] = asked_by_the_other(two_users, set_limit(400))
        assert refused["error"]["kind"] == "busy"
        assert str(holder) in refused["error"]["what"]
        lock = Path(two_users.places.locks, f"{two_users.board}.lock")
        record_file = Path(two_users.places.records, f"{two_users.board}.json")
        attacks = (
            ("flock", "--nonblock", str(lock), "true"),
            ("rm", "-f", str(lock)),
            ("rm", "-f", str(record_file)),
            ("sh", "-c", f"echo > {record_file}"),
            ("kill", str(holder)),
            ("kill", str(serving(holder))),
        )
        for attack in attacks:
            tried = subprocess.run(as_other(*attack), capture_output=True, cwd="/", env=PATHS)
            assert tried.returncode != 0, attack
        assert subprocess.run(as_other("cat", str(record_file)), capture_output=True, cwd="/").returncode == 0
        assert stand_in.settings() == {**before, "limit": 300_000}
        assert "error" not in ask('{"id": 2, "do": "state"}\n')
    assert stand_in.settings() == before
    _, reply = asked_by_the_other(two_users, set_limit(400))
    assert "error" not in reply
    assert stand_in.settings() == before


def test_what_one_user_kept_is_what_the_other_finds_and_can_put_back(two_users: Machine) -> None:
    stand_in = two_users.stand_in
    before = stand_in.settings()
    two_users.sudo(lines=set_limit(400) + '{"id": 2, "do": "confirm"}\n')
    asked_by_the_other(two_users, set_limit(300))
    assert stand_in.settings()["limit"] == 400_000
    asked_by_the_other(two_users, '{"id": 1, "do": "reset", "to": "prior"}\n')
    assert stand_in.settings() == before
    assert list(Path(two_users.places.records).glob("*")) == []


# --- locks that are lost, clocks that jump ----------------------------------------------------------------------------


def test_a_lock_that_was_lost_lets_no_second_session_in(boards: Boards, helper: Callable[..., Process]) -> None:
    stand_in = boards("h200")
    process = helper(stand_in)
    before = changed(stand_in, process)
    for lock in (stand_in.folder / "root" / "locks").iterdir():
        lock.unlink()  # as something that cleans up does
    second = helper(stand_in)
    assert second.hello["error"]["kind"] == "busy"
    assert str(process.waiting) in second.hello["error"]["what"]
    assert second.gone() == 1
    boot = helper(stand_in, "--restore")
    assert boot.gone() == 1
    assert stand_in.settings() != before
    assert process.end() == 0
    assert stand_in.settings() == before


def test_a_system_without_locks_sets_nothing_and_says_so(boards: Boards, helper: Callable[..., Process]) -> None:
    stand_in = boards("h200")
    process = helper(stand_in, STAND_IN_NO_LOCKS="1")
    assert process.hello["error"]["kind"] == "record"
    assert "locks: No locks available" in process.hello["error"]["what"]
    assert process.gone() == 1
    assert stand_in.calls() == []


@pytest.mark.parametrize("steps_s", [(0.0, 1e9), (4e9, -4e9), (1.7e9, -1.7e9)], ids=["forward", "back", "to 1970"])
def test_a_clock_that_jumps_changes_nothing(
    steps_s: tuple[float, float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a session set is put back, and a record counts, whatever the time of day is said to be."""
    now = [steps_s[0]]
    monkeypatch.setattr(record.time, "time", lambda: max(0.0, now[0]))
    driver = Driver()
    before = driver.settings
    with Records(str(tmp_path / "records"), make=True) as records:
        Keeper(NvmlBoard(driver, UUID), records, HOLDER).set({"power_limit_w": 300})  # and is killed
        now[0] += steps_s[1]
        again = Keeper(NvmlBoard(driver, UUID), records, HOLDER)
        assert again.left_over
        assert again.state()["unreadable"] == ""
        again.reset("start")
        assert driver.settings == before
        again.set({"power_limit_w": 400})
        again.confirm()
        now[0] -= steps_s[1]
        found = records.read(UUID)
        assert found is not None
        assert found.unreadable == ""
        Keeper(NvmlBoard(driver, UUID), records, HOLDER).reset("prior")
        assert driver.settings == before


def test_a_clock_that_jumps_does_not_end_a_session(boards: Boards, helper: Callable[..., Process]) -> None:
    """The deadline for silence is the monotonic clock's: the helper asks no other."""
    stand_in = boards("h200")
    process = helper(stand_in, STAND_IN_WALL_JUMPS="1")
    before = changed(stand_in, process)
    for _ in range(3):
        time.sleep(0.3)
        assert "error" not in process.ask("state")
    assert stand_in.settings() != before
    assert process.end() == 0
    assert stand_in.settings() == before


def test_a_session_of_a_killed_helper_is_not_taken_for_a_new_process_of_its_number(
    boards: Boards, helper: Callable[..., Process]
) -> None:
    stand_in = boards("h200")
    process = helper(stand_in)
    before = changed(stand_in, process)
    killed_whole(process)
    process.gone()
    [path] = process.records.glob("*.json")
    document = json.loads(path.read_text())
    document["holder"]["pid"] = os.getpid()  # the number is in use again
    path.write_text(json.dumps(document))
    again = helper(stand_in)
    assert again.hello["state"]["left_over"]
    again.ask("reset")
    assert stand_in.settings() == before


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
def test_a_program_that_fails_is_a_failure_though_ended_children_are_not_reported(tmp_path: Path) -> None:
    """Who starts us may ignore SIGCHLD: every child then seems to have ended well."""
    specification = tmp_path / "exits.toml"
    specification.write_text(
        '[command]\nrun = "sh -c \'exit {n}\'"\n[parameters]\nn = [0, 3]\n[objective]\nminimise = "time_s"\n'
    )
    words = [sys.executable, "-m", "app", "tune", str(specification), "--gpu", "simulated:h200", "--json"]
    ran = subprocess.run(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=Path(__file__).parents[3],
        env={**os.environ, "WATTRIDGE_DATA": str(tmp_path / "data")},
        preexec_fn=ignored("SIGCHLD"),
        timeout=120,
    )
    tuned = json.loads(ran.stdout)
    assert tuned["failed"] == {"runtime": 1}
    assert tuned["best"]["configuration"] == {"n": 0}
