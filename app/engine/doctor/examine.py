"""Running the checks, several at a time, each in a child process with a time limit."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypedDict

from ...base.records import Count
from ..children.python import python_command, python_environment
from ..workloads.subprocesses import Ended, run_process
from .checks import CHECKS, Check
from .finding import NOT_LOOKED_AT, Finding, State, wrong

_AT_ONCE: Final = 4
_TICK_S: Final = 0.2
_STOP_S: Final = 5.0  # for a process to end after a stop
_END_S: Final = 10.0  # from the time limit until a process must have ended
_LONGEST: Final = 300  # characters of the last message of a child that died

Command = Callable[[Check], Sequence[str]]


def examine(
    checks: Iterable[Check] = CHECKS,
    stop: threading.Event | None = None,
    command: Command | None = None,
    at_once: int = _AT_ONCE,
) -> Iterator[tuple[Check, Finding]]:
    """Yield each check with its finding, in their order and as soon as it is known; end early at `stop`.

    `command` stands in for the child's command line in tests.
    """
    stop = stop or threading.Event()
    slots = threading.Semaphore(at_once)
    looks = [_Look(check, slots, stop, command or _child) for check in checks]
    for look in looks:
        look.start()
    for look in looks:
        finding = look.result()
        if stop.is_set():
            return
        yield look.check, finding


class FindingOfCheck(TypedDict):
    check: str
    title: str
    state: State
    what: str
    remedy: str
    facts: Mapping[str, Any]


class Findings(TypedDict):
    ok: Count
    missing: Count
    wrong: Count
    checks: list[FindingOfCheck]


def to_json(findings: Sequence[tuple[Check, Finding]]) -> Findings:
    """The findings as the document of `doctor --json`."""
    states = [finding.state for _, finding in findings]
    return {
        "ok": states.count(State.OK),
        "missing": states.count(State.MISSING),
        "wrong": states.count(State.WRONG),
        "checks": [
            {
                "check": check.name,
                "title": check.title,
                "state": finding.state,
                "what": finding.what,
                "remedy": finding.remedy,
                "facts": dict(finding.facts),
            }
            for check, finding in findings
        ],
    }


# --- inside -----------------------------------------------------------------------------------------------------------


class _Look(threading.Thread):
    """Wait for one check's child. Nothing joins this thread: a process that hangs in a driver cannot be ended."""

    def __init__(self, check: Check, slots: threading.Semaphore, stop: threading.Event, command: Command) -> None:
        super().__init__(name=f"doctor: {check.name}", daemon=True)
        self.check = check
        self._slots, self._stop_looking, self._command = slots, stop, command
        self._begun, self._ended = threading.Event(), threading.Event()
        self._finding: Finding | None = None

    def run(self) -> None:
        with self._slots:
            self._begun.set()
            try:
                if not self._stop_looking.is_set():
                    self._finding = _found(self.check, self._stop_looking, self._command)
            finally:
                self._ended.set()

    def result(self) -> Finding:
        """The finding; where the child cannot be ended, one that says so, and `NOT_LOOKED_AT` after a stop."""
        while not self._begun.wait(_TICK_S) and not self._stop_looking.is_set():
            pass
        left_s = self.check.limit_s + _END_S
        while not self._ended.wait(_TICK_S) and left_s > 0:
            left_s = min(left_s - _TICK_S, _STOP_S) if self._stop_looking.is_set() else left_s - _TICK_S
        if self._ended.is_set():
            return self._finding or NOT_LOOKED_AT
        self._slots.release()  # so that it does not hold up the checks that wait for a slot
        return wrong(f"no answer within {self.check.limit_s:g} s, and its process cannot be ended", "reboot")


def _child(check: Check) -> Sequence[str]:
    return python_command(f"{__package__}.checks", check.name)


def _found(check: Check, stop: threading.Event, command: Command) -> Finding:
    try:
        ended = run_process(command(check), timeout_s=check.limit_s, stop=stop, environment=python_environment())
    except OSError as error:
        return wrong(f"the check does not start: {error.strerror or error}", "please report it")
    try:
        document = json.loads(ended.output)
        return Finding(State(document["state"]), document["what"], document["remedy"], document["facts"])
    except (ValueError, KeyError, TypeError):
        return wrong(_how_it_died(check, ended), check.if_it_dies)


def _how_it_died(check: Check, ended: Ended) -> str:
    if ended.timed_out:
        return f"no answer within {check.limit_s:g} s"
    lines = [line.strip() for line in ended.errors.splitlines() if line.strip()]
    telling = next((line for line in lines if "could not" in line.lower() or "error" in line.lower()), "")
    last = telling or (lines[-1] if lines else "")
    return f"what it asks crashed ({ended.how})" + (f": {last[:_LONGEST]}" if last else "")
