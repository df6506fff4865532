"""Mean power and energy of spans of a recording, and the difference of two of them, with 95 % intervals.

The figures of a span are those of `PowerSource.energy`, as for a board that is watched: each value of the power source
counts for the time nearer to it than to another, and the interval comes from the differences between neighbouring
values and from the edges, with Student's t, for the sensor of the board's generation [Yang2024]. A long span is
computed in pieces, whose errors add in quadrature. Two spans that do not overlap share no value, so the variances of
their errors add as well. The gain of the sensor, up to 5 % either way [Yang2024], is the same in both spans and no part
of the intervals.

Of a log that another tool wrote it is not known what its power averages over, and so no interval is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np

from ...base.formatting import duration
from ...sensors.channel import CHANNELS, POWER_SAMPLES, Channel
from ...sensors.gpu import GpuInfo
from ...sensors.timeline.stored import Stored
from .confidence import Interval
from .power_source import PowerSensor, PowerSource, find_sensor

_PIECE: Final = 100_000  # values
_LEAST_READ: Final = 0.98  # of a span; below this it is said how much of it was read
_OF_LOG: Final = "a log does not state what its power averages over"

Times = tuple[int, int]  # begin and end, ns after the recording's beginning


@dataclass(frozen=True, slots=True)
class SpanFigures:
    """One span. Figures are NaN, and intervals None, where they are not known; `unknown` states why."""

    span: Times
    mean_power_w: float
    energy_j: float
    power_interval_w: Interval | None
    energy_interval_j: Interval | None
    source: str  # the power source, in words
    unknown: str

    @property
    def time_s(self) -> float:
        return (self.span[1] - self.span[0]) / 1e9

    @property
    def half_w(self) -> float:
        """Half of the power's interval: the upper half, as the lower one may be cut off at 0; NaN if not known."""
        return math.nan if self.power_interval_w is None else self.power_interval_w[1] - self.mean_power_w


@dataclass(frozen=True, slots=True)
class SpanDifference:
    """What the second of two spans has more than the first."""

    power_w: float
    energy_j: float
    power_interval_w: Interval | None
    energy_interval_j: Interval | None
    unknown: str

    @property
    def distinguishable(self) -> bool | None:
        """Whether the interval of the power's difference leaves out zero; None if it is not known."""
        ends = self.power_interval_w
        return None if ends is None else not ends[0] <= 0 <= ends[1]


@dataclass(frozen=True, slots=True)
class _Board:
    channels: tuple[Channel, ...]
    info: GpuInfo


def span_figures(board: Stored, span: Times, *, interval: bool = True) -> SpanFigures:
    """Return mean power and energy of a span of a recording.

    Parameters
    ----------
    board : Stored
        The recording.
    span : tuple of int
        Begin and end, ns after its beginning.
    interval : bool, optional
        Whether to compute the intervals, which takes up to a second for a day.

    Returns
    -------
    SpanFigures
        The figures, in W and J.
    """
    trace, facts = board.trace, board.facts
    start_ns, end_ns = span
    of_log = facts.recorded_from.startswith("a log")
    power = trace.statistics(trace.power_name, start_ns, end_ns)
    few = power.samples <= _PIECE
    energy_j = trace.trapezoid_j(start_ns, end_ns) if of_log and few else trace.energy_j(start_ns, end_ns)
    known = SpanFigures(span, power.mean, energy_j, None, None, _words(trace.power_name), "")
    if math.isnan(energy_j):
        return replace(known, mean_power_w=math.nan, unknown="no power was recorded in it")
    if of_log or not interval:
        return replace(known, unknown=_OF_LOG if of_log else "mark a span to have it computed")
    buffered = trace.power_name == POWER_SAMPLES.name
    info = replace(facts.info, source="amd") if facts.recorded_from == "amd" else facts.info
    like = _Board(tuple(facts.channels), info)
    sensor = find_sensor(like, None, buffered=buffered)  # type: ignore[arg-type]  # what it looks at
    if sensor is None or end_ns <= start_ns:
        return replace(known, unknown="the board reports no power")
    pieces = -(-power.samples // _PIECE) or 1
    edges = np.linspace(start_ns, end_ns, pieces + 1).astype(np.int64).tolist()
    total_j = variance = 0.0
    for begin, end in pairwise(edges):
        energy = _source(board, sensor, begin, end).energy(begin, end)
        if energy.unknown or energy.energy_interval_j is None:
            read_s = energy_j / power.mean if power.mean else 0.0
            part = f"; {duration(read_s)} of it were read" if read_s < _LEAST_READ * known.time_s else ""
            return replace(known, unknown=f"{energy.unknown or 'too few values'}{part}")
        total_j += energy.energy_j
        half_j = max(energy.energy_interval_j[1] - energy.energy_j, 0.0)
        variance += half_j**2
    half_j, mean_w = math.sqrt(variance), total_j / known.time_s
    half_w = half_j / known.time_s
    return replace(
        known,
        mean_power_w=mean_w,
        energy_j=total_j,
        power_interval_w=(max(0.0, mean_w - half_w), mean_w + half_w),
        energy_interval_j=(max(0.0, total_j - half_j), total_j + half_j),
        source=sensor.words,
    )


def span_difference(first: SpanFigures, second: SpanFigures) -> SpanDifference:
    """Return the second span's figures less the first one's.

    Parameters
    ----------
    first, second : SpanFigures
        Two spans of one recording.

    Returns
    -------
    SpanDifference
        The differences, in W and J; intervals are None if one of the spans has none, or the spans overlap.
    """
    power_w, energy_j = second.mean_power_w - first.mean_power_w, second.energy_j - first.energy_j
    unknown = first.unknown or second.unknown
    if max(first.span[0], second.span[0]) < min(first.span[1], second.span[1]):
        unknown = "the spans overlap, so that their errors are not independent"
    return SpanDifference(
        power_w,
        energy_j,
        None if unknown else _around(power_w, first.half_w, second.half_w),
        None if unknown else _around(energy_j, first.half_w * first.time_s, second.half_w * second.time_s),
        unknown,
    )


# --- inside -----------------------------------------------------------------------------------------------------------


def _source(board: Stored, sensor: PowerSensor, start_ns: int, end_ns: int) -> PowerSource:
    """The values of a span and of a little around it."""
    trace = board.trace
    around_ns = round((sensor.lag_s + 4 * sensor.refresh_s + sensor.averaging_s) * 1e9)
    if sensor.channel is None:
        time_ns, power_w = trace.power_samples(start_ns - around_ns, end_ns + around_ns)
    else:
        time_ns, power_w = trace.readings(sensor.channel, start_ns - around_ns, end_ns + around_ns)
    step_s = float(np.median(np.diff(time_ns))) / 1e9 if len(time_ns) > 1 else sensor.poll_s
    source = PowerSource(sensor, kept_s=math.inf, poll_s=step_s)
    if len(time_ns):
        source.add_recorded(time_ns, power_w.astype(np.float64))
    return source


def _around(middle: float, *halves: float) -> Interval:
    half = math.hypot(*halves)
    return middle - half, middle + half


def _words(power_name: str) -> str:
    return POWER_SAMPLES.label if power_name == POWER_SAMPLES.name else CHANNELS[power_name].label
