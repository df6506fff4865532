"""The field's score of a search strategy on recorded search spaces: how far ahead of random search it is.

0 is as good as random search, 1 finds the optimum at once, below 0 is worse than chance. With smaller values better:

  baseline(m)  the exact expectation of the smallest of m different values drawn from all rows
  budget       the smallest m with baseline(m) <= median + 0.95 (optimum - median), over the values that are valid
  score        the mean over 50 equidistant points up to the budget of (best - baseline) / (optimum - baseline)

A failed configuration costs an evaluation and counts as the worst valid value, in the baseline as in a run. A run that
ended early keeps its best [Willemsen2024]. Of a front, the figure is the hypervolume of what was found. Where a
strategy asks for the time of a row alone, that costs a share of an evaluation, and what is measured in full counts.

Running strategies on recorded spaces to score them: no board, no store, the generators driven directly.
"""

from __future__ import annotations

import math
import multiprocessing
import signal
import threading
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ...base.errors import InputError
from ..children.ending import end_with_parent
from ..children.python import multiprocessing_without_working_directory
from ..formats.read import read_recording
from ..formats.recording import Recording
from ..results.measurement import FEWEST, Depth
from ..results.objectives import Goal, Objective
from ..results.pareto import hypervolume, reference_point
from ..runner.replay import TIMED_SHARE, at_time
from ..space.search_space import SearchSpace
from . import base
from .base import Batch, Outcome

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

POINTS = 50
_TOWARDS_OPTIMUM = 0.95
_ENOUGH = 0.95  # of the whole hypervolume: where the budget of a front ends
_RESAMPLES = 1000
_CONFIDENCE = (2.5, 97.5)  # per cent
_SIGNIFICANT = 0.05


