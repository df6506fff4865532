"""What a board drew and did between two times, from its trace: energy by time stamps, after the fact (DOMAIN 2)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...sensors.channel import POWER_SAMPLES
from ...sensors.event_reasons import names as reason_names
from ...sensors.gpu import HoldsValues
from ...sensors.trace import Statistics, Trace
from .characterisation.figures import CHANNEL_OF, WORDS
from .watching import INTERVAL_S, Watch

Floats = npt.NDArray[np.float64]
BUFFER_PATIENCE_S: Final = 0.5  # the newest sample is about 0.1 s old
COVERED: Final = 0.95  # share of the span that readings must cover for its energy to be known
FEWEST_READS: Final = 5  # of a polled source in a span
_TOLERANCE_S: Final = 0.002  # of stamps
_ALL: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class PowerSensor:
    """The power readings that a span is made of, and how late and how smeared they are.

    A buffered sample's stamp is the end of what it averages, plus the lag; a polled value's is when it was read.
    """

    name: str  # the trace's series
    words: str
    refresh_s: float  # a new value this often
    averaging_s: float  # and each is the mean of that long
    lag_s: float = 0.0

    @property
    def shortest_s(self) -> float:
        """A shorter span holds no value that is wholly its own."""
        if self.buffered:
            return 2 * self.refresh_s
        return max(self.refresh_s + max(self.refresh_s, self.averaging_s), FEWEST_READS * INTERVAL_S)

    @property
    def buffered(self) -> bool:
        return self.name == POWER_SAMPLES.name


@dataclass(frozen=True, slots=True)
class Span:
    """One board over one span. A figure that is not known is NaN; `unknown` says why the power is not."""

    gpu: str
    source: str  # nvml, simulated or recorded
    time_s: float
    energy_j: float
    mean_power_w: float
    peak_power_w: float  # the largest value that the sensor told: a mean over its own averaging
    power_source: str
    unknown: str
    clock_mhz: Statistics  # observed graphics clock
    temperature_c: float
    core_voltage_mv: float  # mean
    memory_clock_mhz: float  # observed, mean
    event_reasons: int  # every reason seen
    event_reasons_s: Mapping[str, float]  # reason in words -> seconds
    times_s: Floats  # shape (n,): of each power value, from the span's start
    power_w: Floats  # shape (n,)
    clocks_mhz: Floats  # shape (n,), at the same times
    faults: tuple[str, ...]  # what the sensors failed to tell meanwhile

    @property
    def label(self) -> str:
        """The board's name, with its source where it is not a live one."""
        return self.gpu if self.source == "nvml" else f"{self.gpu} ({self.source})"


def power_sensor(watch: Watch) -> PowerSensor:
    """The power readings to count with, and how late they are.

    Where the board has been characterised, as that found them. Else the finest there are, with refresh and averaging
    of the board's generation (DOMAIN 8). What is read is moved back by them and counts for the time it tells of.
    """
    name = watch.trace.power_name
    known = watch.characterisation
    if known is not None and name != POWER_SAMPLES.name and known.chosen in CHANNEL_OF:
        name = CHANNEL_OF[known.chosen]
    source = next((source for source, channel in CHANNEL_OF.items() if channel == name), "buffer")
    figures = known.sources.get(source) if known is not None else None
    if figures is not None:
        refresh_s, lag_s = figures.refresh_ms / 1e3, figures.lag_ms / 1e3
        averaging_s = refresh_s if figures.window_ms is None else figures.window_ms / 1e3
    else:
        lag_s = 0.0
        refresh_s, averaging_s = _timing(name, watch.gpu.info.compute_capability)
    told = f"{refresh_s * 1e3:.0f} ms samples" if source == "buffer" else f"polled, new every {refresh_s * 1e3:.0f} ms"
    characterised = ", as characterised" if figures is not None else ""
    return PowerSensor(name, f"{WORDS[source]} ({told}{characterised})", refresh_s, averaging_s, lag_s)


def _timing(name: str, capability: tuple[int, int] | None) -> tuple[float, float]:
    """Refresh and averaging of a source in s (DOMAIN 2; arXiv 2312.02741, the table in DOMAIN 8)."""
    if name == POWER_SAMPLES.name:
        return 0.02, 0.02
    if name == "power_average_w":
        return 0.1, 1.0
    if capability is not None and (6, 0) <= capability < (7, 5):
        return 0.02, 0.01
    return 0.1, 0.025 if capability is not None and (capability == (8, 0) or capability >= (9, 0)) else 0.1


