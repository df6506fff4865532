"""What a recording tells of energy: trapezoid and counter side by side over any span, and what its sampling resolves.

Nothing here corrects a sensor: of a log it is not known which one it was, nor what it averages over.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, TypedDict

import numpy as np

from ...base.formatting import finite_or_none
from ...base.records import Count, Source, figure
from ...sensors.channel import CHANNELS, POWER_SAMPLES
from ...sensors.recorded.recording import Recording
from ..results.description import Description, Figure, Listing
from .power_source import Floats

Span = tuple[float, float]

_POWERS: Final = ("power_instant_w", "power_average_w", "memory_power_w")
_COUNTER: Final = "energy_j"
_GAP_STEPS: Final = 5.0  # usual steps, from which on nothing is known of what lies between two readings
_LEAST_GAP_S: Final = 0.05
_LEAST_CHANGES: Final = 8
_ENOUGH: Final = 500_000  # readings, to see how often the value changes and between which powers
_MOST_GAPS: Final = 20  # that are listed
_REPEATS: Final = 0.2  # of the readings, from which on it is said
_DIFFERENCE: Final = 0.01  # between trapezoid and counter, likewise
_CONTRADICTED: Final = 0.7  # of the logarithm: twice as much, or half of it
_THINNED: Final = 0.005  # between all readings and every other one, likewise
_WANTED: Final = 0.01  # of an energy


@dataclass(frozen=True, slots=True)
class Sampling:
    """How one channel was read."""

    readings: int
    step_s: float  # the median time between two readings
    longest_step_s: float
    gaps_s: tuple[Span, ...]  # silences of more than five usual steps
    repeated: float  # share of the readings that equal the one before
    refresh_s: float  # between two changes of the value, where it changes; NaN: it hardly does
    digit: float  # the smallest difference between two readings, in the channel's unit
    shortest_event_s: float  # below it nothing is resolved: two refreshes, or two steps where these are longer
    span_for_1_percent_s: float  # a span must be so long for its ends to cost at most 1 % of its energy


@dataclass(frozen=True, slots=True)
class SourceEnergy:
    """The energy of a span by one channel."""

    channel: str
    method: str  # trapezoid or counter
    energy_j: float
    mean_power_w: float
    peak_power_w: float  # NaN of a counter
    # By every other reading; NaN of a counter.
    every_other_j: float = field(metadata=figure(key="every_other_reading_j"))
    gap_s: float  # of the span, in which nothing was read
    gap_j: float  # what the trapezoid has there
    sampling: Sampling

    IN_JSON: ClassVar = ("without_gaps_j",)

    @property
    def without_gaps_j(self) -> float:
        """The energy of the times between which something was read: of a log of several sessions, theirs."""
        return self.energy_j - self.gap_j

    @property
    def label(self) -> str:
        """As it is shown."""
        channel = POWER_SAMPLES if self.channel == POWER_SAMPLES.name else CHANNELS[self.channel]
        return f"{channel.label}, trapezoid" if self.method == "trapezoid" else channel.label


@dataclass(frozen=True, slots=True)
class RecordedEnergy:
    """A span of a recording: energy by every channel that tells it, the finest first."""

    span_s: Span
    recording_s: float  # the whole recording
    sources: tuple[SourceEnergy, ...]

    @property
    def trapezoid(self) -> SourceEnergy | None:
        """The finest energy by trapezoid; None if no power was recorded."""
        return next((source for source in self.sources if source.method == "trapezoid"), None)

    @property
    def counter(self) -> SourceEnergy | None:
        """The energy by counter; None if none was recorded."""
        return next((source for source in self.sources if source.method == "counter"), None)

    @property
    def difference(self) -> float:
        """Trapezoid over counter, minus one; NaN if there are not both."""
        if self.trapezoid is None or self.counter is None or not self.counter.energy_j > 0:
            return math.nan
        return self.trapezoid.energy_j / self.counter.energy_j - 1.0

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the sampling can and cannot resolve."""
        return tuple(_remarks(self))


