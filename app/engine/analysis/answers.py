"""`answers`: the results of a session as sentences, each with its confidence and the figure that shows it.

Two measurements cannot be told apart where the 95 % interval of their difference holds zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from ...base.errors import InputError
from ...base.formatting import counted, number, percent
from ...sensors.gpu import LIVE
from ..models.administrator import advice
from ..models.arrays import Floats
from ..models.boards_file import figure_named
from ..models.clock_fits import ClockFit, clock_fit
from ..models.fit.caps import CapFit
from ..models.fit.frequency import FrequencyFit
from ..models.fit_documents import latest_fit
from ..models.roofline.operator_floor import known_sweeps
from ..models.roofline.points import PlacedKernel, Sweep, kernel_of, precision_words
from ..results.chart import Chart, Series
from ..results.measurement import Measurement, speed_of
from ..space.repeats import mean_of_readings, readings_beside
from ..space.result_table import ResultTable
from ..specification.plan import SessionFacts, SessionPlan
from .describe_analysis import why_none
from .difference import Versus
from .health import health_of
from .iso_lines import Role, role_of
from .quantities import quantity
from .session_analysis import Analysis
from .standing import Standing, ratio, standing
from .tradeoff import Load, change_words, percent_words

if TYPE_CHECKING:
    from ..store.database import Store

FRONT: Final = "front"  # figures that are no chart of the analysis
MODEL: Final = "model"
ROOFLINE: Final = "roofline"
_MATTERS: Final = 0.05  # share from which on a parameter is named
_MOST_NAMED: Final = 4
_SAME_CLOCK: Final = 0.05  # relative: an observed clock this close to the requested one followed it
_NO_INTERVAL: Final = "measured without intervals"


@dataclass(frozen=True, slots=True)
class Answer:
    """One sentence. `figure` is the name of a chart of the analysis, or FRONT, MODEL or ROOFLINE."""

    sentence: str
    confidence: str  # what it rests on: an interval, a number of measurements, a source
    figure: str
    points: tuple[int, ...] = ()  # the measurements that it is about, by their index


@dataclass(frozen=True, slots=True)
class Models:
    """What could be modelled of a session's measurements, and what is known of its board."""

    clocks: ClockFit | None
    no_clocks: str  # why there is no model of the clocks; empty if there is one
    roofline: Sweep | None  # the best source of the board's roofline in the precision of the session
    of_model: FrequencyFit | None = None  # of a board of the same model, at clocks that were set there


def models_of(
    table: ResultTable, plan: SessionFacts, store: Store | None = None, of_model: FrequencyFit | None = None
) -> Models:
    """Fit the clocks of a session and find the roofline of its board.

    Parameters
    ----------
    table : ResultTable
        The measurements so far.
    plan : SessionFacts
        The session's board, title and precision.
    store : Store or None, optional
        Stored sessions, among them rooflines; None to look among those that come with the program.
    of_model : FrequencyFit or None, optional
        Of a board of the same model; None for the newest one that is stored.

    Returns
    -------
    Models
    """
    clocks, why_not = None, ""
    try:
        clocks = clock_fit(table, plan)
    except InputError as error:
        why_not = error.what
    precision = plan.origin.get("precision", "")
    sweeps = known_sweeps(plan, precision, store) if precision else iter(())
    if of_model is None and store is not None:
        stored = latest_fit(store, plan.gpu, simulated=plan.source == "simulated")
        of_model = stored[0] if stored is not None else None
    return Models(clocks, why_not, next((each for each in sweeps if each.model is not None), None), of_model)


