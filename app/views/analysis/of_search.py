"""The figures of how the search went: convergence, difficulty, drift of the board, failures; free of Qt."""

from __future__ import annotations

import numpy as np

from ...engine.analysis.convergence import steps
from ...engine.analysis.tradeoff import percent_words
from ...numbers import duration
from ..plots.figures import count_text
from ..plots.plot_figure import Figure, Series
from ..plots.quantities import parameter_text
from .analysed_session import COLOURS, NOTHING, SYMBOLS, Analysed

_CURVE_AT = np.linspace(1.0, 1.5, 101)  # p of the difficulty's curves


# --- the search -------------------------------------------------------------------------------------------------------


def best_curve(session: Analysed, _first: str = "", _second: str = "") -> Figure | str:
    """The best figure after every evaluation."""
    goal = session.analysis.objective.goal
    curve = session.analysis.best_so_far
    at, values = steps(curve)
    if not len(at):
        return NOTHING
    shown = session.described(goal.name)
    x, y = _stairs(at, values * shown.factor, len(curve))
    return Figure(
        x_title="Evaluations",
        y_title=f"Best {shown.title}",
        series=(Series("best so far", "blue", y, x),),
        caption=f"The best of {count_text(len(curve))} evaluations, {shown.text(float(values[-1]))}, was found by "
        f"evaluation {count_text(int(at[-1]))}; {_within(values, at, goal.maximise)}.",
    )


def hypervolume_curve(session: Analysed, _first: str = "", _second: str = "") -> Figure | str:
    """The hypervolume of the front after every evaluation."""
    plane, curve = session.analysis.plane, session.analysis.hypervolume_so_far
    at, values = steps(curve)
    if plane is None or not len(at) or values[-1] <= 0:
        return "The hypervolume needs a front of two figures.\nChoose two goals for the session under Tune."
    shown = [session.described(goal.name) for goal in plane.goals]
    factor = shown[0].factor * shown[1].factor
    x, y = _stairs(at, values * factor, len(curve))
    reference = ", ".join(
        f"{each.label} {each.number(value)}" for each, value in zip(shown, plane.reference, strict=True)
    )
    return Figure(
        x_title="Evaluations",
        y_title=f"Hypervolume ({' · '.join(each.unit or each.label for each in shown)})",
        series=(Series("hypervolume", "green", y, x),),
        caption=f"The area that the front dominates, against {reference}: {values[-1] * factor:.5g} in the end; "
        f"{_within(values, at, maximise=True)}.",
    )


def difficulty_curves(session: Analysed, _first: str = "", _second: str = "") -> Figure | str:
    """The proportion of centrality (S1 figure 6.5)."""
    found = session.analysis.difficulty
    if not found:
        return f"{NOTHING}\nDifficulty looks at neighbours in the space: it needs at least two measurements."
    coverage = session.analysis.coverage
    partly = f" {percent_words(coverage)} of the space was measured; it is of that part." if coverage < 0.999 else ""
    minima = ", ".join(f"{count_text(len(one.minima))} for {name}" for name, one in found.items())
    series = tuple(
        Series(
            name,
            COLOURS[place % len(COLOURS)],
            100 * one.proportion(_CURVE_AT),
            100 * (_CURVE_AT - 1),
            dashed=place % 2 == 1,
        )
        for place, (name, one) in enumerate(found.items())
    )
    return Figure(
        x_title="Worse than the optimum by up to (%)",
        y_title="Proportion of centrality (%)",
        series=series,
        caption="How likely a local search ends that near to the optimum; lower is harder. "
        f"Local minima: {minima}.{partly}",
        whole_range=(0.0, 100.0),
    )


# --- the board and what went wrong ------------------------------------------------------------------------------------


def drift_curves(session: Analysed, _first: str = "", _second: str = "") -> Figure | str:
    """Reference runs over the session, each figure over its median."""
    drifts = session.analysis.drift
    if not drifts:
        return (
            "This session repeated no reference kernel, so drift of the board cannot be told.\n"
            "Sessions of kernels on a GPU look at one every so often."
        )
    series = tuple(
        Series(
            session.described(one.name).label,
            COLOURS[place % len(COLOURS)],
            100 * (one.values / float(np.median(one.values)) - 1),
            one.hours * 60,
            points=True,
            symbol=SYMBOLS[place % len(SYMBOLS)],
        )
        for place, one in enumerate(drifts)
    )
    told = [
        f"{session.described(one.name).label} {'drifted by' if one.drifts else 'kept steady, trend'} "
        f"{100 * one.over_session:+.2f} % over {duration(float(np.ptp(one.hours)) * 3600)}"
        for one in drifts
    ]
    return Figure(
        x_title="Since the first look (min)",
        y_title="Against the median (%)",
        series=series,
        caption=f"The same load, repeated: {'; '.join(told)} (Theil-Sen, 95 %).".replace("-", "−"),
    )


def failure_bars(session: Analysed, kind: str, _second: str = "") -> Figure | str:
    """How many failed in which way, or where in the space one kind of them lies."""
    failures = session.analysis.failures
    if not failures:
        return "Nothing has failed."
    one = next((each for each in failures if each.kind == kind), None)
    if one is None:
        return Figure(
            x_title="Configurations",
            y_title="",
            series=(Series("failed", "vermillion", np.array([float(each.count) for each in failures])),),
            caption="; ".join(f"{each.kind}: {percent_words(each.share)} of all" for each in failures)
            + ". Choose a kind to see where in the space it lies.",
            names=tuple(each.kind for each in failures),
        )
    said = "; ".join(f"“{text}” {count_text(count)} times" for text, count in one.messages[:2])
    if not one.concentrated:
        where = "No value of any parameter has more of them than chance puts there."
        return Figure(
            "Configurations",
            "",
            (Series("failed", "vermillion", np.array([float(one.count)])),),
            f"{where} {said}",
            names=(one.kind,),
        )
    names = tuple(f"{session.described(c.parameter).label} = {parameter_text(c.value)}" for c in one.concentrated)
    return Figure(
        x_title="Failed, of those with the value (%)",
        y_title="",
        series=(
            Series("with this value", "vermillion", np.array([100 * c.share for c in one.concentrated])),
            Series("with other values", "grey", np.array([100 * c.elsewhere for c in one.concentrated])),
        ),
        caption=f"{count_text(one.count)} {one.kind}. Values with more of them than chance puts there. {said}",
        names=names,
        whole_range=(0.0, 100.0),
    )


def failure_kinds(session: Analysed) -> list[tuple[str, str]]:
    kinds = [(one.kind, f"{one.kind} ({count_text(one.count)})") for one in session.analysis.failures]
    return [("", "all kinds"), *kinds] if kinds else []


def _stairs(at: np.ndarray, values: np.ndarray, end: int) -> tuple[np.ndarray, np.ndarray]:
    """A step curve's corners, drawn on to the last evaluation."""
    x = np.append(np.repeat(at, 2)[1:], end).astype(np.float64)
    return x, np.repeat(values, 2).astype(np.float64)


def _within(values: np.ndarray, at: np.ndarray, maximise: bool) -> str:
    """When the curve came within 1 % of its end."""
    last = float(values[-1])
    near = values >= last - 0.01 * abs(last) if maximise else values <= last + 0.01 * abs(last)
    return f"within 1 % of that from evaluation {count_text(int(at[int(np.argmax(near))]))} on"
