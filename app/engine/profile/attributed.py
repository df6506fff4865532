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
from ..metering.characterisation.sensor_figures import SourceFigures, source_words
from ..metering.characterisation.store import latest_characterisation
from ..models.roofline.energy_roofline import board_named
from .aligned_power import AlignedPower, busy_intervals
from .families import Family, families_of
from .next_steps import next_steps
from .program_profile import FamilyEnergy, GapEnergy, GroupEnergy, Interval, Part, ProgramProfile, RangeEnergy
from .program_trace import Ints, ProgramTrace

Floats = npt.NDArray[np.float64]
_Figures = tuple[int, float, float, Interval | None, float, float]

_SHORT_S = 1e-4  # gaps below it are the host's: it launches more slowly than the board works
_MOST_RANGES = 100
_USUAL = {"average": (1.0, 0.1), "instant": (0.025, 0.1)}  # window and margin of lag, s, where nothing shows them
_TOO_ROUGH = 10.0  # five times the variance of the changes of a moving mean of white noise
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
    sample_mhz: Floats  # the clock at the same times; NaN where it was not recorded


def attribute_trace(
    trace: ProgramTrace, power: AlignedPower, notes: Sequence[str] = ()
) -> tuple[ProgramProfile, AttributedTrace]:
    """Attribute the energy of a program's time to what it ran. Raises InputError where there are too few samples."""
    trace, begin_s, end_s = _with_power(trace, power)
    families, family = families_of(trace)
    names, kinds = zip(*((item.name, item.kind) for item in families), strict=True)
    activity = Activity(names, kinds, family, begin_s, end_s)
    samples, sensor_notes = _samples(power)
    found = attribute(activity, samples, limit_w=_limit_w(trace, power))
    seconds, span = found.seconds, found.span
    begins, ends = busy_intervals(begin_s, end_s)
    energies, groups = _families(found, families, seconds)
    gaps = _gaps(found, groups, begins[1:] - ends[:-1])
    gpu = trace.board or power.recording.info.name
    moved = np.bincount(family, weights=trace.moved_bytes, minlength=len(families)).tolist()
    ranges, range_notes = _ranges(found, trace, seconds, (ends[:-1], begins[1:], gaps.power_w), power)
    drawn_w = np.array([groups[each.group - 1].power_w if each.group else each.power_w for each in energies])
    drawn_j = dict(zip((each.name for each in energies), np.bincount(family, seconds) * drawn_w, strict=True))
    profile = ProgramProfile(
        *_part(found, found.total, len(trace), span[1] - span[0]),
        title=trace.title,
        gpu=gpu,
        source="simulated" if power.recording.recorded_from == "simulated" else "recorded",
        power_source=f"{_sensor_words(power.source, samples, found)}, as recorded",
        clocks=power.alignment,
        busy_s=float((ends - begins).sum()),
        families=tuple(sorted(energies, key=lambda each: -np.nan_to_num(drawn_j[each.name]))),
        groups=tuple(groups),
        ranges=ranges,
        gaps=gaps,
        remainder=Part(*_part(found, found.remainder, 0, math.nan)),
        next_steps=next_steps(families, energies, groups, gaps, span[1] - span[0], gpu, moved),
        notes=(*trace.notes, *power.notes, *notes, *sensor_notes, *range_notes),
    )
    grouped = np.array([each.group is not None for each in energies])[family]
    energy_j = np.where(grouped, drawn_w[family] * seconds, found.slice_joules())
    lasts_s = trace.duration_ns / 1e9
    power_w = np.divide(energy_j, lasts_s, out=np.full(len(lasts_s), np.nan), where=lasts_s > 0)
    inside = (samples.time_s >= span[0] - 1.0) & (samples.time_s <= span[1] + 1.0)
    clock_mhz = np.full(len(inside), np.nan) if samples.clock_mhz is None else samples.clock_mhz
    sampled = samples.time_s[inside] - span[0], samples.power_w[inside], clock_mhz[inside]
    return profile, AttributedTrace(trace, families, family, energy_j, power_w, *sampled)


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
        if np.diff(power.power_w).var() > _TOO_ROUGH * step_s / window_s * power.power_w.var():
            window_s, lag_margin_s = step_s, step_s / 2  # no such mean changes so much from sample to sample
        lag_s, noise, window_margin_s = 0.0, 0.0, _WINDOW_MARGIN * window_s
        if math.isfinite(lag.window_s):
            window_s, window_margin_s = lag.window_s, _WINDOW_MARGIN * lag.window_s
            notes.append("window and lag of the sensor are as the data show them: the board is not characterised here")
        else:
            notes.append(f"what a sample averages is not known: {1e3 * window_s:.0f} ms are taken, as is usual")
    if math.isfinite(lag.lag_s) and math.isfinite(lag.margin_s):
        lag_s = lag.lag_s  # with what the clocks are apart
        lag_margin_s = max(math.hypot(lag.margin_s, window_margin_s), _LEAST_MARGIN_S)
    low_pass = None if power.source == "buffer" else False  # of an H200 it is one
    if figures is not None and figures.low_pass is not None:  # as late in the mean as the mean that comes nearest
        later_s, window_s = window_s / 2, figures.low_pass.constant_ms / 1e3
        lag_s, window_margin_s = lag_s + later_s - window_s, _WINDOW_MARGIN / 2 * window_s
        lag_margin_s, low_pass = max(lag_margin_s, window_margin_s), True
    clock_mhz = _channel(recording, power.time_s, "sm_clock_mhz", "graphics_clock_mhz")
    sensor = window_s, lag_s, window_margin_s, lag_margin_s, noise, clock_mhz
    celsius = _channel(recording, power.time_s, "temperature_c")
    return PowerSamples(power.time_s, power.power_w, *sensor, celsius, low_pass), notes