def answers(analysis: Analysis, plan: SessionPlan, models: Models, load: Load | None = None) -> list[Answer]:
    """State the results of a session.

    Parameters
    ----------
    analysis : Analysis
        The analysis of its measurements.
    plan : SessionPlan
        The session.
    models : Models
        As `models_of` returns them.
    load : Load or None, optional
        The load of a year; the default of `Load` where None.

    Returns
    -------
    list of Answer
        Cautions of its health, gain, parameters that matter, front, clocks, what an administrator could save where none
        was set, roofline, cost of a year. Where a question
        has no answer, the sentence names what is missing.
    """
    table = analysis.table.so_far()
    health = health_of(table, analysis.objective.goal.name, plan.origin)
    cautions = [Answer(f"Caution: {remark}.", "the health of the session", "failures") for remark in health.remarks]
    if analysis.best is None:
        return [*cautions, Answer(f"{why_none(analysis)}.", "", "failures")]
    stands = standing(table, analysis.objective, analysis.best)
    best = mean_of_readings(table, readings_beside(table, analysis.best))
    return [
        *cautions,
        *_gained(analysis, stands),
        *_matters(analysis, plan),
        *_front(analysis, table),
        _clocks(models),
        *_administrator(best, plan, models.of_model),
        _in_roofline(best, plan, models.roofline),
        _year(analysis, stands, load or Load()),
    ]


def year_bars(analysis: Analysis) -> Chart | str:
    """Draw the energy of the same work over a year with each choice, and with the board's own state.

    Parameters
    ----------
    analysis : Analysis
        The analysis of a session.

    Returns
    -------
    Chart or str
        The chart, in kWh, or the reason why there is none.
    """
    kwh = _kwh_of_year(analysis)
    if kwh is None:
        return "A year needs the time and the energy of a launch, in s and J."
    shown = [(one.label, one.index) for one in analysis.choices if one.index is not None]
    if analysis.best is not None:
        shown.append((f"Best for {analysis.objective.goal}", analysis.best))
    if analysis.own_state is not None and analysis.own_state.index is not None:
        shown.append(("Untouched" if analysis.own_state.untouched else "Highest settings", analysis.own_state.index))
    return Chart(
        x_title="Energy of a year (kWh)",
        y_title="",
        series=(Series("the same work", "blue", kwh[[index for _, index in shown]]),),
        caption="The work that the fastest does in the hours of a year that are stated, half of them where none are; "
        "only the boards, while they work: idle time, host and cooling are not in it.",
        names=tuple(label for label, _ in shown),
    )


# --- inside -----------------------------------------------------------------------------------------------------------


def _gained(analysis: Analysis, stands: Standing) -> Iterator[Answer]:
    """Against the fastest and against the untouched board."""
    best, goal = stands.measurement - 1, analysis.objective.goal
    the_best = f"the best for {goal}"
    if stands.is_fastest:
        ranked = counted(stands.of, "measurement")
        yield Answer(f"The fastest is {the_best}.", f"of {ranked} that can be compared", FRONT, (best,))
    elif stands.against_fastest is not None:
        yield _compared(the_best, "the fastest", best, stands.against_fastest)
    state = stands.own_state
    if state is None:
        sentence = "What is gained on the untouched board is not known: no setting of the board was varied."
        yield Answer(sentence, "all was measured on the board as it was", FRONT, (best,))
    elif stands.against_own_state is not None:
        yield _compared(the_best, state.baseline, best, stands.against_own_state)
    elif state.index is not None:
        yield Answer(f"Nothing is gained over {state.baseline}: it is {the_best}.", "", FRONT, (best,))
    else:
        sentence = "What is gained on the untouched board is not known: it was not measured with these parameters."
        yield Answer(sentence, "the level 'untouched' of a setting measures it", FRONT, (best,))


def _compared(what: str, reference: str, best: int, versus: Versus) -> Answer:
    """One measurement against another one."""
    pairs = {"energy": versus.energy, "time": versus.time}
    known = [name for name, item in pairs.items() if item.interval is not None]
    words = versus.words.replace("energy unknown, ", "")
    if all(item.distinguishable is False for item in pairs.values()):
        words = f"From {reference} {what} cannot be told apart: {words}."
    else:
        words = f"Against {reference}, {what} takes {words}."
    confidence = f"95 % interval of the difference in {' and '.join(known)}" if known else _NO_INTERVAL
    return Answer(words, confidence, FRONT, (best, versus.measurement - 1))