def read_span(watch: Watch, start_ns: int, end_ns: int) -> Span:
    """What the watched board did between two times on its clock. Waits until the readings of the span have come."""
    trace, gpu = watch.trace, watch.gpu
    watch.wait_until(lambda: trace.last_ns >= end_ns, BUFFER_PATIENCE_S)
    sensor = power_sensor(watch)
    if watch.buffered:  # until a sample covers the end, or the buffer has fallen silent
        late_ns = end_ns + round(sensor.lag_s * 1e9)
        watch.wait_until(lambda: len(trace.power_samples(late_ns, 1 << 62)[0]) > 0, BUFFER_PATIENCE_S)
        sensor = power_sensor(watch)  # at the very beginning no sample had come
    if not sensor.buffered:
        late_s = sensor.lag_s + sensor.refresh_s + 2 * watch.interval_s
        watch.wait_until(lambda: trace.last_ns >= end_ns + round(late_s * 1e9), late_s + BUFFER_PATIENCE_S)
    time_s = (end_ns - start_ns) / 1e9
    times_s, power_w = _values_inside(watch, sensor, start_ns, end_ns)
    counts_s = np.diff(np.concatenate(([0.0], (times_s[1:] + times_s[:-1]) / 2, [time_s])))[: len(times_s)]
    unknown = _why_unknown(sensor, counts_s, time_s, watch.interval_s)
    energy_j = math.nan if unknown else float(counts_s @ power_w)
    reasons_s: dict[str, float] = {}
    bits = 0
    for span in trace.event_spans(start_ns, end_ns, 0):
        bits |= int(span.reason)
        for name in reason_names(int(span.reason)):
            reasons_s[name] = reasons_s.get(name, 0.0) + (span.end_ns - span.start_ns) / 1e9
    return Span(
        gpu=gpu.info.name,
        source=gpu.info.source,
        time_s=time_s,
        energy_j=energy_j,
        mean_power_w=math.nan if unknown else energy_j / time_s,
        peak_power_w=math.nan if unknown else float(power_w.max()),
        power_source=sensor.words,
        unknown=unknown,
        clock_mhz=trace.statistics("graphics_clock_mhz", start_ns, end_ns),
        temperature_c=trace.statistics("temperature_c", start_ns, end_ns).mean,
        core_voltage_mv=_mean_of_span(watch, "core_voltage_mv", start_ns, end_ns),
        memory_clock_mhz=_mean_of_span(watch, "memory_clock_mhz", start_ns, end_ns),
        event_reasons=bits,
        event_reasons_s=reasons_s,
        times_s=times_s,
        power_w=power_w,
        clocks_mhz=_clocks_at(trace, start_ns, end_ns, times_s),
        faults=tuple(str(event) for event in list(watch.events) if start_ns <= event.time_ns <= end_ns),
    )


# --- inside -----------------------------------------------------------------------------------------------------------


def _mean_of_span(watch: Watch, channel: str, start_ns: int, end_ns: int) -> float:
    """The mean of what was asked within the span; NaN where nothing was, as where a value is held for longer."""
    held = watch.gpu.held(channel) if isinstance(watch.gpu, HoldsValues) else None
    asked_ns = start_ns if held is None else start_ns + round(held.longest_s * 1e9)
    return watch.trace.statistics(channel, asked_ns, end_ns).mean if asked_ns < end_ns else math.nan


def _why_unknown(sensor: PowerSensor, counts_s: Floats, time_s: float, interval_s: float) -> str:
    """Why the span has no energy; empty where it has. `counts_s` is for how long each value stands."""
    if time_s < sensor.shortest_s:
        return (
            f"{time_s * 1e3:.0f} ms is too short for this board's power readings, {sensor.words}; "
            f"{sensor.shortest_s * 1e3:.0f} ms at least are needed"
        )
    if not len(counts_s):
        return "the board told no power"
    most_s = sensor.averaging_s + 2 * (sensor.refresh_s + interval_s)
    covered = float(np.minimum(counts_s, most_s).sum()) / time_s
    return "" if covered >= COVERED else f"power was told for {covered:.0%} of the time only"


def _values_inside(watch: Watch, sensor: PowerSensor, start_ns: int, end_ns: int) -> tuple[Floats, Floats]:
    """Every value that the sensor told of nothing but the span, once each: s from the start to the middle of what it
    averages, and W.

    Each counts for the time that is nearer to it than to another, out to the span's edges: what ran before and after
    has no part in it. Spreading values that straddle an edge would take 2 to 4 % from a burst of a second.
    """
    late_s = sensor.lag_s + sensor.averaging_s / 2
    around_ns = round((late_s + 2 * sensor.refresh_s + watch.interval_s) * 1e9)
    if sensor.buffered:
        stamps, watts = watch.trace.power_samples(start_ns, end_ns + around_ns)
        times_s = (stamps - start_ns) / 1e9 - late_s
    else:
        series = watch.trace.view(start_ns - around_ns, end_ns + around_ns, _ALL, [sensor.name])[sensor.name]
        known = ~np.isnan(series.value)
        new = _first_seen(series.time_s[known], series.value[known], sensor.refresh_s, watch.interval_s)
        watts = series.value[known][new]
        times_s = series.time_s[known][new] - around_ns / 1e9 - watch.interval_s / 2 - late_s
    half_s = sensor.averaging_s / 2
    inside = (times_s >= half_s - _TOLERANCE_S) & (times_s <= (end_ns - start_ns) / 1e9 - half_s + _TOLERANCE_S)
    return times_s[inside], watts[inside].astype(np.float64)


def _first_seen(read_s: Floats, told_w: npt.NDArray[Any], refresh_s: float, interval_s: float) -> npt.NDArray[np.int64]:
    """The readings at which the sensor had a new value: repeats are no samples, but for a value that stays."""
    if not len(told_w):
        return np.empty(0, np.int64)
    change = np.concatenate(([True], told_w[1:] != told_w[:-1]))
    run = np.cumsum(change) - 1
    stays_s = read_s - read_s[change][run]
    again = np.maximum(0, np.floor((stays_s - interval_s) / refresh_s))  # a refresh later and still the same
    return np.flatnonzero((run[1:] != run[:-1]) | (again[1:] != again[:-1])) + 1


def _clocks_at(trace: Trace, start_ns: int, end_ns: int, times_s: Floats) -> Floats:
    """The observed graphics clock nearest to each time; NaN where none is told."""
    series = trace.view(start_ns, end_ns, _ALL, ["graphics_clock_mhz"])["graphics_clock_mhz"]
    if not len(series.value):
        return np.full(len(times_s), math.nan)
    middles = (series.time_s[1:] + series.time_s[:-1]) / 2
    return series.value[np.searchsorted(middles, times_s)].astype(np.float64)