class Chance(ABC):
    """The figure that random search may expect of a space, and that of a run; smaller is better."""

    @property
    @abstractmethod
    def optimum(self) -> float:
        """The best figure there is."""

    @property
    @abstractmethod
    def target(self) -> float:
        """The figure at which the budget ends."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """Rows of the space."""

    @abstractmethod
    def expected(self, draws: int) -> float:
        """The expected figure after different rows drawn at random.

        Parameters
        ----------
        draws : int
            How many rows are drawn, at least 1.

        Returns
        -------
        float
        """

    @abstractmethod
    def reached(self, evaluated: Indices, after: Indices) -> Floats:
        """The figure of a run after some numbers of its evaluations.

        Parameters
        ----------
        evaluated : array of int, shape (m,)
            The rows that the run evaluated, in order.
        after : array of int, shape (n,)
            Numbers of them, each from 1 to m.

        Returns
        -------
        array, shape (n,)
        """

    @cached_property
    def budget(self) -> int:
        """The evaluations of a run: the smallest number of draws from which chance may expect the target."""
        low, high = 0, self.rows
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.expected(middle) <= self.target else (middle, high)
        return high


@dataclass(frozen=True)
class Baseline(Chance):
    """One objective: the figure is the best cost found.

    `costs` has shape (rows,), smaller is better, inf if a row failed. Raises InputError if no cost is better than
    the median: there is nothing to search for.
    """

    costs: Floats

    def __post_init__(self) -> None:
        if not np.isfinite(self.costs).any() or self.optimum == self._median:
            raise InputError("there is nothing to search for: no value is better than the median", "score")

    @cached_property
    def counted(self) -> Floats:
        """Return the costs with failed rows set to the worst valid cost, shape (rows,)."""
        valid = np.isfinite(self.costs)
        return np.where(valid, self.costs, self.costs[valid].max())

    @cached_property
    def optimum(self) -> float:
        return float(self.costs.min())

    @property
    def target(self) -> float:
        return self._median + _TOWARDS_OPTIMUM * (self.optimum - self._median)

    @property
    def rows(self) -> int:
        return len(self.costs)

    def expected(self, draws: int) -> float:
        missed = chance_to_miss(np.arange(1, self.rows), draws, self.rows)  # that of the k best rows
        return float(self._ascending[0] + np.diff(self._ascending) @ missed)

    def reached(self, evaluated: Indices, after: Indices) -> Floats:
        best: Floats = np.minimum.accumulate(self.counted[evaluated])
        return best[after - 1]

    @cached_property
    def _median(self) -> float:
        return float(np.median(self.costs[np.isfinite(self.costs)]))

    @cached_property
    def _ascending(self) -> Floats:
        return np.sort(self.counted)


@dataclass(frozen=True)
class FrontBaseline(Chance):
    """Two goals: the figure is the hypervolume of what was found, negative so that smaller is better.

    `values` has shape (rows, 2), NaN if a row failed. The hypervolume is relative to the whole front's, -1 is all of
    it; its reference is 0 where larger is better, else the worst value. Raises InputError if there is no front.
    """

    values: Floats
    maximise: Sequence[bool]

    def __post_init__(self) -> None:
        if np.isnan(self.values).any(axis=1).all() or self._whole <= 0:
            raise InputError("there is no front: no configuration is better than the reference", "score")

    @property
    def optimum(self) -> float:
        return -1.0

    @property
    def target(self) -> float:
        return -_ENOUGH

    @property
    def rows(self) -> int:
        return len(self.values)

    def expected(self, draws: int) -> float:
        """The expected figure after different rows drawn at random.

        The whole plane is cut into cells: each counts unless none of the rows that dominate it is drawn.

        Parameters
        ----------
        draws : int
            How many rows are drawn, at least 1.

        Returns
        -------
        float
        """
        area = self._area_dominated_by
        missed = chance_to_miss(np.arange(len(area)), draws, self.rows)
        return float(-(area @ (1 - missed)) / self._whole)

    def reached(self, evaluated: Indices, after: Indices) -> Floats:
        volumes = [hypervolume(self.values[evaluated[:count]], self.maximise, self._reference) for count in after]
        return -np.array(volumes) / self._whole

    @cached_property
    def _reference(self) -> tuple[float, ...]:
        return reference_point(self.values, self.maximise)

    @cached_property
    def _whole(self) -> float:
        return hypervolume(self.values, self.maximise, self._reference)

    @cached_property
    def _area_dominated_by(self) -> Floats:
        """The area that exactly k rows dominate, shape (rows + 1,), by the index k. O(n^2) for n rows, memory O(n)."""
        sign = np.where(self.maximise, -1.0, 1.0)
        points = self.values[~np.isnan(self.values).any(axis=1)] * sign
        corner = np.array(self._reference) * sign
        points = points[(points < corner).all(axis=1)]
        points = points[np.argsort(points[:, 0], kind="stable")]
        widths = np.append(points[1:, 0], corner[0]) - points[:, 0]
        heights, place = np.unique(points[:, 1], return_inverse=True)
        spans = np.append(heights[1:], corner[1]) - heights
        area = np.zeros(self.rows + 1)
        above = np.zeros(len(heights), dtype=np.int64)  # in each strip of the second goal: rows that dominate it
        for width, index in zip(widths.tolist(), place.tolist(), strict=True):
            above[index:] += 1
            if width > 0:
                area[: len(points) + 1] += width * np.bincount(above, weights=spans, minlength=len(points) + 1)
        return area


def chance_to_miss(those: Indices, draws: int, rows: int) -> Floats:
    """The probability that `draws` different random rows contain none of k given ones, for each k in `those`.

    It is the product of (rows - draws - i) / (rows - i) over i < k, computed as a sum of logarithms.

    Parameters
    ----------
    those : (n,) int array
        Values of k, from 0 to `rows`.
    draws, rows : int
        Numbers of rows that are drawn, and of all.

    Returns
    -------
    (n,) float array
        From 0 to 1.
    """
    with np.errstate(divide="ignore"):
        factors = np.log1p(-np.minimum(1.0, draws / (rows - np.arange(rows))))
    chance: Floats = np.exp(np.concatenate([[0.0], np.cumsum(factors)]))
    return chance[those]


@dataclass(frozen=True)
class Yardstick:
    """The points at which runs on one space are compared, and the figures of chance there.

    The points are evaluations, or, with `seconds` for every row, seconds: chance then evaluates one row per mean cost.
    A row that is only timed counts as `TIMED_SHARE` of its evaluation, and is none: what is measured in full counts.
    """

    chance: Chance
    seconds: Floats | None = None

    @cached_property
    def budget(self) -> float:
        """Where a run ends, in evaluations or seconds."""
        return self.chance.budget * self._mean_cost

    @cached_property
    def points(self) -> Floats:
        """The points of comparison, shape (50,): i/50 of the budget, evaluations rounded up."""
        points = self.budget * np.arange(1, POINTS + 1) / POINTS
        return points if self.seconds is not None else np.ceil(points - 1e-9)

    def advantage(self, rows: Sequence[int] | Indices, depths: Sequence[Depth] | None = None) -> Floats:
        """A run's advantage over chance at each point.

        Parameters
        ----------
        rows : sequence of int
            Rows in the order in which they were looked at.
        depths : sequence of Depth, optional
            How deep each was looked at; all were evaluated where it is None.

        Returns
        -------
        array, shape (50,)
            0 by chance, 1 at the optimum. NaN at points where chance is sure of the optimum too; 0 if no evaluation has
            ended yet.
        """
        looked = np.asarray(rows, dtype=np.int64)
        whole = np.array([depth is Depth.ENERGY for depth in depths or [Depth.ENERGY] * len(looked)], dtype=np.bool_)
        spent = np.cumsum(self._prices(looked) * np.where(whole, 1.0, TIMED_SHARE))[whole]
        evaluated = looked[whole]
        done = np.searchsorted(spent, self.points * (1 + 1e-12), side="right")
        figures = self._by_chance.copy()
        figures[done > 0] = self.chance.reached(evaluated, done[done > 0])
        return self.advantage_of(figures)

    def advantage_of(self, figures: Floats) -> Floats:
        """The advantage over chance of a run, from its figures.

        Parameters
        ----------
        figures : array, shape (50,)
            What the run had reached at each point.

        Returns
        -------
        array, shape (50,)
            As of `advantage`.
        """
        possible = self.chance.optimum - self._by_chance
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(possible < 0, (figures - self._by_chance) / possible, np.nan)

    def spent(self, rows: Sequence[int], depth: Depth = Depth.ENERGY) -> float:
        """The part of the budget that looking at rows costs.

        Parameters
        ----------
        rows : sequence of int
            The rows.
        depth : Depth, optional
            How deep all of them are looked at; as a rule they are evaluated.

        Returns
        -------
        float
            In evaluations, or in seconds where the budget is.
        """
        share = 1.0 if depth is Depth.ENERGY else TIMED_SHARE
        return share * float(self._prices(np.asarray(rows, dtype=np.int64)).sum())

    def _prices(self, rows: Indices) -> Floats:
        """Return the cost of evaluating each row: 1, or its seconds where the budget is in seconds."""
        return np.ones(len(rows)) if self.seconds is None else self.seconds[rows]

    @cached_property
    def _mean_cost(self) -> float:
        return 1.0 if self.seconds is None else float(self.seconds.mean())

    @cached_property
    def _by_chance(self) -> Floats:
        draws = np.clip(self.points / self._mean_cost, 1.0, self.chance.rows)
        whole = np.floor(draws + 1e-9).astype(np.int64)
        after = np.minimum(whole + 1, self.chance.rows)
        expected = {m: self.chance.expected(m) for m in {*whole.tolist(), *after.tolist()}}
        low = np.array([expected[m] for m in whole.tolist()])
        high = np.array([expected[m] for m in after.tolist()])
        return np.asarray(low + np.clip(draws - whole, 0.0, 1.0) * (high - low), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and its 95 % confidence interval, whose ends are NaN where too few repeats would determine it."""

    mean: float
    low: float
    high: float

    @property
    def words(self) -> str:
        """'0.612 to 0.705', or 'too few'."""
        return f"{self.low:.3f} to {self.high:.3f}" if self.low == self.low else "too few"


