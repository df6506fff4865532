"""The ways to choose a configuration, and what a choice costs and gains, in words; free of Qt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ...engine.analysis import choosers
from ...engine.analysis.costs import Costs, Floats, costs_of, values_of
from ...engine.analysis.tradeoff import Load, Tradeoff, Yearly
from ...engine.objectives import Objective
from ...engine.space.result_table import ResultTable
from ...engine.space.within_limits import feasible
from ..plots.figures import signed
from ..plots.row_filter import RowFilter

BY_HAND = "by_hand"
WEIGHTED = "weighted"


@dataclass(frozen=True, slots=True)
class Candidates:
    """The measurements to choose among; NaN where one failed, is hidden, or lacks the figure."""

    costs: Costs
    goal: Floats  # of the session's objective, less is better


@dataclass(frozen=True, slots=True)
class Limit:
    """What a way is asked for: a number within bounds."""

    unit: str
    least: float
    most: float
    usual: float
    step: float


@dataclass(frozen=True, slots=True)
class Way:
    """One way to choose. `choose(candidates, number)` gives an index; the number is the limit's or the weight."""

    name: str
    label: str
    short: str  # beside the point
    choose: Callable[[Candidates, float], int | None]
    limit: Limit | None = None


def _by_costs(choose: Callable[[Floats, Floats], int | None]) -> Callable[[Candidates, float], int | None]:
    return lambda c, _: choose(c.costs.time_s, c.costs.energy_j)


WAYS: tuple[Way, ...] = (
    Way(BY_HAND, "By hand: a point or a row", "", lambda c, _: None),
    Way("objective", "Best by the objective", "best", lambda c, _: _least(c.goal)),
    Way("fastest", "Fastest", "fastest", _by_costs(choosers.fastest)),
    Way("least_energy", "Least energy", "least energy", _by_costs(choosers.least_energy)),
    Way("knee", "Knee of the front", "knee", _by_costs(choosers.knee)),
    Way(
        "at_most_slower",
        "Least energy, slower by at most",
        "at most slower",
        lambda c, limit: choosers.at_most_slower(c.costs.time_s, c.costs.energy_j, limit / 100),
        Limit(" %", 0.0, 1000.0, 5.0, 1.0),
    ),
    Way(
        "at_most_power",
        "Fastest, drawing at most",
        "at most W",
        lambda c, limit: choosers.at_most_power(c.costs.time_s, c.costs.energy_j, c.costs.power_w, limit),
        Limit(" W", 1.0, 5000.0, 200.0, 5.0),
    ),
    Way("least_edp", "Least energy × time", "least E·t", _by_costs(choosers.least_edp)),
    Way("least_ed2p", "Least energy × time²", "least E·t²", _by_costs(lambda t, e: choosers.least_edp(t, e, 2.0))),
    Way(
        WEIGHTED,
        "Weight of time, a",
        "weighted",
        lambda c, weight: choosers.weighted(c.costs.time_s, c.costs.energy_j, weight),
    ),
)


def candidates_of(table: ResultTable, objective: Objective, shown: RowFilter) -> Candidates:
    """Time, energy, power and objective of every measurement, NaN where it is hidden or breaks a limit."""
    table = table.so_far()
    goal = objective.goal
    costs, values = costs_of(table), values_of(table, goal.name)
    hidden = ~shown.passes(table.space, table.rows()) if shown else np.zeros(len(table), dtype=np.bool_)
    hidden |= ~feasible(table, objective.limits)
    time_s, energy_j, power_w, values = (
        np.where(hidden, np.nan, column) for column in (costs.time_s, costs.energy_j, costs.power_w, values)
    )
    kept = replace(costs, time_s=time_s, energy_j=energy_j, power_w=power_w)
    return Candidates(kept, -values if goal.maximise else values)


def comparison(candidates: Candidates, index: int, load: Load) -> str:
    """What a choice costs and gains against the fastest, as sentences."""
    costs = candidates.costs
    fastest = choosers.fastest(costs.time_s, costs.energy_j)
    if fastest is None:
        return "No time is known, so there is no comparison with the fastest."
    if fastest == index:
        return "This is the fastest."
    change, year = choosers.against(costs, fastest, index, load)
    return _trade_text(change, year, load)


def place(candidates: Candidates, index: int) -> tuple[int, int] | None:
    """Its place by the session's objective, 1 is the best, and of how many; None where it has none."""
    goal = candidates.goal
    if not 0 <= index < len(goal) or not np.isfinite(goal[index]):
        return None
    return 1 + int((goal < goal[index]).sum()), int(np.isfinite(goal).sum())


def _trade_text(change: Tradeoff | None, year: Yearly | None, load: Load) -> str:
    """'18 % less energy for 4 % more time than the fastest; 312 kWh, … less per year at 4000 h'."""
    if change is None or np.isnan([change.time_change, change.energy_change]).all():
        return "What it costs and gains against the fastest is not known."
    text = f"{_first_upper(change.words)} per run than the fastest."
    if year is not None:
        runs = f"{signed(load.hours_per_year, 0)} h a year"
        boards = f" on {load.boards} boards" if load.boards > 1 else ""
        text += f" {_first_upper(year.words)}, where the fastest runs {runs}{boards}."
    return text.replace("CO2", "CO₂")


def _first_upper(words: str) -> str:
    return words[:1].upper() + words[1:]


def _least(column: Floats) -> int | None:
    return int(np.nanargmin(column)) if np.isfinite(column).any() else None
