"""A session as one document, which `tune --json` and `replay --json` print."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

import numpy as np

from ...base.records import Count, Finite, Source, Values
from ..analysis.costs import costs_of
from ..analysis.difference import Difference
from ..analysis.failures import most_frequent
from ..analysis.finals import ENERGY_ROLES, Finals
from ..analysis.health import health_of
from ..analysis.iso_lines import Role, role_of
from ..analysis.own_state import OwnState, own_state
from ..analysis.peak_share import PeakShare, peak_share
from ..analysis.standing import distinguishable
from ..metering.gain import Gain
from ..metering.limit_effect import LimitEffect
from ..models.roofline.operator_floor import OperatorFloor
from ..models.series import limit_effects
from ..results.health import Health
from ..results.measurement import Configuration, State
from ..results.objectives import Goal, Limit
from ..results.pareto import front
from ..results.service_figures import START
from ..results.state import SessionState
from ..runner.kernels.reference import Baseline
from ..runner.pool.pool import BoardStatus, status_of_origin
from ..runner.stating import Statement
from ..space.repeats import fold
from ..space.result_table import STATES, ResultTable
from ..space.search_space import SearchSpace
from ..space.within_limits import broken, broken_in_words, feasible, nearest
from ..specification.operator_shapes import LIBRARY, MAKER
from ..specification.plan import SessionFacts, SessionPlan
from .gains import gain_of_origin
from .service_boards import boards_of_service

_OK = STATES.index(State.OK)


class Entry(TypedDict):
    configuration: Configuration
    board: str | None  # which of several boards measured it
    values: Values
    as_measured: Values  # of the values, those that are stated otherwise than they were measured


class NearestEntry(Entry):
    excess: float
    broken: str


class FrequentFailure(TypedDict):
    state: str
    message: str
    count: Count


class ServiceStarts(TypedDict):
    count: int
    seconds: Finite


class StatedFor(TypedDict):
    condition: str
    gpu_c: float | None
    slow_w: float | None
    repeatability: float | None
    reproducibility: float | None
    gain_error: float | None


class Contended(TypedDict):
    configuration: Configuration
    energy: Difference  # relative to the winner's
    time: Difference
    turns: Count


class FinalsEntry(TypedDict):
    winner: Configuration
    others: list[Contended]
    seconds: Finite  # on the board


class SessionSummary(TypedDict):
    session: int | None
    gpu: str
    source: Source
    strategy: str
    seed: int
    cartesian: Count
    valid: Count
    evaluated: Count
    timed: Count
    repeats: Count
    failed: Mapping[str, Count]
    most_frequent_failure: FrequentFailure | None
    seconds: float | None
    best: Entry | None
    own_state: OwnState | None  # the best against the board's own state; None where no setting was varied
    front: list[Entry]
    objective: str
    limits: list[str]
    infeasible: Count
    nearest: NearestEntry | None
    finals: FinalsEntry | None  # what was measured in turns at the end; None where there was nothing to tell apart
    front_objective: list[str]
    title: str
    state: SessionState | None
    reason: str
    health: Health
    service_starts: ServiceStarts | None
    service_boards: Sequence[Mapping[str, str]] | None  # where there are several, whose joules add up
    notes: list[str]
    power_limits: Sequence[LimitEffect]  # the effect of each on what was measured; empty where it is not known
    share_of_peak: PeakShare | None
    compiler: str | None
    stated_for: StatedFor | None
    boards: Sequence[BoardStatus] | None  # of a session over several, what each did since it began or was resumed
    decided_on: str | None  # the board that measured the finalists of all, whose figures alone are compared
    sensor_gain: Gain | None
    vendor_library: Baseline | None
    roofline_floor: OperatorFloor | None
    files: NotRequired[list[str]]


def session_summary(
    table: ResultTable,
    plan: SessionPlan,
    *,
    session: int | None = None,
    seconds: float | None = None,
    state: SessionState | None = None,
    reason: str = "",
) -> SessionSummary:
    """The facts of a session, its best configuration by the objective and its front; JSON-ready, unknown is None."""
    repeats = fold(table)
    compared = repeats.table if repeats is not None else table  # of repeats none is better than another
    limits = plan.objective.limits
    closest = nearest(compared, limits)
    best = best_of(plan, compared)
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
        "seconds": seconds,
        "best": None if best is None else _entry(compared, best),
        "own_state": own_state(compared, costs_of(compared), best),
        "front": [_entry(compared, index) for index in front_indices(compared, plan.objective.front, limits)],
        "objective": str(plan.objective),
        "limits": [str(limit) for limit in limits],
        "infeasible": int(broken(compared, limits).sum()),
        "nearest": None if closest is None else _nearest(compared, closest, plan),  # where none keeps the limits
        "finals": finals_of_session(plan),
        "front_objective": [str(goal) for goal in plan.objective.front],
        "title": plan.title,
        "state": state,
        "reason": reason,
        "health": health_of(table, plan.objective.goal.name, plan.origin),
        "service_starts": _starts(compared),
        "service_boards": boards_of_service(plan.origin),  # where there are several, whose joules add up
        "notes": [*plan.space.notes, *([repeats.words] if repeats is not None else [])],
        "power_limits": limit_effects(table),
        "share_of_peak": peak_share(plan, compared.measurement(best)) if best is not None else None,
        "compiler": plan.origin.get("compiler"),
        "stated_for": _stated_for(plan),
        "boards": None if (status := status_of_origin(plan.origin)) is None else status.boards,
        "decided_on": table.decided_on or None,
        "sensor_gain": gain_of_origin(plan.origin),
        "vendor_library": Baseline.of_origin(plan.origin),
        "roofline_floor": OperatorFloor.of_origin(plan.origin),
    }


def finals_of_session(plan: SessionPlan) -> FinalsEntry | None:
    """The turns at its end, by configurations; None where there were none."""
    finals, space = Finals.of_origin(plan.origin), plan.space
    if finals is None or max(finals.rows) >= space.size:
        return None
    others: list[Contended] = [
        {
            "configuration": space.configuration(beaten.row),
            "energy": beaten.of(Role.ENERGY),
            "time": beaten.of(Role.TIME),
            "turns": beaten.turns,
        }
        for beaten in finals.others
    ]
    return {"winner": space.configuration(finals.winner), "others": others, "seconds": finals.seconds}


def _stated_for(plan: SessionPlan) -> StatedFor | None:
    """The thermal condition of the figures, and how well they hold; None if they are as they were drawn."""
    stated = Statement.of_origin(plan.origin)
    if stated is None:
        return None
    names = stated.condition.as_names()
    return {
        "condition": stated.condition.words,
        "gpu_c": names.get("gpu_c"),
        "slow_w": names.get("slow_w"),
        "repeatability": stated.model.repeatability,
        "reproducibility": stated.model.uncertainty(0.0),
        "gain_error": None if (gain := gain_of_origin(plan.origin)) is None else gain.gain - 1.0,
    }


def starts_of(table: ResultTable) -> tuple[int, float]:
    """How often a service was started for a configuration, and the seconds that took in all."""
    if START not in table.value_names:
        return 0, 0.0
    took_s = table.values(START)[: len(table)]
    return int((took_s > 0).sum()), float(np.nansum(took_s))


def _starts(table: ResultTable) -> ServiceStarts | None:
    count, seconds = starts_of(table)
    return {"count": count, "seconds": seconds} if count else None


def by_goal(table: ResultTable, goal: Goal, limits: Sequence[Limit] = ()) -> list[int]:
    """Indices of the successful measurements within the limits that have a value of the goal, the best first."""
    length = len(table)  # the engine may append meanwhile
    values = np.where(feasible(table, limits)[:length], table.values(goal.name)[:length], np.nan)
    order = np.argsort(-values if goal.maximise else values, kind="stable")
    return [int(index) for index in order[np.isfinite(values[order])]]


def best_of(plan: SessionFacts, table: ResultTable) -> int | None:
    """The index of the best by the session's objective; None if nothing has the figure.

    What the vendor's library does by itself is the best as long as nothing takes less energy for certain: nothing has
    to be installed, exported and looked after for it.
    """
    ranked = by_goal(table, plan.objective.goal, plan.objective.limits)
    library = library_index(table, table.space)
    if library not in ranked or role_of(plan.objective.goal.name) not in ENERGY_ROLES:
        return next(iter(ranked), None)
    assert library is not None, "it is ranked"
    finals, rows = Finals.of_origin(plan.origin), table.rows().tolist()
    in_turns = [] if finals is None else [index for index in ranked if int(rows[index]) == finals.winner]
    before = in_turns if finals is not None and rows[library] in finals.rows else ranked[: ranked.index(library)]
    return next((index for index in before if less_for_certain(table, library, index)), library)


def library_index(table: ResultTable, space: SearchSpace) -> int | None:
    """The index of the first measurement in full of what the vendor's library does by itself; None without one."""
    if MAKER not in space.names:
        return None
    rows = set(space.rows_with({MAKER: LIBRARY}).tolist())
    found = (index for index, row in enumerate(table.rows().tolist()) if row in rows)
    return next((index for index in found if math.isfinite(table.values("energy_j")[index])), None)


