"""A slice of the space: one figure over one parameter, all others held at one configuration; free of Qt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...engine.analysis.quantities import Quantity, parameter_text
from ...engine.chart import Chart, Series
from ...engine.measurement import State, Value
from ...engine.objectives import Goal, Limit
from ...engine.session.plan import SessionPlan
from ...engine.space.result_table import STATES, ResultTable
from ...engine.space.within_limits import feasible

Indices = npt.NDArray[np.int64]
_OK = STATES.index(State.OK)


@dataclass(frozen=True, slots=True)
class Slice:
    """Measurements that differ from the chosen one in one parameter only, in the order of its values."""

    parameter: str
    chosen: int
    index: Indices  # measurements with the figure
    place: Indices  # of each: that of its value in the parameter's list
    failed: Indices  # places of values whose configuration failed
    open: Indices  # places of values whose configuration is not valid or not measured so far


def slice_through(table: ResultTable, chosen: int, parameter: str, figure: str) -> Slice:
    """The slice through a measurement."""
    space = table.space
    length = len(table)
    rows = table.rows()[:length]
    axis = space.names.index(parameter)
    alike = np.ones(length, dtype=np.bool_)
    for other in range(len(space.names)):
        if other != axis:
            codes = space.codes[:, other]
            alike &= codes[rows] == codes[rows[chosen]]
    index = np.flatnonzero(alike)
    place = space.codes[rows[index], axis].astype(np.int64)
    known = (table.states()[index] == _OK) & np.isfinite(table.values(figure)[:length][index])
    order = np.argsort(place[known], kind="stable")
    failed = np.setdiff1d(place[~known], place[known])
    missing = np.setdiff1d(np.arange(space.axis_sizes[axis]), place)
    return Slice(parameter, chosen, index[known][order], place[known][order], failed, missing)


def best_of(table: ResultTable, goal: Goal, limits: Sequence[Limit] = ()) -> int | None:
    """The measurement within the limits that is best in a figure."""
    within = feasible(table, limits)
    values = np.where(within, table.values(goal.name)[: len(within)], np.nan)
    if not np.isfinite(values).any():
        return None
    return int(np.nanargmax(values) if goal.maximise else np.nanargmin(values))


def positions(plan: SessionPlan, name: str) -> npt.NDArray[np.float64]:
    """Where each value of a parameter stands on the axis: settings of the device to scale, others side by side."""
    parameter = next(p for p in plan.space.parameters if p.name == name)
    if parameter.device_setting and not any(isinstance(value, str) for value in parameter.values):
        return np.asarray(parameter.values, dtype=np.float64)
    return np.arange(len(parameter.values), dtype=np.float64)


def chart_of(
    table: ResultTable, plan: SessionPlan, cut: Slice, goal: Goal, described: Quantity, over: Quantity
) -> Chart | str:
    """The slice as a plot, or why there is none."""
    values = plan.space.parameters[plan.space.names.index(cut.parameter)].values
    if not len(cut.index):
        return f"{described.label} is not known along {over.label}."
    at = positions(plan, cut.parameter)
    y = table.values(goal.name)[cut.index] * described.factor
    own = np.flatnonzero(cut.index == cut.chosen)
    series = [Series("others as chosen", "accent", y, at[cut.place], points=True)]
    if len(own):
        series.append(Series("chosen", "vermillion", y[own], at[cut.place[own]], line=False, points=True, symbol="d"))
    best = int(y.argmax() if goal.maximise else y.argmin())
    words = [f"Measured at {len(set(cut.place.tolist()))} of {len(values)} values."]
    words += [f"Best at {parameter_text(values[cut.place[best]])} {over.unit}".rstrip() + "."]
    words += [f"{text}: {_listed(values, places)}." for text, places in _others(cut) if len(places)]
    to_scale = not np.array_equal(at, np.arange(len(values)))
    ticks = () if to_scale else tuple(parameter_text(value) for value in values)
    return Chart(over.title, described.title, tuple(series), " ".join(words), ticks=ticks)


def _others(cut: Slice) -> tuple[tuple[str, Indices], ...]:
    return ("Failed", cut.failed), ("Not valid, or not measured so far", cut.open)


def _listed(values: tuple[Value, ...], places: Indices, most: int = 8) -> str:
    texts = [parameter_text(values[place]) for place in places[:most].tolist()]
    return ", ".join(texts) + (f" and {len(places) - most} more" if len(places) > most else "")
