"""Joules of stacks, ranges with families below them, and of any span of time.

Within a group each slice has its part of the group's joules by its time, which no interval is known for.
"""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np

from .aligned_power import busy_intervals
from .attributed import AttributedTrace, Floats
from .program_profile import GroupEnergy, Interval, Part, ProgramProfile


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


def group_of(profile: ProgramProfile, part: Part) -> GroupEnergy | None:
    """Return the group of a family or of the gaps, whose joules alone are not known; None of any other part."""
    number = getattr(part, "group", None)
    return next((group for group in profile.groups if group.number == number), None)


def stacks_of(profile: ProgramProfile, attributed: AttributedTrace) -> list[tuple[tuple[str, ...], float]]:
    """List the stacks that took joules, and beside them the gaps and the remainder."""
    gaps_j = profile.gaps.time_s * (group_of(profile, profile.gaps) or profile.gaps).power_w
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
    known = {each.name: each for each in profile.families}
    sums: dict[Part, Floats] = defaultdict(lambda: np.zeros(2))
    for family, *amounts in zip(attributed.families, times_s.tolist(), joules.tolist(), strict=True):
        if amounts[0] > 0:
            energy = known[family.name]
            sums[group_of(profile, energy) or energy] += amounts
    gaps = group_of(profile, profile.gaps) or profile.gaps
    begins, until = (np.clip(edges, begin_ns, end_ns) for edges in busy_intervals(starts, ends))
    gaps_s = (end_ns - begin_ns - int((until - begins).sum())) / 1e9
    if gaps_s > 0 and math.isfinite(gaps.power_w):
        sums[gaps] += gaps_s, gaps_s * gaps.power_w
    amounts_of = ((part, *amounts.tolist()) for part, amounts in sums.items())
    rows = [(part, time_s, energy_j, scaled(part, energy_j)) for part, time_s, energy_j in amounts_of]
    return sorted(rows, key=lambda row: -row[2])
