"""A stored session to look at, and a recording kept as one: nothing is measured here."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..analysis.costs import values_of
from ..formats.recording import Recording
from ..results.objectives import Goal, Limit
from ..results.state import Progress, SessionState
from ..space.result_table import ResultTable
from ..space.within_limits import feasible
from ..specification.plan import SessionPlan
from ..store.database import Store
from .events import SessionChanged, SessionStarted
from .planning import plan_of, plan_replay
from .references import with_floor


def open_session(store: Store, session: int) -> tuple[SessionStarted, SessionChanged]:
    """The events of a session as if it had just ended. Raises InputError where there is none."""
    loaded = store.load(session)
    record = loaded.record
    plan = with_floor(plan_of(loaded), store)
    return _ended(session, plan, loaded.table, record.state, record.reason, record.budget, record.elapsed_s)


def show_recording(plan: SessionPlan, table: ResultTable) -> tuple[SessionStarted, SessionChanged]:
    """The events of a recording that is shown whole: a result with its own board and name, and without a number."""
    return _ended(0, plan, table, SessionState.DONE, "all of the file is shown", len(table), _spent_s(table))


def _ended(
    session: int,
    plan: SessionPlan,
    table: ResultTable,
    state: SessionState,
    reason: str,
    budget: int,
    elapsed_s: float,
) -> tuple[SessionStarted, SessionChanged]:
    best, timed = best_of(table, plan.objective.goal, plan.objective.limits), int(table.timed().sum())
    progress = Progress(
        session=session,
        state=state,
        evaluated=len(table) - timed,
        failed=sum(table.failures().values()),
        budget=budget,
        elapsed_s=elapsed_s,
        rate_per_s=len(table) / elapsed_s if elapsed_s > 0 else 0.0,
        eta_s=None,
        best_index=best,
        best_value=None if best is None else float(table.values(plan.objective.goal.name)[best]),
        timed=timed,
    )
    return SessionStarted(session, plan, table, running=False), SessionChanged(progress, reason)


def _spent_s(table: ResultTable) -> float:
    """What measuring took, as far as that is known."""
    return float(np.nansum([table.measurement(index).cost_s for index in range(len(table))]))


def best_of(table: ResultTable, goal: Goal, limits: Sequence[Limit] = ()) -> int | None:
    """The index of the best measurement within the limits; None where none has a value of the goal."""
    costs = values_of(table, goal.name) * (-1.0 if goal.maximise else 1.0)
    costs[~feasible(table, limits)[: len(costs)]] = np.nan
    return int(np.nanargmin(costs)) if np.isfinite(costs).any() else None


def import_recording(store: Store, recording: Recording) -> int:
    """Keep every measurement of a cache, T4 or CSV file as a session that is done; its id.

    Raises InputError for a file in which nothing succeeded.
    """
    plan = plan_replay(recording.path, read=recording)
    measurements = list(recording.in_file_order())
    costs_s = [m.cost_s for m in measurements if not math.isnan(m.cost_s)]
    session = store.create_session(plan)
    try:
        store.append(session, measurements, elapsed_s=sum(costs_s))
    except BaseException:
        store.finish(session, SessionState.FAILED, "the file could not be imported whole")
        raise
    store.finish(session, SessionState.DONE, f"imported from {recording.path.name}")
    return session
