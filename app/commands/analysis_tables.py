"""What `wattridge analyse` and `compare` print for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ..numbers import number
from .sources import Opened
from .terminal import print_table, show

if TYPE_CHECKING:
    from ..engine.analysis.compare import Comparison
    from ..engine.analysis.session import Analysis, Plane

_ROWS = 40  # of the front and of the hull
_P_SHOWN = (1.0, 1.01, 1.05, 1.1, 1.25, 1.5)


def print_analysis(opened: Opened, found: Analysis, best: int | None) -> None:
    """Every finding in a few lines or a table. `best`: index of the best by the objective."""
    from ..engine.analysis.peak_share import peak_share

    plan, table = opened.plan, found.table
    failed = ", ".join(f"{count} {state}" for state, count in table.failures().items()) or "none"
    show(f"{opened.name}: {plan.title} on {plan.gpu} ({plan.source})")
    show(f"{len(table)} of {plan.space.size} configurations measured, failed: {failed}")
    for note in plan.space.notes:
        show(f"  {note}")
    _print_choices(found)
    share = peak_share(plan, table.measurement(best)) if best is not None else None
    if share is not None:
        show(f"the best by {found.objective.goal} reaches {share.words}")
    _print_plane(found)
    _print_points("The front", found, lambda plane: plane.front)
    _print_points("Corners of the convex hull, counterclockwise", found, lambda plane: plane.hull)
    _print_correlations(found)
    _print_importance(found)
    _print_difficulty(found)
    _print_drift(found)
    _print_failures(found)


def _print_choices(found: Analysis) -> None:
    told = [choice for choice in found.choices if choice.index is not None]
    if not told:
        show("", "no configuration worked")
        return
    costs, names = found.costs, found.table.space.names
    show("", "Choices, against the fastest")
    rows = []
    for choice in told:
        assert choice.index is not None
        change = choice.against_fastest
        configuration = found.table.measurement(choice.index).configuration
        rows.append(
            [
                choice.label,
                *([float(costs.time_s[choice.index]) * 1e3] if costs.time_known else []),
                *([float(costs.energy_j[choice.index])] if costs.energy_known else []),
                change.words if change and choice.name != "fastest" else "",
                *(configuration[name] for name in names),
            ]
        )
    measured = [*(["ms"] if costs.time_known else []), *(["J"] if costs.energy_known else [])]
    print_table(rows, ("choice", *measured, "in words", *names))
    for choice in told:
        if choice.name == "least_energy" and choice.yearly is not None and choice.yearly.saved_kwh > 0:
            show(f"least energy, the same work over a year: {choice.yearly.words} (while the kernel runs)")


def _print_plane(found: Analysis) -> None:
    plane = found.plane
    if plane is None or plane.quadrants is None:
        return
    (x, y), cut = plane.goals, plane.quadrants
    reference = ", ".join(number(float(each)) for each in plane.reference)
    show("", f"Front over {x} and {y}")
    show(
        f"on it {len(plane.front)}, hypervolume {number(plane.hypervolume, 5)} (reference {reference}), "
        f"corners of the hull {len(plane.hull)}"
    )
    counts = (
        (f"better {x.name} than the best by {y.name}", cut.better_x),
        (f"better {y.name} than the best by {x.name}", cut.better_y),
        ("better than each in the other figure: where trading off pays", cut.both),
        ("neither", cut.neither),
    )
    print_table([[what, count, f"{cut.percent(count):.1f} %"] for what, count in counts], ("quadrant", "points", ""))
    for held, of, spread in ((x, y, plane.spread_at_best_y), (y, x, plane.spread_at_best_x)):
        if spread is not None:
            show(
                f"at {number(spread.at)} {held.name}: {of.name} from {number(spread.low)} to {number(spread.high)}"
                f" ({100 * spread.share:.1f} % between)"
            )


def _print_points(title: str, found: Analysis, which: Callable[[Plane], Iterable[int]]) -> None:
    """Configurations of the plane as a table, with both figures; the front's ends and corners are seen in it."""
    plane, table = found.plane, found.table
    if plane is None:
        return
    goals, names, rows = [goal.name for goal in plane.goals], table.space.names, []
    indices = [int(index) for index in which(plane)]
    for index in indices[:_ROWS]:
        configuration = table.measurement(index).configuration
        figures = (float(plane.values[index, at]) for at in (0, 1))
        rows.append([*figures, *(configuration[name] for name in names)])
    if not rows:
        return
    show("", title)
    print_table(rows, (*goals, *names))
    if len(indices) > _ROWS:
        show(f"and {len(indices) - _ROWS} more: --json has all of them")


