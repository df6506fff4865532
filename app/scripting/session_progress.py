"""Running a session to its end with a progress bar on standard error."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..base.formatting import duration
from ..base.processes import ProgressBar, say, stop_on_interrupt
from ..engine.analysis.quantities import quantity
from ..engine.session.events import EngineFault, Event, MeasurementsAdded, PoolReported, Preparing, SessionRemark

if TYPE_CHECKING:
    from ..engine.runner.boards import ReadyPlan
    from ..engine.session.live_session import SessionResult
    from ..engine.store.database import Store


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

    def on_event(event: Event) -> None:
        nonlocal boards
        also(event)
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

    with stop_on_interrupt() as stop:
        result = run_session(plan, store, on_event, stop)
    progress = result.progress
    done, seconds = progress.evaluated, duration(progress.elapsed_s)
    timed = f", {progress.timed} timed" if progress.timed else ""
    bar.show(done, done, f"{result.state} after {seconds}{timed}", final=True)
    return result
