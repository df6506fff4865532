"""An analysis as one JSON-ready document: what `wattridge analyse --json` prints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NotRequired, TypedDict

import numpy as np

from ...base.records import Count, Source, Values
from ..metering.gain import Gain
from ..models.arrays import Floats
from ..results.health import Health
from ..results.measurement import Configuration
from ..space.result_table import ResultTable
from .answers import Answer
from .choosers import Choice, WeightRange, weight_ranges
from .convergence import steps, thinned
from .correlations import Correlation, Split
from .difficulty import Difficulty
from .drift import DriftOf
from .failures import FailuresOf
from .over_load import ModelAtLoad, OverLoad
from .own_state import OwnState
from .peak_share import PeakShare
from .plane import Plane
from .session_analysis import Analysis, Counted, Effects
from .tradeoff import Yearly

DIFFICULTY_AT = tuple(round(1 + 0.01 * step, 2) for step in range(51))  # p of the curves
_MOST_STEPS = 1000  # points of a curve over evaluations


class Point(TypedDict):
    """A measurement: its index in the table, its configuration and its values."""

    index: int
    configuration: Configuration
    values: Values


class CountAndShare(TypedDict):
    """A number of configurations, and its share in per cent."""

    count: Count
    percent: float


class QuadrantCounts(TypedDict):
    """The quadrants of the plane, with the points and lines that cut them."""

    x: str
    y: str
    best_x: Point
    best_y: Point
    x_line: float
    y_line: float
    both: CountAndShare
    x_only: CountAndShare
    y_only: CountAndShare
    neither: CountAndShare
    better_x: CountAndShare
    better_y: CountAndShare


class SpreadAtBest(TypedDict):
    """The range of one figure where the other is held at its best."""

    held: str
    at: float
    of: str
    low: float
    high: float
    share: float


class OverEvaluations(TypedDict):
    """A curve over the number of evaluations, at the points where it changes."""

    evaluations: list[int]
    values: list[float]


class WayToChoose(Point):
    """A choice with its changes against the fastest configuration, as shares."""

    label: str
    time_change: float | None
    energy_change: float | None
    words: str | None
    yearly: Yearly | None


class DifficultyCurve(TypedDict):
    """The proportion of centrality over p, and the local minima."""

    p: Sequence[float]
    proportion_of_centrality: Sequence[float]
    minima: Count
    neighbours: str


class AnalysisDocument(TypedDict):
    """The analysis of one table."""

    objective: str
    limits: list[str]  # NAME <= NUMBER or NAME >= NUMBER; front and choosers keep all of them
    infeasible: list[int]  # indices of the measurements that worked and break a limit
    nearest: Point | None  # where none keeps the limits: the one that breaks them least
    evaluated: Count
    failed: Mapping[str, Count]
    goals: list[str]
    front: list[Point]
    hull: list[Point]
    quadrants: QuadrantCounts | None
    hypervolume: float | None
    reference: list[float] | None
    spread: Mapping[str, SpreadAtBest] | None
    choosers: Mapping[str, WayToChoose | None]
    own_state: OwnState | None  # of the best for the objective, against the board's own state
    weights: list[WeightRange]
    too_few: str | None
    correlations: Sequence[Correlation]
    movers: list[str]
    splits: Sequence[Split]
    counters: Counted | None
    importance: Mapping[str, Effects]
    convergence: Mapping[str, OverEvaluations]
    difficulty: Mapping[str, DifficultyCurve]
    over_load: OverLoad | None
    coverage: float
    drift: Sequence[DriftOf]
    failures: Sequence[FailuresOf]


class RepeatsOfConfigurations(TypedDict):
    """How often configurations were repeated, and by how much their figures scatter."""

    parameters: list[str]
    least: int
    most: int
    scatter: Mapping[str, float]


class AnalysisOfSession(AnalysisDocument):
    """The analysis of a session or file, with its origin."""

    session: int | None
    title: str
    gpu: str
    source: Source
    strategy: str
    valid: Count
    notes: list[str]
    repeats: RepeatsOfConfigurations | None
    health: Health
    sensor_gains: Sequence[Gain]  # of the board's sensor, against each meter beside it that shows one
    answers: Sequence[Answer]  # what the session says, with what each sentence rests on
    models_over_load: Sequence[ModelAtLoad]
    share_of_peak: PeakShare | None
    kernels: NotRequired[list[AnalysisDocument]]  # where a table names several, a document like this one of each


def document_of(analysis: Analysis) -> AnalysisDocument:
    """Return every figure of an analysis, to be printed as JSON.

    Parameters
    ----------
    analysis : Analysis
        The analysis.

    Returns
    -------
    AnalysisDocument
        Configurations come with all values that were measured. `weights` has the choice by the least a t + (1 - a) e
        for every a in 0..1, as ranges of a.
    """
    table, plane = analysis.table, analysis.plane
    return {
        "objective": str(analysis.objective),
        "limits": [str(limit) for limit in analysis.objective.limits],
        "infeasible": [int(index) for index in np.flatnonzero(analysis.broken)],
        "nearest": None if analysis.nearest is None else entry(table, analysis.nearest),
        "evaluated": len(table),
        "failed": table.failures(),
        "goals": [str(goal) for goal in plane.goals] if plane else [],
        "front": _entries(table, plane.front) if plane else [],
        "hull": _entries(table, plane.hull) if plane else [],
        "quadrants": _quadrants(table, plane) if plane else None,
        "hypervolume": plane.hypervolume if plane else None,
        "reference": list(plane.reference) if plane else None,
        "spread": _spread(plane) if plane else None,
        "choosers": {choice.name: _choice(table, choice) for choice in analysis.choices},
        "own_state": analysis.own_state,
        "weights": weight_ranges(analysis.within.time_s, analysis.within.energy_j),
        "too_few": analysis.too_few or None,
        "correlations": analysis.correlations,
        "movers": [one.name for one in sorted(analysis.correlations, key=lambda one: -abs(one.moves)) if one.mover],
        "splits": analysis.splits,
        "counters": analysis.counted,
        "importance": {str(effects.goal): effects for effects in analysis.effects},
        "convergence": {
            "best": _curve(analysis.best_so_far),
            "hypervolume": _curve(analysis.hypervolume_so_far),
        },
        "difficulty": {name: _difficulty(one) for name, one in analysis.difficulty.items()},
        "over_load": analysis.over_load,
        "coverage": analysis.coverage,
        "drift": analysis.drift,
        "failures": analysis.failures,
    }


def entry(table: ResultTable, index: int) -> Point:
    """Return one measurement: its configuration and its values.

    Parameters
    ----------
    table : ResultTable
        The measurements.
    index : int
        Index of the measurement in the table.

    Returns
    -------
    Point
        Every value that was measured, by name.
    """
    measurement = table.measurement(index)
    return {
        "index": index,
        "configuration": dict(measurement.configuration),
        "values": measurement.values,
    }


def _entries(table: ResultTable, indices: Iterable[int]) -> list[Point]:
    return [entry(table, int(index)) for index in indices]


def _quadrants(table: ResultTable, plane: Plane) -> QuadrantCounts | None:
    cut = plane.quadrants
    if cut is None:
        return None

    def counted(count: int) -> CountAndShare:
        return {"count": count, "percent": cut.percent(count)}

    return {
        "x": plane.goals[0].name,
        "y": plane.goals[1].name,
        "best_x": entry(table, cut.best_x),
        "best_y": entry(table, cut.best_y),
        "x_line": cut.x_line,
        "y_line": cut.y_line,
        "both": counted(cut.both),
        "x_only": counted(cut.x_only),
        "y_only": counted(cut.y_only),
        "neither": counted(cut.neither),
        "better_x": counted(cut.better_x),
        "better_y": counted(cut.better_y),
    }


def _spread(plane: Plane) -> Mapping[str, SpreadAtBest]:
    x, y = (goal.name for goal in plane.goals)
    spreads = (("at_best_y", x, y, plane.spread_at_best_y), ("at_best_x", y, x, plane.spread_at_best_x))
    return {
        name: {"held": held, "at": one.at, "of": of, "low": one.low, "high": one.high, "share": one.share}
        for name, held, of, one in spreads
        if one is not None
    }


def _choice(table: ResultTable, choice: Choice) -> WayToChoose | None:
    if choice.index is None:
        return None
    change = choice.against_fastest
    return {
        "label": choice.label,
        **entry(table, choice.index),
        "time_change": change.time_change if change else None,
        "energy_change": change.energy_change if change else None,
        "words": change.words if change else None,
        "yearly": choice.yearly,
    }


def _curve(values: Floats) -> OverEvaluations:
    """Where it changes, thinned to a bounded number of steps; the last one stays."""
    places, figures = steps(values)
    kept = thinned(len(places), _MOST_STEPS)
    return {"evaluations": places[kept].tolist(), "values": figures[kept].tolist()}


def _difficulty(one: Difficulty) -> DifficultyCurve:
    return {
        "p": list(DIFFICULTY_AT),
        "proportion_of_centrality": one.proportion(DIFFICULTY_AT).tolist(),
        "minima": len(one.minima),
        "neighbours": one.neighbourhood,
    }
