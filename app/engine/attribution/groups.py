"""Which families are reported alone and which as a group: as the posterior of their joules tells them apart.

An item is determined where half of its 95 % interval is a small part of its joules, or of the total. Two families that
the samples do not separate are known badly, but their sum well, since their errors are opposite. So items are merged
that together are known better, step by step, at the least energy in groups for what is gained.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from .activity import Floats

OF_ITEM: Final = 0.15  # half-width of an item that is determined, of its joules,
OF_TOTAL: Final = 0.01  # or of all joules
INDEPENDENT: Final = 0.045  # of a window, that a share varies by while those of all others stay as they are
NORMAL_95: Final = 1.96


def independent(shares: Floats) -> npt.NDArray[np.bool_]:
    """Return which columns vary by themselves.

    Parameters
    ----------
    shares : array, shape (samples, columns)
        The share of each sample's window; where they add up to 1 in all samples, two that take turns still vary.

    Returns
    -------
    array of bool, shape (columns,)
        Whether the part of a column that the others do not explain, and the column itself, vary by `INDEPENDENT`.
    """
    count, columns = shares.shape
    if count <= columns:
        return np.zeros(columns, dtype=bool)
    gram = shares.T @ shares / (count - columns) + 1e-12 * np.eye(columns)
    alone = 1.0 / np.diag(np.linalg.inv(gram))
    return np.asarray(np.minimum(alone, shares.var(axis=0)) >= INDEPENDENT**2)


def choose_groups(
    joules: Floats, covariance: Floats, total_j: float, alone: npt.NDArray[np.bool_]
) -> list[tuple[int, ...]]:
    """Merge items until each is determined, or no merger helps.

    Parameters
    ----------
    joules : array, shape (n,)
        The joules of each item.
    covariance : array, shape (n, n)
        Their covariance.
    total_j : float
        All joules.
    alone : array of bool, shape (n,)
        Items that are not merged, whatever their intervals.

    Returns
    -------
    list of tuple of int
        The items of each group; groups of one are items that stand alone.
    """
    groups: list[tuple[int, ...]] = [(number,) for number in range(len(joules))]
    joules, covariance = joules.copy(), covariance.copy()
    free = ~alone
    while True:
        over = _over(joules, np.diag(covariance), total_j)
        worst = np.flatnonzero((over > 0) & free)
        others = np.flatnonzero(free)
        if not len(worst) or len(others) < 2:
            return groups
        variances = np.diag(covariance)
        merged = variances[worst, None] + variances[others] + 2.0 * covariance[np.ix_(worst, others)]
        together = _over(joules[worst, None] + joules[others], merged, total_j)
        gained = over[worst, None] + over[others] - together
        single = np.asarray([len(group) == 1 for group in groups])
        cost = np.maximum(0.0, np.where(single, joules, 0.0))
        price = cost[worst, None] + cost[others] + 0.002 * total_j
        worth = np.where(worst[:, None] == others, -np.inf, gained / price)
        first, second = np.unravel_index(int(worth.argmax()), worth.shape)
        if worth[first, second] <= 0.0:
            return groups
        one, two = int(worst[first]), int(others[second])
        groups[one] = tuple(sorted(groups[one] + groups[two]))
        joules[one] += joules[two]
        covariance[one] += covariance[two]
        covariance[:, one] += covariance[:, two]
        keep = np.delete(np.arange(len(groups)), two)
        groups = [groups[number] for number in keep]
        joules, covariance, free = joules[keep], covariance[np.ix_(keep, keep)], free[keep]


def _over(joules: Floats, variances: Floats, total_j: float) -> Floats:
    """By how many joules the half-width of items exceeds that of a determined one."""
    most = np.maximum(OF_ITEM * np.abs(joules), OF_TOTAL * total_j)
    return np.asarray(np.maximum(0.0, NORMAL_95 * np.sqrt(np.maximum(variances, 0.0)) - most))
