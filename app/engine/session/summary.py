"""A session in one document: what `tune --json` and `replay --json` print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.formatting import finite_or_none
from ..analysis.failures import most_frequent
from ..analysis.peak_share import peak_share
from ..metering.gain import gain_to_json
from ..models.roofline.operator_floor import OperatorFloor
from ..results.measurement import State
from ..results.objectives import Goal, Limit
from ..results.pareto import front
from ..results.service_figures import START
from ..results.state import SessionState
from ..runner.kernels.reference import Baseline
from ..runner.pool.pool import boards_to_json, status_of_origin
from ..runner.stating import Statement
from ..space.repeats import fold
from ..space.result_table import STATES, ResultTable
from ..space.within_limits import broken, broken_in_words, feasible, nearest
from ..specification.plan import SessionPlan
from .gains import gain_of_origin
from .service_boards import boards_of_service

_OK = STATES.index(State.OK)


def session_summary(
    table: ResultTable,
    plan: SessionPlan,
    *,
    session: int | None = None,
    seconds: float | None = None,
    state: SessionState | None = None,
    reason: str = "",
) -> dict[str, Any]:
    """The facts of a session, its best configuration by the objective and its front; JSON-ready, unknown is None."""
    repeats = fold(table)
    compared = repeats.table if repeats is not None else table  # of repeats none is better than another
    limits = plan.objective.limits
    closest = nearest(compared, limits)
    best = next(iter(by_goal(compared, plan.objective.goal, limits)), None)
    timed = int(table.timed().sum())
    return {
        "session": session,
        "gpu": plan.gpu,
        "source": plan.source,
        "strategy": plan.strategy,
        "seed": plan.seed,
        "cartesian": plan.space.cartesian,
        "valid": plan.space.size,
        "evaluated": len(table) - timed,
        "timed": timed,  # only that, beside those
        "repeats": int(plan.origin.get("repeats", "1")),  # measurements of each configuration
        "failed": table.failures(),
        "most_frequent_failure": _most_frequent_failure(table),
        "seconds": finite_or_none(seconds),
        "best": None if best is None else _entry(compared, best),
        "front": [_entry(compared, index) for index in front_indices(compared, plan.objective.front, limits)],
        "objective": str(plan.objective),
        "limits": [str(limit) for limit in limits],
        "infeasible": int(broken(compared, limits).sum()),
        "nearest": None if closest is None else _nearest(compared, closest, plan),  # where none keeps the limits
        "front_objective": [str(each) for each in plan.objective.front],
        "title": plan.title,
        "state": state.value if state is not None else None,
        "reason": reason,
        "service_starts": _starts(compared),
        "service_boards": boards_of_service(plan.origin),  # where there are several, whose joules add up
        "notes": [*plan.space.notes, *([repeats.words] if repeats is not None else [])],
        "share_of_peak": share_to_json(plan, compared, best),
        "compiler": plan.origin.get("compiler"),
        "stated_for": _stated_for(plan),
        "boards": None if (status := status_of_origin(plan.origin)) is None else boards_to_json(status),
        "decided_on": table.decided_on or None,
        "sensor_gain": None if (gain := gain_of_origin(plan.origin)) is None else gain_to_json(gain),
        "vendor_library": None if (baseline := Baseline.of_origin(plan.origin)) is None else baseline.to_json(),
        "roofline_floor": None if (floor := OperatorFloor.of_origin(plan.origin)) is None else floor.to_json(),
    }


def _stated_for(plan: SessionPlan) -> dict[str, Any] | None:
    """The thermal condition of the figures, and how well they hold; None where they are as they were drawn."""
    stated = Statement.of_origin(plan.origin)
    if stated is None:
        return None
    return {
        "condition": stated.condition.words,
        **{name: finite_or_none(value) for name, value in stated.condition.as_names().items()},
        "repeatability": stated.model.repeatability,
        "reproducibility": stated.model.uncertainty(0.0),
        "gain_error": None if (gain := gain_of_origin(plan.origin)) is None else gain.gain - 1.0,
    }


def share_to_json(plan: SessionPlan, table: ResultTable, best: int | None) -> dict[str, Any] | None:
    """What the best reaches of the board's theoretical peak; None where that is not known."""
    share = peak_share(plan, table.measurement(best)) if best is not None else None
    return None if share is None else share.to_json()


def starts_of(table: ResultTable) -> tuple[int, float]:
    """How often a service was started for a configuration, and the seconds that took in all."""
    if START not in table.value_names:
        return 0, 0.0
    took_s = table.values(START)[: len(table)]
    return int((took_s > 0).sum()), float(np.nansum(took_s))


def _starts(table: ResultTable) -> dict[str, Any] | None:
    count, seconds = starts_of(table)
    return {"count": count, "seconds": seconds} if count else None


def by_goal(table: ResultTable, goal: Goal, limits: Sequence[Limit] = ()) -> list[int]:
    """Indices of the successful measurements within the limits that have a value of the goal, the best first."""
    length = len(table)  # the engine may append meanwhile
    values = np.where(feasible(table, limits)[:length], table.values(goal.name)[:length], np.nan)
    order = np.argsort(-values if goal.maximise else values, kind="stable")
    return [int(index) for index in order[np.isfinite(values[order])]]


def front_indices(table: ResultTable, goals: tuple[Goal, ...], limits: Sequence[Limit] = ()) -> list[int]:
    """Indices of the successful measurements within the limits on the front of the goals; empty without goals."""
    if not goals or not len(table):
        return []
    columns = np.column_stack([table.values(goal.name) for goal in goals])
    columns[~feasible(table, limits)[: len(columns)]] = np.nan
    return [int(index) for index in front(columns, [goal.maximise for goal in goals])]


def _most_frequent_failure(table: ResultTable) -> dict[str, Any] | None:
    """The message that failed measurements share most; None where nothing failed with a message."""
    found = most_frequent(table)
    return None if found is None else dict(zip(("state", "message", "count"), found, strict=True))


def _nearest(table: ResultTable, index: int, plan: SessionPlan) -> dict[str, Any]:
    values = table.measurement(index).values
    return {
        **_entry(table, index),
        "excess": finite_or_none(plan.objective.excess(values)),  # relative, of the limit that is broken most
        "broken": broken_in_words(plan.objective.limits, values),
    }


def _entry(table: ResultTable, index: int) -> dict[str, Any]:
    measurement = table.measurement(index)
    return {
        "configuration": dict(measurement.configuration),
        "board": measurement.board or None,
        "values": {name: finite_or_none(value) for name, value in measurement.values.items()},
        "as_measured": {name: finite_or_none(value) for name, value in measurement.as_measured.items()},
    }
