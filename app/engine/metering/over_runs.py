"""Time, energy and power of a program over its runs: means with their spread and 95 % interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import ClassVar

import numpy as np

from ...base.records import Count, Finite, Source, figure
from .confidence import Interval, interval_of_repeats, not_negative
from .span import Span
from .window import SourcePower


@dataclass(frozen=True, slots=True)
class OverRuns:
    """A figure over the runs. NaN, and None, if it is not known of all of them."""

    value: float  # the mean
    interval: Interval | None  # 95 %: Student's t over the runs, never narrower than that of the readings themselves
    min: float | None
    max: float | None
    deviation: float | None  # from two runs on

    @classmethod
    def of(
        cls, values: Sequence[float], intervals: Sequence[Interval | None] = (), *, signed: bool = False
    ) -> OverRuns:
        """Summarise a figure over the runs.

        Parameters
        ----------
        values : sequence of float
            Its value in each run, of any unit. One that is NaN leaves the summary unknown.
        intervals : sequence of tuple of float or None, optional
            The 95 % interval of each run's readings; None if it is not known.
        signed : bool, optional
            Whether the figure can be negative; if not, neither can its interval.

        Returns
        -------
        OverRuns
            The summary, in the unit of the values.
        """
        if any(map(math.isnan, values)):
            return cls(math.nan, None, None, None, None)
        interval = interval_of_repeats(values, [ends for ends in intervals if ends is not None])
        if interval is not None and not signed:
            interval = not_negative(interval)
        return cls(fmean(values), interval, min(values), max(values), stdev(values) if len(values) > 1 else None)


@dataclass(frozen=True, slots=True)
class ClockRange:
    """A clock over the runs, MHz."""

    mean: float
    min: float
    max: float


@dataclass(frozen=True, slots=True)
class BoardOverRuns:
    """One board over all the runs."""

    gpu: str
    source: Source
    label: str
    energy_j: float
    mean_power_w: float
    peak_power_w: float
    graphics_clock_mhz: ClockRange
    temperature_c: float
    event_reasons_s: Mapping[str, Finite]  # reason in words -> seconds in all

    @classmethod
    def of(cls, spans: Sequence[Span]) -> BoardOverRuns:
        """Summarise the spans of one board.

        Parameters
        ----------
        spans : sequence of Span
            A span for each run, at least one.

        Returns
        -------
        BoardOverRuns
            Means over the runs, the range of the clock, and the seconds of each event reason in all.
        """
        reasons: dict[str, float] = {}
        for name, seconds in (item for span in spans for item in span.event_reasons_s.items()):
            reasons[name] = reasons.get(name, 0.0) + seconds
        clocks = [span.clock_mhz for span in spans]
        return cls(
            gpu=spans[0].gpu,
            source=spans[0].source,
            label=spans[0].label,
            energy_j=fmean(span.energy_j for span in spans),
            mean_power_w=fmean(span.mean_power_w for span in spans),
            peak_power_w=max(span.peak_power_w for span in spans),
            graphics_clock_mhz=ClockRange(
                fmean(clock.mean for clock in clocks),
                min(clock.minimum for clock in clocks),
                max(clock.maximum for clock in clocks),
            ),
            temperature_c=fmean(span.temperature_c for span in spans),
            event_reasons_s=reasons,
        )


@dataclass(frozen=True, slots=True)
class MeterOverRuns:
    """Energy and power by an external meter, means over the runs."""

    energy_j: float
    mean_power_w: float
    meter: str
    note: str = field(metadata=figure(nullable=True))

    @classmethod
    def of(cls, seen: Sequence[SourcePower], times_s: Sequence[float]) -> MeterOverRuns:
        """Summarise a meter's powers of the runs.

        Parameters
        ----------
        seen : sequence of SourcePower
            The mean power of each run by the meter, at least one; one that is NaN leaves the means unknown.
        times_s : sequence of float
            The time of each run, s.

        Returns
        -------
        MeterOverRuns
            The mean energy and power, and the cautions about them.
        """
        energy_j = fmean(power.power_w * time_s for power, time_s in zip(seen, times_s, strict=True))
        note = "; ".join(dict.fromkeys(power.said for power in seen if power.said))
        return cls(energy_j, fmean(power.power_w for power in seen), seen[0].words, note)


@dataclass(frozen=True, slots=True)
class ProgramEnergy:
    """Time, energy and power of a program."""

    IN_JSON: ClassVar = ("repeats",)

    program: Sequence[str]
    gpu: str
    source: Source
    time_s: OverRuns = field(metadata=figure("Time", "s", flat=True))
    energy_j: OverRuns = field(metadata=figure("Energy", "J", flat=True))
    mean_power_w: OverRuns = field(metadata=figure("Mean power", "W", flat=True))
    peak_power_w: OverRuns = field(metadata=figure("Peak power", "W", flat=True))
    energy_above_idle_j: OverRuns | None = field(metadata=figure("Energy above idle", "J", flat=True, absent=True))
    energy_at_condition_j: OverRuns | None = field(metadata=figure("Energy at the condition", "J", flat=True))
    idle_power_w: float | None = field(metadata=figure("Idle power before it started", "W", absent=True))
    condition: str = field(metadata=figure(nullable=True))  # that the energy is stated for beside
    energy_unknown: str = field(metadata=figure(nullable=True))  # why
    power_source: str
    gpus: Sequence[BoardOverRuns]
    runs: Sequence[Mapping[str, float]]  # the same figures of each run
    notes: Sequence[str]
    meters: Mapping[str, MeterOverRuns]

    @property
    def repeats(self) -> Count:
        """The number of runs."""
        return len(self.runs)


def program_energy(
    program: Sequence[str],
    runs: Sequence[Sequence[Span]],
    idle: tuple[float, Interval | None] | None,
    by_meters: Sequence[Mapping[str, SourcePower]],
) -> ProgramEnergy:
    """Summarise the runs of a program.

    Parameters
    ----------
    program : sequence of str
        Its name and arguments.
    runs : sequence of sequence of Span
        Of each run, a span of each board.
    idle : tuple of float and interval, or None
        The power of the boards before the first run in W, with its interval; None leaves out the energy above idle.
    by_meters : sequence of mapping
        Of each run, its power by each external meter.

    Returns
    -------
    ProgramEnergy
        The figures over the runs; those that are not known of every run are NaN.
    """
    spans = runs[0]
    condition = ", ".join(span.stated_for.words for span in spans if span.stated_for is not None)
    figures = _figures(runs, idle, stated=bool(condition))
    over = {
        name: OverRuns.of(values, intervals, signed=name == "energy_above_idle_j")
        for name, (values, intervals) in figures.items()
    }
    return ProgramEnergy(
        program=list(program),
        gpu=", ".join(span.gpu for span in spans),
        source=", ".join(dict.fromkeys(span.source for span in spans)),
        **{name: over.get(name) for name in (*over, "energy_at_condition_j", "energy_above_idle_j")},  # type: ignore[arg-type]
        idle_power_w=None if idle is None else idle[0],
        condition=condition,
        energy_unknown="; ".join(dict.fromkeys(span.unknown for spans in runs for span in spans if span.unknown)),
        power_source=", ".join(dict.fromkeys(span.power_source for span in spans)),
        gpus=[BoardOverRuns.of(of_board) for of_board in zip(*runs, strict=True)],
        runs=[{name: values[index] for name, (values, _) in figures.items()} for index in range(len(runs))],
        notes=[
            *_nothing_drawn(spans),
            *dict.fromkeys(line for spans in runs for span in spans for line in span.faults),
        ],
        meters={
            name: MeterOverRuns.of([seen[name] for seen in by_meters], figures["time_s"][0])
            for name in (by_meters[0] if by_meters else ())
        },
    )


def _figures(
    runs: Sequence[Sequence[Span]], idle: tuple[float, Interval | None] | None, *, stated: bool
) -> Mapping[str, tuple[list[float], Sequence[Interval | None]]]:
    """Of each figure its value in every run and the interval of its readings; `stated`: for a thermal condition too."""
    times_s = [spans[0].time_s for spans in runs]
    of_readings = [sum_interval([span.energy_interval_j for span in spans]) for spans in runs]
    figures: dict[str, tuple[list[float], Sequence[Interval | None]]] = {
        "time_s": (times_s, ()),
        "energy_j": (_sums(runs, lambda span: span.energy_j), of_readings),
        "mean_power_w": (
            _sums(runs, lambda span: span.mean_power_w),
            [sum_interval([span.power_interval_w for span in spans]) for spans in runs],
        ),
        "peak_power_w": ([_peak_w(spans) for spans in runs], ()),
    }
    if stated:
        figures["energy_at_condition_j"] = (
            _sums(runs, lambda span: span.energy_at_condition_j),
            [sum_interval([span.energy_at_condition_interval_j for span in spans]) for spans in runs],
        )
    if idle is not None:
        idle_w, interval = idle
        above = [energy - idle_w * time_s for energy, time_s in zip(figures["energy_j"][0], times_s, strict=True)]
        less = [interval and (-interval[1] * time_s, -interval[0] * time_s) for time_s in times_s]
        figures["energy_above_idle_j"] = above, [sum_interval(both) for both in zip(of_readings, less, strict=True)]
    return figures


def sum_interval(intervals: Sequence[Interval | None]) -> Interval | None:
    """Return the interval of a sum of independent figures, from theirs.

    Parameters
    ----------
    intervals : sequence of tuple of float or None
        The interval of each figure, all of one unit; None if it is not known.

    Returns
    -------
    tuple of float or None
        The interval of the sum; None if one of theirs is not known, or there are none.
    """
    ends = [interval for interval in intervals if interval is not None]
    if not ends or len(ends) < len(intervals):
        return None
    middle = sum((low + high) / 2 for low, high in ends)
    half = math.hypot(*((high - low) / 2 for low, high in ends))
    return middle - half, middle + half


def _sums(runs: Sequence[Sequence[Span]], figure_of: Callable[[Span], float]) -> list[float]:
    return [sum(figure_of(span) for span in spans) for spans in runs]


def _peak_w(spans: Sequence[Span]) -> float:
    """The largest power reported; of several boards, of their sum at the first one's times."""
    if len(spans) == 1 or any(span.unknown for span in spans):
        return sum(span.peak_power_w for span in spans)
    times_s = spans[0].times_s
    total_w = np.sum([np.interp(times_s, span.times_s, span.power_w) for span in spans], axis=0)
    return float(total_w.max())


def _nothing_drawn(spans: Sequence[Span]) -> list[str]:
    whose = {"simulated": "idle simulated board's", "recorded": "recording's"}
    return [
        f"{span.gpu} is {span.source}: a program draws nothing there, so its power is the {whose[span.source]}"
        for span in spans
        if span.source in whose
    ]
