"""The posterior of the powers: linear in what is looked for, with a Gaussian prior, and bounded.

Bounds are imposed by expectation propagation: each is replaced by the Gaussian site with which the posterior has
the mean and the variance that the bound gives it, one after the other until they agree [Minka2001].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from .activity import Floats

SWEEPS: Final = 30
AGREED: Final = 1e-4  # change of a site's mean, in standard deviations
FAR: Final = 5.0  # standard deviations, from which on a bound makes no difference
DAMPING: Final = 0.8


@dataclass(frozen=True, slots=True)
class Gaussian:
    """A Gaussian distribution of n parameters."""

    mean: Floats  # shape (n,)
    covariance: Floats  # shape (n, n)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What samples state: X'X and X'y of a design and of samples whose noise is white and of variance 1."""

    gram: Floats  # shape (n, n)
    moments: Floats  # shape (n,)

    def log_of(self, prior: Gaussian) -> float:
        """Return the logarithm of the marginal likelihood under a prior, up to a constant of the samples.

        Parameters
        ----------
        prior : Gaussian
            The prior of the n parameters.

        Returns
        -------
        float
            The logarithm.
        """
        root = np.linalg.cholesky(prior.covariance)
        inner = np.eye(len(root)) + root.T @ self.gram @ root
        towards = root.T @ (self.moments - self.gram @ prior.mean)
        solved = np.linalg.solve(inner, towards)
        explained = 2.0 * prior.mean @ self.moments - prior.mean @ self.gram @ prior.mean
        return 0.5 * float(towards @ solved + explained) - 0.5 * float(np.linalg.slogdet(inner)[1])

    def posterior(self, prior: Gaussian) -> Gaussian:
        """Return the posterior without bounds.

        Parameters
        ----------
        prior : Gaussian
            The prior of the n parameters.

        Returns
        -------
        Gaussian
            The posterior.
        """
        root = np.linalg.cholesky(prior.covariance)
        inner = np.eye(len(root)) + root.T @ self.gram @ root
        covariance = root @ np.linalg.solve(inner, root.T)
        covariance = (covariance + covariance.T) / 2
        return Gaussian(prior.mean + covariance @ (self.moments - self.gram @ prior.mean), covariance)


def bounded(free: Gaussian, low: Floats, high: Floats) -> Gaussian:
    """Return a Gaussian with the mean and covariance of another one within bounds.

    Parameters
    ----------
    free : Gaussian
        The distribution without bounds, of n parameters.
    low, high : array, shape (n,)
        The bounds; infinite where there is none.

    Returns
    -------
    Gaussian
        Mean and covariance within the bounds, approximately.
    """
    mean, covariance = free.mean.copy(), free.covariance.copy()
    precision, shift = np.zeros(len(mean)), np.zeros(len(mean))
    for _ in range(SWEEPS):
        moved = 0.0
        for place in range(len(mean)):
            variance = float(covariance[place, place])
            off = min(mean[place] - low[place], high[place] - mean[place])
            if variance <= 0.0 or (precision[place] == 0.0 and off > FAR * math.sqrt(variance)):
                continue
            without = 1.0 / variance - precision[place]
            if without <= 0.0:
                continue
            centre = (mean[place] / variance - shift[place]) / without
            wanted, narrowed = _truncated(centre, 1.0 / math.sqrt(without), low[place], high[place])
            site = max(0.0, 1.0 / narrowed - without)
            target = wanted * (without + site) - centre * without
            step = DAMPING * (site - precision[place])
            shifted = DAMPING * (target - shift[place])
            precision[place] += step
            shift[place] += shifted
            column = covariance[:, place].copy()
            gain = 1.0 / (1.0 + step * variance)
            change = column * ((shifted - step * mean[place]) * gain)
            mean += change
            covariance -= np.outer(column, column) * (step * gain)
            moved = max(moved, abs(float(change[place])) / math.sqrt(variance))
        if moved < AGREED:
            break
    return Gaussian(mean, (covariance + covariance.T) / 2)


def _truncated(mean: float, sigma: float, low: float, high: float) -> tuple[float, float]:
    """Mean and variance of a Gaussian within bounds."""
    from scipy.special import log_ndtr  # imported late: the window opens without it

    from_, to = (low - mean) / sigma, (high - mean) / sigma
    if from_ + to > 0:  # nearer to the lower bound: mirrored, so that tails are small numbers
        mirrored, variance = _truncated(-mean, sigma, -high, -low) if from_ > 0 or math.isinf(to) else (math.nan, 0.0)
        if not math.isnan(mirrored):
            return -mirrored, variance
    upper, lower = float(log_ndtr(to)), float(log_ndtr(from_))
    inside = upper + math.log1p(-math.exp(min(lower - upper, -1e-300))) if lower < upper else upper
    at_low, at_high = (
        0.0 if math.isinf(edge) else math.exp(-0.5 * edge * edge - 0.9189385332046727 - inside) for edge in (from_, to)
    )
    shift = at_low - at_high
    low_term, high_term = (0.0 if math.isinf(edge) else edge * at for edge, at in ((from_, at_low), (to, at_high)))
    narrowed = 1.0 + low_term - high_term - shift * shift
    return mean + sigma * shift, sigma * sigma * min(1.0, max(narrowed, 1e-6))