@dataclass(frozen=True, slots=True)
class MeanCurve:
    """Means over repeats and their intervals, each of shape (points,)."""

    mean: Floats
    low: Floats
    high: Floats


def mean_interval(scores: npt.ArrayLike) -> Interval:
    """The mean over repeats, with its interval by bootstrap.

    Parameters
    ----------
    scores : (repeats,) array_like of float

    Returns
    -------
    Interval
    """
    means, low, high = mean_curve(np.asarray(scores, dtype=np.float64)[:, None])
    return Interval(float(means[0]), float(low[0]), float(high[0]))


def mean_curve(advantages: Floats) -> tuple[Floats, Floats, Floats]:
    """The mean over repeats at each point, with its interval.

    Parameters
    ----------
    advantages : array, shape (repeats, points)

    Returns
    -------
    mean, low, high : array, shape (points,)
        The ends of the interval are NaN where too few repeats would determine it.
    """
    means = _resampled(advantages)
    low, high = np.percentile(means, _CONFIDENCE, axis=0)
    return advantages.mean(axis=0), low, high


def mean_over_spaces(scores: Sequence[npt.ArrayLike]) -> Interval:
    """The mean over spaces of the mean over repeats; the interval is that of the repeats, the spaces are fixed.

    Parameters
    ----------
    scores : sequence of (repeats,) array_like of float
        One for each space.

    Returns
    -------
    Interval
    """
    columns = [np.asarray(column, dtype=np.float64) for column in scores]
    resampled = np.mean([_resampled(c[:, None], seed)[:, 0] for seed, c in enumerate(columns)], axis=0)
    low, high = np.percentile(resampled, _CONFIDENCE)
    return Interval(float(np.mean([c.mean() for c in columns])), float(low), float(high))


