"""From a trace and the power of its time to the profile: what ran, and the joules that are attributed to it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ...sensors.recorded.recording import Recording
from ..attribution.activity import Activity
from ..attribution.attribute import BURSTS, Attribution, Joules, attribute
from ..attribution.samples import PowerSamples
from ..attribution.timeline import Timeline
from ..metering.characterisation.sensor_figures import SourceFigures, source_words
from ..metering.characterisation.store import latest_characterisation
from ..models.roofline.energy_roofline import board_named
from .aligned_power import AlignedPower, busy_intervals
from .families import Family, families_of
from .next_steps import next_steps
from .program_profile import (
    ClocksAligned,
    FamilyEnergy,
    GapEnergy,
    GroupEnergy,
    Interval,
    ProgramProfile,
    RangeEnergy,
)
from .program_trace import Ints, ProgramTrace

Floats = npt.NDArray[np.float64]

_SHORT_S = 1e-4  # gaps below it are the host's: it launches more slowly than the board works
_MOST_RANGES = 200
_USUAL = {"average": (1.0, 0.1), "instant": (0.025, 0.1)}  # window and margin of lag, s, where nothing shows them
_LEAST_MARGIN_S = 1e-3
_WINDOW_MARGIN = 0.2  # of a window that only the data show


@dataclass(frozen=True, slots=True)
class AttributedTrace:
    """The trace as far as there is power, with the joules of each slice: those of its family or group by its time."""

    trace: ProgramTrace
    families: tuple[Family, ...]
    family: Ints  # of each slice
    energy_j: Floats
    power_w: Floats
    sample_s: Floats  # of the power, after the first slice
    sample_w: Floats


def attribute_trace(
    trace: ProgramTrace, power: AlignedPower, notes: Sequence[str] = ()
) -> tuple[ProgramProfile, AttributedTrace]:
    """Attribute the energy of a program's time to what it ran. Raises InputError where there are too few samples."""
    trace, begin_s, end_s = _with_power(trace, power)
    families, family = families_of(trace)
    activity = Activity(
        tuple(item.name for item in families), tuple(item.kind for item in families), family, begin_s, end_s
    )
    samples, sensor_notes = _samples(power)
    found = attribute(activity, samples, limit_w=_limit_w(trace, power))
    seconds = Timeline(activity).seconds
    begins, ends = busy_intervals(begin_s, end_s)
    gaps = _gaps(found, begins, ends)
    energies, groups = _families(found, families, seconds)
    gpu = trace.board or power.recording.info.name
    moved = np.bincount(family, weights=trace.moved_bytes, minlength=len(families)).tolist()
    duration_s = found.span[1] - found.span[0]
    steps = next_steps(families, energies, groups, gaps, duration_s, gpu, moved)
    ranges, range_notes = _ranges(found, trace, seconds, gaps, *(power.on_clock(trace, at) for at in _edges(trace)))
    simulated = power.recording.recorded_from == "simulated"
    lag = power.alignment.lag
    rank = {item.name: place for place, item in enumerate(_ranked(energies, groups))}
    profile = ProgramProfile(
        title=trace.title,
        gpu=gpu,
        source="simulated" if simulated else "recorded",
        power_source=f"{source_words(power.source, 1e3 * samples.refresh_s, 1e3 * samples.window_s)}, as recorded",
        clocks=ClocksAligned(
            power.alignment.how,
            power.alignment.shift_s,
            lag.lag_s,
            lag.margin_s,
            lag.window_s,
            lag.correlation,
            power.alignment.overlap,
            power.alignment.words,
        ),
        duration_s=duration_s,
        busy_s=float((ends - begins).sum()),
        launches=len(trace),
        energy_j=found.total.value,
        energy_j_interval=_interval(found.total),
        remainder_j=found.remainder.value,
        remainder_j_interval=_interval(found.remainder),
        families=tuple(sorted(energies, key=lambda item: rank[item.name])),
        groups=tuple(groups),
        ranges=ranges,
        gaps=gaps,
        next_steps=steps,
        notes=(*trace.notes, *power.notes, *notes, *sensor_notes, *range_notes),
    )
    power_w = np.array([_power_of(item, groups) for item in energies])[family]
    spent_s = np.divide(seconds, trace.duration_ns / 1e9, out=np.ones(len(seconds)), where=trace.duration_ns > 0)
    inside = (samples.time_s >= found.span[0] - 1.0) & (samples.time_s <= found.span[1] + 1.0)
    attributed = AttributedTrace(
        trace,
        families,
        family,
        power_w * seconds,
        power_w * spent_s,
        samples.time_s[inside] - found.span[0],
        samples.power_w[inside],
    )
    return profile, attributed


# --- inside -----------------------------------------------------------------------------------------------------------


