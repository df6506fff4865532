"""Thousands of rows as one point per clock: a fit sees the medians, and stays a matter of a second."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from .points import Points

Floats = npt.NDArray[np.float64]

MANY_ROWS = 300  # more are condensed
_MOST_CLOCKS = 150  # of which there are points; more become as many intervals of the same width


def condensed(points: Points) -> Points:
    """The medians at each clock of a series of more than `MANY_ROWS` rows, which its notes say; else the series."""
    rows = len(points.clock_mhz)
    if rows <= MANY_ROWS:
        return points
    places, what = _places(points)
    order = np.argsort(places, kind="stable")
    starts = np.flatnonzero(np.diff(places[order], prepend=-1))
    groups = np.split(order, starts[1:])
    power = _medians(points.power_w, groups)
    scatter = np.concatenate([points.power_w[at] / level - 1 for at, level in zip(groups, power, strict=True)])
    spread = 1.48 * float(np.median(np.abs(scatter)))
    note = f"{rows} rows: the medians of each {what} are fitted; power scatters by {100 * spread:.1f} % around them"
    return replace(
        points,
        clock_mhz=_medians(points.clock_mhz, groups),
        power_w=power,
        rate=_optional(points.rate, groups),
        limited=None if points.limited is None else np.array([points.limited[at].mean() > 0.5 for at in groups]),
        voltage_mv=_optional(points.voltage_mv, groups),
        temperature_c=_optional(points.temperature_c, groups),
        requested_mhz=_optional(points.requested_mhz, groups),
        notes=(note, *points.notes),
    )


def _places(points: Points) -> tuple[npt.NDArray[np.intp], str]:
    """Which point each row belongs to, and what these are in words. Shape (n,)."""
    clock = points.clock_mhz if points.requested_mhz is None else points.requested_mhz
    clock = np.where(np.isfinite(clock), clock, points.clock_mhz)
    values, places = np.unique(clock, return_inverse=True)
    if len(values) <= _MOST_CLOCKS:
        return places, f"of the {len(values)} clocks"
    edges = np.linspace(values[0], values[-1], _MOST_CLOCKS + 1)[1:-1]
    places = np.searchsorted(edges, clock, side="right")
    return places, f"interval of {(values[-1] - values[0]) / _MOST_CLOCKS:.1f} MHz"


def _medians(values: Floats, groups: Sequence[npt.NDArray[np.intp]]) -> Floats:
    """NaN where a group has no known value."""
    known = [values[at][np.isfinite(values[at])] for at in groups]
    return np.array([float(np.median(each)) if len(each) else np.nan for each in known])


def _optional(values: Floats | None, groups: Sequence[npt.NDArray[np.intp]]) -> Floats | None:
    return None if values is None else _medians(values, groups)
