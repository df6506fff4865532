"""Acquisition functions: how much a candidate promises, from the mean and deviation of its costs (smaller is better).

For one goal several; for a front of two goals the exact expected hypervolume improvement, and for more a scalarisation.
All give larger-is-better numbers of at least 0, so that they can be multiplied by the chance that a candidate works.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from scipy.special import ndtr

from ..results.pareto import front
from .features import Floats

MOST_STRIPS: Final = 32  # of a front with more points, evenly spread: bounds the cost

_MARGIN: Final = 0.1  # the reference lies beyond the worst of the front by this share of the front's extent

Acquisition = Callable[[Floats, Floats, float], Floats]  # of means, deviations and the best cost so far


def expected_improvement(mean: Floats, deviation: Floats, best: float) -> Floats:
    """Expected improvement of a candidate over the best [Jones1998, eq. 15].

    Parameters
    ----------
    mean, deviation : array, shape (n,)
        Of each candidate's predicted score, a normal distribution.
    best : float
        The best score so far.

    Returns
    -------
    array, shape (n,)
        In units of the score; larger is better.
    """
    gain = best - mean
    z = gain / deviation
    density = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    return np.maximum(gain * ndtr(z) + deviation * density, 0.0)


def probability_of_improvement(mean: Floats, deviation: Floats, best: float) -> Floats:
    """Probability that a candidate beats the best by a hundredth of the costs' spread [Kushner1964].

    Parameters
    ----------
    mean, deviation : array, shape (n,)
        Of each candidate's predicted score, a normal distribution.
    best : float
        The best score so far.

    Returns
    -------
    array, shape (n,)
        From 0 to 1; larger is better.
    """
    chance: Floats = ndtr((best - 0.01 - mean) / deviation)
    return chance


def lower_confidence_bound(mean: Floats, deviation: Floats, best: float) -> Floats:
    """How far mean - 2 deviations lies below the highest such bound [Srinivas2010], with a fixed factor.

    Parameters
    ----------
    mean, deviation : array, shape (n,)
        Of each candidate's predicted score, a normal distribution.
    best : float
        Not used: the signature is that of the other acquisition functions.

    Returns
    -------
    array, shape (n,)
        In units of the score; larger is better.
    """
    bound = mean - 2 * deviation
    return np.asarray(bound.max() - bound)


ACQUISITIONS: Final[dict[str, Acquisition]] = {
    "expected_improvement": expected_improvement,
    "probability_of_improvement": probability_of_improvement,
    "lower_confidence_bound": lower_confidence_bound,
}


class Portfolio:
    """Takes turns among acquisition functions, more often those with the better proposals (GP-Hedge [Hoffman2011]).

    A function's loss is the mean rank, 0 best to 1 worst, that its latest proposals took among all measured before.
    """

    _MEMORY: Final = 0.8  # weight of the past at each new proposal
    _GREED: Final = 4.0  # the larger, the more the better functions are preferred

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._loss = dict.fromkeys(ACQUISITIONS, 0.0)
        self._chosen: list[str] = []  # since costs were last learned
        self._costs: list[float] = []

    def choose(self) -> str:
        """The function that makes the next proposal."""
        weights = np.exp(-self._GREED * np.array(list(self._loss.values())))
        self._chosen.append(list(self._loss)[int(self._rng.choice(len(weights), p=weights / weights.sum()))])
        return self._chosen[-1]

    def learn(self, costs: Sequence[float]) -> None:
        """Update the losses.

        Parameters
        ----------
        costs : sequence of float
            Those of the proposals since the last call, in their order; inf if one failed.
        """
        before = np.array(self._costs)
        for name, cost in zip(self._chosen, costs, strict=False):
            self._loss[name] = self._MEMORY * self._loss[name] + (1 - self._MEMORY) * float((before < cost).mean())
        self._chosen.clear()
        self._costs.extend(costs)


def expected_hypervolume_improvement(mean: Floats, deviation: Floats, known: Floats, reference: Floats) -> Floats:
    """Expected growth of the area that the front dominates, for each candidate; smaller costs are better.

    The front cuts the plane into strips along the first goal, a strip open downwards from the second cost of the point
    on its left. Within one the expectation is a product of two one-dimensional ones (after [Emmerich2011]), so that it
    costs O(front) per candidate. Exact up to MOST_STRIPS points on the front.

    Parameters
    ----------
    mean, deviation : array, shape (2, n)
        Of each candidate's costs, independent normal distributions.
    known : array, shape (points, 2)
        Costs of the points measured so far.
    reference : array, shape (2,)
        The corner of the dominated area.

    Returns
    -------
    array, shape (n,)
        In the product of the costs' units.
    """
    better = known[(known < reference).all(axis=1)]
    better = better[front(better, (False, False))[::-1]]  # ascending in the first goal
    if len(better) > MOST_STRIPS:
        better = better[np.linspace(0, len(better) - 1, MOST_STRIPS).round().astype(np.intp)]
    ends = np.append(better[:, 0], reference[0])  # right end of each strip
    tops = np.concatenate([[reference[1]], better[:, 1]])
    total = np.zeros(mean.shape[1])
    before = np.zeros(mean.shape[1])
    for end, top in zip(ends.tolist(), tops.tolist(), strict=True):
        upto = _expected_gap(end, mean[0], deviation[0])
        total += (upto - before) * _expected_gap(top, mean[1], deviation[1])
        before = upto
    return np.maximum(total, 0.0)


def scalarised_improvement(mean: Floats, deviation: Floats, known: Floats, rng: np.random.Generator) -> Floats:
    """Improvement of a candidate's optimistic costs over the worst one's, by a randomly drawn weighting of the goals.

    The weighting is a Chebyshev norm around the best of each goal, as in ParEGO [Knowles2006], of mean - deviation
    instead of a model of its own (after [Paria2019]); weights that favour one goal are drawn more often than even
    ones, so that the ends of the front are found.

    Parameters
    ----------
    mean, deviation : array, shape (goals, n)
        Of each candidate's costs.
    known : array, shape (points, goals)
        Costs of the points measured so far.
    rng : numpy.random.Generator
        Draws the weights.

    Returns
    -------
    array, shape (n,)
        Larger is better.
    """
    goals = len(mean)
    weights = rng.dirichlet(np.full(goals, 0.5))[:, None]
    best = known.min(axis=0)[:, None] if len(known) else np.zeros((goals, 1))
    scaled = weights * (mean - deviation - best)
    norm = scaled.max(axis=0) + 0.05 * scaled.sum(axis=0)
    return np.asarray(norm.max() - norm)


def reference_beyond(known: Floats) -> Floats:
    """A reference point slightly beyond the worst of the front in each goal, and no nearer than the worst known.

    While the front is a small part of what there is, such as measurements at one clock, its own worst would leave
    nothing to be gained beside it.

    Parameters
    ----------
    known : array, shape (points, goals)
        Costs of the points measured so far.

    Returns
    -------
    array, shape (goals,)
        In the costs' units.
    """
    chosen = known[front(known, (False,) * known.shape[1])]
    extent = np.ptp(chosen, axis=0)
    extent = np.where(extent > 0, extent, 1.0)
    return np.asarray(np.maximum(chosen.max(axis=0) + _MARGIN * extent, known.max(axis=0)))


def _expected_gap(bound: float, mean: Floats, deviation: Floats) -> Floats:
    """E[max(0, bound - Y)] of a normal distribution."""
    gap = bound - mean
    z = gap / deviation
    return np.asarray(gap * ndtr(z) + deviation * np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi))
