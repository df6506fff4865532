"""`Span`: energy, clocks and state of a board between two times, from its trace: by time stamps, after the fact."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from ...sensors.event_reasons import LIMITING, NAMES, EventReason
from ...sensors.event_reasons import names as reason_names
from ...sensors.gpu import LIVE, HoldsValues
from ...sensors.throttling import in_place_of_samples, seconds_counted
from ...sensors.trace.trace import Statistics, Trace
from ..results.evidence import EVIDENT, Evidence
from .condition import SLOW_S, Condition, drawn_lately_w
from .confidence import Interval, not_negative
from .power_source import Energy, Floats, PowerSensor, PowerSource
from .thermal import BoardHeat
from .watching import Watch
from .window import Window

BUFFER_PATIENCE_S: Final = 0.5  # the newest sample is about 0.1 s old
HISTORIES: Final = 4.0  # times the slow average, that are looked back
_ALL: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class Span:
    """One board over one span. A figure that is not known is NaN; `unknown` says why the power is not."""

    gpu: str
    source: str  # nvml, simulated or recorded
    time_s: float
    energy_j: float
    mean_power_w: float
    energy_interval_j: Interval | None  # 95 % confidence, None if not known
    power_interval_w: Interval | None  # of the mean power
    peak_power_w: float  # the largest value that the sensor reported: a mean over its own averaging
    sampled_peak_w: float  # the same, NaN where that is too long to show a peak
    power_source: str
    unknown: str
    clock_mhz: Statistics  # observed graphics clock
    temperature_c: float
    core_voltage_mv: float  # mean
    memory_clock_mhz: float  # observed, mean
    event_reasons: int  # every reason seen; those that the board counts, as counted
    event_reasons_s: Mapping[str, float]  # reason in words -> seconds
    throttled: Mapping[str, float]  # reason -> share of the span, where it is counted
    throttled_share: float  # of the time, by power
    times_s: Floats  # shape (n,): of each power value, from the span's start
    power_w: Floats  # shape (n,)
    clocks_mhz: Floats  # shape (n,), at the same times
    condition: Condition  # how warm the board was
    stated_for: Condition | None  # that its sessions state their figures for; None before the first
    energy_at_condition_j: float  # of the same work there; NaN if that is not known
    energy_at_condition_interval_j: Interval | None  # 95 %, with the uncertainty of the step there and between sessions
    faults: tuple[str, ...]  # failures of the sensors meanwhile
    evidence: Evidence | None  # its samples; None if its power is not known

    @property
    def label(self) -> str:
        """The board's name, with its source where it is not a live one."""
        return self.gpu if self.source in LIVE else f"{self.gpu} ({self.source})"


