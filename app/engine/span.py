"""What a board drew and did between two times, from its trace: energy by time stamps, after the fact (DOMAIN 2)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from app.engine.watching import INTERVAL_S, Watch
from app.sensors.channel import POWER_SAMPLES
from app.sensors.event_reasons import names as reason_names
from app.sensors.gpu import Gpu
from app.sensors.trace import Statistics, Trace

Floats = npt.NDArray[np.float64]
BUFFER_PATIENCE_S: Final = 0.5  # the newest sample is about 0.1 s old
COVERED: Final = 0.95  # share of the span that readings must cover for its energy to be known
FEWEST_READS: Final = 5  # of a polled source in a span
_BUFFER_S: Final = 0.02  # one sample
_ALL: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class PowerSensor:
    """The power readings that a span is made of, and how late and how smeared they are."""

    name: str  # the trace's series
    words: str
    refresh_s: float  # a new value this often
    averaging_s: float  # and each is the mean of that long
    lag_s: float = 0.0

    @property
    def delay_s(self) -> float:
        """By how much a value as it is read is behind what it tells of, on average."""
        return 0.0 if self.buffered else self.lag_s + (self.refresh_s + self.averaging_s) / 2

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


def power_sensor(gpu: Gpu, trace: Trace) -> PowerSensor:
    """The finest power readings of a trace.

    Refresh and averaging are those of the board's generation (DOMAIN 8): what is read is moved back by them, so that
    a value counts for the time it tells of.
    """
    name = trace.power_name
    if name == POWER_SAMPLES.name:
        return PowerSensor(name, "driver buffer (20 ms samples)", _BUFFER_S, _BUFFER_S)
    refresh_s, averaging_s = _timing(name, gpu.info.compute_capability)
    words = "power instant" if name == "power_instant_w" else "power average"
    return PowerSensor(name, f"{words}, polled (new every {refresh_s * 1e3:.0f} ms)", refresh_s, averaging_s)


def _timing(name: str, capability: tuple[int, int] | None) -> tuple[float, float]:
    """Refresh and averaging of a polled source in s (arXiv 2312.02741, the table in DOMAIN 8)."""
    if name == "power_average_w":
        return 0.1, 1.0
    if capability is not None and (6, 0) <= capability < (7, 5):
        return 0.02, 0.01
    return 0.1, 0.025 if capability is not None and (capability == (8, 0) or capability >= (9, 0)) else 0.1


def read_span(watch: Watch, start_ns: int, end_ns: int) -> Span:
    """What the watched board did between two times on its clock. Waits until the readings of the span have come."""
    trace, gpu = watch.trace, watch.gpu
    watch.wait_until(lambda: trace.last_ns >= end_ns, BUFFER_PATIENCE_S)
    if watch.buffered:  # until a sample covers the end, or the buffer has fallen silent
        watch.wait_until(lambda: len(trace.power_samples(end_ns, 1 << 62)[0]) > 0, BUFFER_PATIENCE_S)
    sensor = power_sensor(gpu, trace)
    if not sensor.buffered:
        late_s = sensor.delay_s + 2 * watch.interval_s
        watch.wait_until(lambda: trace.last_ns >= end_ns + round(late_s * 1e9), late_s + BUFFER_PATIENCE_S)
    shift_ns = round((sensor.delay_s - (0.0 if sensor.buffered else watch.interval_s / 2)) * 1e9)
    power = trace.statistics(sensor.name, start_ns + shift_ns, end_ns + shift_ns)
    time_s = (end_ns - start_ns) / 1e9
    unknown = _why_unknown(watch, sensor, power, time_s, start_ns + shift_ns, end_ns + shift_ns)
    times_s, power_w = _power_vector(watch, sensor, start_ns, end_ns)
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
        energy_j=math.nan if unknown else power.mean * time_s,
        mean_power_w=math.nan if unknown else power.mean,
        peak_power_w=math.nan if unknown else power.maximum,
        power_source=sensor.words,
        unknown=unknown,
        clock_mhz=trace.statistics("graphics_clock_mhz", start_ns, end_ns),
        temperature_c=trace.statistics("temperature_c", start_ns, end_ns).mean,
        event_reasons=bits,
        event_reasons_s=reasons_s,
        times_s=times_s,
        power_w=power_w,
        clocks_mhz=_clocks_at(trace, start_ns, end_ns, times_s),
        faults=tuple(str(event) for event in list(watch.events) if start_ns <= event.time_ns <= end_ns),
    )


# --- inside -----------------------------------------------------------------------------------------------------------


def _why_unknown(watch: Watch, sensor: PowerSensor, power: Statistics, time_s: float, from_ns: int, to_ns: int) -> str:
    """Why the span has no energy; empty where it has."""
    if time_s < sensor.shortest_s:
        return (
            f"{time_s * 1e3:.0f} ms is too short for this board's power readings ({sensor.words}); "
            f"{sensor.shortest_s * 1e3:.0f} ms at least are needed"
        )
    if math.isnan(power.mean):
        return "the board told no power"
    covered_s = watch.trace.covered_s(sensor.name, from_ns, to_ns)
    if covered_s < COVERED * time_s:
        return f"power was told for {covered_s / time_s:.0%} of the time only"
    return ""


def _power_vector(watch: Watch, sensor: PowerSensor, start_ns: int, end_ns: int) -> tuple[Floats, Floats]:
    """Every value that the sensor told of the span, once each: W, and s from the start to the middle of its average."""
    if sensor.buffered:
        stamps, told = watch.trace.power_samples(start_ns, end_ns + round(sensor.refresh_s * 1e9))
        times_s, watts = (stamps - start_ns) / 1e9 - sensor.averaging_s / 2, told
    else:
        late_s = (
            sensor.lag_s + sensor.averaging_s / 2 + watch.interval_s / 2
        )  # a value is seen so long after its middle
        around_ns = round((late_s + 2 * sensor.refresh_s) * 1e9)
        series = watch.trace.view(start_ns - around_ns, end_ns + around_ns, _ALL, [sensor.name])[sensor.name]
        known = ~np.isnan(series.value)
        times_s, watts = series.time_s[known] - around_ns / 1e9 - late_s, series.value[known]
        new = np.flatnonzero(watts[1:] != watts[:-1]) + 1  # repeats of a reading are no samples
        times_s, watts = times_s[new], watts[new]
    inside = (times_s >= 0) & (times_s <= (end_ns - start_ns) / 1e9)
    return times_s[inside], watts[inside].astype(np.float64)


def _clocks_at(trace: Trace, start_ns: int, end_ns: int, times_s: Floats) -> Floats:
    """The observed graphics clock nearest to each time; NaN where none is told."""
    series = trace.view(start_ns, end_ns, _ALL, ["graphics_clock_mhz"])["graphics_clock_mhz"]
    if not len(series.value):
        return np.full(len(times_s), math.nan)
    middles = (series.time_s[1:] + series.time_s[:-1]) / 2
    return series.value[np.searchsorted(middles, times_s)].astype(np.float64)