def _matters(analysis: Analysis, plan: SessionPlan) -> Iterator[Answer]:
    """The parameters and clocks that set the objective, else the time."""
    by_goal = {effects.goal.name: effects for effects in analysis.effects}
    role = role_of(analysis.objective.goal.name)
    stands_for = "energy_j" if role in (Role.ENERGY, Role.EFFICIENCY, Role.EDP) else "time_s"
    effects = by_goal.get(analysis.objective.goal.name) or by_goal.get(stands_for)
    if effects is None or not effects.importances:
        return
    what = quantity(effects.goal.name, units=plan.units).label.lower()
    measured = counted(max(sum(level.count for level in one.levels) for one in effects.importances), "measurement")
    known = [one for one in effects.importances if one.over_all == one.over_all]
    labels = {one.name: quantity(one.name, units=plan.units).label for one in known}
    named = [f"{labels[one.name]} ({percent(one.over_all, 0)})" for one in known if one.over_all >= _MATTERS]
    words = f"What matters for {what}, by its share of the variance: {', '.join(named[:_MOST_NAMED])}"
    if not known:
        words = f"Which parameters matter for {what} cannot be said: too few were measured"
    elif not named:
        words = f"No parameter alone sets {what}: none explains {percent(_MATTERS, 0)} of its variance"
    near = max(known, key=lambda one: one.near_best, default=None)
    if near is not None and near.near_best > 0:
        words += f"; among the best tenth {labels[near.name]} ({percent(near.near_best, 0)})"
    yield Answer(f"{words}.", f"analysis of variance over {measured}", "importance")


def _front(analysis: Analysis, table: ResultTable) -> Iterator[Answer]:
    """Neighbours on the front whose intervals overlap in both figures."""
    plane = analysis.plane
    if plane is None or len(plane.front) < 2:
        return
    points = [readings_beside(table, index) for index in plane.front.tolist()]
    along = pairwise(zip(points, plane.values[plane.front].tolist(), strict=True))
    verdicts = [
        [
            ratio(table, (one, other), (before[axis], after[axis]), goal.name, role_of(goal.name)).distinguishable
            for axis, goal in enumerate(plane.goals)
        ]
        for (one, before), (other, after) in along
    ]
    same = [place for place, verdict in enumerate(verdicts) if not any(verdict) and None not in verdict]
    unknown = sum(None in verdict and not any(verdict) for verdict in verdicts)
    (x, y), front = (goal.name for goal in plane.goals), plane.front.tolist()
    if same:
        listed = ", ".join(f"{place + 1} and {place + 2}" for place in same[:_MOST_NAMED])
        listed += f" and {counted(len(same) - _MOST_NAMED, 'more pair')}" if len(same) > _MOST_NAMED else ""
        words = f"Of {len(points)} points of the front, counted from the worst {x} on, cannot be told apart: {listed}"
    elif unknown == len(verdicts):
        words = f"Which of the {len(points)} points of the front can be told apart is not known"
    else:
        words = f"All neighbours among the {len(points)} points of the front can be told apart"
        words = f"{words}, as far as intervals are known" if unknown else words
    left = f"; of {counted(unknown, 'pair')} an interval is not known" if unknown else ""
    marked = sorted({front[place + step] for place in same for step in (0, 1)}) or front
    yield Answer(f"{words}.", f"95 % intervals of the difference in {x} and {y}{left}", FRONT, tuple(marked))


