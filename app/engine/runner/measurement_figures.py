"""From windows to a measurement's figures: what was measured, the metrics, the intervals, the scatter of repeats."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from statistics import fmean, stdev
from typing import Final

from ...sensors.event_reasons import LIMITING
from ...sensors.throttling import THROTTLED, throttled_figures
from ..metering.confidence import Interval, interval_of_repeats, not_negative
from ..metering.window import PEAK_POWER, THROTTLED_SHARE, Window
from ..results.measurement import MEASURED, Configuration, Depth, Measurement, State, source_figures
from ..specification.model import Specification, evaluate_metrics

Figures = dict[str, float]
Intervals = dict[str, Interval]
_OF_THE_WORK: Final = ("time_s", "energy_j", "power_w")  # and what a program reports: every repeat has them
_OF_THE_BOARD: Final = {*MEASURED, "settled", "aftereffect_w", PEAK_POWER, THROTTLED_SHARE} - {*_OF_THE_WORK}
_OVER_REPEATS: Final = {"settled": min, PEAK_POWER: max}  # of others the mean


def measurement_of(
    spec: Specification,
    row: int,
    configuration: Configuration,
    windows: Sequence[Window],
    *,
    source: str,
    cost_s: float,
    more: Mapping[str, float] | None = None,
    reported: Sequence[Figures] | None = None,
) -> Measurement:
    """A configuration that worked, measured in one window or repeatedly, now.

    `more` are values besides; `reported` are what the program itself reported, one for each window: metrics may use
    them.
    """
    values, intervals = figures_of(spec, configuration, windows, reported)
    return Measurement(
        row=row,
        configuration=configuration,
        state=State.OK,
        values={**values, **(more or {})},
        intervals=intervals,
        window_ns=(windows[0].window_ns[0], windows[-1].window_ns[1]),
        observed_clock_mhz=values.get("observed_clock_mhz", math.nan),
        event_reasons=reduce(or_, (window.event_reasons for window in windows)),
        power_source=windows[-1].power_source,
        message="; ".join(dict.fromkeys(text for window in windows for text in window.said)),
        source=source,
        timestamp_s=time.time(),
        cost_s=cost_s,
    )


def timed_measurement(
    spec: Specification, row: int, configuration: Configuration, time_s: float, *, source: str, cost_s: float
) -> Measurement:
    """A configuration that worked and was only timed, now: its time per launch, and the metrics that need no more."""
    values = {"time_s": time_s}
    return Measurement(
        row=row,
        configuration=configuration,
        state=State.OK,
        values={**values, **evaluate_metrics(spec, configuration, values)},
        source=source,
        timestamp_s=time.time(),
        cost_s=cost_s,
        depth=Depth.TIME,
    )


def figures_of(
    spec: Specification,
    configuration: Configuration,
    windows: Sequence[Window],
    reported: Sequence[Figures] | None = None,
) -> tuple[Figures, Intervals]:
    """Measured values, metrics and 95 % intervals of a configuration, measured in one window or repeatedly."""
    runs = []
    for window, extra in zip(windows, reported or [{}] * len(windows), strict=True):
        figures = with_metrics(spec, configuration, {**_measured(window), **extra}, window.power_interval_w)
        runs.append((figures[0], {**figures[1], **_of_sources(window)}))
    return runs[0] if len(runs) == 1 else over_repeats(spec, configuration, runs)


def _around(name: str, value: float, widest: Interval | None) -> Intervals:
    """An interval as wide around a figure's value: a metric of the means is not quite the mean of the metrics."""
    half = 0.0 if widest is None else (widest[1] - widest[0]) / 2
    around = value - half, value + half
    return {name: not_negative(around) if name in _OF_THE_WORK else around} if half else {}


