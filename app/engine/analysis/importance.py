"""Which parameters matter: their main effects, pairs that act together, and what the best configurations share.

Two views, both of group counts and means, so that no model has to be trusted:

- over the whole space, analysis of variance: the share of the variance of log(figure) between the values of a
  parameter, less what chance alone gives (epsilon squared [Kelley1935]), and of pairs beyond their two parts;
- near the best, how far the values among the best tenth are from those among all: the Pearson divergence of the two
  distributions (PED-ANOVA [Watanabe2023]), less what chance alone gives, as shares of 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ...base.records import Count
from ..models.arrays import Floats, Indices, Mask
from ..results.measurement import FEWEST, Value
from ..space.search_space import SearchSpace
from .correlations import split_variance

BEST_SHARE = 0.1
_FEWEST = 20  # successful measurements below which shares are unknown
_FEWEST_PER_GROUP = 2.0  # measurements on the mean, below which a pair of parameters is left out


@dataclass(frozen=True, slots=True)
class Level:
    """The measurements with one value of a parameter; figures NaN if none succeeded, means of too few."""

    value: Value
    count: Count  # successful
    failed: Count
    mean: float
    median: float
    best: float


@dataclass(frozen=True, slots=True)
class Importance:
    """One parameter."""

    name: str
    over_all: float  # share of the variance, 0..1; NaN if it does not vary
    near_best: float  # share of 1; NaN where too few were measured
    levels: tuple[Level, ...]

    @property
    def too_few(self) -> bool:
        """Too few were measured for shares: in all, or no value more than once."""
        counts = [level.count for level in self.levels]
        return sum(counts) < _FEWEST or max(counts) < 2


@dataclass(frozen=True, slots=True)
class Interaction:
    """Two parameters, and the share of the variance that they explain together beyond one by one."""

    names: tuple[str, str]
    share: float


def importances(space: SearchSpace, rows: Indices, figure: Floats, *, maximise: bool) -> list[Importance]:
    """Compute the importance of every parameter of which several values were measured.

    Parameters
    ----------
    space : SearchSpace
        The space of the measurements.
    rows : array of int, shape (n,)
        Row of the space of each measurement.
    figure : array, shape (n,)
        The figure of each measurement; NaN if it failed.
    maximise : bool
        Whether larger figures are better.

    Returns
    -------
    list of Importance
        Sorted by the share of the variance, largest first.
    """
    codes = space.codes[rows].astype(np.int64)
    finite = np.isfinite(figure)
    scaled = _scaled(figure[finite])
    best = _best_rows(figure, finite, maximise)
    result = []
    for axis, parameter in enumerate(space.parameters):
        column, size = codes[:, axis], len(parameter.values)
        if len(np.unique(column)) < 2:
            continue
        divergence = _divergence(column[finite], column[best], size)
        levels = _levels(parameter.values, column, figure, finite, maximise)
        result.append((parameter.name, _share(column[finite], scaled), divergence, levels))
    whole = math.fsum(divergence for _, _, divergence, _ in result)
    made = [
        Importance(name, over_all, divergence / whole if whole > 0 else 0.0, levels)
        if len(scaled) >= _FEWEST
        else Importance(name, math.nan, math.nan, levels)
        for name, over_all, divergence, levels in result
    ]
    return sorted(made, key=lambda one: (math.isnan(one.over_all), -one.over_all, one.name))


def interactions(space: SearchSpace, rows: Indices, figure: Floats, most: int = 10) -> list[Interaction]:
    """Find the pairs of parameters that explain most together beyond one by one.

    Restrictions tie parameters to one another, and tied ones cannot be separated: shares need not add up to 1.

    Parameters
    ----------
    space : SearchSpace
        The space of the measurements.
    rows : array of int, shape (n,)
        Row of the space of each measurement.
    figure : array, shape (n,)
        The figure of each measurement; NaN if it failed.
    most : int, optional
        The most pairs to return.

    Returns
    -------
    list of Interaction
        Sorted by share, largest first; pairs that explain nothing are left out.
    """
    finite = np.isfinite(figure)
    if finite.sum() < _FEWEST:
        return []
    codes, scaled = space.codes[rows[finite]].astype(np.int64), _scaled(figure[finite])
    varying = [axis for axis in range(codes.shape[1]) if len(codes) and np.ptp(codes[:, axis]) > 0]
    alone = {axis: _share(codes[:, axis], scaled) for axis in varying}
    result = []
    for a, b in combinations(varying, 2):
        joint = codes[:, a] * len(space.parameters[b].values) + codes[:, b]
        if len(joint) / np.count_nonzero(np.bincount(joint)) < _FEWEST_PER_GROUP:
            continue
        beyond = _share(joint, scaled) - alone[a] - alone[b]
        if beyond > 0.001:
            result.append(Interaction((space.names[a], space.names[b]), beyond))
    return sorted(result, key=lambda one: -one.share)[:most]


def _scaled(figure: Floats) -> Floats:
    """The logarithm, so that ratios count; the figure itself where it is not positive."""
    return np.log(figure) if len(figure) and figure.min() > 0 else figure


def _share(group: Indices, figure: Floats) -> float:
    """Epsilon squared: the share of the variance between groups, less what as many random groups would have."""
    n = len(figure)
    if n < 3:
        return math.nan
    between, whole, groups = split_variance(group, figure)
    if whole <= 1e-18 * n * float(np.abs(figure).max()) ** 2 or n <= groups:
        return math.nan
    within = (whole - between) / (n - groups)
    return max(0.0, (between - (groups - 1) * within) / whole)


def _best_rows(figure: Floats, known: Mask, maximise: bool) -> Indices:
    """The best tenth of the successful ones, one at least."""
    indices = np.flatnonzero(known)
    count = min(len(indices), max(1, round(BEST_SHARE * len(indices))))
    order = np.argsort(-figure[indices] if maximise else figure[indices], kind="stable")
    return indices[order[:count]]


def _divergence(among_all: Indices, among_best: Indices, size: int) -> float:
    """Pearson's divergence of the distribution among the best from that among all, less its mean under chance."""
    if not len(among_best):
        return 0.0
    everywhere = np.bincount(among_all, minlength=size) / len(among_all)
    best = np.bincount(among_best, minlength=size) / len(among_best)
    used = everywhere > 0
    divergence = float(((best[used] - everywhere[used]) ** 2 / everywhere[used]).sum())
    chance = (int(used.sum()) - 1) / len(among_best) * (1 - len(among_best) / len(among_all))
    return max(0.0, divergence - chance)


def _levels(
    values: tuple[Value, ...], column: Indices, figure: Floats, known: Mask, maximise: bool
) -> tuple[Level, ...]:
    """The measurements of each value, in the user's order; values that were never measured are left out."""
    order = np.argsort(column[known], kind="stable")
    sorted_figures = figure[known][order]
    ends = np.searchsorted(column[known][order], np.arange(len(values) + 1))
    every = np.bincount(column, minlength=len(values))
    levels = []
    for code, value in enumerate(values):
        part = sorted_figures[ends[code] : ends[code + 1]]
        failed = int(every[code]) - len(part)
        if len(part):
            best = float(part.max() if maximise else part.min())
            few = len(part) < FEWEST
            mean, median = (math.nan, math.nan) if few else (float(part.mean()), float(np.median(part)))
            levels.append(Level(value, len(part), failed, mean, median, best))
        elif failed:
            levels.append(Level(value, 0, failed, math.nan, math.nan, math.nan))
    return tuple(levels)
