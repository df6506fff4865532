"""A profile and the comparison of two in words and tables, for the terminal, the report and the window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...base.formatting import UNKNOWN, finite_or_none, number, percent
from ..results.description import Cell, Description, Figure, Listing
from .compare_profiles import Difference, ProfileComparison
from .program_profile import Interval, Part, ProgramProfile

_MOST: Final = 30  # rows of a table; all are in the document
_ENERGY: Final = ("time s", "J", "95 %", "W", "share", "J each")


def describe_profile(profile: ProgramProfile) -> Description:
    """Describe a profile: energies in J, powers in W, times in s."""
    figures = [
        Figure("energy", profile.energy_j, "J", interval=profile.energy_j_interval, important=True),
        Figure("time", profile.time_s, "s"),
        Figure("board busy", percent(profile.busy_s / profile.time_s)),
        Figure("power from", profile.power_source),
        Figure("clocks aligned by", profile.clocks.how),
        Figure("estimated from the data", profile.clocks.words),
    ]
    alone: list[Part] = [item for item in profile.families if item.group is None]
    ranked = sorted([*alone, *profile.groups], key=lambda part: -part.energy_j)
    rows = [_cells(part.label, part) for part in (*ranked[:_MOST], profile.gaps)]
    if len(ranked) > _MOST:
        less_j = sum(part.energy_j for part in ranked[_MOST:])
        rows.insert(_MOST, (f"{len(ranked) - _MOST} more, each with less", None, None, less_j, *([None] * 4)))
    rows.append(_cells("remainder: not explained", profile.remainder))
    listings = [Listing("where the joules go", ("what ran", "launches", *_ENERGY), rows)]
    if profile.groups:
        grouped = [item for item in profile.families if item.group is not None]
        grouped.sort(key=lambda item: item.group or 0)
        members = [(f"group {item.group}", item.name, item.count, item.time_s) for item in grouped]
        header: Sequence[str] = ("group", "family", "launches", "time s")
        title = "groups: the data do not separate these families"
        listings.append(Listing(title, header, members))
    if profile.ranges:
        more = f" (the first {_MOST} of {len(profile.ranges)})" if len(profile.ranges) > _MOST else ""
        shown = [
            (*_cells("  " * (len(item.path) - 1) + item.path[-1] if item.path else item.label, item), item.waits_s,
             finite_or_none(item.waits_j)) for item in profile.ranges[:_MOST]
        ]  # fmt: skip
        listings.append(Listing(f"ranges{more}", ("range", "times", *_ENERGY, "board waits s", "waits J"), shown))
    if profile.next_steps:
        steps = [
            (each.about, percent(each.share), each.step, each.command or UNKNOWN, each.why)
            for each in profile.next_steps
        ]
        listings.append(Listing("what next", ("about", "share", "step", "with", "because"), steps))
    return Description(profile.title, f"{profile.gpu}, {profile.source}", figures, listings, profile.notes)


def describe_comparison(comparison: ProfileComparison) -> Description:
    """Describe two profiles side by side, with the differences and their intervals."""
    total = comparison.total
    figures = [
        Figure("energy before", total.before_j, "J"),
        Figure("energy after", total.after_j, "J"),
        Figure("difference", total.difference_j, "J", interval=total.difference_j_interval, important=True),
    ]
    header = ("J before", "J after", "difference J", "95 %", "difference each J", "95 % each")
    listings = [
        Listing(title, (title, *header), [_difference(item) for item in items[:_MOST]])
        for title, items in (("families", comparison.families), ("ranges", comparison.ranges))
        if items
    ]
    return Description(f"{comparison.before} and {comparison.after}", "", figures, listings, comparison.notes)


def _cells(label: str, part: Part) -> Sequence[Cell]:
    known = finite_or_none(part.energy_j), _ends(part.energy_j_interval), finite_or_none(part.power_w)
    share = percent(part.share) if part.share == part.share else UNKNOWN
    return (label, part.count or None, finite_or_none(part.time_s), *known, share, finite_or_none(part.each_j))


def _ends(interval: Interval | None) -> str:
    return UNKNOWN if interval is None else f"{number(interval[0])}–{number(interval[1])}"


def _difference(item: Difference) -> Sequence[Cell]:
    figures = map(finite_or_none, (item.before_j, item.after_j, item.difference_j))
    each = finite_or_none(item.difference_each_j), _ends(item.difference_each_j_interval)
    return (item.name, *figures, _ends(item.difference_j_interval), *each)