def _clocks(models: Models) -> Answer:
    """Whether a model of the clocks could be fitted, and where the optimum lies."""
    fit, caps = (models.clocks.fit, models.clocks.caps) if models.clocks is not None else (None, None)
    if caps is not None and (fit is None or not fit.identifiable):
        return _limits(caps)
    if fit is None or not fit.identifiable or fit.recommended_clock_mhz is None:
        why_not = models.no_clocks or next(
            iter(fit.reasons if fit is not None else ()), "the points do not determine one"
        )
        return Answer(f"No model of the clocks could be fitted: {why_not}.", "", MODEL)
    confidence = f"{counted(fit.points, 'point')}, R² {fit.r2:.3f}" if fit.r2 is not None else ""
    chosen_mhz, measured = fit.recommended_clock_mhz, fit.clock_mhz[fit.used]
    low, high = fit.optimum_interval_mhz or (chosen_mhz, chosen_mhz)
    words, where = f"the least energy per work is at {chosen_mhz:.0f} MHz", ""
    if not fit.optimum_bracketed or fit.optimum_interval_mhz is None:
        where = ", or at or beyond an end of the clocks that were measured"
        if chosen_mhz in (measured.min(), measured.max()):
            where = ", at the edge of the clocks that were measured, so that it may lie beyond"
        words = f"its optimum is {chosen_mhz:.0f} MHz{where}"
    else:
        known = "with 95 %" if len(fit.rate) else "with 95 % if so"
        confidence = f"optimum {low:.0f} to {high:.0f} MHz {known}; {confidence}"
    overruled = not low <= chosen_mhz <= high
    if overruled:
        words = f"its optimum is {fit.optimum_mhz:.0f} MHz{where}, but the least energy per work was measured at "
        words += f"{fit.best_measured_mhz:.0f} MHz"
        words += f"; {chosen_mhz:.0f} MHz is recommended" if chosen_mhz != fit.best_measured_mhz else ""
    if fit.energy_change is not None and (overruled or not where):
        words += f", {change_words(fit.energy_change, 'energy')} than {fit.baseline}"
    if not len(fit.rate):
        words = f"if the work goes in proportion to the clock, as is assumed without a time or a rate, {words}"
    return Answer(
        f"A model of the clocks could be fitted; {words}{_least_left_out(fit, low, high)}.", confidence, MODEL
    )


def _least_left_out(fit: FrequencyFit, low_mhz: float, high_mhz: float) -> str:
    """Name the reading with the least energy where the fit left it out, for the choices may still take it."""
    if not len(fit.rate):  # where a limit acted, the clock that it ran at is not known
        return ""
    least = int((fit.power_w / fit.rate).argmin())
    clock_mhz = float(fit.clock_mhz[least])
    near = fit.best_measured_mhz is not None and abs(clock_mhz / fit.best_measured_mhz - 1) < _SAME_CLOCK
    if fit.used[least] or near or low_mhz <= clock_mhz <= high_mhz:
        return ""
    return f"; a reading at {clock_mhz:.0f} MHz with less is left out of the fit"


def _administrator(best: Measurement, plan: SessionPlan, of_model: FrequencyFit | None) -> Iterator[Answer]:
    """Say what a lower clock would save, where the session set nothing of the board."""
    unknown = plan.source not in (*LIVE, "simulated") and best.observed_clock_mhz != best.observed_clock_mhz
    if not unknown and not any(parameter.device_setting for parameter in plan.space.parameters):
        traffic, bandwidth = best.values.get("GB/s"), figure_named(plan.gpu, "bandwidth_gb_s")
        share = traffic / bandwidth if traffic is not None and bandwidth is not None else None
        selector = plan.origin.get("gpu") or "0"
        found = advice([best], plan.gpu, of_model, source=plan.source, selector=selector, memory_share=share)
        yield Answer(found.paragraph, "", MODEL)


def _limits(caps: CapFit) -> Answer:
    """State the power limit of the least energy, and the limits that have no effect."""
    words = f"The least energy per work is under a power limit of {caps.best_limit_w:g} W"
    words += f" ({percent_words(caps.saving)} less than at the highest, {percent_words(caps.slower)} slower)"
    words += f", the least energy times time under {caps.least_product_limit_w:g} W"
    words += "".join(f"; the limit has no effect from {each}" for each in caps.unbound)
    return Answer(f"{words}.", f"{counted(caps.points, 'power limit')}, {caps.series}", MODEL)


