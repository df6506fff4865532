"""How measurements depart from a model: noise of their own, and a smooth part that is the model's own error.

No board is a curve of the model's family. Where its points run above the curve, the next point will too: that part is
a Gaussian process over the clock (Matern covariance, nu = 5/2), relative to the model. The sizes of both parts are
estimated from the points. Few noisy points leave the model as it is; many quiet ones overrule it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import Floats

_ROOT_5 = math.sqrt(5.0)
_LEAST_SHARE = 0.02  # of the posterior, that a size of the departure needs to be drawn from
_MOST = 8


@dataclass(frozen=True, slots=True)
class Departure:
    """Relative standard deviations of the noise and of the smooth part, and the correlation length of the latter."""

    noise: float
    smooth: float
    length: float

    def covariance(self, a: Floats, b: Floats) -> Floats:
        """Covariance of the smooth part between clocks.

        Parameters
        ----------
        a, b : array, shapes (n,) and (m,)
            Scaled clocks, in the unit of `length`.

        Returns
        -------
        array, shape (n, m)
            Of relative departures, without a unit.
        """
        return self.smooth**2 * matern(a, b, self.length)


@dataclass(frozen=True, slots=True)
class Scales:
    """The grid of departures and their prior."""

    noise: tuple[float, ...]
    smooth: tuple[float, ...]  # beside none at all
    usual_noise: float
    noise_spread: float  # of its logarithm
    no_smooth_share: float
    lengths: tuple[float, ...]  # in units of the highest clock

    def tried(self) -> list[tuple[Departure, float]]:
        """List every departure to try.

        Returns
        -------
        list of tuple of Departure and float
            Each with the logarithm of its prior.
        """
        results = []
        share = (1 - self.no_smooth_share) / (len(self.smooth) * len(self.lengths))
        for noise in self.noise:
            usual = -0.5 * (math.log(noise / self.usual_noise) / self.noise_spread) ** 2
            results.append((Departure(noise, 0.0, self.lengths[0]), usual + math.log(self.no_smooth_share)))
            results += [
                (Departure(noise, smooth, length), usual + math.log(share))
                for smooth in self.smooth
                for length in self.lengths
            ]
        return results


# Of power: a step of the voltage between two clocks, or a bend that no curve of the family has.
OF_POWER = Scales(
    noise=(0.001, 0.003, 0.008, 0.015, 0.03),
    smooth=(0.005, 0.015, 0.04, 0.1),
    usual_noise=0.01,
    noise_spread=1.0,
    no_smooth_share=0.3,
    lengths=(0.03, 0.1, 0.25),
)
# Of time, with little noise: the share of caches and memory changes with the clock.
OF_TIME = Scales(
    noise=(0.001, 0.003, 0.01, 0.03),
    smooth=(0.003, 0.01, 0.03, 0.1),
    usual_noise=0.003,
    noise_spread=1.0,
    no_smooth_share=0.4,
    lengths=(0.1, 0.3),
)


@dataclass(frozen=True, slots=True)
class Basis:
    """Scaled clocks of points, and the directions in which the smooth part of one length has independent sizes."""

    x: Floats
    length: float
    sizes: Floats  # eigenvalues of its covariance at unit variance
    vectors: Floats

    @classmethod
    def of(cls, x: Floats, length: float) -> Basis:
        """Compute the directions for scaled clocks.

        Parameters
        ----------
        x : array, shape (n,)
            Clocks, in units of the highest.
        length : float
            Correlation length of the smooth part, in the same unit.

        Returns
        -------
        Basis
            The directions, and the size of the smooth part along each.
        """
        sizes, vectors = np.linalg.eigh(matern(x, x, length))
        return cls(x, length, np.maximum(sizes, 0.0), vectors)

    def variance(self, departure: Departure) -> Floats:
        """Variance of the departure along each direction.

        Parameters
        ----------
        departure : Departure
            Sizes of noise and smooth part; its length is that of the basis.

        Returns
        -------
        array, shape (n,)
            Relative, without a unit.
        """
        return np.asarray(departure.noise**2 + departure.smooth**2 * self.sizes)

    def posterior(self, departure: Departure, points: Floats) -> tuple[Floats, Floats]:
        """The smooth part at other clocks given the departures of the points.

        Parameters
        ----------
        departure : Departure
            Sizes of noise and smooth part; the latter above 0.
        points : array, shape (m,)
            Scaled clocks at which the smooth part is wanted.

        Returns
        -------
        gain : array, shape (n, m)
            The matrix that turns the departures, shape (n,), into the mean of the smooth part.
        factor : array, shape (m, m)
            A factor of its covariance: a draw is the mean plus normal deviates times that factor.
        """
        across = departure.covariance(points, self.x) @ self.vectors
        left = departure.covariance(points, points) - (across / self.variance(departure)) @ across.T
        left[np.diag_indices_from(left)] += 1e-6 * departure.smooth**2
        return self.gain(departure, points), np.asarray(np.linalg.cholesky(left).T, dtype=np.float64)

    def gain(self, departure: Departure, points: Floats) -> Floats:
        """The matrix that turns the departures of the points into the mean of the smooth part at other clocks.

        Parameters
        ----------
        departure : Departure
            Sizes of noise and smooth part.
        points : array, shape (m,)
            Scaled clocks at which the smooth part is wanted.

        Returns
        -------
        array, shape (n, m)
            The same as the first that `posterior` returns.
        """
        across = departure.covariance(points, self.x) @ self.vectors
        return np.asarray(self.vectors @ (across / self.variance(departure)).T)


def matern(a: Floats, b: Floats, length: float) -> Floats:
    """Compute the Matern covariance of unit variance, nu = 5/2.

    Parameters
    ----------
    a, b : array, shapes (n,) and (m,)
        Positions.
    length : float
        Correlation length, in the unit of the positions.

    Returns
    -------
    array, shape (n, m)
        The covariance of every pair.
    """
    distance = _ROOT_5 * np.abs(a[:, None] - b[None, :]) / length
    return np.asarray((1 + distance + distance**2 / 3) * np.exp(-distance))


@dataclass(frozen=True, slots=True)
class Smooth:
    """The smooth part at other clocks given relative departures, over all likely sizes of noise and smooth part.

    One size alone would be too sure: of few points a large noise explains them almost as well as a smooth part does.
    """

    likely: tuple[tuple[Departure, float], ...]  # with their shares, which sum to 1
    bases: dict[float, Basis]
    departures: Floats  # (n,)

    @classmethod
    def of(cls, x: Floats, departures: Floats, scales: Scales) -> Smooth:
        """Weight the sizes of noise and smooth part by how well each explains departures.

        Parameters
        ----------
        x : array, shape (n,)
            Clocks, in units of the highest.
        departures : array, shape (n,)
            Relative departures of the points at them.
        scales : Scales
            The sizes to try, with their prior.

        Returns
        -------
        Smooth
            The likely sizes, with their shares.
        """
        bases = {length: Basis.of(x, length) for length in scales.lengths}

        def evidence(departure: Departure, log_prior: float) -> float:
            basis = bases[departure.length]
            variance = basis.variance(departure)
            turned = departures @ basis.vectors
            return log_prior - 0.5 * float((turned**2 / variance + np.log(variance)).sum())

        tried = scales.tried()
        kept, share = likeliest([evidence(*item) for item in tried])
        weighted = tuple((tried[i][0], float(part)) for i, part in zip(kept, share, strict=True))
        return cls(weighted, bases, departures)

    def mean(self, points: Floats) -> Floats:
        """The expected smooth part.

        Parameters
        ----------
        points : array, shape (m,)
            Scaled clocks.

        Returns
        -------
        array, shape (m,)
            Relative, without a unit.
        """
        total = np.zeros(len(points))
        for departure, share in self.likely:
            if departure.smooth > 0:
                total += share * (self.departures @ self.bases[departure.length].gain(departure, points))
        return total

    def drawn(self, points: Floats, count: int, rng: np.random.Generator) -> Floats:
        """Draw curves of the smooth part, each as likely as the next, in random order.

        Parameters
        ----------
        points : array, shape (m,)
            Scaled clocks.
        count : int
            How many curves to draw.
        rng : numpy.random.Generator
            Source of the draws.

        Returns
        -------
        array, shape (count, m)
            Relative, without a unit.
        """
        found = []
        for (departure, _), number in zip(self.likely, counts([share for _, share in self.likely], count), strict=True):
            curves = np.zeros((number, len(points)))
            if departure.smooth > 0:
                gain, factor = self.bases[departure.length].posterior(departure, points)
                curves += self.departures @ gain + rng.standard_normal(curves.shape) @ factor
            found.append(curves)
        return np.asarray(rng.permutation(np.concatenate(found)))


def likeliest(log_evidence: Sequence[float]) -> tuple[list[int], Floats]:
    """Select the few explanations that account for almost everything.

    Parameters
    ----------
    log_evidence : sequence of float
        Logarithm of the evidence of each explanation.

    Returns
    -------
    tuple of list of int and array
        Their positions, the likeliest first, and their shares, which sum to 1.
    """
    evidence = np.asarray(log_evidence)
    weight = np.exp(evidence - evidence.max())
    order = np.argsort(-weight, kind="stable")[:_MOST]
    kept = [int(i) for i in order if weight[i] > _LEAST_SHARE * weight.sum()] or [int(order[0])]
    return kept, np.asarray(weight[kept] / weight[kept].sum())


def counts(share: Sequence[float] | Floats, total: int) -> list[int]:
    """Divide a number of draws by shares.

    Parameters
    ----------
    share : sequence of float or array, shape (n,)
        Share of each, summing to 1.
    total : int
        Number of draws.

    Returns
    -------
    list of int
        Draws of each; the first gets what rounding leaves.
    """
    results = [int(part * total) for part in share]
    results[0] += total - sum(results)
    return results