def difference(scores: Sequence[npt.ArrayLike], others: Sequence[npt.ArrayLike]) -> Interval:
    """The difference of two means over the same spaces, with its interval.

    Parameters
    ----------
    scores, others : sequence of (repeats,) array_like of float
        One for each space, in the same order.

    Returns
    -------
    Interval
        Of the mean of `scores` minus that of `others`.
    """
    paired = [*scores, *others]
    sign = [1.0] * len(scores) + [-1.0] * len(others)
    columns = [np.asarray(column, dtype=np.float64) for column in paired]
    resampled = [s * _resampled(c[:, None], seed)[:, 0] for seed, (s, c) in enumerate(zip(sign, columns, strict=True))]
    low, high = np.percentile(np.sum(resampled, axis=0) / len(scores), _CONFIDENCE)
    mean = math.fsum(s * float(c.mean()) for s, c in zip(sign, columns, strict=True)) / len(scores)
    return Interval(mean, float(low), float(high))


def pairwise_wins(scores: Mapping[str, Mapping[str, npt.ArrayLike]]) -> dict[str, dict[str, int]]:
    """Count the spaces on which strategy a scores significantly higher than b.

    Two-sided Mann-Whitney U test at 5 % on each space; with fewer than four repeats each nothing is significant.

    Parameters
    ----------
    scores : mapping of str to mapping of str to (repeats,) array_like of float
        space -> strategy -> one score per repeat.

    Returns
    -------
    dict of str to dict of str to int
        ``wins[a][b]``.
    """
    from scipy.stats import mannwhitneyu

    strategies = list(dict.fromkeys(name for of_space in scores.values() for name in of_space))
    wins = {a: {b: 0 for b in strategies if b != a} for a in strategies}
    for of_space in scores.values():
        for index, first in enumerate(strategies):
            for second in strategies[index + 1 :]:
                if first not in of_space or second not in of_space:
                    continue
                one, other = np.asarray(of_space[first]), np.asarray(of_space[second])
                if np.ptp(np.concatenate([one, other])) == 0 or mannwhitneyu(one, other).pvalue >= _SIGNIFICANT:
                    continue
                above = float(np.mean(one)) > float(np.mean(other))
                winner, loser = (first, second) if above else (second, first)
                wins[winner][loser] += 1
    return wins