def _in_roofline(best: Measurement, plan: SessionPlan, sweep: Sweep | None) -> Answer:
    """Where the best stands under the lines of its board."""
    model, precision = (None if sweep is None else sweep.model), plan.origin.get("precision", "")
    kernel, speed = kernel_of(best, plan.title, plan.gpu), speed_of(best.values)
    unknown = "Where it stands in the roofline is not known"
    if not speed > 0:
        return Answer(f"{unknown}: it takes metrics of the work and the traffic, GFLOP/s and GB/s.", "", ROOFLINE)
    if sweep is None or model is None:
        lacks = f"no roofline of {plan.gpu} in {precision_words(precision)} was measured"
        return Answer(f"{unknown}: {lacks if precision else 'the precision of its work is not stated'}.", "", ROOFLINE)
    if kernel is None:
        reached = f"{number(speed / model.peak_flops, 3)} times the peak of the roofline"
        words = f"The best runs at {reached}, {number(model.peak_flops / 1e12, 3)} TFLOP/s; what binds it takes a "
        words += "metric of its traffic, GB/s"
    else:
        bound = "the arithmetic" if kernel.intensity >= model.time_balance else "the traffic"
        words = f"At {number(kernel.intensity, 3)} flop/B {bound} binds the best; it takes {_times(kernel, sweep)} of "
        words += "the roofline there"
    return Answer(f"{words}.", f"by the roofline of {sweep.label}, {sweep.origin}", ROOFLINE)


def _times(kernel: PlacedKernel, sweep: Sweep) -> str:
    predicted = sweep.predict(kernel)
    assert predicted is not None
    pairs = zip((kernel.time_s, kernel.energy_j), predicted[:2], ("time", "energy"), strict=True)
    return " and ".join(f"{number(now / least, 3)} times the {what}" for now, least, what in pairs if now is not None)


def _year(analysis: Analysis, stands: Standing, load: Load) -> Answer:
    """Energy of the same work over a year, with the best and with what it is compared with."""
    best, own, kwh = stands.measurement - 1, stands.own_state, _kwh_of_year(analysis)
    if kwh is None or kwh[best] != kwh[best]:
        return Answer("What a year of it costs is not known: it takes the time and energy of a launch.", "", "year")
    words = f"A year of the work takes {_cost(kwh[best], load)} with the best"
    versus, reference = stands.against_fastest, "the fastest"
    if own is not None and stands.against_own_state is not None:
        versus, reference = stands.against_own_state, own.baseline
    confidence = f"as much work as the fastest does in {load.hours_per_year:.0f} h on {counted(load.boards, 'board')}"
    if versus is not None:
        saved, energy = kwh[versus.measurement - 1] - kwh[best], versus.energy
        more = f"{_cost(abs(saved), load)} {'less' if saved > 0 else 'more'} than with {reference}"
        same = f", as with {reference} as far as can be told apart"
        words += same if energy.distinguishable is False else f", {more}"
        confidence += f"; ± {percent_words(energy.half_width)} of the energy" if energy.interval is not None else ""
    return Answer(f"{words}.", confidence, "year", (best,))


def _cost(kwh: float, load: Load) -> str:
    price = "" if load.price_per_kwh is None else f" ({number(kwh * load.price_per_kwh, 3)} {load.currency})"
    return f"{number(kwh, 3)} kWh{price}"


def _kwh_of_year(analysis: Analysis) -> Floats | None:
    """Of each measurement: of the work that the fastest does in the hours that are stated."""
    energy_j, first = analysis.costs.energy_j, next(iter(analysis.choices), None)
    if first is None or first.index is None or first.yearly is None or not analysis.costs.energy_known:
        return None
    return first.yearly.energy_kwh * energy_j / float(energy_j[first.index])