def _sensor_words(source: str, samples: PowerSamples, found: Attribution) -> str:
    words = source_words(source, 1e3 * samples.refresh_s, 1e3 * samples.window_s)
    return f"{words}, through a low-pass of {1e3 * found.window_s:.3g} ms" if found.low_pass else words


def _channel(recording: Recording, time_s: Floats, *names: str) -> Floats | None:
    """The first of these channels that was recorded, at the times of the power samples."""
    columns = recording.by_name
    for values in (columns[name] for name in names if name in columns):
        if (kept := np.isfinite(values)).any():
            return np.asarray(np.interp(time_s, recording.time_ns[kept] / 1e9, values[kept]))
    return None


def _limit_w(trace: ProgramTrace, power: AlignedPower) -> float:
    """The power limit: as recorded, else the published one; no less than explains what the board drew."""
    limit_w = power.recording.info.power_limit.current_w
    if limit_w is None:
        published = board_named(trace.board or power.recording.info.name)
        limit_w = math.inf if published is None else published.tdp_w
    return max(limit_w, float(power.power_w.max()) / BURSTS)


def _part(found: Attribution, joules: Joules | None, count: int, time_s: float) -> _Figures:
    """The figures of a `Part`."""
    if joules is None:
        return count, time_s, math.nan, None, math.nan, math.nan
    power_w = joules.value / time_s if time_s > 0 else math.nan
    return count, time_s, joules.value, (joules.low, joules.high), power_w, joules.value / found.total.value


