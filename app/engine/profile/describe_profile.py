"""A profile and the comparison of two in words and tables, for the terminal, the report and the window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...base.formatting import UNKNOWN, finite_or_none, number, percent
from ..results.description import Cell, Description, Figure, Listing
from .compare_profiles import Difference, ProfileComparison
from .program_profile import Interval, ProgramProfile

_MOST: Final = 30  # rows of a table; the rest is one row, and in the document
_ENERGY: Final = ("launches", "time s", "J", "95 %", "W", "share")


def describe_profile(profile: ProgramProfile) -> Description:
    """Describe a profile: energies in J, powers in W, times in s."""
    figures = [
        Figure("energy", profile.energy_j, "J", interval=profile.energy_j_interval, important=True),
        Figure("time", profile.duration_s, "s"),
        Figure("board busy", percent(profile.busy_s / profile.duration_s)),
        Figure("launches", f"{profile.launches:,}"),
        Figure("power from", profile.power_source),
        Figure("clocks aligned by", profile.clocks.how, details=profile.clocks.words),
        Figure("estimated from the data", profile.clocks.words),
    ]
    listings = [_by_family(profile)]
    members = [
        (f"group {item.group}", item.name, item.count, item.time_s)
        for item in profile.families
        if item.group is not None
    ]
    if members:
        header = ("group", "family", "launches", "time s")
        members.sort(key=lambda row: row[0])
        listings.append(Listing("groups: the data do not separate these families", header, members))
    if profile.ranges:
        listings.append(_by_range(profile))
    if profile.next_steps:
        rows: list[Sequence[Cell]] = [
            (step.about, percent(step.share), step.step, step.command or UNKNOWN, step.why)
            for step in profile.next_steps
        ]
        listings.append(Listing("what next", ("about", "share", "step", "with", "because"), rows))
    return Description(profile.title, f"{profile.gpu}, {profile.source}", figures, listings, profile.notes)


def describe_comparison(comparison: ProfileComparison) -> Description:
    """Describe two profiles side by side, with the differences and their intervals."""
    figures = [
        Figure("energy before", comparison.total.before_j, "J"),
        Figure("energy after", comparison.total.after_j, "J"),
        _difference_figure("difference", comparison.total.difference_j, comparison.total.difference_j_interval),
    ]
    listings = [
        Listing(
            title, (what, "J before", "J after", "difference J", "95 %", f"J per {each}: difference", "95 % "), rows
        )
        for title, what, each, rows in (
            ("families", "family", "launch", [_difference(item) for item in comparison.families[:_MOST]]),
            ("ranges", "range", "range", [_difference(item) for item in comparison.ranges[:_MOST]]),
        )
        if rows
    ]
    return Description(f"{comparison.before} and {comparison.after}", "", figures, listings, comparison.notes)


# --- inside -----------------------------------------------------------------------------------------------------------


def _by_family(profile: ProgramProfile) -> Listing:
    """Families and groups by their joules, then gaps and what is left."""
    items: list[tuple[float, Sequence[Cell]]] = []
    for family in profile.families:
        if family.group is None:
            cells = _energy(
                family.count, family.time_s, family.energy_j, family.energy_j_interval, family.power_w, family.share
            )
            items.append((family.energy_j, (family.name, *cells, family.launch_j)))
    for group in profile.groups:
        cells = _energy(group.count, group.time_s, group.energy_j, group.energy_j_interval, group.power_w, group.share)
        items.append((group.energy_j, (group.words, *cells, group.energy_j / group.count)))
    rows = [row for _, row in sorted(items, key=lambda item: -item[0])]
    if len(rows) > _MOST:
        left = sorted(items, key=lambda item: -item[0])[_MOST:]
        summed = sum(energy_j for energy_j, _ in left)
        rows = rows[:_MOST]
        share = percent(summed / profile.energy_j)
        rows.append((f"{len(left)} more, each with less", None, None, summed, "", None, share, None))
    gaps = profile.gaps
    cells = _energy(gaps.count, gaps.time_s, gaps.energy_j, gaps.energy_j_interval, gaps.power_w, gaps.share)
    rows.append(("gaps: nothing runs", *cells, None))
    left_j = profile.remainder_j
    ends = _ends(profile.remainder_j_interval)
    rows.append(("remainder: not explained", None, None, left_j, ends, None, percent(left_j / profile.energy_j), None))
    return Listing("where the joules go", ("what ran", *_ENERGY, "J per launch"), rows)


def _by_range(profile: ProgramProfile) -> Listing:
    rows: list[Sequence[Cell]] = [
        (
            "  " * (len(item.path) - 1) + item.path[-1] if item.path else "outside of every range",
            *_energy(item.count, item.time_s, item.energy_j, item.energy_j_interval, item.power_w, item.share),
            finite_or_none(item.each_j),
            item.waits_s,
            finite_or_none(item.waits_j),
        )
        for item in profile.ranges[:_MOST]
    ]
    header = ("range", "times", "board s", *_ENERGY[2:], "J each", "board waits s", "waits J")
    more = len(profile.ranges) - _MOST
    return Listing("ranges" if more <= 0 else f"ranges (the first {_MOST} of {len(profile.ranges)})", header, rows)


def _energy(
    count: int, time_s: float, energy_j: float, interval: Interval | None, power_w: float, share: float
) -> tuple[Cell, ...]:
    known = finite_or_none(energy_j), _ends(interval), finite_or_none(power_w)
    return (count, time_s, *known, percent(share) if share == share else UNKNOWN)


def _ends(interval: Interval | None) -> str:
    return UNKNOWN if interval is None else f"{number(interval[0])}–{number(interval[1])}"


def _difference(item: Difference) -> Sequence[Cell]:
    return (
        item.name,
        *map(finite_or_none, (item.before_j, item.after_j, item.difference_j)),
        _ends(item.difference_j_interval),
        finite_or_none(item.difference_each_j),
        _ends(item.difference_each_j_interval),
    )


def _difference_figure(label: str, value: float, interval: Interval | None) -> Figure:
    return Figure(label, value, "J", interval=interval, important=True)
