"""An analysis and a comparison of sessions, described for the terminal, the report and the window."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ...numbers import change, number, percent
from ..description import Cell, Description, Figure, Listing
from .compare import Comparison, Side
from .importance import Importance
from .plane import Indices, Plane
from .session import Analysis, Effects

MOST_POINTS: Final = 40  # of the front and of the hull in a table
_WITHIN: Final = (1.0, 1.01, 1.05, 1.1, 1.25, 1.5)  # times the optimum, of the difficulty


def describe_analysis(analysis: Analysis) -> list[Description]:
    """Every finding of an analysis, in the order in which it is read; what is unknown is left out."""
    return [
        *_choices(analysis),
        *_plane(analysis),
        *_correlations(analysis),
        *(_effects(effects) for effects in analysis.effects if effects.importances),
        *_difficulty(analysis),
        *_drift(analysis),
        *_failures(analysis),
    ]


def _choices(analysis: Analysis) -> Iterator[Description]:
    costs, names = analysis.costs, analysis.table.space.names
    chosen = [(choice, choice.index) for choice in analysis.choices if choice.index is not None]
    if not chosen:
        yield Description("No configuration worked")
        return
    rows: list[list[Cell]] = []
    for choice, index in chosen:
        configuration = analysis.table.measurement(index).configuration
        in_words = choice.against_fastest.words if choice.against_fastest and choice.name != "fastest" else ""
        row: list[Cell] = [choice.label]
        row += [float(costs.time_s[index]) * 1e3] if costs.time_known else []
        row += [float(costs.energy_j[index])] if costs.energy_known else []
        rows.append([*row, in_words, *(configuration[name] for name in names)])
    measured = [*(["ms"] if costs.time_known else []), *(["J"] if costs.energy_known else [])]
    yearly = [
        f"least energy, the same work over a year: {choice.yearly.words} (while the kernel runs)"
        for choice, _ in chosen
        if choice.name == "least_energy" and choice.yearly is not None and choice.yearly.saved_kwh > 0
    ]
    listing = Listing("", ("choice", *measured, "in words", *names), rows)
    yield Description("Choices, against the fastest", remarks=yearly, listings=[listing])


def _plane(analysis: Analysis) -> Iterator[Description]:
    plane = analysis.plane
    if plane is None or plane.quadrants is None:
        return
    (x, y), cut = plane.goals, plane.quadrants
    figures = [
        Figure("points on it", len(plane.front)),
        Figure("hypervolume", plane.hypervolume, note=f"reference {', '.join(map(number, plane.reference))}", digits=5),
        Figure("corners of the hull", len(plane.hull)),
    ]
    for held, of, spread in ((x, y, plane.spread_at_best_y), (y, x, plane.spread_at_best_x)):
        if spread is not None:
            text = f"{number(spread.low)} to {number(spread.high)}"
            label = f"{of.name} at {number(spread.at)} {held.name}"
            figures.append(Figure(label, text, note=f"{percent(spread.share)} between"))
    counts = (
        (f"better {x.name} than the best by {y.name}", cut.better_x),
        (f"better {y.name} than the best by {x.name}", cut.better_y),
        ("better than each in the other figure: where trading off pays", cut.both),
        ("neither", cut.neither),
    )
    quadrants: list[list[Cell]] = [[what, count, percent(count / cut.total)] for what, count in counts]
    listings = [
        Listing("", ("quadrant", "points", "share"), quadrants),
        _points("The front", analysis, plane, plane.front),
        _points("Corners of the convex hull, counterclockwise", analysis, plane, plane.hull),
    ]
    yield Description(f"Front over {x} and {y}", "", figures, listings)


def _points(title: str, analysis: Analysis, plane: Plane, indices: Indices) -> Listing:
    """Configurations of the plane with both figures."""
    names = analysis.table.space.names
    rows: list[list[Cell]] = []
    for index in indices[:MOST_POINTS].tolist():
        configuration = analysis.table.measurement(index).configuration
        rows.append([*plane.values[index].tolist(), *(configuration[name] for name in names)])
    if len(indices) > MOST_POINTS:
        title = f"{title}: the first {MOST_POINTS} of {len(indices)}"
    return Listing(title, (*(goal.name for goal in plane.goals), *names), rows)


def _correlations(analysis: Analysis) -> Iterator[Description]:
    if not analysis.correlations:
        return
    rows: list[list[Cell]] = [
        [
            one.name,
            *(_signed(each.strength) for each in (one.speed, one.efficiency, one.product)),
            *(_signed(each.rank) for each in (one.speed, one.efficiency)),
            "mover" if one.mover else "",
        ]
        for one in analysis.correlations
    ]
    header = ("", "speed", "efficiency", "product", "rank, speed", "rank, efficiency", "")
    title = "Correlation with speed, efficiency and their product (words: correlation ratio)"
    yield Description(title, listings=[Listing("", header, rows)])


def _effects(effects: Effects) -> Description:
    maximise = effects.goal.maximise
    rows = [
        [one.name, percent(one.over_all), percent(one.near_best), _best_level(one, maximise)]
        for one in effects.importances
    ]
    return Description(
        f"Importance for {effects.goal}: share of the variance over all, and of what sets the best tenth apart",
        figures=[
            Figure(f"{' and '.join(pair.names)} together", f"{percent(pair.share)} more")
            for pair in effects.interactions[:3]
        ],
        listings=[Listing("", ("parameter", "over all", "near best", "best on average"), rows)],
    )


def _best_level(one: Importance, maximise: bool) -> str:
    worked = [level for level in one.levels if level.count]
    if not worked:
        return ""
    best = (max if maximise else min)(worked, key=lambda level: level.mean)
    return f"{best.value}: {number(best.mean)}"


def _difficulty(analysis: Analysis) -> Iterator[Description]:
    if not analysis.difficulty:
        return
    partly = (
        f"over the {percent(analysis.coverage)} of the space that was measured: neighbours are missing, so it "
        "seems harder than it is"
    )
    rows: list[list[Cell]] = [
        [name, len(one.minima), *(percent(float(share)) for share in one.proportion(_WITHIN))]
        for name, one in analysis.difficulty.items()
    ]
    yield Description(
        "Difficulty: share of local searches that end within p of the optimum",
        remarks=[partly] if analysis.coverage < 1 else [],
        listings=[Listing("", ("minimising", "minima", *(f"p {p:g}" for p in _WITHIN)), rows)],
    )


def _drift(analysis: Analysis) -> Iterator[Description]:
    rows: list[list[Cell]] = [
        [
            one.name,
            "drifts" if one.drifts else "no drift",
            f"{100 * one.per_hour:+.2f} % ({' to '.join(f'{100 * end:+.2f}' for end in one.per_hour_interval)})",
            percent(one.scatter, 2),
            len(one.values),
        ]
        for one in analysis.drift
    ]
    if rows:
        header = ("figure", "", "per hour, with its 95 % interval", "scatter", "runs")
        yield Description("Drift of the reference kernel", listings=[Listing("", header, rows)])


def _failures(analysis: Analysis) -> Iterator[Description]:
    for one in analysis.failures:
        where: list[list[Cell]] = [
            [
                f"{each.parameter} = {each.value}",
                each.failed,
                each.measured,
                percent(each.share, 0),
                percent(each.elsewhere),
            ]
            for each in one.concentrated
        ]
        listings = (
            Listing("", ("times", "message"), [[count, text] for text, count in one.messages]),
            Listing("Values that concentrate failures", ("where", "failed", "of", "share", "elsewhere"), where),
        )
        yield Description(
            f"{one.count} failed ({one.kind})",
            f"{percent(one.share)} of what was measured",
            listings=[listing for listing in listings if listing.rows],
        )


def _signed(value: float) -> Cell:
    return f"{value:+.2f}" if value == value else None


def describe_comparison(found: Comparison, units: Mapping[str, str] | None = None) -> Description:
    """What tuning for energy gains on each session [Schoonhoven2024, table 6.2], the fronts, and what carries over."""
    speed, efficiency = (_title(name, units or {}) for name in (found.speed_name, found.efficiency_name))
    header = ("board", "session", "measured", efficiency, "after", "gained", speed, "after", "gained", "MHz", "after")
    gains: list[list[Cell]] = [
        [
            *(_board(side), side.name, side.measured),
            *(side.fastest.efficiency, side.frugal.efficiency, change(1 + side.efficiency_change)),
            *(side.fastest.speed, side.frugal.speed, change(1 + side.speed_change)),
            *(side.fastest.clock_mhz, side.frugal.clock_mhz),
        ]
        for side in found.sides
    ]
    fronts: list[list[Cell]] = [
        [_board(side), side.name, len(side.front_x), side.hypervolume, side.share_of_joint] for side in found.sides
    ]
    carried = [
        [each.origin, each.chosen_for, each.on, change(each.time_ratio), change(each.energy_ratio), each.words]
        for each in found.carried
    ]
    means = f"efficiency {found.mean_efficiency_change.words}, speed {found.mean_speed_change.words}"
    listings = [
        Listing("", header, gains),
        Listing(
            f"Fronts over {found.goals[0]} and {found.goals[1]}",
            ("board", "session", "points", "hypervolume", "on the joint front"),
            fronts,
        ),
        Listing(
            "The best of one on the others, against what is best there",
            ("best of", "for", "on", "time", "energy", "configuration"),
            carried,
        ),
    ]
    nothing = ["no configuration was measured in more than one of them"] if not carried else []
    return Description(
        "From the fastest configuration to the one of least energy",
        remarks=[f"mean ± standard deviation over {found.over}: {means}", *nothing],
        listings=listings if carried else listings[:2],
    )


def _title(name: str, units: Mapping[str, str]) -> str:
    unit = units.get(name, name)
    return name if unit in ("", name) else f"{name} ({unit})"


def _board(side: Side) -> str:
    return f"{side.gpu} ({side.source})" if side.source in ("simulated", "recorded") else side.gpu
