"""Which power limits bind on what a session measured, and which are without effect: see `metering/binding`."""

from __future__ import annotations

import numpy as np

from ..metering.binding import THROTTLED, LimitEffect, effects_of
from ..models.arrays import Mask
from ..models.fit.points import LIMIT_SETTINGS
from ..results.measurement import PEAK_POWER, THROTTLED_SHARE
from ..space.result_table import ResultTable


def limit_effects(table: ResultTable, among: Mask | None = None) -> tuple[LimitEffect, ...]:
    """Return the effect of each power limit of a table's space on what was measured, at whatever limit.

    A limit is without effect if it is on every configuration. A configuration that power throttled wherever it was
    measured may draw any power under a higher limit, so that no limit is then known to be without effect.

    Parameters
    ----------
    table
        The measurements, n of them.
    among
        Which of them to judge by, shape (n,); all of them where None.

    Returns
    -------
    tuple of LimitEffect
        Ascending; empty without several power limits, or without peaks and event reasons of the power.
    """
    table = table.so_far()
    name = next((item for item in LIMIT_SETTINGS if item in table.space.names), None)
    if name is None:
        return ()
    under_w, peak_w, throttled = (table.values(item)[: len(table)] for item in (name, PEAK_POWER, THROTTLED_SHARE))
    known = np.isfinite(peak_w) & np.isfinite(throttled) & (True if among is None else among)
    limits = np.unique(table.space.numbers(name))
    limits = limits[np.isfinite(limits)]
    if not known.any() or len(limits) < 2:
        return ()
    others = [axis for axis, item in enumerate(table.space.names) if item != name]
    loads = table.space.codes[table.rows()[: len(table)]][:, others]
    free = known & (throttled <= THROTTLED)
    if {row.tobytes() for row in loads[known]} != {row.tobytes() for row in loads[free]}:
        peak_w = np.full(len(table), np.nan)
    under_w = np.where(np.isnan(under_w), np.inf, under_w)  # untouched: which limit was in force is not known
    return effects_of(limits.tolist(), under_w[known], peak_w[known], throttled[known])