def _families(
    found: Attribution, families: Sequence[Family], seconds: Floats
) -> tuple[list[FamilyEnergy], list[GroupEnergy]]:
    """The energy of each family in the order of `families`, and of each group by falling joules."""
    times_s = np.bincount(found.activity.family, seconds, len(families)).tolist()
    group_of: dict[int, int] = {}
    alone: dict[int, Joules] = {}
    groups: list[GroupEnergy] = []
    for item in found.items:
        if len(item.families) + item.gaps == 1:
            alone |= dict.fromkeys(item.families, item.joules)
            continue
        group_of |= dict.fromkeys(item.families, len(groups) + 1)
        names = tuple(families[at].name for at in sorted(item.families, key=lambda at: -times_s[at]))
        figures = _part(found, item.joules, item.count, item.seconds)
        groups.append(GroupEnergy(*figures, len(groups) + 1, names, item.gaps))
    counts = found.activity.counts.tolist()
    energies = []
    for at, each in enumerate(families):
        figures = _part(found, alone.get(at), counts[at], times_s[at])
        energies.append(FamilyEnergy(*figures, each.name, each.kind, each.full_name, group_of.get(at)))
    return energies, groups


def _gaps(found: Attribution, groups: Sequence[GroupEnergy], lasts_s: Floats) -> GapEnergy:
    """What the gaps drew, from how long each lasts."""
    group = next((each.number for each in groups if each.gaps), None)
    joules = found.gaps_between(*found.span) if group is None else None
    figures = _part(found, joules, len(lasts_s), float(lasts_s.sum()))
    short_s = lasts_s[lasts_s < _SHORT_S]
    return GapEnergy(*figures, len(short_s), float(short_s.sum()), float(short_s.sum()) * figures[4], group)


def _ranges(
    found: Attribution, trace: ProgramTrace, seconds: Floats, gaps: tuple[Floats, Floats, float], power: AlignedPower
) -> tuple[tuple[RangeEnergy, ...], list[str]]:
    """The ranges by path, each before those within it, siblings by their joules; `gaps` are their edges and power."""
    if not len(trace.range_path):
        return (), []
    ends_ns = trace.range_start_ns + trace.range_duration_ns
    begin_s, end_s = (np.clip(power.on_clock(trace, at), *found.span) for at in (trace.range_start_ns, ends_ns))
    path = np.where(trace.instance >= 0, trace.range_path[trace.instance], -1)
    place = {name: at for at, name in enumerate(trace.paths)}
    spent_s = np.bincount(path + 1, seconds, len(place) + 1)[1:]
    for name in reversed(trace.paths):  # what is within a range comes behind it
        if name[:-1]:
            spent_s[place[name[:-1]]] += spent_s[place[name]]
    kept = sorted(trace.paths, key=lambda name: (-spent_s[place[name]], len(name)))[:_MOST_RANGES]
    notes = [f"of {len(place)} ranges the {_MOST_RANGES} with most time are shown"] if len(place) > len(kept) else []
    edges = np.column_stack(gaps[:2]).ravel()
    waited = np.column_stack((np.zeros(len(gaps[0])), gaps[1] - gaps[0])).ravel().cumsum()
    seen = end_s > begin_s
    seen[trace.instance[trace.instance >= 0]] = True  # what it launched may have run later
    results: dict[tuple[str, ...], RangeEnergy] = {}
    for name in (*kept, ()):
        within = [at for other, at in place.items() if other[: len(name)] == name] if name else [-1]
        mask = np.isin(path, within)
        own = seen & (trace.range_path == place.get(name, -2))
        if mask.any() or own.any():
            between_s = np.stack((begin_s[own], end_s[own]))
            host_s = float(np.diff(between_s, axis=0).sum())
            waits_s = float(np.diff(np.interp(between_s, edges, waited), axis=0).sum()) if len(edges) else 0.0
            figures = _part(found, found.slices(mask), int(own.sum()), float(seconds[mask].sum()))
            results[name] = RangeEnergy(*figures, name, host_s, waits_s, waits_s * gaps[2] if waits_s else 0.0)

    def order(name: tuple[str, ...]) -> list[tuple[float, str]]:
        above = (name[: depth + 1] for depth in range(len(name)))
        return [(-results[part].energy_j if part in results else 0.0, part[-1]) for part in above]

    named = sorted(filter(None, results), key=order)
    return tuple(results[name] for name in (*named, *([()] if () in results else []))), notes