def over_repeats(
    spec: Specification, configuration: Configuration, repeats: Sequence[tuple[Figures, Intervals]]
) -> tuple[Figures, Intervals]:
    """Means with their metrics and intervals and, from two repeats on, the scatter of what was measured.

    Power is the mean over all the time. An interval is Student's t over the repeats, and never narrower than that of
    one of them: repeating does not make up for what the board's power wanders.
    """
    runs = [figures for figures, _ in repeats]
    measured = {
        name: [run[name] for run in runs if name in run]
        for name in dict.fromkeys(name for run in runs for name in run if name not in spec.metrics)
    }
    measured = {name: seen for name, seen in measured.items() if name in _OF_THE_BOARD or len(seen) == len(runs)}
    means = {name: _mean_over(name, seen, len(runs)) for name, seen in measured.items()}
    if {"power_w", "time_s"} <= means.keys():
        time_s = sum(run["time_s"] for run in runs)
        means["power_w"] = sum(run["time_s"] * run["power_w"] for run in runs) / time_s
    values = {**means, **evaluate_metrics(spec, configuration, means)}
    intervals: Intervals = {}
    for name, value in values.items():
        if name not in _OF_THE_BOARD:
            of_runs = [ends[name] for _, ends in repeats if name in ends]
            widest = interval_of_repeats([run[name] for run in runs if name in run], of_runs)
            intervals |= _around(name, value, widest)
    if len(runs) > 1:
        for name, seen in measured.items():
            values |= {} if name in _OF_THE_BOARD else _scatter(name, seen)
    return values, intervals


def _mean_over(name: str, seen: Sequence[float], runs: int) -> float:
    """A figure over the repeats that have it. A reason that did not hold the clock back in one counts as 0 there."""
    if name in _OVER_REPEATS:
        return _OVER_REPEATS[name](seen)
    return fmean([*seen, *[0.0] * (runs - len(seen) if name in THROTTLED else 0)])


def _scatter(name: str, values: Sequence[float]) -> Figures:
    return {f"min_{name}": min(values), f"max_{name}": max(values), f"std_{name}": stdev(values)}


def with_metrics(
    spec: Specification, configuration: Configuration, measured: Figures, power_interval_w: Interval | None
) -> tuple[Figures, Intervals]:
    """Measured values and metrics, and the 95 % intervals that follow from the power's."""
    values = {**measured, **evaluate_metrics(spec, configuration, measured)}
    if power_interval_w is None:
        return values, {}
    ends = []
    for power_w in power_interval_w:
        energy_j = measured["energy_j"] * power_w / measured["power_w"]  # also where time_s is not all of a launch
        at_end = {**measured, "power_w": power_w, "energy_j": energy_j}
        ends.append({**at_end, **evaluate_metrics(spec, configuration, at_end)})
    low, high = ends
    finite = {n: (low[n], high[n]) for n in values if math.isfinite(low[n]) and math.isfinite(high[n])}
    return values, {n: (min(at_ends), max(at_ends)) for n, at_ends in finite.items() if len({*at_ends}) > 1}


def _measured(window: Window) -> Figures:
    measured = {
        "time_s": window.time_s,
        "energy_j": window.energy_j,
        "power_w": window.power_w,
        "observed_clock_mhz": window.observed_clock_mhz,
        "temperature_c": window.temperature_c,
        "memory_power_w": window.memory_power_w,
        "core_voltage_mv": window.core_voltage_mv,
        "observed_memory_clock_mhz": window.memory_clock_mhz,
        "memory_temperature_c": window.condition.memory_c,
        "recent_power_1s_w": window.condition.fast_w,
        "recent_power_30s_w": window.condition.slow_w,
        PEAK_POWER: window.peak_power_w,
        THROTTLED_SHARE: window.throttled_share,
    }
    measured = {name: value for name, value in measured.items() if not math.isnan(value)}
    measured |= throttled_figures(window.throttled)
    if window.aftereffect_w:
        measured["aftereffect_w"] = window.aftereffect_w
    if window.settled is not None and window.event_reasons & LIMITING:
        measured["settled"] = float(window.settled)
    for name, source in window.sources.items():
        if not math.isnan(source.power_w):
            power, energy = source_figures(name)
            measured |= {power: source.power_w, energy: source.power_w * window.time_s}
    return measured


def _of_sources(window: Window) -> Intervals:
    """The 95 % intervals of what each source of power reports of a window."""
    intervals: Intervals = {}
    for name, source in window.sources.items():
        if source.interval_w is not None:
            low_w, high_w = source.interval_w
            power, energy = source_figures(name)
            intervals |= {power: (low_w, high_w), energy: (low_w * window.time_s, high_w * window.time_s)}
    return intervals
