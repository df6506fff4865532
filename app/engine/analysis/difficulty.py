"""How hard a space is to search: the proportion of centrality [Schoonhoven2024, section 6.5.2, figure 6.5].

The fitness-flow graph has an edge from every configuration to each better neighbour. A configuration without a better
neighbour is a local minimum, and its PageRank the chance that a local search ends there. The proportion of centrality
is the share of good minima, those within p times the optimum, in the centrality of all minima.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ..models.arrays import Floats, Indices
from ..space.search_space import Neighbourhood, SearchSpace

DAMPING = 0.85
_MOST_CANDIDATES = 2**26  # pairs looked up; beyond it only neighbours one step away count
_SMALL = 1e-13


@dataclass(frozen=True)
class Flow:
    """Pairs of neighbours among some configurations, both ways; made once for every objective."""

    size: int
    source: Indices  # positions among the configurations
    target: Indices
    neighbourhood: Neighbourhood

    @classmethod
    def of(cls, space: SearchSpace, rows: Indices) -> Flow:
        """Find the neighbours among some configurations: those that differ in one parameter.

        Beyond 2^26 pairs to look up, only those one step away in that parameter count.

        Parameters
        ----------
        space : SearchSpace
            The space of the configurations.
        rows : array of int, shape (n,)
            Rows of the space, each a different one.

        Returns
        -------
        Flow
            Pairs of positions in `rows`.
        """
        measured = space.subset(rows)
        order = np.argsort(rows)  # position of each row of the subset
        candidates = len(rows) * sum(measured.axis_sizes)
        kind: Neighbourhood = "hamming" if candidates <= _MOST_CANDIDATES else "adjacent"
        rows_with_neighbours, near = measured.neighbours_of(np.arange(len(rows), dtype=np.int64), kind)
        return cls(len(rows), order[rows_with_neighbours], order[near], kind)


@dataclass(frozen=True)
class Difficulty:
    """The local minima of one objective, best first: how far from the optimum, and how central."""

    ratio: Floats  # cost over the least cost, at least 1; inf if a failed configuration has no working neighbour
    centrality: Floats  # PageRank, of the whole graph's 1
    minima: Indices  # positions among the configurations
    neighbourhood: Neighbourhood

    @cached_property
    def _summed(self) -> Floats:
        return np.cumsum(self.centrality)

    def proportion(self, p: npt.ArrayLike) -> Floats:
        """Compute the proportion of centrality of the minima within p times the optimum.

        Parameters
        ----------
        p : array_like, any shape
            Cost over the least cost, from 1: 1.05 is 5 % worse than the optimum.

        Returns
        -------
        array, same shape
            Shares 0..1, rising with p.
        """
        within = np.searchsorted(self.ratio, np.asarray(p, dtype=np.float64) * (1 + 1e-12), side="right")
        summed = np.concatenate([[0.0], self._summed])
        return np.asarray(summed[within] / summed[-1] if summed[-1] > 0 else np.zeros(within.shape), dtype=np.float64)


def difficulty(flow: Flow, cost: Floats) -> Difficulty | None:
    """Compute the difficulty of minimising a cost.

    A failed configuration counts as worse than all others: a search that starts there leaves for any neighbour that
    works.

    Parameters
    ----------
    flow : Flow
        Pairs of neighbours among the n configurations.
    cost : array, shape (n,)
        Positive cost of each, smaller is better; NaN if it failed.

    Returns
    -------
    Difficulty or None
        None if all configurations failed.
    """
    if not np.isfinite(cost).any():
        return None
    fitness = np.where(np.isfinite(cost), cost, np.inf)
    better = fitness[flow.target] < fitness[flow.source]
    source, target = flow.source[better], flow.target[better]
    ways = np.bincount(source, minlength=flow.size)
    rank = _page_rank(flow.size, source, target, ways)
    minima = np.flatnonzero(ways == 0)
    minima = minima[np.argsort(fitness[minima], kind="stable")]
    least = float(fitness.min())
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = fitness[minima] / least if least > 0 else np.where(fitness[minima] == least, 1.0, np.inf)
    return Difficulty(np.asarray(ratio), rank[minima], minima, flow.neighbourhood)


def _page_rank(size: int, source: Indices, target: Indices, ways: Indices) -> Floats:
    """PageRank with uniform restarts, also from where no edge leads on. Shape (size,), its sum is 1.

    Restarts are uniform, so the ranks are proportional to x = 1 + d A x, the sum of d^k A^k 1. Flow never turns back:
    A^k is zero from the longest way downhill on.
    """
    from scipy.sparse import csr_array

    flow = csr_array((DAMPING / ways[source], (target, source)), shape=(size, size))
    arriving = np.ones(size)
    rank = np.zeros(size)
    while arriving.sum() > _SMALL * size:
        rank += arriving
        arriving = np.asarray(flow @ arriving)
    return rank / float(rank.sum())
