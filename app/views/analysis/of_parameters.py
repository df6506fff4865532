"""The figures of what parameters and other quantities do: correlations, splits, importance, effects; free of Qt."""

from __future__ import annotations

import numpy as np

from ...engine.analysis.correlations import above_mean
from ...engine.analysis.costs import values_of
from ...engine.analysis.session import Effects
from ...engine.analysis.tradeoff import percent_words
from ..plots.figures import count_text
from ..plots.plot_figure import Figure, Series
from ..plots.quantities import parameter_text
from .analysed_session import NOTHING, Analysed

_MOST_BARS = 28


# --- correlations -----------------------------------------------------------------------------------------------------


def correlation_bars(session: Analysed, _first: str = "", _second: str = "") -> Figure | str:
    """Sorted bars of the coefficients with speed and with efficiency (S2 figures 6 to 8)."""
    found = session.analysis.correlations
    if not found:
        return "Correlations need at least five measurements that differ.\nLet the session go on for a while."
    strongest = sorted(found, key=lambda one: -max(abs(one.speed.strength), abs(one.efficiency.strength)))
    kept = [one for one in found if one in strongest[:_MOST_BARS]]
    names = tuple(session.described(one.name).label for one in kept)
    movers = frozenset(session.described(one.name).label for one in kept if one.mover)
    told = "◆ matters differently for the two by more than chance and than a tenth. " if movers else ""
    return Figure(
        x_title="Correlation coefficient",
        y_title="",
        series=(
            Series("with speed", "fastest", np.array([one.speed.strength for one in kept])),
            Series("with efficiency", "efficient", np.array([one.efficiency.strength for one in kept])),
        ),
        caption=f"{told}Pearson's coefficient of standardised values; of a parameter of words the correlation ratio, "
        "which has no sign.",
        names=names,
        marked=movers,
        whole_range=(-1.0, 1.0),
    )


def split_cloud(session: Analysed, name: str, _second: str = "") -> Figure | str:
    """The cloud split by one quantity above and below its mean (S2 figure 9)."""
    analysis, plane = session.analysis, session.analysis.plane
    split = next((one for one in analysis.splits if one.name == name), None)
    if plane is None or split is None:
        return "The split needs two figures to draw over and a quantity that varies."
    x, y = plane.values[:, 0], plane.values[:, 1]
    shown = [session.described(goal.name) for goal in plane.goals]
    known = np.isfinite(x) & np.isfinite(y)
    above = above_mean(values_of(analysis.table, name), known)
    described = session.described(name)
    mean = described.text(split.mean)
    speed = split.above.speed / split.below.speed - 1
    efficiency = split.above.efficiency / split.below.efficiency - 1
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
            ("up to", "low", known & ~above, "s"),
            ("above", "high", above, "o"),
        )
    ]
    return Figure(
        x_title=shown[0].title,
        y_title=shown[1].title,
        series=tuple(series),
        caption=f"{described.label} above its mean of {mean}: on the mean {_change(speed)} speed and "
        f"{_change(efficiency)} efficiency than below it.",
    )


def splits(session: Analysed) -> list[tuple[str, str]]:
    """Movers first."""
    movers = {one.name for one in session.analysis.correlations if one.mover}
    ordered = sorted(session.analysis.splits, key=lambda one: one.name not in movers)
    return [(one.name, ("◆ " if one.name in movers else "") + session.described(one.name).label) for one in ordered]


# --- parameters -------------------------------------------------------------------------------------------------------


def importance_bars(session: Analysed, on: str, _second: str = "") -> Figure | str:
    """Which parameters matter, over all and near the best."""
    effects = _effects(session, on)
    if effects is None or not effects.importances:
        return f"{NOTHING}\nImportance needs a parameter with several values measured."
    kept = effects.importances[:_MOST_BARS]
    pairs = ", ".join(f"{' × '.join(one.names)} {one.share * 100:.0f} %" for one in effects.interactions[:3])
    return Figure(
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


def main_effect(session: Analysed, on: str, of: str) -> Figure | str:
    """What each value of a parameter comes to."""
    effects = _effects(session, on)
    found = next((one for one in effects.importances if one.name == of), None) if effects is not None else None
    if effects is None or found is None:
        return f"{NOTHING}\nA main effect needs a parameter with several values measured."
    shown = session.described(on)
    places = np.arange(len(found.levels), dtype=np.float64)
    medians = np.array([level.median for level in found.levels]) * shown.factor
    best = np.array([level.best for level in found.levels]) * shown.factor
    failed = sum(level.failed for level in found.levels)
    lost = f"; {count_text(failed)} failed and are not in it" if failed else ""
    return Figure(
        x_title=session.described(of).title,
        y_title=shown.title,
        series=(
            Series("median", "blue", medians, places, points=True, symbol="s"),
            Series("best", "orange", best, places, points=True, dashed=True),
        ),
        caption=f"{shown.label} of {count_text(sum(level.count for level in found.levels))} measurements by the value "
        f"of {session.described(of).label}{lost}.",
        ticks=tuple(parameter_text(level.value) for level in found.levels),
    )


def _effects(session: Analysed, on: str) -> Effects | None:
    return next((one for one in session.analysis.effects if one.goal.name == on), None)


def effect_goals(session: Analysed) -> list[tuple[str, str]]:
    return [(one.goal.name, f"on {session.described(one.goal.name).label}") for one in session.analysis.effects]


def effect_parameters(session: Analysed) -> list[tuple[str, str]]:
    effects = session.analysis.effects
    return [(one.name, f"of {session.described(one.name).label}") for one in effects[0].importances] if effects else []


def _change(share: float) -> str:
    return f"{percent_words(share)} {'more' if share >= 0 else 'less'}"
