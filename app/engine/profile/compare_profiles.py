"""Two profiles side by side: the difference of each family, group and range, with its interval.

The two were measured apart, so the half-widths of their intervals add up as squares. Families that either profile knows
only as a group are compared as the smallest set whose joules both know.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .program_profile import Interval, Part, ProgramProfile


@dataclass(frozen=True, slots=True)
class Difference:
    """One item in both profiles, J; NaN where a profile lacks it. Differences are after minus before."""

    name: str
    before_j: float
    after_j: float
    difference_j: float
    difference_j_interval: Interval | None
    difference_each_j: float  # of one launch, or of one range
    difference_each_j_interval: Interval | None


@dataclass(frozen=True, slots=True)
class ProfileComparison:
    """Two profiles compared: those items first whose joules differ most."""

    before: str
    after: str
    total: Difference
    families: tuple[Difference, ...]
    ranges: tuple[Difference, ...]
    notes: tuple[str, ...]


def compare_profiles(before: ProgramProfile, after: ProgramProfile) -> ProfileComparison:
    """Compare two profiles of the same program, or of two of its versions."""
    both = before, after
    families = []
    for names in _common_sets(both):
        name = f"{min(names)} and {len(names) - 1} more" if len(names) > 1 else min(names)
        families.append(_difference(name, *(_parts(side, names) for side in both)))
    families.append(_difference(before.gaps.label, [before.gaps], [after.gaps]))
    labels = dict.fromkeys(item.label for side in both for item in side.ranges)
    ranges = [
        _difference(name, *([item for item in side.ranges if item.label == name] for side in both)) for name in labels
    ]
    notes = []
    if before.gpu != after.gpu:
        notes.append(f"the boards differ: {before.gpu} before, {after.gpu} after")
    if abs(after.time_s / before.time_s - 1) > 0.02:
        spans = f"{before.time_s:.3g} s before, {after.time_s:.3g} s after"
        notes.append(f"the profiles are of different lengths ({spans}): compare joules per launch and per range")
    total = _difference(before.label, [before], [after])
    ranked = [tuple(sorted(items, key=_size, reverse=True)) for items in (families, ranges)]
    return ProfileComparison(before.title, after.title, total, ranked[0], ranked[1], tuple(notes))


def _size(item: Difference) -> float:
    known = (value for value in (item.difference_j, item.before_j, item.after_j) if math.isfinite(value))
    return abs(next(known, 0.0))


def _difference(name: str, before: Sequence[Part], after: Sequence[Part]) -> Difference:
    (before_j, half_before, count_before), (after_j, half_after, count_after) = _sum(before), _sum(after)
    each_j = after_j / count_after - before_j / count_before
    half_each = math.hypot(half_before / count_before, half_after / count_after)
    whole = _around(after_j - before_j, math.hypot(half_before, half_after))
    return Difference(name, before_j, after_j, after_j - before_j, whole, each_j, _around(each_j, half_each))


def _sum(parts: Sequence[Part]) -> tuple[float, float, float]:
    """The joules of the parts together, half of their interval, and how many launches or ranges they are."""
    ends = [part.energy_j_interval or (math.nan, math.nan) for part in parts]
    half_j = math.hypot(*((high - low) / 2 for low, high in ends))
    count = sum(part.count for part in parts)
    return sum(part.energy_j for part in parts) if parts else math.nan, half_j, count or math.nan


def _around(value: float, half: float) -> Interval | None:
    return (value - half, value + half) if math.isfinite(value) and math.isfinite(half) else None


def _common_sets(profiles: Iterable[ProgramProfile]) -> list[frozenset[str]]:
    """The smallest sets of families, by name, of which no group of a profile is a part only."""
    together: dict[str, set[str]] = {}
    for profile in profiles:
        for family in profile.families:
            together.setdefault(family.name, {family.name})
        for group in profile.groups:
            joined = set().union(*(together[name] for name in group.families))
            together |= dict.fromkeys(joined, joined)
    return list(dict.fromkeys(frozenset(names) for names in together.values()))


def _parts(profile: ProgramProfile, names: frozenset[str]) -> list[Part]:
    """The families and groups of a profile that are of a set."""
    alone = [item for item in profile.families if item.name in names and item.group is None]
    return [*alone, *(group for group in profile.groups if names.intersection(group.families))]
