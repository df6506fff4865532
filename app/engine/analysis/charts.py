"""Every chart of a session's analysis. One that cannot be drawn gives the reason and what to do first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from ...base.formatting import MINUS, change, count_text, counted, duration, number, percent
from ..results.chart import Chart, Series
from ..results.measurement import FEWEST
from ..results.settings import in_words
from ..specification.plan import SessionPlan
from ..strategies.energy_log import EnergyLog
from ..workloads.hardware_counters import COUNTERS
from .answers import year_bars
from .convergence import corners, near_the_end, steps
from .correlations import above_mean
from .costs import values_of
from .quantities import Quantity, parameter_text, quantities_of, quantity
from .session_analysis import Analysis, Effects
from .tradeoff import change_words, relative_change

_NOTHING = "Nothing has succeeded so far, so there is nothing to compare."
_COLOURS = ("blue", "orange", "green", "purple", "vermillion", "sky")  # of the theme, for one series after the other
_SYMBOLS = ("o", "s", "t1", "d", "t", "o")
_MOST_BARS = 28
COUNTERS_ALONE: Final = "counters"  # what correlations are of
_LOG_FROM = 500  # evaluations
_CURVE_AT = np.linspace(1.0, 1.5, 101)  # p of the difficulty's curves


@dataclass(frozen=True, slots=True)
class Analysed:
    """A session with its analysis, of which charts are made."""

    analysis: Analysis
    plan: SessionPlan

    def described(self, name: str) -> Quantity:
        """Return how a figure or parameter is shown.

        Parameters
        ----------
        name : str
            Name of the figure or parameter.

        Returns
        -------
        Quantity
            Label, unit and factor, with the units of the plan.
        """
        return quantities_of(self.plan).get(name) or quantity(name, units=self.plan.units)


Choices = Callable[[Analysed], list[tuple[str, str]]]  # (data, text) of each


@dataclass(frozen=True, slots=True)
class AnalysisChart:
    """One entry of the list. `draw` takes the session and one of each of the `choices`; else it returns the reason."""

    name: str
    label: str
    draw: Callable[..., Chart | str]
    choices: tuple[Choices, ...] = ()


# --- correlations -----------------------------------------------------------------------------------------------------


def correlation_bars(session: Analysed, of: str = "") -> Chart | str:
    """Draw sorted bars of the coefficients with speed and with efficiency [Anzt2015, figures 6 to 8].

    Parameters
    ----------
    session : Analysed
        The session with its analysis.
    of : str, optional
        COUNTERS_ALONE for the hardware counters only, else every parameter and figure is shown.

    Returns
    -------
    Chart or str
        The chart, or the reason why there is none.
    """
    shown = [one for one in session.analysis.correlations if of != COUNTERS_ALONE or one.name in COUNTERS]
    if not shown:
        return "Correlations need at least five measurements that differ.\nLet the session run for a while."
    strongest = sorted(shown, key=lambda one: -max(abs(one.speed.strength), abs(one.efficiency.strength)))
    kept = [one for one in shown if one in strongest[:_MOST_BARS]]
    names = tuple(session.described(one.name).label for one in kept)
    movers = frozenset(session.described(one.name).label for one in kept if one.mover)
    product = np.array([one.product.strength for one in kept])
    both = (Series("with speed × efficiency", "purple", product),) if of == COUNTERS_ALONE else ()
    mark = "◆ matters differently for the two by more than chance and than a tenth. " if movers else ""
    return Chart(
        x_title="Correlation coefficient",
        y_title="",
        series=(
            Series("with speed", "fastest", np.array([one.speed.strength for one in kept])),
            Series("with efficiency", "efficient", np.array([one.efficiency.strength for one in kept])),
            *both,
        ),
        caption=f"{mark}Pearson's coefficient of standardised values; of a parameter of words the correlation ratio, "
        "which has no sign.",
        names=names,
        marked=movers,
        whole_range=(-1.0, 1.0),
    )


def correlated(session: Analysed) -> list[tuple[str, str]]:
    """List what `correlation_bars` can show.

    Parameters
    ----------
    session : Analysed
        The session with its analysis.

    Returns
    -------
    list of tuple of str
        Pairs of its argument `of` and a label.
    """
    counters = [(COUNTERS_ALONE, "of hardware counters")] if session.analysis.counted else []
    return [("", "of everything"), *counters]


def split_cloud(session: Analysed, name: str) -> Chart | str:
    """Draw the cloud split by one quantity above and below its mean [Anzt2015, figure 9].

    Parameters
    ----------
    session : Analysed
        The session with its analysis.
    name : str
        The parameter or figure to split by, one that `splits` lists.

    Returns
    -------
    Chart or str
        The chart over the two goals of the front, or the reason why there is none.
    """
    analysis, plane = session.analysis, session.analysis.plane
    split = next((one for one in analysis.splits if one.name == name), None)
    if plane is None or split is None:
        return "The split needs two figures to draw over and a quantity that varies, of at least five measurements."
    x, y = plane.values[:, 0], plane.values[:, 1]
    shown = [session.described(goal.name) for goal in plane.goals]
    values = values_of(analysis.table, name)[: len(x)]  # the table may have grown since
    finite = np.isfinite(x) & np.isfinite(y) & np.isfinite(values)
    above = above_mean(values, finite)
    described = session.described(name)
    mean = described.text(split.mean)
    speed = relative_change(split.below.speed, split.above.speed)
    efficiency = relative_change(split.below.efficiency, split.above.efficiency)
    words = f"on the mean {change_words(speed, 'speed')} and {change_words(efficiency, 'efficiency')} than below it."
    words = words if np.isfinite(speed + efficiency) else "too few on one side to compare means."
    series = [
        Series(
            f"{side} {mean}: {count_text(int(mask.sum()))}",
            colour,
            y[mask] * shown[1].factor,
            x[mask] * shown[0].factor,
            line=False,
            points=True,
            symbol=symbol,
        )
        for side, colour, mask, symbol in (
            ("up to", "low", finite & ~above, "s"),
            ("above", "high", above, "o"),
        )
    ]
    return Chart(
        x_title=shown[0].title,
        y_title=shown[1].title,
        series=tuple(series),
        caption=f"{described.label} above its mean of {mean}: {words}",
    )


def splits(session: Analysed) -> list[tuple[str, str]]:
    """List the names that `split_cloud` accepts; quantities marked as movers come first.

    Parameters
    ----------
    session : Analysed
        The session with its analysis.

    Returns
    -------
    list of tuple of str
        Pairs of a name and its label.
    """
    movers = {one.name for one in session.analysis.correlations if one.mover}
    ordered = sorted(session.analysis.splits, key=lambda one: one.name not in movers)
    return [(one.name, ("◆ " if one.name in movers else "") + session.described(one.name).label) for one in ordered]


# --- parameters -------------------------------------------------------------------------------------------------------


def importance_bars(session: Analysed, on: str) -> Chart | str:
    """Draw which parameters matter, over all and near the best.

    Parameters
    ----------
    session : Analysed
        The session with its analysis.
    on : str
        Name of the figure they act on, one that `effect_goals` lists.

    Returns
    -------
    Chart or str
        The chart of shares in per cent, or the reason why there is none.
    """
    effects = _effects(session, on)
    if effects is None or not effects.importances:
        return f"{_NOTHING}\nImportance needs a parameter with several values measured."
    kept = effects.importances[:_MOST_BARS]
    pairs = ", ".join(f"{' × '.join(one.names)} {percent(one.share)}" for one in effects.interactions[:3])
    return Chart(
        x_title="Share (%)",
        y_title="",
        series=(
            Series("over the whole space", "blue", np.array([100 * one.over_all for one in kept])),
            Series("near the best", "orange", np.array([100 * one.near_best for one in kept])),
        ),
        caption=f"On {session.described(on).label}. Over all: share of the variance of its logarithm (ANOVA); near "
        "the best: how the values of the best tenth differ from all (PED-ANOVA)."
        + (f" Beyond single parameters: {pairs}." if pairs else ""),
        names=tuple(session.described(one.name).label for one in kept),
    )


def main_effect(session: Analysed, on: str, of: str) -> Chart | str:
    """Draw the median and the best of each value of a parameter.

    Parameters
    ----------
    session : Analysed
        The session with its analysis.
    on : str
        Name of the figure, one that `effect_goals` lists.
    of : str
        Name of the parameter, one that `effect_parameters` lists.

    Returns
    -------
    Chart or str
        The chart, or the reason why there is none.
    """
    effects = _effects(session, on)
    importance = next((one for one in effects.importances if one.name == of), None) if effects is not None else None
    if effects is None or importance is None:
        return f"{_NOTHING}\nA main effect needs a parameter with several values measured."
    shown = session.described(on)
    places = np.arange(len(importance.levels), dtype=np.float64)
    medians = np.array([level.median for level in importance.levels]) * shown.factor
    best = np.array([level.best for level in importance.levels]) * shown.factor
    failed = sum(level.failed for level in importance.levels)
    lost = f"; {count_text(failed)} failed and are not in it" if failed else ""
    lost += "; too few of a value have no median" if np.isnan(medians).any() else ""
    return Chart(
        x_title=session.described(of).title,
        y_title=shown.title,
        series=(
            Series("median", "blue", medians, places, points=True, symbol="s"),
            Series("best", "orange", best, places, points=True, dashed=True),
        ),
        caption=f"{shown.label} of {count_text(sum(level.count for level in importance.levels))} measurements "
        f"by the value of {session.described(of).label}{lost}.",
        ticks=tuple(parameter_text(level.value) for level in importance.levels),
    )


def _effects(session: Analysed, on: str) -> Effects | None:
    return next((one for one in session.analysis.effects if one.goal.name == on), None)


def effect_goals(session: Analysed) -> list[tuple[str, str]]:
    """List the goals on which effects are known.

    Parameters
    ----------
    session : Analysed
        The session with its analysis.

    Returns
    -------
    list of tuple of str
        Pairs of a name and its words.
    """
    return [(one.goal.name, f"on {session.described(one.goal.name).label}") for one in session.analysis.effects]


def effect_parameters(session: Analysed) -> list[tuple[str, str]]:
    """List the parameters with known effects.

    Parameters
    ----------
    session : Analysed
        The session with its analysis.

    Returns
    -------
    list of tuple of str
        Pairs of a name and its words; empty if no effects are known.
    """
    effects = session.analysis.effects
    return [(one.name, f"of {session.described(one.name).label}") for one in effects[0].importances] if effects else []


# --- the search -------------------------------------------------------------------------------------------------------


def best_curve(session: Analysed) -> Chart | str:
    """Draw the best figure after every evaluation.

    Parameters
    ----------
    session : Analysed
        The session with its analysis.

    Returns
    -------
    Chart or str
        The chart of the objective's goal, or the reason why there is none.
    """
    goal = session.analysis.objective.goal
    curve = session.analysis.best_so_far
    places, values = steps(curve)
    if not len(places):
        return _NOTHING
    shown = session.described(goal.name)
    x, y = corners(places, values * shown.factor, len(curve))
    near = count_text(near_the_end(places, values, maximise=goal.maximise))
    timed = int(session.analysis.table.timed().sum())
    besides = f" {counted(timed, 'more was', 'more were')} only timed." if timed else ""
    return Chart(
        x_title="Evaluations",
        y_title=f"Best {shown.title}",
        series=(Series("best so far", "blue", y, x),),
        x_log=len(curve) > _LOG_FROM,
        caption=f"The best of {count_text(len(curve))} evaluations, {shown.text(float(values[-1]))}, was found by "
        f"evaluation {count_text(int(places[-1]))}; within 1 % of that from evaluation {near} on.{besides}",
    )


def hypervolume_curve(session: Analysed) -> Chart | str:
    """Draw the hypervolume of the front after every evaluation.

    Parameters
    ----------
    session : Analysed
        The session with its analysis.

    Returns
    -------
    Chart or str
        The chart, in the product of the units of both goals, or the reason why there is none.
    """
    plane, curve = session.analysis.plane, session.analysis.hypervolume_so_far
    places, values = steps(curve)
    if plane is None or not len(places) or values[-1] <= 0:
        return "The hypervolume needs a front of two figures.\nChoose two goals for the session in Tune."
    shown = [session.described(goal.name) for goal in plane.goals]
    factor = shown[0].factor * shown[1].factor
    x, y = corners(places, values * factor, len(curve))
    near = count_text(near_the_end(places, values, maximise=True))
    reference = ", ".join(
        f"{item.label} {item.number(value)}" for item, value in zip(shown, plane.reference, strict=True)
    )
    return Chart(
        x_title="Evaluations",
        y_title=f"Hypervolume ({' · '.join(element.unit or element.label for element in shown)})",
        series=(Series("hypervolume", "green", y, x),),
        x_log=len(curve) > _LOG_FROM,
        caption=f"The area that the front dominates, against {reference}: {number(values[-1] * factor, 5)} in the end; "
        f"within 1 % of that from evaluation {near} on.",
    )


def difficulty_curves(session: Analysed) -> Chart | str:
    """Draw the proportion of centrality [Schoonhoven2024, figure 6.5].

    Parameters
    ----------
    session : Analysed
        The session with its analysis.

    Returns
    -------
    Chart or str
        The chart, a curve for each figure in per cent, or the reason why there is none.
    """
    difficulty = session.analysis.difficulty
    if not difficulty:
        return f"{_NOTHING}\nDifficulty needs at least five measurements, as it compares neighbours."
    coverage = session.analysis.coverage
    partly = f" {percent(coverage)} of the space was measured; it is of that part." if coverage < 0.999 else ""
    minima = ", ".join(f"{count_text(len(one.minima))} for {name}" for name, one in difficulty.items())
    series = tuple(
        Series(
            name,
            _COLOURS[place % len(_COLOURS)],
            100 * one.proportion(_CURVE_AT),
            100 * (_CURVE_AT - 1),
            dashed=place % 2 == 1,
        )
        for place, (name, one) in enumerate(difficulty.items())
    )
    return Chart(
        x_title="Worse than the optimum by up to (%)",
        y_title="Proportion of centrality (%)",
        series=series,
        caption="How likely a local search ends that near to the optimum; lower is harder. "
        f"Local minima: {minima}.{partly}",
        whole_range=(0.0, 100.0),
    )


# --- the board and what went wrong ------------------------------------------------------------------------------------


def drift_curves(session: Analysed) -> Chart | str:
    """Draw the reference runs over the session, each figure over its median.

    Parameters
    ----------
    session : Analysed
        The session with its analysis.

    Returns
    -------
    Chart or str
        The chart, in per cent over minutes, or the reason why there is none.
    """
    drifts = session.analysis.drift
    if not drifts:
        return (
            f"This session repeated no reference kernel {FEWEST} times, so drift of the board is unknown.\n"
            "Sessions of kernels on a GPU measure one now and then."
        )
    series = tuple(
        Series(
            session.described(one.name).label,
            _COLOURS[place % len(_COLOURS)],
            100 * (one.values / float(np.median(one.values)) - 1),
            one.hours * 60,
            points=True,
            symbol=_SYMBOLS[place % len(_SYMBOLS)],
        )
        for place, one in enumerate(drifts)
    )
    trends = [
        f"{session.described(one.name).label} {'drifted by' if one.drifts else 'kept steady, trend'} "
        f"{change(1 + one.over_session, 2).replace('-', MINUS)} over {duration(float(np.ptp(one.hours)) * 3600)}"
        for one in drifts
    ]
    return Chart(
        x_title="Since the first run (min)",
        y_title="Against the median (%)",
        series=series,
        caption=f"The same load, repeated: {'; '.join(trends)} (Theil-Sen, 95 %).",
    )


def failure_bars(session: Analysed, kind: str) -> Chart | str:
    """Draw how many failed in which way, or where in the space one kind of failure lies.

    Parameters
    ----------
    session : Analysed
        The session with its analysis.
    kind : str
        The kind, one that `failure_kinds` lists; empty for all kinds.

    Returns
    -------
    Chart or str
        Shares in per cent by parameter value where the kind concentrates, else counts; a reason if nothing failed.
    """
    failures = session.analysis.failures
    if not failures:
        return "Nothing has failed."
    one = next((failure for failure in failures if failure.kind == kind), None)
    messages = "; ".join(f"“{text}” {count_text(count)} times" for text, count in one.messages[:2]) if one else ""
    if one is None or not one.concentrated:
        shares = "; ".join(f"{failure.kind}: {percent(failure.share)} of all" for failure in failures)
        everywhere = f"No value of any parameter has more of them than chance puts there. {messages}"
        kinds = failures if one is None else (one,)
        return Chart(
            x_title="Configurations",
            y_title="",
            series=(Series("failed", "vermillion", np.array([float(item.count) for item in kinds])),),
            caption=everywhere if one else f"{shares}. Choose a kind to see where in the space it lies.",
            names=tuple(item.kind for item in kinds),
        )
    names = tuple(f"{session.described(c.parameter).label} = {parameter_text(c.value)}" for c in one.concentrated)
    return Chart(
        x_title="Failed, of those with the value (%)",
        y_title="",
        series=(
            Series("with this value", "vermillion", np.array([100 * c.share for c in one.concentrated])),
            Series("with other values", "grey", np.array([100 * c.elsewhere for c in one.concentrated])),
        ),
        caption=f"{count_text(one.count)} {one.kind}. Values with more of them than chance puts there. {messages}",
        names=names,
        whole_range=(0.0, 100.0),
    )


def failure_kinds(session: Analysed) -> list[tuple[str, str]]:
    """List the kinds of failures with their counts, behind a choice of all of them.

    Parameters
    ----------
    session : Analysed
        The session with its analysis.

    Returns
    -------
    list of tuple of str
        Pairs of the argument `kind` of `failure_bars` and a label; empty if nothing failed.
    """
    kinds = [(one.kind, f"{one.kind} ({count_text(one.count)})") for one in session.analysis.failures]
    return [("", "all kinds"), *kinds] if kinds else []


# --- energy-aware search ----------------------------------------------------------------------------------------------

_NO_LOG = "This search did not predict energies, or it still runs.\nThe strategy energy_aware does."


def k_over_rounds(session: Analysed) -> Chart | str:
    """Draw the share of the candidates of each round that was measured, and how far off their predictions were.

    Parameters
    ----------
    session : Analysed
        The session with its analysis; its plan holds the log of an energy-aware search.

    Returns
    -------
    Chart or str
        The chart, or the reason why there is none.
    """
    log = EnergyLog.of_origin(session.plan.origin)
    if log is None or len(log.rounds) < 2:
        return _NO_LOG
    rounds = np.arange(len(log.rounds), dtype=np.float64)
    off = np.array([np.nan if item.off is None else item.off for item in log.rounds])
    prior = f" {log.prior}" if log.prior else ""
    return Chart(
        x_title="Round",
        y_title="Share",
        series=(
            Series("k, share of the candidates measured", "blue", np.array([item.k for item in log.rounds]), rounds),
            Series("error of the predictions", "orange", off, rounds, points=True, dashed=True, symbol="s"),
        ),
        caption=f"{count_text(log.measured)} energies were measured; {count_text(log.saved)} of the "
        f"{count_text(log.offered)} candidates were not needed. The error is relative, root mean square.{prior}",
    )


def predicted_energies(session: Analysed) -> Chart | str:
    """Draw energies as they were predicted before they were measured.

    Parameters
    ----------
    session : Analysed
        The session with its analysis; its plan holds the log of an energy-aware search.

    Returns
    -------
    Chart or str
        The chart, both in J, or the reason why there is none.
    """
    log = EnergyLog.of_origin(session.plan.origin)
    if log is None or not log.predicted_j:
        return _NO_LOG
    predicted, measured = np.array(log.predicted_j), np.array(log.measured_j)
    ends = np.array([min(predicted.min(), measured.min()), max(predicted.max(), measured.max())])
    off = float(np.median(np.abs(predicted / measured - 1)))
    return Chart(
        x_title="Measured energy (J)",
        y_title="Predicted energy (J)",
        series=(
            Series("before it was measured", "blue", predicted, measured, line=False, points=True),
            Series("as measured", "orange", ends, ends, dashed=True),
        ),
        caption=f"{count_text(len(predicted))} kernels; half of them were predicted to within {percent(off)}. Each was "
        "predicted by the model of the round before, which did not know it.",
    )


# --- hardware counters ------------------------------------------------------------------------------------------------


def counter_gain(session: Analysed) -> Chart | str:
    """Draw what the counters add to the model of energies: its error on configurations that it has not seen.

    Parameters
    ----------
    session : Analysed
        The session with its analysis.

    Returns
    -------
    Chart or str
        The chart of median errors in per cent, or the reason why there is none.
    """
    found = session.analysis.counted
    if found is None:
        return (
            "No configuration of this session was profiled.\nHardware counters, above, takes them of some: "
            "registers, shared memory, spills and occupancy are known without."
        )
    if found.reason:
        return found.reason
    return Chart(
        x_title="Median error of predicted energies (%)",
        y_title="",
        series=(Series("held out", "blue", np.array([100 * found.without, 100 * found.with_counters])),),
        caption=f"Of {count_text(found.configurations)} profiled configurations: {found.words}. Both models know the "
        "time, the parameters and what the compiler granted; each is tested on quarters that it did not learn from.",
        names=("without counters", "with counters"),
    )


# --- over a load ------------------------------------------------------------------------------------------------------


def load_curves(session: Analysed) -> Chart | str:
    """Draw work per joule over work a second, one curve for each setting of the board that is best anywhere.

    Parameters
    ----------
    session : Analysed
        The session with its analysis.

    Returns
    -------
    Chart or str
        The chart, or the reason why there is none.
    """
    over_load = session.analysis.over_load
    if over_load is None or not over_load.curves:
        return "No load was varied here: a service's rate or concurrency makes curves of several points."
    chosen = {level.settings for level in over_load.levels if level.best is not None}
    shown = [curve for curve in over_load.curves if curve.settings in chosen or curve.front.any()][: len(_COLOURS)]
    series = tuple(
        Series(
            in_words(dict(item.settings)) or "as it was",
            _COLOURS[index],
            item.efficiency,
            item.rate,
            points=True,
            symbol=_SYMBOLS[index],
        )
        for index, item in enumerate(shown)
    )
    tokens = "output_tokens_per_s" in session.analysis.table.value_names
    work = "tokens" if tokens else "work"
    return Chart(
        x_title="Output tokens a second" if tokens else "Work a second",
        y_title="Output tokens per joule" if tokens else "Work per joule",
        series=series,
        caption=f"Each curve is one setting of the board, its points are the values of {over_load.name}, ascending: "
        f"{work} per joule over {work} a second, within the limits. "
        + (
            "The best setting changes with the load." if over_load.changes else "One setting is the best at every load."
        ),
    )


# --- the list ---------------------------------------------------------------------------------------------------------

CHARTS: tuple[AnalysisChart, ...] = (
    AnalysisChart("correlations", "Correlations with speed and efficiency", correlation_bars, (correlated,)),
    AnalysisChart("split", "Cloud split at a mean", split_cloud, (splits,)),
    AnalysisChart("importance", "Importance of parameters", importance_bars, (effect_goals,)),
    AnalysisChart("year", "Energy of a year", lambda session: year_bars(session.analysis)),
    AnalysisChart("effect", "Main effect of a parameter", main_effect, (effect_goals, effect_parameters)),
    AnalysisChart("counters", "Energy model: what hardware counters add", counter_gain),
    AnalysisChart("over_load", "Front over the load of a service", load_curves),
    AnalysisChart("best", "Convergence: best so far", best_curve),
    AnalysisChart("hypervolume", "Convergence: hypervolume", hypervolume_curve),
    AnalysisChart("k", "Energy search: share measured", k_over_rounds),
    AnalysisChart("predicted", "Energy search: predicted energies", predicted_energies),
    AnalysisChart("difficulty", "Difficulty by centrality", difficulty_curves),
    AnalysisChart("drift", "Drift of the reference kernel", drift_curves),
    AnalysisChart("failures", "Failures by kind and place", failure_bars, (failure_kinds,)),
)
