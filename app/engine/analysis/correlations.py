"""The correlation of every parameter and figure with speed, efficiency and their product [Anzt2015, 3.5 and 3.6]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...base.records import Count
from ..models.arrays import Floats, Indices, Mask
from ..results.measurement import FEWEST

_MOVES = 0.1  # a coefficient that differs by less between speed and efficiency is no mover


@dataclass(frozen=True, slots=True)
class Observed:
    """One quantity over all measurements, shape (n,). Words are numbered; their order means nothing."""

    name: str
    values: Floats
    categorical: bool = False
    parameter: bool = False


@dataclass(frozen=True, slots=True)
class Coefficient:
    """One quantity against one target. NaN if it does not vary or too few pairs are known.

    `linear` is Pearson's and `rank` Spearman's coefficient, both of standardised values. For a quantity of words there
    is neither, but the correlation ratio: the root of the share of the target's variance between its values, 0..1.
    """

    linear: float
    rank: float
    ratio: float
    pairs: Count

    @property
    def strength(self) -> float:
        """What bars show: the linear coefficient, or the ratio."""
        return self.ratio if math.isnan(self.linear) else self.linear


@dataclass(frozen=True, slots=True)
class Correlation:
    """A quantity against speed, efficiency and their product."""

    name: str
    parameter: bool
    categorical: bool
    speed: Coefficient
    efficiency: Coefficient
    product: Coefficient
    moves: float  # of the coefficient, from speed to efficiency
    mover: bool  # it matters differently for the two: more than chance and than a tenth


def correlations(observed: Sequence[Observed], speed: Floats, efficiency: Floats) -> list[Correlation]:
    """Correlate every quantity that varies with speed, efficiency and their product.

    Parameters
    ----------
    observed : sequence of Observed
        The quantities, each a column of shape (n,).
    speed, efficiency : array, shape (n,)
        Of each measurement, in any unit, larger where better; NaN if it failed.

    Returns
    -------
    list of Correlation
        Sorted by the coefficient with speed, negative first.
    """
    targets = [_Column(target) for target in (speed, efficiency, speed * efficiency)]
    results = []
    for item in observed:
        column = _Column(item.values)
        by_speed, by_efficiency, by_product = (
            _ratio(item.values, target.values) if item.categorical else _pair(column, target) for target in targets
        )
        if math.isnan(by_speed.strength) and math.isnan(by_efficiency.strength):
            continue
        moves = by_efficiency.strength - by_speed.strength
        pairs = min(by_speed.pairs, by_efficiency.pairs)
        chance = 2 * math.sqrt(2 / (pairs - 3)) if pairs > 3 else math.inf
        mover = abs(moves) > max(_MOVES, chance)
        results.append(
            Correlation(item.name, item.parameter, item.categorical, by_speed, by_efficiency, by_product, moves, mover)
        )
    return sorted(results, key=lambda one: (math.isnan(one.speed.strength), one.speed.strength, one.name))


def correlation(values: Floats, target: Floats) -> Coefficient:
    """Correlate one quantity of numbers with one target, over the pairs of which both are known.

    Parameters
    ----------
    values, target : array, shape (n,)
        The columns; NaN if unknown.

    Returns
    -------
    Coefficient
        NaN if a column does not vary or fewer than FEWEST pairs are known.
    """
    return _pair(_Column(values), _Column(target))


@dataclass(frozen=True, slots=True)
class Half:
    """The measurements on one side of the mean."""

    count: int
    speed: float  # mean; NaN, as all of them, of too few
    efficiency: float
    best_speed: float
    best_efficiency: float

    @classmethod
    def of(cls, speed: Floats, efficiency: Floats) -> Half:
        """Summarise one side.

        Parameters
        ----------
        speed, efficiency : array, shape (n,)
            Of each measurement on that side, in any unit, larger where better; no NaN.

        Returns
        -------
        Half
            All figures but the count are NaN for fewer than FEWEST measurements.
        """
        if len(speed) < FEWEST:
            return cls(len(speed), math.nan, math.nan, math.nan, math.nan)
        means, best = (float(speed.mean()), float(efficiency.mean())), (float(speed.max()), float(efficiency.max()))
        return cls(len(speed), *means, *best)


@dataclass(frozen=True, slots=True)
class Split:
    """The cloud split by one quantity above and below its mean [Anzt2015, figure 9]."""

    name: str
    mean: float
    above: Half
    below: Half


def above_mean(values: Floats, among: Mask) -> Mask:
    """Mark the rows above the mean of a column.

    Parameters
    ----------
    values : array, shape (n,)
        The column; NaN if unknown.
    among : array of bool, shape (n,)
        The rows that count.

    Returns
    -------
    array of bool, shape (n,)
        A value at the mean counts as below.
    """
    finite = among & np.isfinite(values)
    return finite & (values > values[finite].mean()) if finite.any() else finite


def split_by_mean(observed: Observed, speed: Floats, efficiency: Floats) -> Split | None:
    """Compare the measurements above and below the mean of a quantity.

    Parameters
    ----------
    observed : Observed
        The quantity, a column of shape (n,).
    speed, efficiency : array, shape (n,)
        Of each measurement, in any unit, larger where better; NaN if it failed.

    Returns
    -------
    Split or None
        None for quantities of words, fewer than FEWEST measurements, and a quantity that does not vary.
    """
    finite = np.isfinite(observed.values) & np.isfinite(speed) & np.isfinite(efficiency)
    if observed.categorical or finite.sum() < FEWEST or np.ptp(observed.values[finite]) == 0:
        return None
    above = above_mean(observed.values, finite)
    halves = [Half.of(speed[side], efficiency[side]) for side in (above, finite & ~above)]
    return Split(observed.name, float(observed.values[finite].mean()), *halves)


class _Column:
    """A column, and its standardised values and ranks over its known rows, which most pairs share."""

    def __init__(self, values: Floats) -> None:
        self.values = values
        self.known: Mask = np.isfinite(values)
        self._over_known: tuple[Floats, Floats] | None = None

    def standardised(self, rows: Mask) -> tuple[Floats, Floats]:
        """Values and ranks over some of the known rows, of mean 0 and deviation 1; empty if they do not vary."""
        if not np.array_equal(rows, self.known):
            return _standardised(self.values[rows]), _standardised(_ranked(self.values[rows]))
        if self._over_known is None:
            values_of_rows = self.values[rows]
            self._over_known = _standardised(values_of_rows), _standardised(_ranked(values_of_rows))
        return self._over_known


def _pair(first: _Column, second: _Column) -> Coefficient:
    rows = first.known & second.known
    pairs = int(rows.sum())
    if pairs < FEWEST:
        return Coefficient(math.nan, math.nan, math.nan, pairs)
    (a, a_ranks), (b, b_ranks) = first.standardised(rows), second.standardised(rows)
    if not len(a) or not len(b):
        return Coefficient(math.nan, math.nan, math.nan, pairs)
    return Coefficient(_mean_product(a, b), _mean_product(a_ranks, b_ranks), math.nan, pairs)


def _mean_product(a: Floats, b: Floats) -> float:
    return float(np.clip((a * b).mean(), -1.0, 1.0)) if len(a) and len(b) else math.nan


def _standardised(values: Floats) -> Floats:
    """Mean 0 and deviation 1; empty if the values do not vary."""
    centred = values - values.mean()
    deviation = math.sqrt(float((centred**2).mean()))
    vanishing = 1e-12 * float(np.abs(values).max())
    return np.asarray(centred / deviation if deviation > vanishing else centred[:0], dtype=np.float64)


def _ranked(values: Floats) -> Floats:
    """Return ranks in ascending order; equal values share the mean of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[inverse], dtype=np.float64)