def recorded_energy(recording: Recording, span_s: Span | None = None) -> RecordedEnergy:
    """Compute the energy of a span of a recording by every channel that tells it.

    Power between two readings is taken as a straight line, also at the ends of the span. A counter that falls was
    reset: the energy counted before stays counted.

    Parameters
    ----------
    recording : Recording
        The recording of a board.
    span_s : Span or None, optional
        Beginning and end in s from the beginning of the recording, clipped to it; the whole of it where None.

    Returns
    -------
    RecordedEnergy
        Energies in J by every channel, the finest first.
    """
    origin_ns = int(recording.time_ns[0])
    length_s = (int(recording.time_ns[-1]) - origin_ns) / 1e9
    start_s, end_s = (0.0, length_s) if span_s is None else span_s
    start_s, end_s = min(max(start_s, 0.0), length_s), min(max(end_s, 0.0), length_s)
    times_s = (recording.time_ns - origin_ns) / 1e9
    columns, sources = recording.by_name, []
    if len(recording.sample_ns) > 1:
        stamps_s = (recording.sample_ns - origin_ns) / 1e9
        sources.append(_by_power(POWER_SAMPLES.name, stamps_s, recording.sample_w, start_s, end_s))
    sources += [_by_power(name, times_s, columns[name], start_s, end_s) for name in _POWERS if name in columns]
    if _COUNTER in columns:
        sources.append(_by_counter(times_s, columns[_COUNTER], start_s, end_s))
    return RecordedEnergy((start_s, end_s), length_s, tuple(source for source in sources if source is not None))


