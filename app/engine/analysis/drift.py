"""Whether the board itself changed during a session: a fixed load measured now and then [Anzt2015, section 2.5]."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt

from ...base.records import Count, figure
from ..models.arrays import Floats
from ..results.measurement import FEWEST
from ..space.result_table import ResultTable
from .costs import readings_of

_PAIRED: Final = 1000  # runs at most whose slopes are taken pairwise: more would cost gigabytes
REFERENCES = ("reference_time_s", "reference_power_w", "reference_energy_j")


@dataclass(frozen=True, slots=True)
class DriftOf:
    """One figure of the reference load. Changes are shares: 0.01 is 1 %."""

    IN_JSON: ClassVar = ("looks",)

    name: str
    # Since the first run of the reference, shape (runs,).
    hours: Floats = field(metadata=figure(key=None))
    values: Floats = field(metadata=figure(key=None))
    scatter: float  # standard deviation over mean, the trend left in
    per_hour: float  # slope over the median (Theil-Sen)
    per_hour_interval: tuple[float, float]  # 95 %
    over_session: float  # the slope times the time from the first run to the last
    drifts: bool  # the interval leaves zero out

    @property
    def looks(self) -> Count:
        """How often the reference was run."""
        return len(self.values)


def drift_of(name: str, time_s: npt.ArrayLike, values: npt.ArrayLike) -> DriftOf | None:
    """Compute the drift of one figure by the Theil-Sen slope.

    Parameters
    ----------
    name : str
        Name of the figure.
    time_s : array_like, shape (n,)
        Time of each run in s.
    values : array_like, shape (n,)
        The figure of each run; NaN values are ignored.

    Returns
    -------
    DriftOf or None
        None for fewer than FEWEST runs, runs at a single time, or a median of zero.
    """
    from scipy.stats import theilslopes

    when, what = np.asarray(time_s, dtype=np.float64), np.asarray(values, dtype=np.float64)
    finite = np.isfinite(when) & np.isfinite(what)
    when, what = when[finite], what[finite]
    if len(what) < FEWEST or np.ptp(when) == 0:
        return None
    hours = (when - when.min()) / 3600
    middle = float(np.median(what))
    if middle == 0:
        return None
    every = 1 + len(what) // _PAIRED
    slope, _, low, high = (float(figure) / middle for figure in theilslopes(what[::every], hours[::every]))
    return DriftOf(
        name=name,
        hours=hours,
        values=what,
        scatter=float(what.std() / abs(what.mean())) if what.mean() else math.nan,
        per_hour=slope,
        per_hour_interval=(low, high),
        over_session=slope * float(np.ptp(hours)),
        drifts=not low <= 0 <= high,
    )


def drifts_of(table: ResultTable) -> list[DriftOf]:
    """Compute the drift of every reference figure that the session measured.

    Parameters
    ----------
    table : ResultTable
        The measurements of the session, some with figures of a run of the reference.

    Returns
    -------
    list of DriftOf
        In the order of REFERENCES, without figures for which `drift_of` gives None; empty if there are none.
    """
    results = []
    for name in REFERENCES:
        if name not in table.value_names:
            continue
        values = readings_of(table, name)
        indices = np.flatnonzero(np.isfinite(values))
        stamps = [table.measurement(int(index)).timestamp_s for index in indices]
        drift = drift_of(name, stamps, values[indices])
        if drift is not None:
            results.append(drift)
    return results