def _resampled(columns: Floats, seed: int = 0) -> Floats:
    """Means over resampled repeats, shape (repeats, points) -> (resamples, points). The same at every call.

    NaN of fewer than FEWEST repeats: their means hardly differ, and an interval would be too narrow.
    """
    repeats = len(columns)
    if repeats < FEWEST:
        return np.full((1, columns.shape[1]), np.nan)
    weights = np.random.default_rng(seed).multinomial(repeats, np.full(repeats, 1 / repeats), size=_RESAMPLES)
    return np.asarray(weights @ columns / repeats, dtype=np.float64)


Task = tuple[str, str, int]  # space, strategy, repeat
_POLL_S = 0.1  # between checks of `stop` while other processes work


@dataclass(frozen=True)
class Recorded:
    """A recorded space: the outcome of each row, as a strategy would be sent it."""

    name: str
    space: SearchSpace
    outcomes: tuple[Outcome, ...]  # one per row
    seconds: Floats | None  # what evaluating each row cost, where that is known of all
    timed: tuple[Outcome, ...] = ()  # one per row, as it is sent where only its time was asked for
    timing_saves: bool = False  # timing tells something of the goals, and not all: as in a session, it is used then

    def front_values(self, maximise: Sequence[bool]) -> Floats:
        """The goals of the front as they were measured.

        Parameters
        ----------
        maximise : sequence of bool
            Of each goal, whether larger is better.

        Returns
        -------
        array, shape (rows, goals)
            NaN if a row failed or lacks one.
        """
        costs = np.array([outcome.front for outcome in self.outcomes])
        return np.where(np.isfinite(costs), np.where(maximise, -costs, costs), np.nan)

    @property
    def costs(self) -> Floats:
        """The cost of each row, inf if it failed."""
        return np.array([outcome.cost for outcome in self.outcomes])


def recorded(cache: Recording, goal: Goal | None = None, front: Sequence[Goal] = ()) -> Recorded:
    """A cache as strategies see it.

    Parameters
    ----------
    cache : Recording
        The recorded space.
    goal : Goal, optional
        What the costs are of; the cache's own objective if None.
    front : sequence of Goal, optional
        The goals of the front; empty if there is none.

    Returns
    -------
    Recorded

    Raises
    ------
    InputError
        If the cache does not hold a goal's value.
    """
    goal = goal or cache.goal
    for wanted in (goal, *front):
        if wanted.name not in cache.value_names:
            choices = ", ".join(cache.value_names)
            raise InputError(f"there is no value '{wanted.name}'", str(cache.path), f"known: {choices}")
    measured, objective, names = cache.measurements(), Objective(goal, tuple(front)), cache.names_at_time
    seconds = np.array([m.cost_s for m in measured])
    wanted_names = {wanted.name for wanted in (goal, *front)}
    return Recorded(
        name=cache.path.name.removesuffix(".gz").removesuffix(".json"),
        space=cache.space(),
        outcomes=tuple(Outcome.of(m, objective) for m in measured),
        timed=tuple(Outcome.of(at_time(m, names), objective) for m in measured),
        timing_saves="time_s" in names and not wanted_names <= names,
        seconds=seconds if (seconds > 0).all() else None,
    )


class Look(NamedTuple):
    """A row that a strategy looked at: timed, or evaluated."""

    row: int
    depth: Depth


class Allowance(Protocol):
    """How much a run may look at."""

    @property
    def budget(self) -> float: ...

    def spent(self, rows: Sequence[int], depth: Depth) -> float:
        """What looking at rows takes of the budget.

        Parameters
        ----------
        rows : sequence of int
            The rows.
        depth : Depth
            How deep all of them are looked at.

        Returns
        -------
        float
            In the unit of the budget.
        """
        ...


