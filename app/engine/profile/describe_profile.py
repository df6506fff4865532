"""A profile and the comparison of two in words and tables, for the terminal, the report and the window."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from ...base.formatting import UNKNOWN, counted, finite_or_none, number, percent
from ..results.description import Cell, Description, Figure, Listing
from .attributed import AttributedTrace
from .compare_profiles import Difference, ProfileComparison
from .program_profile import GroupEnergy, Interval, Part, ProgramProfile, RangeEnergy
from .stacks import group_of, scaled, span_parts

REMAINDER: Final = "remainder: not explained"
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
    rows.append(_cells(REMAINDER, profile.remainder))
    listings = [Listing("where the joules go", ("what ran", "launches", *_ENERGY), rows)]
    if profile.groups:
        grouped = [item for item in profile.families if item.group is not None]
        grouped.sort(key=lambda item: item.group or 0)
        members = [(f"group {item.group}", item.name, item.count, item.time_s) for item in grouped]
        title = "groups: the data do not separate these families"
        listings.append(Listing(title, ("group", "family", "launches", "time s"), members))
    if profile.ranges:
        more = f" (the first {_MOST} of {len(profile.ranges)})" if len(profile.ranges) > _MOST else ""
        shown = [
            (*_cells("  " * (len(item.path) - 1) + item.path[-1] if item.path else item.label, item), item.waits_s,
             finite_or_none(item.waits_j)) for item in profile.ranges[:_MOST]
        ]  # fmt: skip
        listings.append(Listing(f"ranges{more}", ("range", "times", *_ENERGY, "board waits s", "waits J"), shown))
    if profile.next_steps:
        steps = [(of.about, percent(of.share), of.step, of.command or UNKNOWN, of.why) for of in profile.next_steps]
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


def describe_part(profile: ProgramProfile, part: Part) -> Description:
    """Describe a family, group, range or the gaps: energies in J, times in s; of a family in a group, the group's."""
    figures = _energies(profile, part, part.energy_j, part.energy_j_interval)
    figures += [
        Figure("share of all", None if math.isnan(part.share) else percent(part.share)),
        Figure("time on the board", finite_or_none(part.time_s), "s"),
        Figure("power", finite_or_none(part.power_w), "W"),
        Figure("times", float(part.count), digits=7),
        Figure("each", finite_or_none(part.each_j), "J"),
    ]
    if isinstance(part, RangeEnergy):
        figures += [Figure("on the host", part.host_s, "s"), Figure("board waits", part.waits_s, "s")]
    named = part if isinstance(part, GroupEnergy) else group_of(profile, part)
    remarks = [] if named is None else [f"the data do not separate: {', '.join(named.families)}"]
    return Description(part.label or REMAINDER, getattr(part, "kind", ""), figures, remarks=remarks)


def describe_slice(profile: ProgramProfile, attributed: AttributedTrace, row: int) -> Description:
    """Describe one launch, copy or set: what its family draws in its time."""
    trace, family = attributed.trace, attributed.families[attributed.family[row]]
    part = next(each for each in profile.families if each.name == family.name)
    energy_j, instance = float(attributed.energy_j[row]), int(trace.instance[row])
    figures, remarks = _energies(profile, part, energy_j, scaled(part, energy_j)), []
    if len(figures) == 1:
        figures.append(Figure("power", finite_or_none(float(attributed.power_w[row])), "W"))
        remarks.append("its family's mean power times its time")
    path = trace.paths[trace.range_path[instance]] if instance >= 0 else ("outside of every range",)
    figures += [
        Figure("begins at", (int(trace.start_ns[row]) - int(trace.start_ns[0])) / 1e9, "s", digits=9),
        Figure("lasts", int(trace.duration_ns[row]) / 1e3, "µs", digits=7),
        Figure("launched in", " / ".join(path)),
    ]
    return Description(family.name, f"{family.kind} on stream {trace.stream[row]}", figures, remarks=remarks)


def describe_span(profile: ProgramProfile, attributed: AttributedTrace, begin_ns: int, end_ns: int) -> Description:
    """Describe a span of time, in ns after the first slice: what took joules in it."""
    rows = span_parts(profile, attributed, begin_ns, end_ns)
    ends = [interval for *_, interval in rows]
    whole = None if None in ends else (sum(end[0] for end in ends if end), sum(end[1] for end in ends if end))
    inside = (1e9 * attributed.sample_s >= begin_ns) & (1e9 * attributed.sample_s <= end_ns)
    shown_w = float(attributed.sample_w[inside].mean()) if inside.any() else math.nan
    total_j = sum(energy_j for _, _, energy_j, _ in rows)
    figures = [
        Figure("energy", total_j, "J", interval=whole, important=True),
        Figure("lasts", (end_ns - begin_ns) / 1e9, "s", digits=6),
        Figure("power that the sensor shows", finite_or_none(shown_w), "W", note=counted(int(inside.sum()), "sample")),
    ]
    listed = [
        (part.label, time_s, energy_j, _ends(interval), percent(energy_j / total_j if total_j else 0.0))
        for part, time_s, energy_j, interval in rows[:_MOST]
    ]
    listing = Listing("what took them", ("what ran", "time s", "J", "95 %", "share"), listed)
    remarks = ["mean powers of families times their time in the span; the ends of the intervals are added up"]
    return Description(f"{begin_ns / 1e9:.6f} s to {end_ns / 1e9:.6f} s", "", figures, [listing], remarks)


def _energies(profile: ProgramProfile, part: Part, energy_j: float, interval: Interval | None) -> list[Figure]:
    """The energy of a part, or that only its group's is known, and that."""
    group = group_of(profile, part)
    if group is None:
        return [Figure("energy", finite_or_none(energy_j), "J", interval=interval, important=True)]
    only = f"only the joules of group {group.number} are known"
    of_group = Figure(f"energy of group {group.number}", group.energy_j, "J", interval=group.energy_j_interval)
    return [Figure("energy", None, unknown=only, important=True), of_group]


def energy_listing(title: str, parts: Sequence[Part]) -> Listing:
    """List parts with their energies, a row for each; of a family in a group its group stands in place of joules."""
    rows = []
    for part in parts:
        label, *cells = _cells(part.label or REMAINDER, part)
        group = getattr(part, "group", None)
        rows.append((label, cells[2] if group is None else f"in group {group}", *cells[3:6], *cells[:2], cells[6]))
    return Listing(title, ("what ran", "J", "95 %", "W", "share", "times", "s", "J each"), rows)


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
