"""`Trace`: what one GPU reported over the last hours. One thread (the sampler) appends, any thread copies spans."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.records import Count, figure
from ..channel import CHANNELS, POWER_SAMPLES, Channel, PowerSample, Reading
from ..event_reasons import EventReason
from .ring import TOP, Ring, Summary
from .seconds import Seconds

_CUMULATIVE = "energy_j"  # grows beyond what float32 can resolve, so it is kept in double
_REASONS = "event_reasons"
_SAMPLES_HZ = 50.0  # of the driver's buffer: one per 20 ms
_MOST_ROWS = 180_000  # as they came, an hour at 50 Hz; of what is older a row for each second
_MOST_SECONDS = 21 * TOP  # a day less 6 min: 20 channels then take 49 MB
_KEPT_CHANGES = 1 << 16  # changes of the event reasons: 8 h at two a second
_POWER_CHANNELS = ("power_instant_w", "power_average_w")  # finest first
_REASON_BITS = (1 << 24) - 1  # what a float32 holds exactly; NVML uses eleven bits


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one channel for drawing: seconds after the window's start, and values. NaN breaks the line."""

    time_s: npt.NDArray[np.float64]
    value: npt.NDArray[Any]  # float32; float64 for the energy counter


@dataclass(frozen=True, slots=True)
class Statistics:
    """One channel over a span; NaN if nothing is known. The mean is weighted by time."""

    mean: float
    minimum: float = field(metadata=figure(key="min"))
    maximum: float = field(metadata=figure(key="max"))
    samples: Count


@dataclass(frozen=True, slots=True)
class EventSpan:
    """A time during which one clock event reason was set."""

    reason: EventReason
    start_ns: int
    end_ns: int


