"""What a script is run with: on which board, with which rights, and who runs its sessions.

A script that Python runs has the defaults; `wattridge kernel-tuner` says otherwise.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from ..base.errors import WattridgeError
from ..engine.control.guard import DeviceGuard
from ..engine.metering.external_meters import NO_METERS, MeterChoice
from ..engine.results.state import SessionState
from ..engine.runner.boards import ReadyPlan
from ..engine.session.events import Event
from ..engine.session.live_session import SessionResult
from ..engine.store.database import Store
from ..sensors.gpu import Gpu
from .session_progress import watch_session

Limit = TypeVar("Limit", int, float)
Run = Callable[[ReadyPlan, Callable[[Event], None], bool], SessionResult]  # (plan, on_event, quiet)


def _run_here(plan: ReadyPlan, on_event: Callable[[Event], None], quiet: bool) -> SessionResult:
    with Store() as store:
        return watch_session(plan, store, quiet=quiet, also=on_event)


def _guard(gpu: Gpu) -> DeviceGuard:
    """Without rights: only simulated boards can be set."""
    return DeviceGuard(gpu, by="script")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Of the calls of one script."""

    gpu: str | None = None  # wins over the device that a script names
    sim_seed: int = 0
    profile: str = ""  # how simulated boards cost its kernels
    guard: Callable[[Gpu], DeviceGuard] = _guard  # of the boards that it tunes
    energy: bool = True  # is measured with the time, also where a script asks for the time alone
    meters: MeterChoice = NO_METERS  # beside its boards
    max_evaluations: int | None = None  # of each session, whatever the script allows
    max_seconds: float | None = None
    run: Run = _run_here


_present = Surroundings()  # of the process: a script may have threads


def surroundings() -> Surroundings:
    """Those of the present script."""
    return _present


@contextmanager
def running_with(chosen: Surroundings) -> Iterator[None]:
    """Context in which scripts run with other surroundings.

    Parameters
    ----------
    chosen : Surroundings
        What they are run with, until the context is left.

    Yields
    ------
    None
    """
    global _present
    before, _present = _present, chosen
    try:
        yield
    finally:
        _present = before


def run_session_of_script(plan: ReadyPlan, on_event: Callable[[Event], None], quiet: bool) -> SessionResult:
    """Run a plan to its end, within the limits of the present surroundings.

    What was measured before an error is in the store.

    Parameters
    ----------
    plan : ReadyPlan
        The plan.
    on_event : callable
        Called with every event of the session.
    quiet : bool
        Show no progress bar.

    Returns
    -------
    SessionResult
        Of a session that was neither stopped nor failed.

    Raises
    ------
    WattridgeError
        If the session failed.
    KeyboardInterrupt
        If the user stopped it.
    """
    around = surroundings()
    limited = replace(
        plan,
        max_evaluations=_least(plan.max_evaluations, around.max_evaluations),
        max_seconds=_least(plan.max_seconds, around.max_seconds),
    )
    result = around.run(limited, on_event, quiet)
    if result.state is SessionState.FAILED:
        raise WattridgeError(result.reason or "the session failed", f"session {result.session}")
    if result.state is SessionState.STOPPED:
        raise KeyboardInterrupt(f"session {result.session} was stopped")
    return result


def _least(one: Limit | None, other: Limit | None) -> Limit | None:
    return min((value for value in (one, other) if value is not None), default=None)


def script_path() -> Path:
    """The script that runs, as far as Python says; the working directory's name stands for a prompt or a notebook."""
    name = sys.argv[0] if sys.argv else ""
    return Path(name).absolute() if name and name != "-c" else Path.cwd() / "script"
