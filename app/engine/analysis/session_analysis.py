"""The whole analysis of one session, computed once.

Hardware counters are analysed by what they add to a model of the energies. The model is that of the energy-aware search
(`models/energy_cost`): from the parameters and what the compiler granted, with the counters and without them, each
tested on configurations that it was not fitted to (`tests/benchmarks/counter_models.txt`: on simulated boards, and
beside all features of the search). A search itself has no use for counters: profiling a configuration takes longer than
measuring its energy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import numpy as np

from ...base.formatting import percent
from ...base.records import Count, figure
from ..metering.window import PEAK_POWER, THROTTLED_SHARE
from ..models.arrays import Floats, Indices, Mask
from ..models.energy_cost import Sample, held_out_errors
from ..models.fit.points import CLOCK_SETTINGS
from ..results.measurement import FEWEST, STATED_FROM, State, of_sources, spreads
from ..results.objectives import Goal, Objective
from ..space.repeats import repeat_names
from ..space.result_table import STATES, ResultTable
from ..space.within_limits import broken, feasible, nearest
from ..workloads.hardware_counters import COUNTERS
from ..workloads.machine_code import FEATURES
from .choosers import Choice, Preferences, choices
from .convergence import best_so_far, hypervolume_so_far
from .correlations import Correlation, Observed, Split, correlations, split_by_mean
from .costs import Costs, costs_of, positive, values_of, within_limits
from .difficulty import Difficulty, Flow, difficulty
from .drift import REFERENCES, DriftOf, drifts_of
from .failures import FailuresOf, failures_of
from .importance import Importance, Interaction, importances, interactions
from .iso_lines import Role, role_of
from .over_load import OverLoad, over_load
from .own_state import OwnState, own_state
from .plane import Plane, goals_of, plane_of
from .tradeoff import Load

FEWEST_PROFILED: Final = 16  # profiled configurations, of which a model is tested on parts
_MOST: Final = 1000  # that it is tested on
_SPLITS: Final = 4  # random partitions: which configurations a model has not seen matters
_ROUNDED: Final = 1e-3  # of a figure in a file, relative
_CHANCE: Final = 2.0  # standard deviations of a fair coin's count


@dataclass(frozen=True, slots=True)
class Counted:
    """The hardware counters of a session.

    `without` and `with_counters` are the median of the relative errors of predicted energies, each configuration's
    over several models that have not seen it: a few predictions are far off, and would hide all others in a mean.
    """

    IN_JSON: ClassVar = {"names": "described", "words": "words"}

    names: tuple[str, ...] = field(metadata=figure(key=None))  # of COUNTERS, those known of some configuration
    configurations: Count  # that have any
    without: float = field(metadata=figure(key="energy_error_without"))  # NaN if unknown
    with_counters: float = field(metadata=figure(key="energy_error_with"))
    # Share of the configurations that are predicted better with counters.
    better: float = field(metadata=figure(key="energy_better"))
    by_chance: bool = field(metadata=figure(key="energy_by_chance"))  # a coin could have given that share
    reason: str = field(metadata=figure(key=None))  # why it cannot be told; else empty

    @property
    def described(self) -> Mapping[str, Mapping[str, Any]]:
        """The counters, with their units and the metrics that give them."""
        return {name: {"unit": COUNTERS[name].unit, "metrics": COUNTERS[name].metrics} for name in self.names}

    @property
    def words(self) -> str:
        """What the counters add to the model of energies, in one line."""
        if self.reason:
            return self.reason
        errors = f"{percent(self.with_counters)} off with counters and {percent(self.without)} without"
        share = f"{percent(self.better, 0)} of them are predicted better with counters"
        return (
            f"energies that a model has not seen are {errors} (median); {share}"
            f"{', which may be chance' if self.by_chance else ''}"
        )


def counted(table: ResultTable, costs: Costs) -> Counted | None:
    """Test what hardware counters add to a model of the energies.

    Parameters
    ----------
    table : ResultTable
        The measurements, n of them.
    costs : Costs
        Their times and energies, columns of shape (n,).

    Returns
    -------
    Counted or None
        None if no configuration was profiled; errors NaN, with the reason, if fewer than FEWEST_PROFILED were.
    """
    columns = {name: values_of(table, name) for name in COUNTERS if name in table.value_names}
    columns = {name: values for name, values in columns.items() if np.isfinite(values).any()}
    if not columns:
        return None
    finite = np.any([np.isfinite(values) for values in columns.values()], axis=0)
    configurations = int(finite.sum())

    def unknown(reason: str) -> Counted:
        nan = math.nan
        return Counted(tuple(columns), configurations, nan, nan, nan, by_chance=True, reason=reason)

    measured = np.flatnonzero(finite & np.isfinite(costs.energy_j) & np.isfinite(costs.time_s))
    if len(measured) < FEWEST_PROFILED:
        return unknown(
            f"what counters add to the model of energies shows from {FEWEST_PROFILED} profiled configurations on"
        )
    measured = measured[:: -(-len(measured) // _MOST)]
    granted = [name for name in table.value_names if name in FEATURES]
    usual = {name: values_of(table, name) for name in (*table.space.names, *granted)}
    energy_j = costs.energy_j[measured]
    errors = []
    for features in (usual, {**usual, **columns}):
        sample = Sample(tuple(features), np.column_stack(list(features.values())), costs.time_s).of(measured)
        orders = [np.random.default_rng(seed).permutation(len(measured)) for seed in range(_SPLITS)]
        errors.append(np.mean([np.abs(held_out_errors(sample, energy_j, order)) for order in orders], axis=0))
    better, worse = int((errors[1] < errors[0]).sum()), int((errors[1] > errors[0]).sum())
    return Counted(
        tuple(columns),
        configurations,
        float(np.median(errors[0])),
        float(np.median(errors[1])),
        better / len(measured),
        by_chance=abs(better - worse) <= _CHANCE * math.sqrt(better + worse),
        reason="",
    )


_NORMALISED = ("time_s", "energy_j", "power_w", "observed_clock_mhz", "temperature_c", "observed_memory_clock_mhz")


@dataclass(frozen=True, slots=True)
class Effects:
    """What the parameters do to one figure."""

    goal: Goal = field(metadata=figure(key=None))
    importances: tuple[Importance, ...] = field(metadata=figure(key="parameters"))
    interactions: tuple[Interaction, ...]


@dataclass(frozen=True, slots=True)
class Analysis:
    """The analysis of one session. What is unknown is None or empty."""

    table: ResultTable
    objective: Objective
    costs: Costs
    within: Costs  # the same, NaN if a limit of the objective is broken
    broken: Mask  # the measurements that worked and break a limit
    nearest: int | None  # the one that breaks its limits least, where all do
    best: int | None  # by the objective, of those that keep the limits
    plane: Plane | None  # None: the session has no two goals
    choices: tuple[Choice, ...]
    own_state: OwnState | None  # against it, the best for the objective; None: no setting of the board was varied
    correlations: tuple[Correlation, ...]
    splits: tuple[Split, ...]
    effects: tuple[Effects, ...]  # on time, energy and the objective
    best_so_far: Floats  # of the objective, after each evaluation; what is only timed is none
    hypervolume_so_far: Floats  # the same; empty without two goals
    difficulty: dict[str, Difficulty]  # by figure: time, energy, and the objective where it is another one
    coverage: float  # share of the space that was evaluated: difficulty is of that part
    drift: tuple[DriftOf, ...]
    failures: tuple[FailuresOf, ...]
    counted: Counted | None  # None: no configuration was profiled
    over_load: OverLoad | None  # None: no load was varied, and no service measured

    @property
    def too_few(self) -> str:
        """Why there are no correlations, splits and difficulty, where too few measurements worked; else empty."""
        worked = int((self.table.so_far().states() == STATES.index(State.OK)).sum())
        return f"too few: {worked} worked, and at least {FEWEST} are needed" if 0 < worked < FEWEST else ""


def analyse(
    table: ResultTable,
    objective: Objective,
    *,
    preferences: Preferences | None = None,
    load: Load | None = None,
    with_difficulty: bool = True,
) -> Analysis:
    """Analyse what a session has measured so far.

    Parameters
    ----------
    table : ResultTable
        The measurements; the engine may append meanwhile, which is left out.
    objective : Objective
        Goal, front and limits of the session.
    preferences : Preferences or None, optional
        Limits and weight of the time for `choices`; its defaults where None.
    load : Load or None, optional
        Load of a year; the default of `Load` where None.
    with_difficulty : bool, optional
        Whether to compute the difficulty, the slowest part.

    Returns
    -------
    Analysis
        Every part; what is unknown is None or empty.
    """
    growing, table = table, table.so_far()
    evaluated = table.evaluated()
    costs = costs_of(table)
    goals = goals_of(table, objective)
    plane = plane_of(table, goals, objective.limits) if goals is not None else None
    within = feasible(table, objective.limits)
    allowed = within_limits(costs, within)
    goal_values = np.where(within, values_of(table, objective.goal.name), np.nan)
    speed, efficiency = 1 / costs.time_s, 1 / costs.energy_j
    best = _best(goal_values, maximise=objective.goal.maximise)
    observed = other_than(observed_in(table), costs)
    return Analysis(
        table=growing,
        objective=objective,
        costs=costs,
        within=allowed,
        broken=broken(table, objective.limits),
        nearest=nearest(table, objective.limits),
        best=best,
        plane=plane,
        choices=tuple(choices(allowed, preferences, load)),
        own_state=own_state(table, costs, best),
        correlations=tuple(correlations(observed, speed, efficiency)),
        splits=tuple(split for value in observed if (split := split_by_mean(value, speed, efficiency)) is not None),
        effects=tuple(_effects(table, costs, objective.goal)),
        best_so_far=best_so_far(goal_values[evaluated], maximise=objective.goal.maximise),
        hypervolume_so_far=(
            hypervolume_so_far(plane.values[evaluated], [goal.maximise for goal in plane.goals], plane.reference)
            if plane is not None
            else np.empty(0)
        ),
        difficulty=difficulties(table, costs, objective.goal) if with_difficulty else {},
        coverage=len(evaluated) / table.space.size if table.space.size else 0.0,
        drift=tuple(drifts_of(table)),
        failures=tuple(failures_of(table)),
        counted=counted(table, costs),
        over_load=over_load(table, within, load),
    )


def _best(values: Floats, *, maximise: bool) -> int | None:
    if not np.isfinite(values).any():
        return None
    return int(np.nanargmax(values) if maximise else np.nanargmin(values))


def observed_in(table: ResultTable) -> list[Observed]:
    """List every parameter and every figure of the measurements, as columns.

    What has two columns, as a time in two units, is kept once. Left out are parameters that only repeat a
    configuration, and figures of the reference load, of the scatter of repeats, of several sources of one power, and
    those that a figure stated for one thermal condition keeps of its measurement.

    Parameters
    ----------
    table : ResultTable
        The measurements, n of them.

    Returns
    -------
    list of Observed
        Columns of shape (n,), NaN if unknown: parameters first, then figures.
    """
    results = []
    repeats = repeat_names(table)
    for parameter in table.space.parameters:
        if parameter.name in repeats:
            continue
        categorical = parameter.numbers is None and len(parameter.values) > 2
        results.append(Observed(parameter.name, values_of(table, parameter.name), categorical, parameter=True))
    apart = {*REFERENCES, *STATED_FROM, *spreads(table.value_names), *of_sources(table.value_names)}
    apart |= {PEAK_POWER, THROTTLED_SHARE}
    names = [name for name in table.value_names if name not in apart]
    kept: list[Floats] = []
    for name in sorted(names, key=lambda name: name not in _NORMALISED):
        values = values_of(table, name)
        if any(_proportional(values, other) for other in kept):
            continue
        kept.append(values)
        results.append(Observed(name, values))
    return results


def _proportional(values: Floats, other: Floats, rtol: float = 1e-9) -> bool:
    """Whether one is the other in another unit: a file may hold a time in ms besides s."""
    finite = np.isfinite(values)
    indices = np.flatnonzero(finite & (other != 0))
    if not len(indices) or not np.array_equal(finite, np.isfinite(other)):
        return False
    factor, last = values[indices[0]] / other[indices[0]], indices[-1]
    alike = math.isclose(values[last], factor * other[last], rel_tol=10 * rtol, abs_tol=1e-7)  # most are not
    return alike and bool(np.allclose(values[finite], factor * other[finite], rtol=rtol))


def other_than(observed: Iterable[Observed], costs: Costs) -> list[Observed]:
    """Leave out time, energy, and what is a multiple or an inverse of one: they go with themselves.

    Parameters
    ----------
    observed : iterable of Observed
        The quantities, columns of shape (n,).
    costs : Costs
        Time and energy of the measurements.

    Returns
    -------
    list of Observed
        Those that a correlation with speed and efficiency says something of.
    """
    themselves = [column for cost in (costs.time_s, costs.energy_j) for column in (cost, 1 / cost)]
    return [
        item
        for item in observed
        if item.parameter or not any(_proportional(item.values, column, _ROUNDED) for column in themselves)
    ]


def difficulties(table: ResultTable, costs: Costs, goal: Goal) -> dict[str, Difficulty]:
    """Compute how difficult it is to minimise time, energy and, where it is neither, the objective.

    The difficulty is that of what was measured. Where there are several graphics clocks also of time at the highest:
    tuning for energy over all clocks is compared with tuning for time in the smaller space that it has
    [Schoonhoven2024, figure 6.5].

    Parameters
    ----------
    table : ResultTable
        The measurements, n of them; of several of one configuration the last counts.
    costs : Costs
        Their times and energies, columns of shape (n,).
    goal : Goal
        The goal of the objective.

    Returns
    -------
    dict of str to Difficulty
        By 'time', 'energy', the name of the goal, and 'time at the highest clock'; without those of which every
        configuration failed. Empty for fewer than FEWEST configurations with a known time.
    """
    rows, from_end = np.unique(table.rows()[: len(table)][::-1], return_index=True)
    rows, indices = rows.astype(np.int64), len(table) - 1 - from_end  # the last measurement of each row
    if len(rows) < FEWEST or np.isfinite(costs.time_s[indices]).sum() < FEWEST:
        return {}
    flow = Flow.of(table.space, rows)
    by_goal = {"time": difficulty(flow, costs.time_s[indices]), "energy": difficulty(flow, costs.energy_j[indices])}
    if _is_third(goal):
        known = positive(values_of(table, goal.name))
        by_goal[goal.name] = difficulty(flow, (1 / known if goal.maximise else known)[indices])
    highest = _at_highest_clock(table, rows)
    if highest is not None:
        alone = Flow.of(table.space, rows[highest])
        by_goal["time at the highest clock"] = difficulty(alone, costs.time_s[indices[highest]])
    return {name: one for name, one in by_goal.items() if one is not None}


def _at_highest_clock(table: ResultTable, rows: Indices) -> Indices | None:
    """Which of the rows are at the highest graphics clock; None if all are, or the space has no clocks."""
    name = next((name for name in CLOCK_SETTINGS if name in table.space.names), None)
    if name is None:
        return None
    clocks = table.space.column(name, rows)
    if clocks.dtype.kind not in "if" or clocks.min() == clocks.max():
        return None
    return np.flatnonzero(clocks == clocks.max()).astype(np.int64)


def _is_third(goal: Goal) -> bool:
    """Whether the objective is neither a time nor an energy, nor a figure that goes with one of them."""
    return role_of(goal.name) in (None, Role.POWER, Role.EDP)


def _effects(table: ResultTable, costs: Costs, goal: Goal) -> Iterator[Effects]:
    rows, repeats = table.rows()[: len(table)], set(repeat_names(table))
    figures = [(Goal("time_s", False), costs.time_s), (Goal("energy_j", False), costs.energy_j)]
    if _is_third(goal):
        figures.append((goal, values_of(table, goal.name)))
    for which, values in figures:
        if np.isfinite(values).sum() > 2:
            single = importances(table.space, rows, values, maximise=which.maximise)
            pairs = interactions(table.space, rows, values)
            yield Effects(
                which,
                tuple(item for item in single if item.name not in repeats),
                tuple(pair for pair in pairs if not repeats & set(pair.names)),
            )