def sampling_of(times_s: Floats, values: Floats) -> Sampling:
    """Describe how a channel was read.

    Parameters
    ----------
    times_s : array, shape (n,)
        Times of the readings in s, rising; n is at least 2.
    values : array, shape (n,)
        The readings, all of them known.

    Returns
    -------
    Sampling
        Steps, gaps, refresh interval and resolution, in s.
    """
    steps_s = np.diff(times_s)
    step_s = float(np.median(steps_s))
    silent = np.flatnonzero(steps_s > max(_GAP_STEPS * step_s, _LEAST_GAP_S))
    changes = values[1:] != values[:-1]
    refresh_s = _refresh_s(times_s[1 : _ENOUGH + 1][changes[:_ENOUGH]])
    tau_s = max(step_s, refresh_s if math.isfinite(refresh_s) else 0.0)
    low, high = np.percentile(values[:: 1 + len(values) // _ENOUGH], (5, 95))
    mean = float(values.mean())
    return Sampling(
        readings=len(values),
        step_s=step_s,
        longest_step_s=float(steps_s.max()),
        gaps_s=tuple((float(times_s[index]), float(times_s[index + 1])) for index in silent.tolist()),
        repeated=1.0 - int(changes.sum()) / len(changes),
        refresh_s=refresh_s,
        digit=_digit(values),
        shortest_event_s=2.0 * tau_s,
        # each end may lie anywhere within tau of a change from low to high, which costs half of it
        span_for_1_percent_s=tau_s * float(high - low) / (_WANTED * mean) if mean > 0 else math.nan,
    )


def describe_energy(energy: RecordedEnergy, recording: Recording, notes: Sequence[str] = ()) -> Description:
    """Describe the energies and the sampling of a recording, for the terminal and the window.

    Parameters
    ----------
    energy : RecordedEnergy
        The energies of the recording, by `recorded_energy`.
    recording : Recording
        The recording of a board.
    notes : sequence of str, optional
        Remarks to show below those on the sampling.

    Returns
    -------
    Description
        Energies in J, powers in W, times in s and ms.
    """
    start_s, end_s = energy.span_s
    figures = [
        Figure("readings", float(len(recording.time_ns)), digits=9),
        Figure("recorded", energy.recording_s, "s", digits=6),
    ]
    if (start_s, end_s) != (0.0, energy.recording_s):
        figures.append(Figure("span", f"{start_s:.3f}–{end_s:.3f}", "s"))
    for method, each in (("trapezoid", energy.trapezoid), ("counter", energy.counter)):
        if each is not None:
            figures.append(Figure(f"energy by {method}", each.energy_j, "J", digits=6, important=True))
    if math.isfinite(energy.difference):
        figures.append(Figure("trapezoid against counter", f"{100 * energy.difference:+.2f}", "%"))
    energies = Listing(
        "",
        ("energy by", "J", "mean W", "highest W", "by every other reading J", "in gaps J"),
        [
            (s.label, s.energy_j, s.mean_power_w, *map(finite_or_none, (s.peak_power_w, s.every_other_j, s.gap_j)))
            for s in energy.sources
        ],
    )
    sampling = Listing(
        "",
        ("sampling of", "step ms", "longest ms", "gaps", "repeated %", "refresh ms", "resolves from ms", "1 % from s"),
        [
            (
                s.label.removesuffix(", trapezoid"),
                *(1e3 * s.sampling.step_s, 1e3 * s.sampling.longest_step_s, float(len(s.sampling.gaps_s))),
                *(100 * s.sampling.repeated, finite_or_none(1e3 * s.sampling.refresh_s)),
                *(1e3 * s.sampling.shortest_event_s, finite_or_none(s.sampling.span_for_1_percent_s)),
            )
            for s in energy.sources
        ],
    )
    listings = [energies, sampling]
    gaps = energy.sources[0].sampling.gaps_s if energy.sources else ()
    if gaps:
        more = f" (the first {_MOST_GAPS} of {len(gaps)})" if len(gaps) > _MOST_GAPS else ""
        rows = [(start, end, end - start) for start, end in gaps[:_MOST_GAPS]]
        listings.append(Listing(f"nothing was read{more}", ("from s", "to s", "for s"), rows))
    return Description(
        recording.title, f"recorded: {recording.info.name}", figures, listings, [*energy.remarks, *notes]
    )


class LogBoard(TypedDict):
    """The energies of one board in a log."""

    gpu: str
    title: str
    source: Source
    readings: Count
    duration_s: float
    span_s: Span
    energy: Sequence[SourceEnergy]
    trapezoid_against_counter: float
    remarks: Sequence[str]


class LogEnergies(TypedDict):
    """The energies of every board in a log."""

    log: str
    tool: str
    notes: Sequence[str]
    boards: Sequence[LogBoard]


def document_of(energy: RecordedEnergy, recording: Recording) -> LogBoard:
    """Return the energies and the sampling of a recording as a document for `--json`.

    Parameters
    ----------
    energy : RecordedEnergy
        The energies of the recording, by `recorded_energy`.
    recording : Recording
        The recording of a board.

    Returns
    -------
    LogBoard
        Energies in J, powers in W, times in s; NaN if unknown.
    """
    return {
        "gpu": recording.info.name,
        "title": recording.title,
        "source": "recorded",
        "readings": len(recording.time_ns),
        "duration_s": energy.recording_s,
        "span_s": energy.span_s,
        "energy": energy.sources,
        "trapezoid_against_counter": energy.difference,
        "remarks": energy.remarks,
    }


# --- inside -----------------------------------------------------------------------------------------------------------


def _by_power(name: str, times_s: Floats, values: Floats, start_s: float, end_s: float) -> SourceEnergy | None:
    times_s, values = _known_only(times_s, values)
    if len(values) < 2:
        return None
    sampling = sampling_of(times_s, values)
    inner_s, inner = _between(times_s, values, start_s, end_s)
    energy_j = _trapezoid(inner_s, inner)
    length_s = float(inner_s[-1] - inner_s[0])
    every_other_j = _trapezoid(inner_s[::2], inner[::2])
    if len(inner) % 2 == 0:
        every_other_j += _trapezoid(inner_s[-2:], inner[-2:])
    gaps = _gaps_within(sampling, start_s, end_s)
    return SourceEnergy(
        channel=name,
        method="trapezoid",
        energy_j=energy_j,
        mean_power_w=energy_j / length_s if length_s > 0 else math.nan,
        peak_power_w=float(inner.max()),
        every_other_j=every_other_j,
        gap_s=math.fsum(b - a for a, b in gaps),
        gap_j=math.fsum(_trapezoid(*_between(times_s, values, a, b)) for a, b in gaps),
        sampling=sampling,
    )


def _by_counter(times_s: Floats, values: Floats, start_s: float, end_s: float) -> SourceEnergy | None:
    times_s, values = _known_only(times_s, values)
    if len(values) < 2:
        return None
    rises = np.diff(values)
    counted = np.concatenate(([0.0], np.cumsum(np.where(rises > 0, rises, 0.0))))
    start_s, end_s = max(start_s, float(times_s[0])), min(end_s, float(times_s[-1]))
    if end_s <= start_s:
        return None
    at_start, at_end = np.interp((start_s, end_s), times_s, counted)
    energy_j, sampling = float(at_end - at_start), sampling_of(times_s, values)
    tau_s = sampling.shortest_event_s / 2
    return SourceEnergy(
        channel=_COUNTER,
        method="counter",
        energy_j=energy_j,
        mean_power_w=energy_j / (end_s - start_s),
        peak_power_w=math.nan,
        every_other_j=math.nan,
        gap_s=math.fsum(b - a for a, b in _gaps_within(sampling, start_s, end_s)),
        gap_j=math.nan,
        # A counter misses nothing between two readings: only the ends of a span cost, up to one refresh each.
        sampling=replace(sampling, span_for_1_percent_s=tau_s / _WANTED if counted[-1] > 0 else math.nan),
    )


def _gaps_within(sampling: Sampling, start_s: float, end_s: float) -> list[Span]:
    return [(max(a, start_s), min(b, end_s)) for a, b in sampling.gaps_s if b > start_s and a < end_s]


def _trapezoid(times_s: Floats, values: Floats) -> float:
    return float(np.dot(np.diff(times_s), (values[1:] + values[:-1]) / 2))


def _known_only(times_s: Floats, values: Floats) -> tuple[Floats, Floats]:
    finite = np.isfinite(values)
    return (times_s, values) if finite.all() else (times_s[finite], values[finite])


def _between(times_s: Floats, values: Floats, start_s: float, end_s: float) -> tuple[Floats, Floats]:
    """The readings of a span, with the values at its ends on the straight line between two readings."""
    first, last = np.searchsorted(times_s, start_s, "right"), np.searchsorted(times_s, end_s, "left")
    if start_s <= times_s[0] and end_s >= times_s[-1]:
        return times_s, values
    ends_s = np.clip((start_s, end_s), times_s[0], times_s[-1])
    at_ends = np.interp(ends_s, times_s, values)
    inner = slice(int(first), int(max(first, last)))
    return (
        np.concatenate((ends_s[:1], times_s[inner], ends_s[1:])),
        np.concatenate((at_ends[:1], values[inner], at_ends[1:])),
    )


def _refresh_s(changes_s: Floats) -> float:
    """The usual time between two changes, those passed over while the value stood still aside; NaN below a few."""
    if len(changes_s) < _LEAST_CHANGES:
        return math.nan
    intervals = np.diff(changes_s)
    shortest = float(np.quantile(intervals, 0.2))
    return float(np.median(intervals[intervals <= 1.5 * shortest]))


def _digit(values: Floats) -> float:
    distinct = np.unique(values[:_ENOUGH])
    return float(np.diff(distinct).min()) if len(distinct) > 1 else math.nan


def _remarks(energy: RecordedEnergy) -> list[str]:
    remarks = []
    main = energy.trapezoid or energy.counter
    if main is None:
        return ["the recording holds no power and no counter of energy"]
    sampling = main.sampling
    remarks.append(
        f"what lasts less than {_seconds(sampling.shortest_event_s)} is not resolved: readings come every"
        f" {_seconds(sampling.step_s)}"
        + (f", and the value changes every {_seconds(sampling.refresh_s)}" if math.isfinite(sampling.refresh_s) else "")
    )
    if (
        math.isfinite(sampling.span_for_1_percent_s)
        and energy.span_s[1] - energy.span_s[0] < sampling.span_for_1_percent_s
    ):
        remarks.append(
            f"the ends of this span may cost more than 1 % of its energy: from"
            f" {_seconds(sampling.span_for_1_percent_s)} on they do not"
        )
    if sampling.repeated > _REPEATS:
        remarks.append(
            f"{100 * sampling.repeated:.0f} % of the readings repeat the one before: they are no measurements of"
            " their own"
        )
    if main.channel == "power_average_w":
        remarks.append(
            "a mean over the last second shows a change late and blurred; its energy over a longer span holds"
        )
    if main.gap_s > 0:
        remarks.append(
            f"nothing was read during {_seconds(main.gap_s)} of the span: the trapezoid has {main.gap_j:.4g} J there,"
            f" which are a guess, and {main.without_gaps_j:.6g} J without them"
        )
    if math.isfinite(energy.difference) and abs(energy.difference) > _DIFFERENCE:
        of_one = abs(math.log1p(energy.difference)) < _CONTRADICTED
        remarks.append(
            f"trapezoid and counter differ by {100 * abs(energy.difference):.1f} %: "
            + (
                "the counter misses nothing between two readings, so prefer it where the span is long enough"
                if of_one
                else "that both are of the same board and in these units is not certain"
            )
        )
    if math.isfinite(main.every_other_j) and main.energy_j > 0:
        off = main.every_other_j / main.energy_j - 1
        if abs(off) > _THINNED:
            remarks.append(f"every other reading alone gives {100 * off:+.1f} %: the sampling is coarse for this load")
    return remarks


def _seconds(value: float) -> str:
    return f"{value:.3g} s" if value >= 1 else f"{1e3 * value:.3g} ms"