def _ratio(codes: Floats, target: Floats) -> Coefficient:
    """The correlation ratio of numbered words."""
    rows = np.isfinite(codes) & np.isfinite(target)
    pairs = int(rows.sum())
    if pairs < FEWEST:
        return Coefficient(math.nan, math.nan, math.nan, pairs)
    _, group = np.unique(codes[rows], return_inverse=True)
    between, whole, groups = split_variance(group, target[rows])
    if groups == 1 or whole == 0:
        return Coefficient(math.nan, math.nan, math.nan, pairs)
    return Coefficient(math.nan, math.nan, math.sqrt(min(1.0, between / whole)), pairs)


def split_variance(group: Indices, figure: Floats) -> tuple[float, float, int]:
    """Split the variance of a figure between and within groups.

    Parameters
    ----------
    group : array of int, shape (n,)
        Number of the group of each value.
    figure : array, shape (n,)
        The values, all of them known.

    Returns
    -------
    tuple of float, float and int
        The sum of squares between the groups, the total sum of squares, and the number of groups.
    """
    centred = figure - figure.mean()
    sums, counts = np.bincount(group, weights=centred), np.bincount(group)
    used = counts > 0
    between = float((sums[used] ** 2 / counts[used]).sum())
    return between, float((centred**2).sum()), int(used.sum())