class Trace:
    """The last `span_s` seconds at `rate_hz` readings a second; a channel that is not available takes no memory.

    The newest 180,000 are kept as they came, an hour at 50 Hz; of older ones each second's mean and extremes.
    A value stands for the time since the reading before it: sensors average over the past. A silence longer than a
    second (or five readings) is a gap: it breaks lines and counts in no mean and no energy.
    """

    def __init__(self, channels: Sequence[Channel], *, rate_hz: float = 50.0, span_s: float = 24 * 3600.0) -> None:
        self.channels = tuple(channels)
        self._gap_ns = gap_ns = int(max(1.0, 5.0 / rate_hz) * 1e9)
        self._kept = [i for i, c in enumerate(self.channels) if c.available and c.name != _CUMULATIVE]
        self._column = {self.channels[i].name: column for column, i in enumerate(self._kept)}
        names = [c.name for c in self.channels]
        available = {c.name for c in self.channels if c.available}
        self._rows = Ring(len(self._kept), min(math.ceil(rate_hz * span_s), _MOST_ROWS), gap_ns)
        self._samples = Ring(1, min(math.ceil(_SAMPLES_HZ * span_s), _MOST_ROWS), gap_ns)
        self._changes = Ring(1, _KEPT_CHANGES, 1 << 62)
        self._reasons_index = names.index(_REASONS) if _REASONS in available else None
        self._energy_index = names.index(_CUMULATIVE) if _CUMULATIVE in available else None
        self._energy = np.zeros(self._rows.length if self._energy_index is not None else 0, np.float64)
        self._reasons = 0
        self._older: Seconds | None = None  # what the rows and the driver's samples were before
        self._older_samples: Seconds | None = None
        seconds = min(math.ceil(span_s), _MOST_SECONDS)
        if rate_hz * span_s > _MOST_ROWS:
            self._older = Seconds(self._rows, seconds, self._energy)
        if _SAMPLES_HZ * span_s > _MOST_ROWS:
            self._older_samples = Seconds(self._samples, seconds, np.zeros(0))

    def allow_for(self, speed: float) -> None:
        """The board's clock runs at that multiple of the wall's: of a faster one readings lie further apart.

        A silence is then as long on the wall; what was read at a higher speed stays joined when the clock slows down.
        So it is with a log of steps longer than a board is read at: with their length in place of the speed.
        """
        if math.isfinite(speed):  # a recording that is read at once has no wall clock
            for ring in (self._rows, self._samples):
                ring.gap_ns = max(ring.gap_ns, int(self._gap_ns * speed))

    # --- the sampler's side -------------------------------------------------------------------------------------------

    def append(self, reading: Reading) -> None:
        """Keep one reading; one that is not newer than the last is dropped."""
        rows, values = self._rows, reading.values
        last_ns = rows.last_ns
        if self._energy_index is not None:
            self._energy[rows.count % rows.length] = values[self._energy_index]
        if not rows.append(reading.time_ns, [values[i] for i in self._kept]):
            return
        if self._older is not None:
            self._older.follow()
        if self._reasons_index is not None:
            value = values[self._reasons_index]
            bits = 0 if math.isnan(value) else int(value) & _REASON_BITS
            if self._reasons and reading.time_ns - last_ns > rows.gap_ns:
                self._change(last_ns + 1, 0)
            if bits != self._reasons:
                self._change(reading.time_ns, bits)

    def append_power_samples(self, samples: Sequence[PowerSample]) -> None:
        """Keep samples of the driver's buffer, oldest first; those not newer than the last are dropped."""
        for sample in samples:
            if self._samples.append(sample.time_ns, (sample.power_w,)) and self._older_samples is not None:
                self._older_samples.follow()

    def _change(self, time_ns: int, bits: int) -> None:
        self._changes.append(time_ns, (bits,))
        self._reasons = bits

    # --- readers ------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Readings held."""
        return self._rows.count - self._rows.first

    @property
    def nbytes(self) -> int:
        """Memory once the span is full, without the driver's samples where none come."""
        held = [self._rows, self._changes, self._older]
        held += [self._samples, self._older_samples] if self._samples.count else []
        return sum(each.nbytes for each in held if each is not None) + self._energy.nbytes

    @property
    def appended(self) -> int:
        """Readings and power samples ever appended: a view compares it to see whether anything is new."""
        return self._rows.count + self._samples.count

    @property
    def first_ns(self) -> int:
        """Time of the oldest reading held, or of the oldest second; 0 while there is none."""
        older = self._older
        return older.ring.first_ns if older is not None and older.until_ns else self._rows.first_ns

    @property
    def last_ns(self) -> int:
        """Time of the newest reading; 0 while there is none."""
        return self._rows.last_ns

    @property
    def power_name(self) -> str:
        """The finest power series there is: the driver's buffer, else instant, else average."""
        if self._samples.count:
            return POWER_SAMPLES.name
        return next((name for name in _POWER_CHANNELS if name in self._column), _POWER_CHANNELS[-1])

    @property
    def names(self) -> tuple[str, ...]:
        """Every series that holds something, in the channels' order, the driver's samples last."""
        held = tuple(c.name for c in self.channels if c.available)
        return (*held, POWER_SAMPLES.name) if self._samples.count else held

    def view(self, t0_ns: int, t1_ns: int, max_points: int, names: Sequence[str] | None = None) -> dict[str, Series]:
        """Copies of the series between two times, each of about `max_points` points at most, for drawing.

        Where there are more readings, blocks of them become their smallest and largest value. `names` None: all that
        hold something. A channel that is not available gives an empty series. Raises KeyError for an unknown name.
        """
        wanted = self.names if names is None else names
        out: dict[str, Series] = {}
        columns = [name for name in wanted if name in self._column]
        if columns:
            places = [self._column[name] for name in columns]
            time_s, values = _points(self._rows, self._older, t0_ns, t1_ns, max_points, places)
            out = {name: Series(time_s, value) for name, value in zip(columns, values, strict=True)}
        for name in wanted:
            if name == POWER_SAMPLES.name:
                time_s, values = _points(self._samples, self._older_samples, t0_ns, t1_ns, max_points, [0])
                out[name] = Series(time_s, values[0])
            elif name == _CUMULATIVE and self._energy_index is not None:
                out[name] = self._view_energy(t0_ns, t1_ns, max_points)
            elif name not in out:
                out[CHANNELS[name].name] = Series(np.empty(0), np.empty(0, np.float32))
        return {name: out[name] for name in wanted}

    def _view_energy(self, t0_ns: int, t1_ns: int, max_points: int) -> Series:
        """A counter only rises, so every so many rows show all there is to see."""

        time_ns, energy_j = self._counted(t0_ns, t1_ns, _until_ns(self._older), max_points)
        time_s, values = _broken(time_ns, energy_j[None, :], self._rows.gaps, t0_ns)
        return Series(time_s, values[0])

    def _counted(
        self, t0_ns: int, t1_ns: int, until_ns: int, max_points: int = 1 << 62
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
        """Times and values of the energy counter, of seconds up to a time: at most about so many of each."""

        def read(ring: Ring, beside: npt.NDArray[Any], span: tuple[int, int]) -> tuple[Any, Any]:
            start, stop = span
            step = -(-(stop - start) // max(1, max_points)) or 1
            slots = np.arange(start, stop, step) % ring.length
            return ring.times(start, stop)[::step], beside[slots]

        rows, older = self._rows, self._older
        parts = [rows.consistent(lambda: read(rows, self._energy, rows.between(max(t0_ns, until_ns + 1), t1_ns)))]
        if older is not None and t0_ns <= until_ns:
            held, end_ns = older, min(t1_ns, until_ns)
            parts.insert(
                0, held.ring.consistent(lambda: read(held.ring, held.beside, held.ring.between(t0_ns, end_ns)))
            )
        time_ns, energy_j = (np.concatenate(column) for column in zip(*parts, strict=True))
        return time_ns, energy_j

    def at(self, time_ns: int) -> dict[str, float]:
        """Every series' value nearest to a time, NaN if nothing is known near it."""
        out = dict.fromkeys((c.name for c in self.channels), math.nan)
        out.update(self._rows.consistent(lambda: self._reading_at(time_ns)))
        if self._samples.count:
            out[POWER_SAMPLES.name] = self._samples.consistent(lambda: self._sample_at(time_ns))
        return out

    def _reading_at(self, time_ns: int) -> dict[str, float]:
        older, ring, beside = self._older, self._rows, self._energy
        if older is not None and time_ns <= older.until_ns:
            ring, beside = older.ring, older.beside
        row = _nearest(ring, time_ns)
        if row is None:
            return {}
        values = ring.row(row)  # of seconds, the means stand first
        known = {name: float(values[column]) for name, column in self._column.items()}
        if self._energy_index is not None:
            known[_CUMULATIVE] = float(beside[row % ring.length])
        return known

    def _sample_at(self, time_ns: int) -> float:
        older, ring = self._older_samples, self._samples
        if older is not None and time_ns <= older.until_ns:
            ring = older.ring
        sample = _nearest(ring, time_ns)
        return math.nan if sample is None else float(ring.row(sample)[0])

    def statistics(self, name: str, t0_ns: int, t1_ns: int) -> Statistics:
        """Mean over time, extremes, and how many readings lie in the span. Raises KeyError for an unknown name."""
        if name == _CUMULATIVE and self._energy_index is not None:
            return self._energy_statistics(t0_ns, t1_ns)
        summary = self._summary(name, t0_ns, t1_ns)
        if math.isinf(summary.minimum):
            return Statistics(math.nan, math.nan, math.nan, 0)
        if summary.covered_s > 0:
            mean = summary.integral / summary.covered_s
        else:  # readings after silences cover no time; their mean is known only where they agree
            mean = summary.minimum if summary.minimum == summary.maximum else math.nan
        return Statistics(mean, summary.minimum, summary.maximum, summary.rows)

    def energy_j(self, t0_ns: int, t1_ns: int) -> float:
        """Integral of the finest power over the span, over the time that readings cover; NaN if there are none."""
        summary = self._summary(self.power_name, t0_ns, t1_ns)
        return summary.integral if summary.covered_s > 0 else math.nan

    def trapezoid_j(self, t0_ns: int, t1_ns: int) -> float:
        """As `energy_j`, on straight lines between the readings: of a log, whose steps are long."""
        power = self.view(t0_ns, t1_ns, 2 * _MOST_ROWS, (self.power_name,))[self.power_name]
        pieces = np.diff(power.time_s) * (power.value[1:] + power.value[:-1].astype(np.float64)) / 2
        return float(np.nansum(pieces)) if np.isfinite(pieces).any() else math.nan

    def _summary(self, name: str, t0_ns: int, t1_ns: int) -> Summary:
        if name == POWER_SAMPLES.name:
            return _summary(self._samples, self._older_samples, 0, t0_ns, t1_ns)
        column = self._column.get(CHANNELS[name].name)
        if column is None:
            return Summary()
        return _summary(self._rows, self._older, column, t0_ns, t1_ns)

    def _energy_statistics(self, t0_ns: int, t1_ns: int) -> Statistics:
        _, counted = self._counted(t0_ns, t1_ns, _until_ns(self._older))
        counted = counted[~np.isnan(counted)]
        if not len(counted):
            return Statistics(math.nan, math.nan, math.nan, 0)
        return Statistics(float(counted.mean()), float(counted.min()), float(counted.max()), len(counted))

    def event_spans(self, t0_ns: int, t1_ns: int, resolution_ns: int | None = None) -> list[EventSpan]:
        """When each clock event reason was set, clipped to the span, by reason and then time.

        Spans of one reason closer together than `resolution_ns` (a thousandth of the span) are shown as one.
        """
        end_ns = min(t1_ns, self.last_ns)
        time_ns, bits = self._changes.consistent(lambda: self._changes_between(t0_ns, t1_ns))
        if not len(bits) or end_ns <= t0_ns:
            return []
        apart_ns = (t1_ns - t0_ns) // 1000 if resolution_ns is None else resolution_ns
        edges_ns = np.append(np.clip(time_ns, t0_ns, end_ns), end_ns)
        spans = []
        seen = int(np.bitwise_or.reduce(bits))
        for reason in (EventReason(1 << bit) for bit in range(seen.bit_length()) if seen >> bit & 1):
            active = np.concatenate(([0], (bits & reason) != 0, [0])).astype(np.int8)
            turns = np.diff(active)
            starts, ends = edges_ns[turns == 1], edges_ns[turns == -1]
            separate = starts[1:] - ends[:-1] > apart_ns
            for begin, end in zip(starts[np.append(True, separate)], ends[np.append(separate, True)], strict=True):
                spans.append(EventSpan(reason, int(begin), int(end)))
        return spans

    def _changes_between(self, t0_ns: int, t1_ns: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Times and event reasons of the changes up to `t1_ns`, from the one in force at `t0_ns`."""
        changes = self._changes
        start = max(changes.first, changes.before(t0_ns) - 1)
        time_ns = changes.times(start, changes.before(t1_ns))
        return time_ns, changes.column(0, start, start + len(time_ns)).astype(np.int64)

    def columns(self, t0_ns: int, t1_ns: int) -> dict[str, npt.NDArray[Any]]:
        """Every reading of the span as it came: `time_ns` (int64) and one column per available channel.

        Of what is held by seconds, their means.
        """
        older, until_ns = self._older, _until_ns(self._older)
        if older is None or t0_ns > until_ns:
            return self._rows.consistent(lambda: self._columns(t0_ns, t1_ns))
        held, end_ns = older, min(t1_ns, until_ns)
        newer = self._rows.consistent(lambda: self._columns(until_ns + 1, t1_ns))

        def read() -> dict[str, npt.NDArray[Any]]:
            start, stop = held.ring.between(t0_ns, end_ns)
            columns = {name: held.ring.column(column, start, stop) for name, column in self._column.items()}
            if self._energy_index is not None:
                columns[_CUMULATIVE] = held.ring.take(held.beside, start, stop)
            return columns | {"time_ns": held.ring.times(start, stop)}

        before = held.ring.consistent(read)
        return {name: np.concatenate((before[name], column)) for name, column in newer.items()}

    def _columns(self, t0_ns: int, t1_ns: int) -> dict[str, npt.NDArray[Any]]:
        start, stop = self._rows.between(t0_ns, t1_ns)
        out: dict[str, npt.NDArray[Any]] = {"time_ns": self._rows.times(start, stop)}
        for channel in self.channels:
            if channel.name in self._column:
                out[channel.name] = self._rows.column(self._column[channel.name], start, stop)
            elif channel.name == _CUMULATIVE and self._energy_index is not None:
                out[channel.name] = self._rows.take(self._energy, start, stop)
        return out

    def readings(self, name: str, t0_ns: int, t1_ns: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """One channel's readings of the span as they came: times in ns, values. Raises KeyError for an unknown name."""
        rows, column = self._rows, self._column[name]

        def read() -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
            start, stop = rows.between(t0_ns, t1_ns)
            return rows.times(start, stop), rows.column(column, start, stop)

        return rows.consistent(read)

    def next_event_ns(self, time_ns: int, *, before: bool = False) -> int | None:
        """The next time at which the event reasons change, or the one before; None if there is none."""
        changes = self._changes
        row = changes.before(time_ns, inclusive=not before) - before
        return int(changes.times(row, row + 1)[0]) if changes.first <= row < changes.count else None

    def power_samples(self, t0_ns: int, t1_ns: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """The driver's power samples of the span as they came: times in ns, power in W. Of seconds, their means."""

        older, until_ns = self._older_samples, _until_ns(self._older_samples)
        since_ns, end_ns = max(t0_ns, until_ns + 1), min(t1_ns, until_ns)

        def read() -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
            start, stop = self._samples.between(since_ns, t1_ns)
            return self._samples.times(start, stop), self._samples.column(0, start, stop)

        time_ns, watts = self._samples.consistent(read)
        if older is None or t0_ns > until_ns:
            return time_ns, watts
        ring = older.ring

        def before() -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
            start, stop = ring.between(t0_ns, end_ns)
            return ring.times(start, stop), ring.column(0, start, stop)

        earlier_ns, means = ring.consistent(before)
        return np.concatenate((earlier_ns, time_ns)), np.concatenate((means, watts))


def _nearest(ring: Ring, time_ns: int) -> int | None:
    """The row nearest to a time, None if none is within a gap's length."""
    after = ring.before(time_ns)
    near = ring.times(max(after - 1, ring.first), min(after + 1, ring.count))
    if not len(near):
        return None
    away = np.abs(near - time_ns)
    best = int(np.argmin(away))
    return max(after - 1, ring.first) + best if away[best] <= ring.gap_ns else None


def _points(
    ring: Ring, older: Seconds | None, t0_ns: int, t1_ns: int, max_points: int, columns: Sequence[int]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[Any]]:
    """Columns of a ring between two times for drawing: seconds after t0_ns, and values with a NaN in every gap."""
    until_ns = _until_ns(older)
    if older is None or t0_ns > until_ns:
        time_ns, values = ring.consistent(lambda: ring.points(*ring.between(t0_ns, t1_ns), max_points, columns))
        return _broken(time_ns, values, ring.gaps, t0_ns)
    end_ns = min(t1_ns, until_ns)
    share = (end_ns - t0_ns) / max(t1_ns - t0_ns, 1)
    most = max(2, round(share * max_points)), max(2, round((1.0 - share) * max_points))
    before_ns, before = older.ring.consistent(
        lambda: older.points(*older.ring.between(t0_ns, end_ns), most[0], columns)
    )
    time_ns, values = ring.consistent(lambda: ring.points(*ring.between(until_ns + 1, t1_ns), most[1], columns))
    parts = _broken(before_ns, before, older.ring.gaps, t0_ns), _broken(time_ns, values, ring.gaps, t0_ns)
    (time_s, values), (later_s, later) = parts
    return np.concatenate((time_s, later_s)), np.concatenate((values, later), axis=1)


def _summary(ring: Ring, older: Seconds | None, column: int, t0_ns: int, t1_ns: int) -> Summary:
    """One column of a span; of what the ring has dropped, from its seconds."""
    until_ns = _until_ns(older)
    if older is None or t0_ns > until_ns:
        return ring.consistent(lambda: ring.summary(column, t0_ns, t1_ns))
    result = older.ring.consistent(lambda: older.summary(column, t0_ns, min(t1_ns, until_ns)))
    if t1_ns > until_ns:
        result.take(ring.consistent(lambda: ring.summary(column, until_ns + 1, t1_ns)))
    return result


def _until_ns(older: Seconds | None) -> int:
    """The time up to which seconds count; asked once by a reader, as it moves on."""
    return older.until_ns if older is not None else 0


def _broken(
    time_ns: npt.NDArray[np.int64], values: npt.NDArray[Any], gaps: Sequence[tuple[int, int]], t0_ns: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[Any]]:
    """Seconds after t0_ns, and the values with a NaN in every gap that lies between two points."""
    time_s = (time_ns - t0_ns) / 1e9
    if not gaps or len(time_ns) < 2:
        return time_s, values
    within = [(before, after) for before, after in gaps if time_ns[0] <= before and after <= time_ns[-1]]
    if not within:
        return time_s, values
    places = np.searchsorted(time_ns, [after for _, after in within])
    middles = [((before + after) / 2 - t0_ns) / 1e9 for before, after in within]
    return np.insert(time_s, places, middles), np.insert(values, places, np.nan, axis=1)
