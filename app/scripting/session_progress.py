"""Running a session to its end with a progress bar on standard error."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from ..base.formatting import duration
from ..base.processes import LOG, ProgressBar, in_notebook, say, stop_on_interrupt
from ..engine.analysis.quantities import quantity
from ..engine.session.events import (
    EngineFault,
    Event,
    FiguresRestated,
    MeasurementsAdded,
    PoolReported,
    Preparing,
    SessionChanged,
    SessionRemark,
    SessionStarted,
)

if TYPE_CHECKING:
    from ..engine.runner.boards import ReadyPlan
    from ..engine.session.live_session import SessionResult
    from ..engine.store.database import Store

_REDRAWN_S: Final = 1.0


class GrowingFront:
    """The front of a session below a notebook's cell, drawn once a second while it is measured, and at its end."""

    def __init__(self) -> None:
        self._started: SessionStarted | FiguresRestated | None = None
        self._handle: Any = None
        self._last = 0.0

    def follow(self, event: Event) -> None:
        """Draw what an event changes.

        Parameters
        ----------
        event : Event
            Of the session.
        """
        if isinstance(event, SessionStarted | FiguresRestated):
            self._started = event
        ended = isinstance(event, SessionChanged) and not event.progress.state.alive
        if self._started is None or not (ended or isinstance(event, MeasurementsAdded)):
            return
        if not ended and time.monotonic() - self._last < _REDRAWN_S:
            return
        from ..engine.report.plots import small_front

        self._last, plan = time.monotonic(), self._started.plan
        picture = small_front(self._started.table.so_far(), plan.objective, plan.units)
        shown = {"text/html": picture, "text/plain": f"the front of {plan.title}"}
        if self._handle is not None:
            self._handle.update(shown, raw=True)
        elif picture:
            self._handle = import_module("IPython.display").display(shown, raw=True, display_id=True)


def watch_session(
    plan: ReadyPlan, store: Store, *, quiet: bool, also: Callable[[Event], None] = lambda _event: None
) -> SessionResult:
    """Run a plan to its end with a progress bar; Ctrl+C stops it and keeps what was measured.

    Parameters
    ----------
    plan : ReadyPlan
        The plan.
    store : Store
        Where the session is kept.
    quiet : bool
        Show no progress bar.
    also : callable, optional
        Called with every event too.

    Returns
    -------
    SessionResult
        The session's table and how it ended.
    """
    from ..engine.session.run import run_session

    bar = ProgressBar(quiet=quiet)
    goal = quantity(plan.objective.goal.name, units=plan.units)
    boards = ""
    front = GrowingFront() if in_notebook() and not quiet else None

    def on_event(event: Event) -> None:
        nonlocal boards
        also(event)
        if front is not None:
            front.follow(event)
        if isinstance(event, MeasurementsAdded):
            progress = event.progress
            best = "" if progress.best_value is None else f"  best {goal.text(progress.best_value)}"
            left = f"  ETA {duration(progress.eta_s)}" if progress.budget else ""
            timed = f", {progress.timed} timed" if progress.timed else ""
            bar.show(progress.evaluated, progress.budget, f"{progress.rate_per_s:.0f}/s{boards}{timed}{best}{left}")
        elif isinstance(event, PoolReported):
            boards = f" on {event.status.there} of {len(event.status.boards)} boards"
            if event.remark:
                say(event.remark)
        elif isinstance(event, SessionRemark):
            say(event.text)
        elif isinstance(event, Preparing):
            bar.show(round(event.done_s), round(event.total_s), f"s at most: {event.what}")
        elif isinstance(event, EngineFault):
            say(f"{event.what} ({event.remedy})" if event.remedy else event.what)

    LOG.info("%s on %s (%s): %s", plan.title, plan.gpu, plan.source, plan.strategy)
    with stop_on_interrupt() as stop:
        result = run_session(plan, store, on_event, stop)
    progress = result.progress
    done, seconds = progress.evaluated, duration(progress.elapsed_s)
    timed = f", {progress.timed} timed" if progress.timed else ""
    LOG.info("session %d %s: %d configurations in %.1f s", result.session, result.state, done, progress.elapsed_s)
    bar.show(done, done, f"{result.state} after {seconds}{timed}", final=True)
    return result