def run(
    strategy: str,
    options: Mapping[str, Any],
    on: Recorded,
    allowance: Allowance,
    rng: np.random.Generator,
    batch: int,
    *,
    can_time: bool | None = None,
    boards: int = 1,
) -> list[Look]:
    """The rows a strategy looks at, in order, until it ends or its budget is spent.

    Parameters
    ----------
    strategy : str
        Its name.
    options : mapping of str to any
        Its options, as text or as TOML has them.
    on : Recorded
        The space that it searches.
    allowance : Allowance
        The budget, and what each look takes of it.
    rng : numpy.random.Generator
        Draws all that is random in the search.
    batch : int
        How many rows it may ask for at once.
    can_time : bool, optional
        Whether rows are timed where it asks for that. If None, they are where a session would: there timing saves
        something. If not, a strategy that asks for times is answered as by a board that cannot time rows: with their
        energy, at its price.
    boards : int, optional
        How many measure at the same time; the strategy hears of a batch when all of it is known.

    Returns
    -------
    list of Look

    Raises
    ------
    InputError
        If the strategy or an option is unknown, or the value of an option wrong.
    """
    chosen = base.get(strategy).informed(base.Background(boards=lambda: boards))
    search = chosen.search(on.space, rng, batch, base.make_options(chosen, dict(options)))
    can_time = on.timing_saves if can_time is None else can_time
    looks: list[Look] = []
    left = allowance.budget
    try:
        asked = Batch.of(next(search))
        while True:
            depth = asked.depth if can_time else Depth.ENERGY
            looks.extend(Look(row, depth) for row in asked)
            left -= allowance.spent(asked, depth)
            if left <= 0:
                break
            outcomes = on.outcomes if depth is Depth.ENERGY else on.timed
            asked = Batch.of(search.send([outcomes[row] for row in asked]))
    except StopIteration:
        pass
    finally:
        search.close()
    return looks


@dataclass(frozen=True)
class ScorePlan:
    """What to score: every strategy on every cache, `repeats` times."""

    caches: tuple[Path, ...]
    strategies: tuple[str, ...]
    repeats: int = 25
    seed: int = 1
    goal: Goal | None = None  # the cache's own objective if none is given
    front: tuple[Goal, ...] = ()  # two goals: the hypervolume counts instead
    over_time: bool = False  # seconds of evaluating, as the cache has them, instead of evaluations
    batch: int = 1  # rows a strategy may ask for at once
    boards: int = 1  # that measure at the same time
    options: Mapping[str, Any] = field(default_factory=dict)  # of every strategy
    jobs: int | None = None  # processes of their own that do it; None: this one


@dataclass(frozen=True)
class Scores:
    """The advantage over chance of each run at each of its space's points: space -> strategy -> (repeats, points)."""

    advantages: Mapping[str, Mapping[str, Floats]]
    points: Mapping[str, Floats]  # of each space, evaluations or seconds
    evaluations: Mapping[str, int]  # the budget of each space
    unit: str  # of the points: "evaluations" or "s"
    timed: Sequence[str] = ()  # the spaces in which a strategy may have a row timed first

    @cached_property
    def runs(self) -> dict[str, dict[str, Floats]]:
        """The score of each run: space -> strategy -> (repeats,)."""
        return {
            space: {name: np.nanmean(curves, axis=1) for name, curves in of_space.items()}
            for space, of_space in self.advantages.items()
        }

    @property
    def strategies(self) -> tuple[str, ...]:
        return tuple(next(iter(self.advantages.values())))

    def score(self, space: str, strategy: str) -> Interval:
        """The score of a strategy on one space.

        Parameters
        ----------
        space, strategy : str
            Their names.

        Returns
        -------
        Interval
        """
        return mean_interval(self.runs[space][strategy])

    def overall(self, strategy: str) -> Interval:
        """The mean of a strategy's scores over the spaces.

        Parameters
        ----------
        strategy : str
            Its name.

        Returns
        -------
        Interval
        """
        return mean_over_spaces([of_space[strategy] for of_space in self.runs.values()])

    def curve(self, space: str, strategy: str) -> tuple[Floats, Floats, Floats]:
        """The mean advantage of a strategy on one space at each of its points, with its interval.

        Parameters
        ----------
        space, strategy : str
            Their names.

        Returns
        -------
        mean, low, high : array, shape (points,)
        """
        return mean_curve(self.advantages[space][strategy])

    @cached_property
    def wins(self) -> dict[str, dict[str, int]]:
        """wins[a][b]: on how many spaces a is significantly better than b."""
        return pairwise_wins(self.runs)


