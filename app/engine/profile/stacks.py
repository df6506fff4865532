"""Joules of stacks, ranges with families below them, and of any span of time.

Within a group each slice has its part of the group's joules by its time, which no interval is known for.
"""

from __future__ import annotations

import math

import numpy as np

from .attributed import AttributedTrace
from .program_profile import FamilyEnergy, GroupEnergy, Interval, Part, ProgramProfile
from .program_trace import Times


def joules_of_stacks(attributed: AttributedTrace) -> list[tuple[tuple[str, ...], float]]:
    """List the stacks that took joules: the names of the ranges from the outermost inward, then of the family."""
    trace, families = attributed.trace, len(attributed.families)
    path = np.full(len(trace), -1)
    if len(trace.range_path):
        path = np.where(trace.instance >= 0, trace.range_path[trace.instance], -1)
    joules = np.bincount(
        (path + 1) * families + attributed.family,
        weights=np.nan_to_num(attributed.energy_j),
        minlength=(len(trace.paths) + 1) * families,
    ).reshape(-1, families)
    return [
        ((*(trace.paths[row - 1] if row else ()), attributed.families[family].name), float(joules[row, family]))
        for row, family in np.argwhere(joules > 0).tolist()
    ]


def part_of_gaps(profile: ProgramProfile) -> Part:
    """Return the gaps, or the group that they are in."""
    return next((group for group in profile.groups if group.number == profile.gaps.group), profile.gaps)


def stacks_of(profile: ProgramProfile, attributed: AttributedTrace) -> list[tuple[tuple[str, ...], float]]:
    """List the stacks that took joules, and beside them the gaps and the remainder."""
    gaps_j = profile.gaps.time_s * part_of_gaps(profile).power_w
    rest = ((profile.gaps.label, gaps_j), ("remainder", profile.remainder.energy_j))
    return [*joules_of_stacks(attributed), *(((name,), energy_j) for name, energy_j in rest if energy_j > 0)]


def scaled(part: Part, energy_j: float) -> Interval | None:
    """Return the interval of a part of what a family, group or the gaps took, which has its relative width."""
    if part.energy_j_interval is None or not part.energy_j > 0:
        return None
    low, high = part.energy_j_interval
    return energy_j * low / part.energy_j, energy_j * high / part.energy_j


def span_parts(
    profile: ProgramProfile, attributed: AttributedTrace, begin_ns: int, end_ns: int
) -> list[tuple[Part, float, float, Interval | None]]:
    """Return what took joules in a span: the part of the profile, its time in the span, its joules and their interval.

    Times count from the first slice. What lies in the span by a part counts by that part; those with most joules come
    first.
    """
    trace, origin_ns = attributed.trace, int(attributed.trace.start_ns[0])
    starts, ends = trace.start_ns - origin_ns, trace.start_ns - origin_ns + trace.duration_ns
    inside_ns = np.clip(np.minimum(ends, end_ns) - np.maximum(starts, begin_ns), 0, None)
    share = inside_ns / np.maximum(trace.duration_ns, 1)
    number = len(attributed.families)
    joules = np.bincount(attributed.family, np.nan_to_num(attributed.energy_j) * share, number)
    times_s = np.bincount(attributed.family, inside_ns / 1e9, number)
    known: dict[str, FamilyEnergy] = {each.name: each for each in profile.families}
    groups: dict[int, GroupEnergy] = {each.number: each for each in profile.groups}
    sums: dict[Part, list[float]] = {}
    for at, family in enumerate(attributed.families):
        energy = known.get(family.name)
        if times_s[at] > 0 and energy is not None:
            part = energy if energy.group is None else groups[energy.group]
            entry = sums.setdefault(part, [0.0, 0.0])
            entry[0] += times_s[at]
            entry[1] += joules[at]
    gaps = part_of_gaps(profile)
    gaps_s = (end_ns - begin_ns) / 1e9 - busy_s(starts, ends, begin_ns, end_ns)
    if gaps_s > 0 and math.isfinite(gaps.power_w):
        entry = sums.setdefault(gaps, [0.0, 0.0])
        entry[0] += gaps_s
        entry[1] += gaps_s * gaps.power_w
    rows = [(part, time_s, energy_j, scaled(part, energy_j)) for part, (time_s, energy_j) in sums.items()]
    return sorted(rows, key=lambda row: -row[2])


def busy_s(starts: Times, ends: Times, begin_ns: int, end_ns: int) -> float:
    """Return the seconds of a span in which anything ran; `starts` ascend."""
    until = np.clip(np.maximum.accumulate(ends), begin_ns, end_ns)
    before = np.concatenate(([begin_ns], until[:-1]))
    return float(np.clip(until - np.maximum(np.clip(starts, begin_ns, end_ns), before), 0, None).sum()) / 1e9