def _with_power(trace: ProgramTrace, power: AlignedPower) -> tuple[ProgramTrace, Floats, Floats]:
    """The slices of whose time there is power, with their begins and ends on the clock of the samples."""
    begin_s = power.on_clock(trace, trace.start_ns)
    end_s = begin_s + trace.duration_ns / 1e9
    kept = (begin_s >= power.time_s[0]) & (end_s <= power.time_s[-1])
    if kept.all():
        return trace, begin_s, end_s
    columns = ("kind", "name", "operator", "stream", "start_ns", "duration_ns", "moved_bytes", "instance")
    cut = replace(trace, **{column: getattr(trace, column)[kept] for column in columns})
    return cut, begin_s[kept], end_s[kept]


def _samples(power: AlignedPower) -> tuple[PowerSamples, list[str]]:
    """The samples with what is known of their sensor: characterised, else as the data show it, else as is usual."""
    recording, lag = power.recording, power.alignment.lag
    info = recording.info
    known = latest_characterisation(info.name, info.driver) if info.driver else None
    figures: SourceFigures | None = known.sources.get(power.source) if known is not None else None
    step_s = float(np.median(np.diff(power.time_s)))
    notes = []
    if figures is not None:
        window_ms = figures.refresh_ms if figures.window_ms is None else figures.window_ms
        window_s, window_margin_s = window_ms / 1e3, (figures.window_margin_ms or 0.0) / 1e3
        lag_s, lag_margin_s, noise = figures.lag_ms / 1e3, figures.lag_margin_ms / 1e3, figures.noise_percent / 100
    else:
        window_s, lag_margin_s = _USUAL.get(power.source, (step_s, step_s / 2))
        lag_s, noise, window_margin_s = 0.0, 0.0, _WINDOW_MARGIN * window_s
        if math.isfinite(lag.window_s):
            window_s, window_margin_s = lag.window_s, _WINDOW_MARGIN * lag.window_s
            notes.append("window and lag of the sensor are as the data show them: the board is not characterised here")
        else:
            notes.append(f"what a sample averages is not known: {1e3 * window_s:.0f} ms are taken, as is usual")
    if math.isfinite(lag.lag_s) and math.isfinite(lag.margin_s):
        lag_s = lag.lag_s  # with what the clocks are apart
        lag_margin_s = max(math.hypot(lag.margin_s, window_margin_s), _LEAST_MARGIN_S)
    samples = PowerSamples(
        power.time_s,
        power.power_w,
        window_s,
        lag_s,
        window_margin_s,
        lag_margin_s,
        noise,
        _channel(recording, power.time_s, "sm_clock_mhz", "graphics_clock_mhz"),
        _channel(recording, power.time_s, "temperature_c"),
    )
    return samples, notes


def _channel(recording: Recording, time_s: Floats, *names: str) -> Floats | None:
    """The first of these channels that was recorded, at the times of the power samples."""
    there = [described.name for described in recording.channels]
    for name in names:
        if name in there:
            values = recording.values[:, there.index(name)]
            kept = np.isfinite(values)
            if kept.any():
                return np.asarray(np.interp(time_s, recording.time_ns[kept] / 1e9, values[kept]))
    return None


def _limit_w(trace: ProgramTrace, power: AlignedPower) -> float:
    """The power limit: as recorded, else the published one; no less than explains what the board drew."""
    limit_w = power.recording.info.power_limit.current_w
    if limit_w is None:
        published = board_named(trace.board or power.recording.info.name)
        limit_w = math.inf if published is None else published.tdp_w
    return max(limit_w, float(power.power_w.max()) / BURSTS)


def _interval(joules: Joules) -> Interval:
    return joules.low, joules.high


def _families(
    found: Attribution, families: Sequence[Family], seconds: Floats
) -> tuple[list[FamilyEnergy], list[GroupEnergy]]:
    """The energy of each family in the order of `families`, and of each group by falling joules."""
    activity, total_j = found.activity, found.total.value
    times_s = np.bincount(activity.family, seconds, len(families))
    group_of: dict[int, int] = {}
    groups: list[GroupEnergy] = []
    alone: dict[int, Joules] = {}
    for item in found.items:
        if len(item.families) + item.gaps == 1:
            alone |= dict.fromkeys(item.families, item.joules)
            continue
        number = len(groups) + 1
        group_of |= dict.fromkeys(item.families, number)
        members = sorted(item.families, key=lambda place: -times_s[place])
        energy_j = item.joules.value
        groups.append(
            GroupEnergy(
                number,
                tuple(families[place].name for place in members),
                item.gaps,
                item.count,
                item.seconds,
                energy_j,
                _interval(item.joules),
                energy_j / item.seconds,
                energy_j / total_j,
            )
        )
    energies = []
    for place, (family, count, time_s) in enumerate(zip(families, activity.counts.tolist(), times_s, strict=True)):
        joules = alone.get(place)
        energy_j = math.nan if joules is None else joules.value
        power_w = energy_j / time_s if time_s > 0 else math.nan
        energies.append(
            FamilyEnergy(
                family.name,
                family.kind,
                family.full_name,
                count,
                float(time_s),
                energy_j,
                None if joules is None else _interval(joules),
                power_w,
                energy_j / total_j,
                energy_j / max(count, 1),
                group_of.get(place),
            )
        )
    return energies, groups