def less_for_certain(table: ResultTable, library: int, other: int) -> bool:
    """Whether a measurement takes less energy than the library by more than their ratio is known to."""
    values = table.values("energy_j")
    return bool(values[other] < values[library]) and distinguishable(table, library, other)


def front_indices(table: ResultTable, goals: tuple[Goal, ...], limits: Sequence[Limit] = ()) -> list[int]:
    """Indices of the successful measurements within the limits on the front of the goals; empty without goals."""
    if not goals or not len(table):
        return []
    columns = np.column_stack([table.values(goal.name) for goal in goals])
    columns[~feasible(table, limits)[: len(columns)]] = np.nan
    return [int(index) for index in front(columns, [goal.maximise for goal in goals])]


def _most_frequent_failure(table: ResultTable) -> FrequentFailure | None:
    """The message that failed measurements share most; None if nothing failed with a message."""
    if (failure := most_frequent(table)) is None:
        return None
    state, message, count = failure
    return {"state": state, "message": message, "count": count}


def _nearest(table: ResultTable, index: int, plan: SessionPlan) -> NearestEntry:
    values = table.measurement(index).values
    return {
        **_entry(table, index),
        "excess": plan.objective.excess(values),  # relative, of the limit that is broken most
        "broken": broken_in_words(plan.objective.limits, values),
    }


def _entry(table: ResultTable, index: int) -> Entry:
    measurement = table.measurement(index)
    return {
        "configuration": dict(measurement.configuration),
        "board": measurement.board or None,
        "values": measurement.values,
        "as_measured": measurement.as_measured,
    }
