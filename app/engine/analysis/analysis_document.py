"""An analysis as one JSON-ready document: what `wattridge analyse --json` prints."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...base.records import as_json
from ..space.result_table import ResultTable
from ..workloads.hardware_counters import COUNTERS
from .choosers import Choice, weight_ranges
from .convergence import steps, thinned
from .costs import Floats
from .describe_over_load import over_load_to_json
from .difficulty import Difficulty
from .drift import DriftOf
from .plane import Plane
from .session_analysis import Analysis

DIFFICULTY_AT = tuple(round(1 + 0.01 * step, 2) for step in range(51))  # p of the curves
_MOST_STEPS = 1000  # points of a curve over evaluations


def document_of(analysis: Analysis) -> dict[str, Any]:
    """Every figure of it; what is unknown is None. Configurations come with all values that were measured.

    `weights` has the choice by the least a t + (1 - a) e for every a in 0..1, as ranges of a.
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
        "weights": [
            {"a_from": one.low, "a_to": one.high, "index": one.index}
            for one in weight_ranges(analysis.within.time_s, analysis.within.energy_j)
        ],
        "too_few": analysis.too_few or None,
        "correlations": as_json(analysis.correlations),
        "movers": [one.name for one in sorted(analysis.correlations, key=lambda one: -abs(one.moves)) if one.mover],
        "splits": as_json(analysis.splits),
        "counters": counters_to_json(analysis),
        "importance": {
            str(effects.goal): as_json({"parameters": effects.importances, "interactions": effects.interactions})
            for effects in analysis.effects
        },
        "convergence": {
            "best": _curve(analysis.best_so_far),
            "hypervolume": _curve(analysis.hypervolume_so_far),
        },
        "difficulty": {name: _difficulty(one) for name, one in analysis.difficulty.items()},
        "over_load": over_load_to_json(analysis.over_load),
        "coverage": analysis.coverage,
        "drift": [_drift(one) for one in analysis.drift],
        "failures": [
            {**as_json(one), "concentrated": [{**as_json(each), "share": each.share} for each in one.concentrated]}
            for one in analysis.failures
        ],
    }


def counters_to_json(analysis: Analysis) -> dict[str, Any] | None:
    """What each counter is, of how many configurations they are known, and what they add to the model of energies."""
    found = analysis.counted
    if found is None:
        return None
    return {
        "configurations": found.configurations,
        "names": {name: {"unit": COUNTERS[name].unit, "metrics": COUNTERS[name].metrics} for name in found.names},
        "energy_error_without": as_json(found.without),
        "energy_error_with": as_json(found.with_counters),
        "energy_better": as_json(found.better),
        "energy_by_chance": found.by_chance,
        "words": found.words,
    }


def entry(table: ResultTable, index: int) -> dict[str, Any]:
    """One measurement: its configuration and its values."""
    measurement = table.measurement(index)
    return {
        "index": index,
        "configuration": dict(measurement.configuration),
        "values": as_json(measurement.values),
    }


def _entries(table: ResultTable, indices: Iterable[int]) -> list[dict[str, Any]]:
    return [entry(table, int(index)) for index in indices]


def _quadrants(table: ResultTable, plane: Plane) -> dict[str, Any] | None:
    cut = plane.quadrants
    if cut is None:
        return None
    counts = ("both", "x_only", "y_only", "neither", "better_x", "better_y")
    return {
        "x": plane.goals[0].name,
        "y": plane.goals[1].name,
        "best_x": entry(table, cut.best_x),
        "best_y": entry(table, cut.best_y),
        "x_line": cut.x_line,
        "y_line": cut.y_line,
        **{name: {"count": getattr(cut, name), "percent": cut.percent(getattr(cut, name))} for name in counts},
    }


def _spread(plane: Plane) -> dict[str, Any]:
    x, y = (goal.name for goal in plane.goals)
    spreads = (("at_best_y", x, y, plane.spread_at_best_y), ("at_best_x", y, x, plane.spread_at_best_x))
    return {
        name: {"held": held, "at": one.at, "of": of, "low": one.low, "high": one.high, "share": one.share}
        for name, held, of, one in spreads
        if one is not None
    }


def _choice(table: ResultTable, choice: Choice) -> dict[str, Any] | None:
    if choice.index is None:
        return None
    change = choice.against_fastest
    return {
        "label": choice.label,
        **entry(table, choice.index),
        "time_change": as_json(change.time_change) if change else None,
        "energy_change": as_json(change.energy_change) if change else None,
        "words": change.words if change else None,
        "yearly": as_json(choice.yearly),
    }


def _curve(values: Floats) -> dict[str, Any]:
    """Where it changes, thinned to a bounded number of steps; the last one stays."""
    at, figures = steps(values)
    kept = thinned(len(at), _MOST_STEPS)
    return {"evaluations": at[kept].tolist(), "values": figures[kept].tolist()}


def _difficulty(one: Difficulty) -> dict[str, Any]:
    return {
        "p": list(DIFFICULTY_AT),
        "proportion_of_centrality": one.proportion(DIFFICULTY_AT).tolist(),
        "minima": len(one.minima),
        "neighbours": one.neighbourhood,
    }


def _drift(one: DriftOf) -> dict[str, Any]:
    names = [field.name for field in dataclasses.fields(one) if field.name not in ("hours", "values")]
    return {**{name: as_json(getattr(one, name)) for name in names}, "looks": len(one.values)}