def _power_of(energy: FamilyEnergy, groups: Sequence[GroupEnergy]) -> float:
    """The mean power of a family; of one in a group, that of the group."""
    return energy.power_w if energy.group is None else groups[energy.group - 1].power_w


def _ranked(energies: Sequence[FamilyEnergy], groups: Sequence[GroupEnergy]) -> list[FamilyEnergy]:
    return sorted(energies, key=lambda item: -np.nan_to_num(_power_of(item, groups)) * item.time_s)


def _gaps(found: Attribution, begins: Floats, ends: Floats) -> GapEnergy:
    """The gaps between the spans in which anything ran."""
    lengths = begins[1:] - ends[:-1]
    short = lengths < _SHORT_S
    time_s, short_s = float(lengths.sum()), float(lengths[short].sum())
    groups = [item for item in found.items if len(item.families) + item.gaps > 1]
    group = next((number for number, item in enumerate(groups, 1) if item.gaps), None)
    joules = found.gaps_between(*found.span)
    energy_j = joules.value if group is None else math.nan
    power_w = energy_j / time_s if time_s > 0 else math.nan
    return GapEnergy(
        len(lengths),
        time_s,
        energy_j,
        _interval(joules) if group is None else None,
        power_w,
        energy_j / found.total.value,
        int(short.sum()),
        short_s,
        power_w * short_s,
        group,
    )


def _edges(trace: ProgramTrace) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    return trace.range_start_ns, trace.range_start_ns + trace.range_duration_ns


def _ranges(
    found: Attribution, trace: ProgramTrace, seconds: Floats, gaps: GapEnergy, begin_s: Floats, end_s: Floats
) -> tuple[tuple[RangeEnergy, ...], list[str]]:
    """The ranges by path, each before those within it, siblings by their joules."""
    if not len(trace.range_path):
        return (), []
    path = np.where(trace.instance >= 0, trace.range_path[trace.instance], -1)
    paths = trace.paths
    within = {name: [place for place, other in enumerate(paths) if other[: len(name)] == name] for name in paths}
    own_s = np.bincount(path + 1, seconds, len(paths) + 1)[1:]
    spent_s = {name: float(own_s[places].sum()) for name, places in within.items()}
    kept = sorted(paths, key=lambda name: (-spent_s[name], len(name)))[:_MOST_RANGES]
    notes = [f"of {len(paths)} ranges the {_MOST_RANGES} with most time are shown"] if len(paths) > len(kept) else []
    activity = found.activity
    idle_begin, idle_end = _idle(activity.begin_s, activity.end_s)
    edges = np.column_stack((idle_begin, idle_end)).ravel()
    waited = np.column_stack((np.zeros(len(idle_begin)), idle_end - idle_begin)).ravel().cumsum()
    seen = (end_s > found.span[0]) & (begin_s < found.span[1])
    seen[trace.instance[trace.instance >= 0]] = True  # what it launched may have run later
    results: dict[tuple[str, ...], RangeEnergy] = {}
    for name in ((), *kept):
        mask = path < 0 if not name else np.isin(path, within[name])
        own = seen & (trace.range_path == paths.index(name)) if name else np.zeros(len(seen), np.bool_)
        if not mask.any() and not own.any():
            continue
        joules, time_s, count = found.slices(mask), float(seconds[mask].sum()), int(own.sum())
        waits_s = 0.0
        if len(edges):
            waits_s = float((np.interp(end_s[own], edges, waited) - np.interp(begin_s[own], edges, waited)).sum())
        host_s = float(np.diff(np.clip((begin_s[own], end_s[own]), *found.span), axis=0).sum())
        results[name] = RangeEnergy(
            name,
            count,
            host_s,
            time_s,
            joules.value,
            _interval(joules),
            joules.value / time_s if time_s > 0 else math.nan,
            joules.value / found.total.value,
            joules.value / count if count else math.nan,
            waits_s,
            waits_s * gaps.power_w if waits_s else 0.0,
        )

    def order(name: tuple[str, ...]) -> list[tuple[float, str]]:
        above = (name[: depth + 1] for depth in range(len(name)))
        return [(-results[part].energy_j if part in results else 0.0, part[-1]) for part in above]

    named = sorted((name for name in results if name), key=order)
    return tuple(results[name] for name in (*named, *([()] if () in results else []))), notes


def _idle(begin_s: Floats, end_s: Floats) -> tuple[Floats, Floats]:
    """The gaps."""
    begins, ends = busy_intervals(begin_s, end_s)
    return ends[:-1], begins[1:]
