"""Which measurements of a table keep the limits of an objective, and which comes nearest where none does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ..results.measurement import Measurement, State
from ..results.objectives import Limit
from .repeats import of_each_reading
from .result_table import STATES, ResultTable

Mask = npt.NDArray[np.bool_]
_OK = STATES.index(State.OK)


def feasible(table: ResultTable, limits: Sequence[Limit]) -> Mask:
    """Those that worked, are comparable and keep every limit, shape (n,); a figure that was not measured keeps none.

    The repeats of a configuration keep them in the mean, or not at all.
    """
    result: Mask = table.comparable
    result = result & (table.states()[: len(result)] == _OK)
    for limit in limits:
        column = of_each_reading(table, np.asarray(table.values(limit.name)[: len(result)], dtype=np.float64))
        result = result & ((column <= limit.bound) if limit.most else (column >= limit.bound))
    return result


def broken(table: ResultTable, limits: Sequence[Limit]) -> Mask:
    """Those that could be chosen but for a limit, shape (n,); of what was only timed that is not known yet."""
    within = feasible(table, limits)
    result: Mask = feasible(table, ())[: len(within)] & ~table.timed()[: len(within)] & ~within
    return result


def nearest(table: ResultTable, limits: Sequence[Limit]) -> int | None:
    """Of those that worked the one that breaks its limits least, by the most that one is broken by, relative.

    None if some keep all limits, or if none has every figure that they need.
    """
    if not limits or not len(table) or feasible(table, limits).any():
        return None
    excess = np.full(len(table), -np.inf)
    for limit in limits:
        column = np.asarray(table.values(limit.name)[: len(table)], dtype=np.float64)
        excess = np.maximum(excess, [limit.excess(value) for value in column.tolist()])
    excess[~feasible(table, ())] = np.nan
    return None if np.isnan(excess).all() else int(np.nanargmin(excess))


def unsure_in_words(limits: Sequence[Limit], measurement: Measurement) -> str:
    """'power_w <= 114 (111 to 117 W, 95 %)': each limit that a measurement keeps, but not all of its interval.

    Empty if it keeps them for certain, as far as its intervals say.
    """
    lines = []
    for limit in limits:
        low, high = measurement.intervals.get(limit.name, (float("nan"), float("nan")))
        end = high if limit.most else low
        if limit.holds(measurement.values.get(limit.name, float("nan"))) and end == end and not limit.holds(end):
            lines.append(f"{limit} (its 95 % interval is {low:.4g} to {high:.4g})")
    return "; ".join(lines)


def broken_in_words(limits: Sequence[Limit], values: Mapping[str, float]) -> str:
    """'ttft_p95_s is 0.62, more than 0.5': each limit that these values break; empty if they break none."""
    lines = []
    for limit in limits:
        value = values.get(limit.name, float("nan"))
        if not limit.holds(value):
            lines.append(
                f"{limit.name} is not known"
                if np.isnan(value)
                else f"{limit.name} is {value:.4g}, {'more' if limit.most else 'less'} than {limit.bound:g}"
            )
    return "; ".join(lines)
