"""The field's score of a search strategy on recorded search spaces: how far ahead of random search it is.

0 is as good as random search, 1 finds the optimum at once, below 0 is worse than chance. With smaller values better:

  baseline(m)  the exact expectation of the smallest of m different values drawn from all rows
  budget       the smallest m with baseline(m) <= median + 0.95 (optimum - median), over the values that are valid
  score        the mean over 50 equidistant points up to the budget of (best - baseline) / (optimum - baseline)

A failed configuration costs an evaluation and counts as the worst valid value, in the baseline as in a run. A run that
ended early keeps its best [Willemsen2024]. Of a front, the figure is the hypervolume of what was found. Where a
strategy asks for the time of a row alone, that costs a share of an evaluation, and what is measured in full counts.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ...base.errors import InputError
from ..results.measurement import FEWEST, Depth
from ..results.pareto import hypervolume, reference_point
from ..runner.replay import TIMED_SHARE

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
    those : array of int, shape (n,)
        Values of k, from 0 to `rows`.
    draws, rows : int
        Numbers of rows that are drawn, and of all.

    Returns
    -------
    array, shape (n,)
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
        depths : sequence of Depth or None, optional
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
    scores : array_like, shape (repeats,)
        The score of each repeat.

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
        The advantage over chance of each repeat at each point.

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
    scores : sequence of array_like, shape (repeats,)
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
    scores, others : sequence of array_like, shape (repeats,)
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
    low, high = np.percentile(np.sum(np.broadcast_arrays(*resampled), axis=0) / len(scores), _CONFIDENCE)
    mean = math.fsum(s * float(c.mean()) for s, c in zip(sign, columns, strict=True)) / len(scores)
    return Interval(mean, float(low), float(high))


def pairwise_wins(scores: Mapping[str, Mapping[str, npt.ArrayLike]]) -> dict[str, dict[str, int]]:
    """Count the spaces on which strategy a scores significantly higher than b.

    Two-sided Mann-Whitney U test at 5 % on each space; with fewer than four repeats each nothing is significant.

    Parameters
    ----------
    scores : mapping of str to mapping of str to array_like, shape (repeats,)
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
