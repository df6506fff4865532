"""From a window to a measurement's figures: what was measured, the metrics, and the intervals that follow."""

from __future__ import annotations

import math

from app.engine.measurement import Configuration
from app.engine.runner.window import Window
from app.engine.specification import Specification, evaluate_metrics
from app.sensors.event_reasons import LIMITING

Figures = dict[str, float]


def figures_of(
    spec: Specification, configuration: Configuration, window: Window
) -> tuple[Figures, dict[str, tuple[float, float]]]:
    """Measured values and metrics, and the 95 % intervals that follow from the power's."""
    measured = {
        "time_s": window.time_s,
        "energy_j": window.energy_j,
        "power_w": window.power_w,
        "observed_clock_mhz": window.observed_clock_mhz,
        "temperature_c": window.temperature_c,
        "memory_power_w": window.memory_power_w,
        "core_voltage_mv": window.core_voltage_mv,
        "observed_memory_clock_mhz": window.memory_clock_mhz,
    }
    measured = {name: value for name, value in measured.items() if not math.isnan(value)}
    if window.aftereffect_w:
        measured["aftereffect_w"] = window.aftereffect_w
    if window.event_reasons & LIMITING:
        measured["settled"] = float(window.settled)
    values = {**measured, **evaluate_metrics(spec, configuration, measured)}
    if window.power_interval_w is None:
        return values, {}
    ends = []
    for power_w in window.power_interval_w:
        at_end = {**measured, "power_w": power_w, "energy_j": power_w * window.time_s}
        ends.append({**at_end, **evaluate_metrics(spec, configuration, at_end)})
    low, high = ends
    intervals = {n: (min(low[n], high[n]), max(low[n], high[n])) for n in values if low[n] != high[n]}
    return values, intervals
