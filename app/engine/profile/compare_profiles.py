"""Two profiles side by side: the difference of each family, group and range, with its interval.

The two were measured apart, so the half-widths of their intervals add up as squares. Families that either profile knows
only as a group are compared as the smallest set whose joules both know.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .program_profile import FamilyEnergy, Interval, ProgramProfile


@dataclass(frozen=True, slots=True)
class Difference:
    """One item in both profiles, J; NaN where a profile lacks it. Differences are after minus before."""

    name: str
    before_j: float
    after_j: float
    difference_j: float
    difference_j_interval: Interval | None
    before_each_j: float  # of one launch, or of one range
    after_each_j: float
    difference_each_j: float
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


@dataclass(frozen=True, slots=True)
class _Known:
    """Joules of some items together."""

    energy_j: float
    half_j: float
    count: int

    @classmethod
    def of(cls, energy_j: float, interval: Interval | None, count: int) -> _Known:
        return cls(energy_j, math.nan if interval is None else (interval[1] - interval[0]) / 2, count)


def compare_profiles(before: ProgramProfile, after: ProgramProfile) -> ProfileComparison:
    """Compare two profiles of the same program, or of two of its versions."""
    sets = _common_sets((before, after))
    families = [_difference(_set_name(names), _known_of(before, names), _known_of(after, names)) for names in sets]
    paths = dict.fromkeys(item.path for profile in (before, after) for item in profile.ranges)
    ranges = []
    for path in paths:
        sides = [
            next(
                (
                    _Known.of(item.energy_j, item.energy_j_interval, item.count)
                    for item in profile.ranges
                    if item.path == path
                ),
                None,
            )
            for profile in (before, after)
        ]
        ranges.append(_difference(" / ".join(path) or "outside of every range", *sides))
    gaps = [_Known.of(side.gaps.energy_j, side.gaps.energy_j_interval, side.gaps.count) for side in (before, after)]
    families.append(_difference("gaps: nothing runs", *gaps))
    totals = [_Known.of(side.energy_j, side.energy_j_interval, 1) for side in (before, after)]
    notes = []
    if before.gpu != after.gpu:
        notes.append(f"the boards differ: {before.gpu} before, {after.gpu} after")
    if abs(after.duration_s / before.duration_s - 1) > 0.02:
        spans = f"{before.duration_s:.3g} s before, {after.duration_s:.3g} s after"
        notes.append(f"the profiles are of different lengths ({spans}): compare joules per launch and per range")
    return ProfileComparison(
        before.title,
        after.title,
        _difference("all", *totals),
        tuple(sorted(families, key=_size, reverse=True)),
        tuple(sorted(ranges, key=_size, reverse=True)),
        tuple(notes),
    )


def _size(item: Difference) -> float:
    known = [value for value in (item.difference_j, item.before_j, item.after_j) if math.isfinite(value)]
    return abs(known[0]) if known else 0.0


def _difference(name: str, before: _Known | None, after: _Known | None) -> Difference:
    sides = before, after
    energies = [math.nan if side is None else side.energy_j for side in sides]
    each = [math.nan if side is None or not side.count else side.energy_j / side.count for side in sides]
    halves = [math.nan if side is None else side.half_j for side in sides]
    halves_each = [math.nan if side is None or not side.count else side.half_j / side.count for side in sides]
    return Difference(
        name,
        energies[0],
        energies[1],
        energies[1] - energies[0],
        _around(energies[1] - energies[0], math.hypot(*halves)),
        each[0],
        each[1],
        each[1] - each[0],
        _around(each[1] - each[0], math.hypot(*halves_each)),
    )


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
            for name in joined:
                together[name] = joined
    return list(dict.fromkeys(frozenset(names) for names in together.values()))


def _set_name(names: frozenset[str]) -> str:
    first, *others = sorted(names)
    return f"{first} and {len(others)} more" if others else first


def _known_of(profile: ProgramProfile, names: frozenset[str]) -> _Known | None:
    families: Mapping[str, FamilyEnergy] = {item.name: item for item in profile.families if item.name in names}
    if not families:
        return None
    alone = [item for item in families.values() if item.group is None]
    groups = [group for group in profile.groups if group.number in {item.group for item in families.values()}]
    parts = [
        *(_Known.of(item.energy_j, item.energy_j_interval, item.count) for item in alone),
        *(_Known.of(group.energy_j, group.energy_j_interval, group.count) for group in groups),
    ]
    return _Known(
        sum(part.energy_j for part in parts),
        math.hypot(*(part.half_j for part in parts)),
        sum(part.count for part in parts),
    )