class _Bench:
    """The spaces of a plan, read and ready."""

    def __init__(self, plan: ScorePlan) -> None:
        self.plan = plan
        self.spaces: dict[str, tuple[Recorded, Yardstick]] = {}
        for path in plan.caches:
            space = recorded(read_recording(path), plan.goal, plan.front)
            if plan.over_time and space.seconds is None:
                raise InputError("it lacks the cost of each evaluation", str(path), "leave out --over-time")
            if space.name in self.spaces:
                raise InputError(f"two caches are called {space.name}", str(path), "rename one")
            maximise = [goal.maximise for goal in plan.front]
            chance = FrontBaseline(space.front_values(maximise), maximise) if plan.front else Baseline(space.costs)
            self.spaces[space.name] = (space, Yardstick(chance, space.seconds if plan.over_time else None))

    def advantage(self, task: Task) -> Floats:
        """One run; its chance depends on the seed, the strategy and the repeat alone."""
        name, strategy, repeat = task
        space, yardstick = self.spaces[name]
        rng = np.random.default_rng((self.plan.seed, zlib.crc32(strategy.encode()), repeat))
        looks = run(strategy, self.plan.options, space, yardstick, rng, self.plan.batch, boards=self.plan.boards)
        return yardstick.advantage([look.row for look in looks], [look.depth for look in looks])


_bench: _Bench | None = None  # of a process of the pool


def _open(plan: ScorePlan) -> None:
    global _bench
    end_with_parent()
    _bench = _Bench(plan)


def _work(task: Task) -> tuple[Task, Floats]:
    assert _bench is not None
    return task, _bench.advantage(task)


def score(
    plan: ScorePlan,
    stop: threading.Event,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Scores | None:
    """Run and score. The same seed gives the same figures with any number of jobs.

    Parameters
    ----------
    plan : ScorePlan
        What to score.
    stop : threading.Event
        Ends the work early once it is set.
    on_progress : callable, optional
        Called after each run with the number of runs done and that of all.

    Returns
    -------
    Scores or None
        None where `stop` was set.

    Raises
    ------
    InputError
        For a bad file, an unknown strategy, option or goal, and a space if nothing is to be found.
    """
    for name in plan.strategies:
        base.make_options(base.get(name), dict(plan.options))
    if len(plan.front) not in (0, 2):
        raise InputError("a front is scored over two goals", "--front", "write max:A,min:B")
    bench = _Bench(plan)
    tasks = [(s, name, repeat) for repeat in range(plan.repeats) for s in bench.spaces for name in plan.strategies]
    curves: dict[Task, Floats] = {}
    here = ((task, bench.advantage(task)) for task in takewhile(lambda _: not stop.is_set(), tasks))
    work = _in_processes(plan, plan.jobs, tasks, stop) if plan.jobs else here
    for task, advantage in work:
        curves[task] = advantage
        on_progress(len(curves), len(tasks))
    if len(curves) < len(tasks):
        return None
    return Scores(
        advantages={
            space: {name: np.array([curves[space, name, r] for r in range(plan.repeats)]) for name in plan.strategies}
            for space in bench.spaces
        },
        points={name: yardstick.points for name, (_, yardstick) in bench.spaces.items()},
        evaluations={name: yardstick.chance.budget for name, (_, yardstick) in bench.spaces.items()},
        unit="s" if plan.over_time else "evaluations",
        timed=[name for name, (space, _) in bench.spaces.items() if space.timing_saves],
    )


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Processes started here never see Ctrl+C, which a terminal sends to all: they end when this one ends them."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # starting it later would lift the block
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _in_processes(
    plan: ScorePlan, jobs: int, tasks: Sequence[Task], stop: threading.Event
) -> Iterator[tuple[Task, Floats]]:
    """Runs done by processes of their own, in any order; leaving it ends them at once."""
    with multiprocessing_without_working_directory(), _interrupts_held():
        workers = multiprocessing.get_context("spawn").Pool(jobs, initializer=_open, initargs=(plan,))
    with workers as pool:
        results = pool.imap_unordered(_work, tasks)
        while not stop.is_set():
            try:
                yield results.next(timeout=_POLL_S)
            except multiprocessing.TimeoutError:
                continue
            except StopIteration:
                return