def read_span(watch: Watch, start_ns: int, end_ns: int) -> Span:
    """Return the span of a watched board between two times, once its readings have come.

    Parameters
    ----------
    watch : Watch
        The watched board.
    start_ns, end_ns : int
        The times, ns on the board's clock.

    Returns
    -------
    Span
        The span; `unknown` states why if its power is not known.
    """
    trace, gpu = watch.trace, watch.gpu
    watch.mark()
    sensor, energy = _energy(watch, start_ns, end_ns)
    reasons_s: dict[str, float] = {}
    bits = 0
    for span in trace.event_spans(start_ns, end_ns, 0):
        bits |= int(span.reason)
        for name in reason_names(int(span.reason)):
            reasons_s[name] = reasons_s.get(name, 0.0) + (span.end_ns - span.start_ns) / 1e9
    throttled_s = reasons_s.get(NAMES[EventReason.POWER_CAP], 0.0 if "event_reasons" in trace.names else math.nan)
    length_s = (end_ns - start_ns) / 1e9
    bits, throttled = in_place_of_samples(bits, watch.throttled(start_ns, end_ns))
    condition = _condition(watch, sensor, start_ns, end_ns)
    heat = watch.heat()
    stated_j, stated_interval_j = _stated(heat, energy, condition, limited=bool(bits & LIMITING))
    return Span(
        gpu=gpu.info.name,
        source=gpu.info.source,
        time_s=(end_ns - start_ns) / 1e9,
        energy_j=energy.energy_j,
        mean_power_w=energy.mean_power_w,
        energy_interval_j=energy.energy_interval_j,
        power_interval_w=energy.power_interval_w,
        peak_power_w=math.nan if energy.unknown else float(energy.power_w.max()),
        sampled_peak_w=math.nan if sensor is None else sensor.peak_w(energy.power_w),
        power_source="none" if sensor is None else sensor.words,
        unknown=energy.unknown,
        clock_mhz=trace.statistics("graphics_clock_mhz", start_ns, end_ns),
        temperature_c=trace.statistics("temperature_c", start_ns, end_ns).mean,
        core_voltage_mv=_mean_of_span(watch, "core_voltage_mv", start_ns, end_ns),
        memory_clock_mhz=_mean_of_span(watch, "memory_clock_mhz", start_ns, end_ns),
        event_reasons=bits,
        event_reasons_s=seconds_counted(reasons_s, throttled, length_s),
        throttled=throttled,
        throttled_share=throttled.get("power", throttled_s / length_s if length_s > 0 else math.nan),
        times_s=energy.times_s,
        power_w=energy.power_w,
        clocks_mhz=_clocks_at(trace, start_ns, end_ns, energy.times_s),
        condition=condition,
        stated_for=heat.condition,
        energy_at_condition_j=stated_j,
        energy_at_condition_interval_j=stated_interval_j,
        faults=tuple(str(event) for event in list(watch.events) if start_ns <= event.time_ns <= end_ns),
        evidence=None if energy.unknown else _evidence(trace, start_ns, end_ns, energy),
    )


def window_of(span: Span, window_ns: tuple[int, int], time_s: float) -> Window:
    """Return the figures of a span as those of a window.

    Parameters
    ----------
    span : Span
        The span.
    window_ns : tuple of int
        Its begin and end, ns on the board's clock.
    time_s : float
        The time of one unit of its work, s.

    Returns
    -------
    Window
        The window; a power that is not known is NaN, and a caution states why.
    """
    return Window(
        time_s=time_s,
        power_w=span.mean_power_w,
        power_interval_w=span.power_interval_w,
        observed_clock_mhz=span.clock_mhz.mean,
        temperature_c=span.temperature_c,
        core_voltage_mv=span.core_voltage_mv,
        memory_clock_mhz=span.memory_clock_mhz,
        event_reasons=span.event_reasons,
        throttled=span.throttled,
        peak_power_w=span.sampled_peak_w,
        throttled_share=span.throttled_share,
        window_ns=window_ns,
        power_source=span.power_source if span.source in LIVE else f"{span.power_source}, {span.source}",
        settled=None,
        condition=span.condition,
        said=(f"energy is not known: {span.unknown}",) if span.unknown else (),
        evidence=span.evidence,
    )


# --- inside -----------------------------------------------------------------------------------------------------------


def _energy(watch: Watch, start_ns: int, end_ns: int) -> tuple[PowerSensor | None, Energy]:
    """The board's power source, and the energy that it reports of the span once its readings have come."""
    trace, interval_s = watch.trace, watch.interval_s
    watch.wait_until(lambda: trace.last_ns >= end_ns, BUFFER_PATIENCE_S)
    sensor = watch.sensor()
    if watch.buffered:  # until a sample covers the end, or the buffer has fallen silent
        late_ns = end_ns + round((0.0 if sensor is None else sensor.lag_s) * 1e9)
        watch.wait_until(lambda: len(trace.power_samples(late_ns, 1 << 62)[0]) > 0, BUFFER_PATIENCE_S)
        sensor = watch.sensor()  # at the very beginning no sample had come
    if sensor is None:
        return None, Energy(np.empty(0), np.empty(0), unknown="the board reports no power")
    late_s = sensor.lag_s + sensor.refresh_s + 2 * interval_s
    if not sensor.buffered:
        watch.wait_until(lambda: trace.last_ns >= end_ns + round(late_s * 1e9), late_s + BUFFER_PATIENCE_S)
    source = PowerSource(sensor, kept_s=math.inf, poll_s=interval_s)
    around_ns = round((late_s + 2 * sensor.refresh_s) * 1e9)
    if sensor.channel is None:
        stamps, watts = trace.power_samples(start_ns, end_ns + around_ns)
        source.add_samples(zip(stamps.tolist(), watts.tolist(), strict=True))
    else:
        series = trace.view(start_ns - around_ns, end_ns + around_ns, _ALL, [sensor.channel])[sensor.channel]
        for read_s, power_w in zip(series.time_s.tolist(), series.value.tolist(), strict=True):
            source.poll(start_ns - around_ns + round(read_s * 1e9), power_w)
    return sensor, source.energy(start_ns, end_ns)


