"""Running the checks, several at a time, each in a child process with a time limit."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from ..children.python import python_command, python_environment
from ..workloads.subprocesses import Ended, run_process
from .checks import CHECKS, Check
from .finding import Finding, State, wrong

_AT_ONCE: Final = 4
_LONGEST: Final = 300  # characters of what a child that died said last

Command = Callable[[Check], Sequence[str]]


def examine(
    checks: Iterable[Check] = CHECKS,
    stop: threading.Event | None = None,
    command: Command | None = None,
) -> Iterator[tuple[Check, Finding]]:
    """Each check with what it found, in their order and as soon as it is known; ends early at `stop`.

    `command` stands in for the child's command line in tests.
    """
    stop = stop or threading.Event()
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="doctor") as pool:
        waiting = [(check, pool.submit(_found, check, stop, command or _command)) for check in checks]
        try:
            for check, future in waiting:
                finding = future.result()
                if stop.is_set():
                    return
                yield check, finding
        finally:
            for _, future in waiting:
                future.cancel()


def to_json(findings: Sequence[tuple[Check, Finding]]) -> dict[str, Any]:
    """The document of all of them."""
    states = [finding.state for _, finding in findings]
    return {
        "ok": states.count(State.OK),
        "missing": states.count(State.MISSING),
        "wrong": states.count(State.WRONG),
        "checks": [
            {
                "check": check.name,
                "title": check.title,
                "state": finding.state.value,
                "what": finding.what,
                "remedy": finding.remedy,
                "facts": dict(finding.facts),
            }
            for check, finding in findings
        ],
    }


# --- inside -----------------------------------------------------------------------------------------------------------


def _command(check: Check) -> Sequence[str]:
    return python_command(f"{__package__}.child", check.name)


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
    said = [line.strip() for line in ended.errors.splitlines() if line.strip()]
    telling = next((line for line in said if "could not" in line.lower() or "error" in line.lower()), "")
    last = telling or (said[-1] if said else "")
    return f"what it asks crashed ({ended.how})" + (f": {last[:_LONGEST]}" if last else "")
