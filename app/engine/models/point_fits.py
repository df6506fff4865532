"""The frequency model fitted to a series of points, and to series at several memory clocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .condense import condensed
from .frequency import FrequencyFit, fit_frequency_model
from .memory_clocks import over_memory_clocks
from .points import Points, choose
from .settable_clocks import only_followed


def fit_points(points: Points) -> FrequencyFit:
    """Fit the frequency model to one series; one of very many rows by the medians at each clock."""
    points = only_followed(condensed(points))
    fit = fit_frequency_model(
        points.clock_mhz,
        points.power_w,
        rate=points.rate,
        limited=points.limited,
        limit_w=points.limit_w,
        requested_mhz=points.requested_mhz,
        voltage_mv=points.voltage_mv,
        temperature_c=points.temperature_c,
        supported_mhz=points.supported_mhz,
        gpu=points.gpu,
        series=points.series,
        simulated=points.simulated,
    )
    return replace(fit, reasons=(*fit.reasons, *points.notes), memory_clock_mhz=points.memory_clock_mhz)


def fit_memory_clocks(series: Sequence[Points]) -> FrequencyFit:
    """The chosen one of several series, and beside it those that differ from it in nothing but the memory clock."""
    chosen = choose(series)
    fit = fit_points(chosen)
    alike = [points for points in series if points.others == chosen.others and points.memory_clock_mhz is not None]
    if chosen.memory_clock_mhz is None or len({points.memory_clock_mhz for points in alike}) < 2:
        return fit
    fits = [fit if points.series == chosen.series else fit_points(points) for points in alike]
    return replace(fit, memory_clocks=over_memory_clocks(fits))