def _stated(heat: BoardHeat, energy: Energy, measured: Condition, *, limited: bool) -> tuple[float, Interval | None]:
    """The energy of the same work at the board's condition, and its interval; NaN if it is not known.

    At a limit the power is the limit's, so the energy is as it was drawn.
    """
    power_w = energy.mean_power_w
    if heat.condition is None or energy.unknown or not power_w > 0:
        return math.nan, None
    stated_w, step_sd = (power_w, 0.0) if limited else heat.model.stated(power_w, measured, heat.condition)
    stated_j = energy.energy_j * stated_w / power_w
    if energy.power_interval_w is None:
        return stated_j, None
    sampled = (energy.power_interval_w[1] - energy.power_interval_w[0]) / 2 / power_w
    half_j = stated_j * math.hypot(sampled, heat.model.uncertainty(step_sd, sampled))
    return stated_j, not_negative((stated_j - half_j, stated_j + half_j))


def _condition(watch: Watch, sensor: PowerSensor | None, start_ns: int, end_ns: int) -> Condition:
    """The thermal condition in the middle of a span."""
    trace, middle_ns = watch.trace, (start_ns + end_ns) // 2
    since_ns = middle_ns - round(HISTORIES * SLOW_S * 1e9)
    fast_w = slow_w = math.nan
    if sensor is not None and sensor.channel is None:
        stamps, watts = trace.power_samples(since_ns, middle_ns)
        times_s = (stamps - middle_ns) / 1e9
        fast_w, slow_w = drawn_lately_w(times_s, watts.astype(np.float64), 0.0)
    elif sensor is not None and sensor.channel is not None:
        series = trace.view(since_ns, middle_ns, _ALL, [sensor.channel])[sensor.channel]
        times_s = series.time_s.astype(np.float64) - HISTORIES * SLOW_S
        fast_w, slow_w = drawn_lately_w(times_s, series.value.astype(np.float64), 0.0)
    gpu, memory = (trace.statistics(name, start_ns, end_ns) for name in ("temperature_c", "memory_temperature_c"))
    return Condition(gpu.mean, memory.mean, fast_w, slow_w)


def _mean_of_span(watch: Watch, channel: str, start_ns: int, end_ns: int) -> float:
    """The mean of the values asked for within the span; NaN if there are none, as where one is held for longer."""
    held = watch.gpu.held(channel) if isinstance(watch.gpu, HoldsValues) else None
    asked_ns = start_ns if held is None else start_ns + round(held.longest_s * 1e9)
    return watch.trace.statistics(channel, asked_ns, end_ns).mean if asked_ns < end_ns else math.nan


def _evidence(trace: Trace, start_ns: int, end_ns: int, energy: Energy) -> Evidence:
    series = trace.view(start_ns, end_ns, _ALL, EVIDENT)
    times_s = max((channel.time_s for channel in series.values()), key=len)
    columns = (series[name].value if len(series[name].value) else np.full(len(times_s), math.nan) for name in EVIDENT)
    readings = zip(start_ns + times_s * 1e9, *columns, strict=True)
    return Evidence.of([(start_ns, end_ns)], energy.times_s, energy.power_w, readings)


def _clocks_at(trace: Trace, start_ns: int, end_ns: int, times_s: Floats) -> Floats:
    """The observed graphics clock nearest to each time; NaN if none is known."""
    series = trace.view(start_ns, end_ns, _ALL, ["graphics_clock_mhz"])["graphics_clock_mhz"]
    if not len(series.value):
        return np.full(len(times_s), math.nan)
    middles = (series.time_s[1:] + series.time_s[:-1]) / 2
    return series.value[np.searchsorted(middles, times_s)].astype(np.float64)
