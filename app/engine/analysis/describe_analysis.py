"""An analysis and a comparison of sessions, described for the terminal, the report and the window."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from ...base.formatting import change, finite_or_none, number, percent
from ..metering.limit_effect import in_words
from ..models.arrays import Indices
from ..results.description import NOT_IDENTIFIABLE, Cell, Description, Figure, Listing
from ..results.measurement import FEWEST, State, Value
from ..results.settings import OWN_STATE, UNTOUCHED
from ..space.result_table import STATES, ResultTable
from ..space.within_limits import broken_in_words
from ..workloads.hardware_counters import COUNTERS
from .compare import Carried, Comparison
from .costs import Costs, values_of
from .drift import REFERENCES
from .importance import Importance
from .iso_lines import Role, role_of
from .over_load import AtLoad, ModelAtLoad, OverLoad, settings_at
from .session_analysis import Analysis, Effects
from .tradeoff import relative_change

Letters = Mapping[int, str]  # by the index of the configuration; they mark it in a chart beside the description

MOST_POINTS: Final = 40  # of the front and of the hull in a table
_WITHIN: Final = (1.0, 1.01, 1.05, 1.1, 1.25, 1.5)  # times the optimum, of the difficulty


def describe_analysis(analysis: Analysis) -> list[Description]:
    """Describe every finding of an analysis, in the order in which it is read.

    Parameters
    ----------
    analysis : Analysis
        The analysis of a session.

    Returns
    -------
    list of Description
        What is unknown is left out.
    """
    return [
        *describe_choices(analysis),
        *describe_over_load(analysis.over_load, analysis.table, analysis.costs),
        *describe_plane(analysis),
        *describe_correlations(analysis),
        *describe_split(analysis),
        *describe_counters(analysis),
        *(description for effects in analysis.effects for description in describe_effects(effects)),
        *describe_difficulty(analysis),
        *describe_drift(analysis),
        *describe_failures(analysis),
    ]


def describe_choices(analysis: Analysis, letters: Letters | None = None) -> Iterator[Description]:
    """Describe what each way to choose picks, with its cost and gain.

    Parameters
    ----------
    analysis : Analysis
        The analysis of a session.
    letters : mapping of int to str or None, optional
        Marks of configurations in a chart beside it, by their index; they come first in each row.

    Yields
    ------
    Description
        One; where nothing was chosen, the reason.
    """
    costs, names = analysis.costs, analysis.table.space.names
    chosen = [(choice, choice.index) for choice in analysis.choices if choice.index is not None]
    if not chosen:
        yield Description(why_none(analysis))
        return
    measured = {"ms": costs.time_s * 1e3} if costs.time_known else {}
    measured |= {"J": costs.energy_j} if costs.energy_known else {}
    measured |= {"W": costs.power_w} if np.isfinite(costs.power_w).any() else {}
    rows: list[list[Cell]] = []
    for choice, index in chosen:
        configuration = analysis.table.measurement(index).configuration
        in_words = choice.against_fastest.words if choice.against_fastest and choice.name != "fastest" else ""
        figures = [float(column[index]) for column in measured.values()]
        row = [*_letter(index, letters), choice.label, *figures, in_words]
        rows.append([*row, *_settings(configuration, names)])
    rates = [name for name in analysis.table.value_names if role_of(name) is Role.SPEED and not costs.time_known]
    remarks = [f"time and energy are known as ratios only, of the same work by {rate}" for rate in rates[:1]]
    listing = Listing("", (*_letter_head(letters), "choice", *measured, "in words", *names), rows)
    remarks += [] if analysis.own_state is None else analysis.own_state.remarks
    yield Description("Choices, against the fastest", remarks=remarks, listings=[listing])


def _settings(configuration: Mapping[str, Value], names: Iterable[str]) -> Iterator[Cell]:
    """The values of a configuration, in full where the digits of a figure would change them: 2024.2 is a version."""
    for value in map(configuration.__getitem__, names):
        yield f"{value:.15g}" if isinstance(value, float) and float(number(value)) != value else value


def why_none(analysis: Analysis) -> str:
    """Explain why no configuration is chosen: none worked, none keeps the limits, or no figure is known to choose by.

    Parameters
    ----------
    analysis : Analysis
        The analysis of a session.

    Returns
    -------
    str
        The reason; for figures with the remedy.
    """
    if analysis.nearest is not None:
        measured, limits = analysis.table.measurement(analysis.nearest), analysis.objective.limits
        named = ", ".join(f"{name} {value}" for name, value in measured.configuration.items())
        misses = (
            f"{broken_in_words(limits, measured.values)} ({percent(analysis.objective.excess(measured.values))} off)"
        )
        return f"No configuration keeps the limits: {'; '.join(map(str, limits))}. The nearest is {named}: {misses}"
    if not (analysis.table.states() == STATES.index(State.OK)).any():
        return "No configuration worked"
    there = ", ".join(analysis.table.value_names[:8])
    what = "No choice: of the figures none is known to be a time or a rate of work, or none an energy or a power"
    return f"{what} (there are: {there}); of a table, name them: --figures time_s=COLUMN,energy_j=COLUMN"


def describe_plane(
    analysis: Analysis, letters: Letters | None = None, most: int = MOST_POINTS
) -> Iterator[Description]:
    """Describe the front, the hull and the quadrants over both goals.

    Parameters
    ----------
    analysis : Analysis
        The analysis of a session.
    letters : mapping of int to str or None, optional
        Marks of configurations in a chart beside it, by their index; they come first in each row.
    most : int, optional
        How many points of the front and of the hull are listed at most.

    Yields
    ------
    Description
        One; none where there is no plane of two figures.
    """
    plane = analysis.plane
    if plane is None or plane.quadrants is None:
        return
    (x, y), cut = plane.goals, plane.quadrants
    figures = [
        Figure("points on it", f"{len(plane.front)} of {cut.total}"),
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
        _points("The front", analysis, plane.front[:most], len(plane.front), letters),
        _points("Corners of the convex hull, counterclockwise", analysis, plane.hull[:most], len(plane.hull), letters),
    ]
    yield Description(f"Front over {x} and {y}", "", figures, listings)


def _points(title: str, analysis: Analysis, indices: Indices, count: int, letters: Letters | None) -> Listing:
    """The first configurations of `count`, with both figures of the plane."""
    plane, names = analysis.plane, analysis.table.space.names
    assert plane is not None
    rows: list[list[Cell]] = []
    for index in indices.tolist():
        configuration = analysis.table.measurement(index).configuration
        figures = plane.values[index].tolist()
        rows.append([*_letter(index, letters), *figures, *_settings(configuration, names)])
    if len(indices) < count:
        title = f"{title}: the first {len(indices)} of {count}"
    return Listing(title, (*_letter_head(letters), *(goal.name for goal in plane.goals), *names), rows)


def _letter(index: int, letters: Letters | None) -> list[Cell]:
    return [letters.get(index, "")] if letters else []


def _letter_head(letters: Letters | None) -> list[str]:
    return [""] if letters else []


def describe_correlations(analysis: Analysis) -> Iterator[Description]:
    """Describe the coefficients of everything observed with speed, efficiency and their product.

    Parameters
    ----------
    analysis : Analysis
        The analysis of a session.

    Yields
    ------
    Description
        One; none where there are no coefficients and no reason why.
    """
    title = "Correlation with speed, efficiency and their product (words: correlation ratio)"
    if not analysis.correlations:
        yield from _too_few(title, analysis.too_few)
        return
    rows: list[list[Cell]] = [
        [
            one.name,
            *(_signed(item.strength) for item in (one.speed, one.efficiency, one.product)),
            *(_signed(element.rank) for element in (one.speed, one.efficiency)),
            "mover" if one.mover else "",
        ]
        for one in analysis.correlations
    ]
    header = ("", "speed", "efficiency", "product", "rank, speed", "rank, efficiency", "")
    yield Description(title, listings=[Listing("", header, rows)])


def describe_split(analysis: Analysis) -> Iterator[Description]:
    """Describe both halves of the cloud, split at the mean of what matters differently for the two goals.

    The form is that of [Anzt2015, figure 9].

    Parameters
    ----------
    analysis : Analysis
        The analysis of a session.

    Yields
    ------
    Description
        One; none where nothing matters differently.
    """
    movers = sorted((one for one in analysis.correlations if one.mover), key=lambda one: -abs(one.moves))
    title = "The cloud split at the mean of what matters differently for speed and efficiency"
    yield from _split_at(analysis, [one.name for one in movers], title)


def describe_counter_split(analysis: Analysis) -> Iterator[Description]:
    """Describe both halves of the cloud, split at the mean of each hardware counter.

    Parameters
    ----------
    analysis : Analysis
        The analysis of a session.

    Yields
    ------
    Description
        One; none where no configuration was profiled.
    """
    counted, title = analysis.counted, "The cloud split at the mean of each counter"
    if counted is not None and counted.configurations < FEWEST:
        yield from _too_few(title, f"too few: {counted.configurations} were profiled, and at least {FEWEST} are needed")
    elif counted is not None:
        yield from _split_at(analysis, counted.names, title)


def _too_few(title: str, why: str) -> Iterator[Description]:
    if why:
        yield Description(title, remarks=[why])


def _split_at(analysis: Analysis, names: Sequence[str], title: str) -> Iterator[Description]:
    split = {one.name: one for one in analysis.splits}
    rows: list[list[Cell]] = []
    for one in (split[name] for name in names if name in split):
        for side, half, other in (("above", one.above, one.below), ("below", one.below, one.above)):
            changes = relative_change(other.speed, half.speed), relative_change(other.efficiency, half.efficiency)
            lines = ["too few" if value != value else change(1 + value) for value in changes]
            rows.append([f"{one.name} {side} {number(one.mean)}", half.count, *lines])
    if rows:
        header = ("measurements with", "how many", "speed, over the others", "efficiency, over the others")
        yield Description(title, listings=[Listing("", header, rows)])


def describe_counters(analysis: Analysis) -> Iterator[Description]:
    """Describe the counters of the fastest configuration and of the one of least energy, and what counters add.

    Parameters
    ----------
    analysis : Analysis
        The analysis of a session.

    Yields
    ------
    Description
        One; none where no configuration was profiled.
    """
    counted = analysis.counted
    if counted is None:
        return
    costs, table = analysis.costs, analysis.table.so_far()
    columns = {name: values_of(table, name)[: len(costs.time_s)] for name in counted.names}
    finite = np.any([np.isfinite(values) for values in columns.values()], axis=0)
    moving = {one.name: one for one in analysis.correlations}
    ends = [np.where(finite, value, np.nan) for value in (costs.time_s, costs.energy_j)]
    extremes = [int(np.nanargmin(end)) if np.isfinite(end).any() else None for end in ends]
    rows: list[list[Cell]] = []
    for name, values in columns.items():
        shown = [None if index is None else finite_or_none(float(values[index])) for index in extremes]
        one = moving.get(name)
        linear = [None, None, None] if one is None else [one.speed, one.efficiency, one.product]
        coefficients = [None if item is None else _signed(item.strength) for item in linear]
        mover = "mover" if one is not None and one.mover else ""
        rows.append([name, COUNTERS[name].unit, *shown, *coefficients, mover])
    header = ("counter", "unit", "fastest profiled", "least energy", "speed", "efficiency", "product", "")
    figures = [Figure("profiled", f"{counted.configurations} configurations")]
    yield Description("Hardware counters", "", figures, [Listing("", header, rows)], remarks=[counted.words])


def describe_effects(effects: Effects) -> Iterator[Description]:
    """Describe how much each parameter matters for one figure.

    Parameters
    ----------
    effects : Effects
        The effects on that figure.

    Yields
    ------
    Description
        One; none where no parameter has an effect that is known.
    """
    if not effects.importances:
        return
    maximise = effects.goal.maximise
    rows = [
        [
            one.name,
            *(
                "too few" if one.too_few and value != value else percent(value)
                for value in (one.over_all, one.near_best)
            ),
            _best_level(one, maximise),
        ]
        for one in effects.importances
    ]
    listings = [Listing("", ("parameter", "over all", "near best", "best on average"), rows)]
    pairs = [[" and ".join(pair.names), percent(pair.share)] for pair in effects.interactions[:3]]
    listings += [Listing("Together beyond one by one", ("parameters", "share"), pairs)] if pairs else []
    title = f"Importance for {effects.goal}: share of the variance over all, and of what sets the best tenth apart"
    yield Description(title, listings=listings)


def _best_level(one: Importance, maximise: bool) -> str:
    worked = [level for level in one.levels if level.mean == level.mean]
    if not worked:
        return "too few of each value"
    best = (max if maximise else min)(worked, key=lambda level: level.mean)
    return f"{best.value}: {number(best.mean)}"


def describe_difficulty(analysis: Analysis) -> Iterator[Description]:
    """Describe the local minima and the proportion of centrality.

    Parameters
    ----------
    analysis : Analysis
        The analysis of a session.

    Yields
    ------
    Description
        One; none where neither they nor the reason why not are known.
    """
    title = "Difficulty: share of local searches that end within p of the optimum"
    if not analysis.difficulty:
        yield from _too_few(title, analysis.too_few)
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
        title,
        remarks=[partly] if analysis.coverage < 1 else [],
        listings=[Listing("", ("minimising", "minima", *(f"p {p:g}" for p in _WITHIN)), rows)],
    )


def describe_drift(analysis: Analysis) -> Iterator[Description]:
    """Describe whether the board itself changed, by the runs of the reference kernel.

    Parameters
    ----------
    analysis : Analysis
        The analysis of a session.

    Yields
    ------
    Description
        One, or why there are too few runs; none where a session has no such runs.
    """
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
    elif set(REFERENCES) & set(analysis.table.value_names):
        yield from _too_few("Drift of the reference kernel", f"too few: at least {FEWEST} timed runs of it are needed")


def describe_failures(analysis: Analysis) -> Iterator[Description]:
    """Describe what failed.

    Parameters
    ----------
    analysis : Analysis
        The analysis of a session.

    Yields
    ------
    Description
        One for each kind of failure.
    """
    for one in analysis.failures:
        where: list[list[Cell]] = [
            [
                f"{item.parameter} = {item.value}",
                item.failed,
                item.measured,
                percent(item.share, 0),
                percent(item.elsewhere),
            ]
            for item in one.concentrated
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


def describe_comparison(comparison: Comparison, units: Mapping[str, str] | None = None) -> Description:
    """Describe what tuning for energy gains on each session, the fronts, and what carries over.

    The table of gains is that of [Schoonhoven2024, table 6.2].

    Parameters
    ----------
    comparison : Comparison
        The sessions side by side.
    units : mapping of str to str or None, optional
        Units of figures by their name; the name stands for itself where it is missing.

    Returns
    -------
    Description
    """
    speed, efficiency = (_title(name, units or {}) for name in (comparison.speed_name, comparison.efficiency_name))
    header = ("board", "session", "measured", efficiency, "after", "gained", speed, "after", "gained", "MHz", "after")
    gains: list[list[Cell]] = [
        [
            *(side.label, side.name, side.measured),
            *(side.fastest.efficiency, side.frugal.efficiency, change(1 + side.efficiency_change)),
            *(side.fastest.speed, side.frugal.speed, change(1 + side.speed_change)),
            *(side.fastest.clock_mhz, side.frugal.clock_mhz),
        ]
        for side in comparison.sides
    ]
    fronts: list[list[Cell]] = [
        [side.label, side.name, len(side.front_x), side.hypervolume, side.share_of_joint] for side in comparison.sides
    ]
    carried = [
        [item.origin, item.chosen_for, item.on, *_carried_changes(item), item.words]
        for item in comparison.carried[:MOST_POINTS]
    ]
    some = f", the first {MOST_POINTS} of {len(comparison.carried)}" if len(comparison.carried) > MOST_POINTS else ""
    means = f"efficiency {comparison.mean_efficiency_change.words}, speed {comparison.mean_speed_change.words}"
    means += f", and at least {FEWEST} are needed" if "too few" in means else ""
    listings = [
        Listing("", header, gains),
        Listing(
            f"Fronts over {comparison.goals[0]} and {comparison.goals[1]}",
            ("board", "session", "points", "hypervolume", "on the joint front"),
            fronts,
        ),
        Listing(
            f"The best of one on the others, against what is best there{some}",
            ("best of", "for", "on", "time", "energy", "configuration"),
            carried,
        ),
    ]
    nothing = ["the best of none of them was measured in another one of the same kernel"] if not carried else []
    limits = [f"{side.name} {', '.join(side.limits)}" for side in comparison.sides if side.limits]
    if limits:
        nothing.append(f"what breaks a limit of its session is left out: {'; '.join(limits)}")
    if any(word.startswith("≤") for value in comparison.carried[:MOST_POINTS] for word in _carried_changes(value)):
        nothing.append("≤: what is carried over was not measured at all the clocks and limits that others were there")
    if len(comparison.conditions) > 1:
        nothing.append(
            f"their energies are stated for different thermal conditions: {'; '.join(comparison.conditions)}"
        )
    return Description(
        "From the fastest configuration to the one of least energy",
        remarks=[f"mean ± standard deviation over {comparison.over}: {means}", *nothing],
        listings=listings if carried else listings[:2],
    )


def _carried_changes(carried: Carried) -> Iterator[str]:
    for ratio in (carried.time_ratio, carried.energy_ratio):
        yield f"≤ {change(ratio)}" if carried.at_most and ratio > 1 else change(ratio)


def _title(name: str, units: Mapping[str, str]) -> str:
    unit = units.get(name, name)
    return name if unit in ("", name) else f"{name} ({unit})"


def describe_over_load(over_load: OverLoad | None, table: ResultTable, costs: Costs) -> Iterator[Description]:
    """Describe the answer at each load, with remarks on what the comparison rests on.

    Parameters
    ----------
    over_load : OverLoad or None
        The least energy at each load; None if the session has none.
    table : ResultTable
        The measurements.
    costs : Costs
        Their times and energies.

    Yields
    ------
    Description
        One; none without a load.
    """
    if over_load is None or not over_load.levels:
        return
    header = [over_load.name] if over_load.name else []
    tokens = "output_tokens_per_s" in table.value_names
    figures = ("tokens/s", "J/token") if tokens else ("work/s", "J per work")
    against = OWN_STATE if UNTOUCHED in over_load.own.values() else "the highest"
    header += ["within limits", "best setting", "others", *figures, f"against {against}"]
    compares = any(level.locking_against_capping is not None for level in over_load.levels)
    header += ["locking against capping"] if compares else []
    rows = [_row(over_load, table, costs, level, compares) for level in over_load.levels]
    title = f"Least energy at each {over_load.name}" if over_load.name else "Least energy"
    yield Description(title, remarks=_remarks(over_load, costs, table), listings=[Listing("", header, rows)])


def describe_models_over_load(models: tuple[ModelAtLoad, ...]) -> Iterator[Description]:
    """Describe the recommended clock of each load by the frequency model, or why there is none.

    Parameters
    ----------
    models : tuple of ModelAtLoad
        The fit at each load.

    Yields
    ------
    Description
        One; none without a fit.
    """
    if not models:
        return
    rows: list[list[Cell]] = []
    for model in models:
        fit = model.fit
        clock = NOT_IDENTIFIABLE if fit.recommended_clock_mhz is None else number(fit.recommended_clock_mhz)
        known = fit.identifiable and fit.optimum_interval_mhz is not None
        low_high = "–".join(number(end) for end in fit.optimum_interval_mhz or ()) if known else ""
        rows.append([model.held or "all", clock, low_high, "; ".join(fit.reasons)])
    header = ("held", "recommended clock (MHz)", "95 % interval", "how far it can be trusted")
    yield Description("Frequency model at each load", listings=[Listing("", header, rows)])


def _row(over_load: OverLoad, table: ResultTable, costs: Costs, level: AtLoad, compares: bool) -> list[Cell]:
    first: list[Cell] = [] if level.load is None else [level.load if isinstance(level.load, str) else float(level.load)]
    first.append(f"{level.feasible} of {level.measured}")
    if level.best is None:
        return [*first, "none keeps the limits", "", None, None, "", *([""] if compares else [])]
    others = {
        name: value
        for name, value in table.measurement(level.best).configuration.items()
        if name not in (*over_load.settings, over_load.name)
    }
    saved = level.gain.words if level.gain is not None else _why_no_gain(over_load, level)
    rest = ", ".join(f"{name} = {value}" for name, value in others.items())
    rate, energy = 1 / float(costs.time_s[level.best]), float(costs.energy_j[level.best])
    row: list[Cell] = [*first, settings_at(over_load, table, level.best), rest, rate, energy, saved]
    between = level.locking_against_capping
    return [*row, *([between.words if between is not None else "not measured"] if compares else [])]


def _why_no_gain(over_load: OverLoad, level: AtLoad) -> str:
    if not over_load.own:
        return ""
    return "it is that" if level.default is not None else "that was not measured"


def _remarks(over_load: OverLoad, costs: Costs, table: ResultTable) -> list[str]:
    lines = []
    if over_load.own:
        held = {name: value for name, value in over_load.own.items() if value != UNTOUCHED}
        values = f": {', '.join(f'{name} = {number(float(value))}' for name, value in held.items())}" if held else ""
        lines.append(f"gains are against {over_load.baseline}{values}")
    if over_load.name and len(over_load.levels) > 1 and over_load.curves:
        same = "is not the same at every load" if over_load.changes else "is the same at every load"
        lines.append(f"the best setting {same}")
    yearly = [(level.load, level.yearly) for level in over_load.levels if level.yearly is not None]
    for load, year in yearly:
        at = f" at {over_load.name} {load:g}" if isinstance(load, int | float) else ""
        if year.saved_kwh > 0:
            lines.append(f"the same work over a year{at}: {year.words} than in that state (while it serves)")
    for level in over_load.levels:
        if effects := in_words(level.limits):
            lines.append(f"at {over_load.name} {level.load:g}: {effects}" if over_load.name else effects)
    if any(level.locked is not None for level in over_load.levels) and not any(
        level.capped is not None for level in over_load.levels
    ):
        lines.append("no power limit alone was measured: whether capping is better is not known")
    if not costs.energy_known:
        lines.append("energies are known up to a factor: ratios hold, J do not")
    return lines
