"""Every figure of a session's analysis as one list. One that cannot be drawn says why and what to do first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..plots.plot_figure import Figure
from .analysed_session import Analysed
from .of_parameters import (
    correlation_bars,
    effect_goals,
    effect_parameters,
    importance_bars,
    main_effect,
    split_cloud,
    splits,
)
from .of_search import (
    best_curve,
    difficulty_curves,
    drift_curves,
    failure_bars,
    failure_kinds,
    hypervolume_curve,
)


@dataclass(frozen=True, slots=True)
class AnalysisFigure:
    """One entry of the list. `first` and `second` offer what can be chosen for it, as (data, text)."""

    name: str
    label: str
    draw: Callable[[Analysed, str, str], Figure | str]
    first: Callable[[Analysed], list[tuple[str, str]]] = lambda _session: []
    second: Callable[[Analysed], list[tuple[str, str]]] = lambda _session: []


FIGURES: tuple[AnalysisFigure, ...] = (
    AnalysisFigure("correlations", "Correlations with speed and efficiency", correlation_bars),
    AnalysisFigure("split", "Cloud split at a mean", split_cloud, splits),
    AnalysisFigure("importance", "Importance of parameters", importance_bars, effect_goals),
    AnalysisFigure("effect", "Main effect of a parameter", main_effect, effect_goals, effect_parameters),
    AnalysisFigure("best", "Convergence: best so far", best_curve),
    AnalysisFigure("hypervolume", "Convergence: hypervolume", hypervolume_curve),
    AnalysisFigure("difficulty", "Difficulty by centrality", difficulty_curves),
    AnalysisFigure("drift", "Drift of the reference kernel", drift_curves),
    AnalysisFigure("failures", "Failures by kind and place", failure_bars, failure_kinds),
)
