"""The frequency model fitted to a series of points, and to series at several memory clocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .frequency import FrequencyFit, MemoryClock, fit_frequency_model
from .points import Points, choose
from .settable_clocks import only_followed


def fit_points(points: Points) -> FrequencyFit:
    """Fit the frequency model to one series; one of very many rows by the medians at each clock."""
    points = only_followed(points.condensed())
    fit = fit_frequency_model(points)
    return replace(fit, reasons=(*fit.reasons, *points.notes), memory_clock_mhz=points.memory_clock_mhz)


def fit_memory_clocks(series: Sequence[Points]) -> FrequencyFit:
    """The chosen one of several series, and beside it those that differ from it in nothing but the memory clock."""
    chosen = choose(series)
    fit = fit_points(chosen)
    alike = [points for points in series if points.others == chosen.others and points.memory_clock_mhz is not None]
    if chosen.memory_clock_mhz is None or len({points.memory_clock_mhz for points in alike}) < 2:
        return fit
    fits = [fit if points.series == chosen.series else fit_points(points) for points in alike]
    return replace(fit, memory_clocks=_side_by_side(fits))


def _side_by_side(fits: Sequence[FrequencyFit]) -> tuple[MemoryClock, ...]:
    """One entry per fit that recommends a clock and knows the speed, by memory clock; the speeds must be alike."""
    found = []
    for fit in fits:
        clock, memory = fit.recommended_clock_mhz, fit.memory_clock_mhz
        if clock is None or memory is None or not len(fit.rate):
            continue
        energy = float(np.exp(np.interp(clock, fit.clock_mhz, np.log(fit.power_w / fit.rate))))
        time = float(np.exp(np.interp(clock, fit.clock_mhz, -np.log(fit.rate))))
        found.append((memory, clock, energy, time, float((1 / fit.rate).min())))
    least, fastest = (min((each[at] for each in found), default=1.0) for at in (2, 4))
    return tuple(
        MemoryClock(memory, clock, energy / least, time / fastest) for memory, clock, energy, time, _ in sorted(found)
    )