def _print_correlations(found: Analysis) -> None:
    if not found.correlations:
        return
    show("", "Correlation with speed, efficiency and their product (words: correlation ratio)")
    rows = [
        [
            one.name,
            one.speed.strength,
            one.efficiency.strength,
            one.product.strength,
            one.speed.rank,
            one.efficiency.rank,
            "mover" if one.mover else "",
        ]
        for one in found.correlations
    ]
    rounded = [[f"{cell:+.2f}" if isinstance(cell, float) and cell == cell else cell for cell in row] for row in rows]
    print_table(rounded, ("", "speed", "efficiency", "product", "rank, speed", "rank, efficiency", ""))


def _print_importance(found: Analysis) -> None:
    for effects in found.effects:
        if not effects.importances:
            continue
        show(
            "", f"Importance for {effects.goal}: share of the variance over all, and of what tells the best tenth apart"
        )
        print_table(
            [
                [one.name, _percent(one.over_all), _percent(one.near_best), _best_level(one, effects.goal.maximise)]
                for one in effects.importances
            ],
            ("parameter", "over all", "near best", "best on average"),
        )
        for pair in effects.interactions[:3]:
            show(f"  {' and '.join(pair.names)} together: {_percent(pair.share)} more")


def _best_level(one: Any, maximise: bool) -> str:
    worked = [level for level in one.levels if level.count]
    if not worked:
        return ""
    best = (max if maximise else min)(worked, key=lambda level: level.mean)
    return f"{best.value}: {number(best.mean)}"


def _print_difficulty(found: Analysis) -> None:
    if not found.difficulty:
        return
    show("", "Difficulty: share of local searches that end within p of the optimum")
    if found.coverage < 1:
        share = f"{100 * found.coverage:.1f} %"
        show(f"  over the {share} of the space that was measured: it lacks neighbours, so it looks harder than it is")
    print_table(
        [
            [name, len(one.minima), *(f"{100 * float(share):.1f} %" for share in one.proportion(_P_SHOWN))]
            for name, one in found.difficulty.items()
        ],
        ("minimising", "minima", *(f"p {p:g}" for p in _P_SHOWN)),
    )


def _print_drift(found: Analysis) -> None:
    for one in found.drift:
        low, high = (100 * end for end in one.per_hour_interval)
        verdict = "drifts" if one.drifts else "no drift"
        show(
            "",
            f"{one.name}: {verdict}, {100 * one.per_hour:+.2f} % per hour ({low:+.2f} to {high:+.2f}), "
            f"scatter {100 * one.scatter:.2f} % over {len(one.values)} looks",
        )


def _print_failures(found: Analysis) -> None:
    for one in found.failures:
        show("", f"{one.count} failed ({one.kind}), {100 * one.share:.1f} % of what was measured")
        for text, count in one.messages:
            show(f"  {count} x {text}")
        for where in one.concentrated:
            show(
                f"  {where.parameter} = {where.value}: {where.failed} of {where.measured} failed "
                f"({100 * where.share:.0f} %, elsewhere {100 * where.elsewhere:.1f} %)"
            )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share == share else "–"


def print_comparison(found: Comparison) -> None:
    """The gain of each (S1 table 6.2), the fronts, and configurations carried over."""
    speed, efficiency = found.speed_name, found.efficiency_name
    show("From the fastest configuration to the one of least energy")
    rows: list[list[Any]] = [
        [
            f"{side.gpu}{' (simulated)' if side.source == 'simulated' else ''}",
            side.name,
            side.measured,
            side.fastest.efficiency,
            side.frugal.efficiency,
            f"{100 * side.efficiency_change:+.1f} %",
            side.fastest.speed,
            side.frugal.speed,
            f"{100 * side.speed_change:+.1f} %",
            side.fastest.clock_mhz,
            side.frugal.clock_mhz,
        ]
        for side in found.sides
    ]
    header = ("board", "session", "measured", efficiency, "after", "gained", speed, "after", "gained", "MHz", "after")
    print_table(rows, header)
    means = f"efficiency {found.mean_efficiency_change.words}, speed {found.mean_speed_change.words}"
    show(f"mean ± standard deviation over {found.over}: {means}")
    show("", f"Fronts over {found.goals[0]} and {found.goals[1]}")
    print_table(
        [[side.gpu, side.name, len(side.front_x), side.hypervolume, side.share_of_joint] for side in found.sides],
        ("board", "session", "points", "hypervolume", "share of the joint front"),
    )
    if not found.carried:
        show("", "no configuration was measured in more than one of them")
        return
    show("", "The best of one on the others: time and energy over what is best there")
    print_table(
        [
            [each.origin, each.chosen_for, each.on, f"{each.time_ratio:.3f}", f"{each.energy_ratio:.3f}", each.words]
            for each in found.carried
        ],
        ("of", "chosen for", "on", "time", "energy", "configuration"),
    )
