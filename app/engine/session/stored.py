"""Stored sessions and recordings, shown, imported, or stated for another thermal condition: nothing is measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ...base.errors import InputError
from ...base.files import digest_of, is_input
from ..analysis.costs import values_of
from ..analysis.health import health_of
from ..formats.recording import Recording
from ..metering.condition import Condition
from ..results.measurement import THERMAL_CORRECTION, Measurement, State
from ..results.objectives import Goal, Limit
from ..results.state import SessionState
from ..runner.kernels.reference import Baseline
from ..runner.stating import Statement
from ..space.result_table import ResultTable
from ..space.within_limits import feasible
from ..specification.model import Specification
from ..specification.plan import SessionPlan
from ..store.database import Store
from .events import SessionChanged, SessionStarted
from .live_session import progress_of
from .load import load_specification
from .planning import plan_of, plan_replay
from .references import with_floor


def open_session(store: Store, session: int) -> tuple[SessionStarted, SessionChanged]:
    """The events of a session as if it had just ended. Raises InputError if there is none."""
    loaded = store.load(session)
    record = loaded.record
    plan = with_floor(plan_of(loaded), store)
    return _ended(session, plan, loaded.table, record.state, record.reason, record.budget, record.elapsed_s)


def show_recording(plan: SessionPlan, table: ResultTable) -> tuple[SessionStarted, SessionChanged]:
    """The events of a recording that is shown whole: a result with its own board and name, and without a number."""
    spent_s = float(np.nansum([table.measurement(index).cost_s for index in range(len(table))]))  # as far as known
    return _ended(0, plan, table, SessionState.DONE, "all of the file is shown", len(table), spent_s)


def _ended(
    session: int,
    plan: SessionPlan,
    table: ResultTable,
    state: SessionState,
    reason: str,
    budget: int,
    elapsed_s: float,
) -> tuple[SessionStarted, SessionChanged]:
    progress = progress_of(
        table,
        plan,
        best_of(table, plan.objective.goal, plan.objective.limits),
        session=session,
        state=state,
        budget=budget,
        elapsed_s=elapsed_s,
        rate_per_s=len(table) / elapsed_s if elapsed_s > 0 else 0.0,
        eta_s=None,
        health=health_of(table, plan.objective.goal.name, plan.origin),
    )
    return SessionStarted(session, plan, table, running=False), SessionChanged(progress, reason)


def best_of(table: ResultTable, goal: Goal, limits: Sequence[Limit] = ()) -> int | None:
    """The index of the best measurement within the limits; None if none has a value of the goal."""
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


def restated(store: Store, session: int, condition: Condition) -> tuple[SessionPlan, ResultTable]:
    """The session's plan and measurements as the model of its board states them for a condition. Nothing is stored.

    Raises InputError if the session was not measured on a board, or its specification is gone, of which the metrics
    are computed again.
    """
    loaded = store.load(session)
    plan = plan_of(loaded)
    as_stored = Statement.of_origin(plan.origin)
    if as_stored is None:
        what = f"session {session} keeps no thermal model: it was replayed, runs a program, or did not come to its end"
        raise InputError(what, str(store.path), "its figures are as they were drawn")
    path = Path(plan.origin.get("file", ""))
    if not is_input(path) or digest_of(path) != plan.origin.get("sha256"):
        raise InputError("the specification has changed or is gone", str(path), "put it back as it was")
    specification = load_specification(path)
    statement = replace(as_stored, condition=condition)
    table = ResultTable(plan.space)
    table.extend(statement.state(loaded.table.measurement(index), specification) for index in range(len(loaded.table)))
    origin = {**plan.origin, **statement.to_origin(), **_library(plan, statement, specification)}
    return replace(plan, origin=origin), table


def _library(plan: SessionPlan, statement: Statement, specification: Specification) -> dict[str, str]:
    """The figures of the vendor's library, stated as those of the session are. Raises InputError."""
    kept = Baseline.of_origin(plan.origin)
    if kept is None or kept.values.get(THERMAL_CORRECTION, 1.0) == 1.0:  # at a limit nothing is corrected
        return {}
    stated = statement.state(Measurement(-1, {}, State.OK, kept.values, kept.intervals), specification)
    return replace(kept, values=stated.values, intervals=stated.intervals).to_origin()
