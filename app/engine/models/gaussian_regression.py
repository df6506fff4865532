"""Gaussian-process regression over many columns of numbers [Rasmussen2006, chapters 2, 4 and 5].

A value is a constant plus a Gaussian process, with noise. Of two rows x and x', each column standardised,

    covariance = s^2 exp(-1/2 sum_j ((x_j - x'_j) / l_j)^2)

s, the noise and a length l_j for each column are the most probable ones (marginal likelihood times priors). Rows are
few and columns may be more than a hundred: the lengths are expected to grow with the root of the number of columns, so
that rows stay alike however many columns there are [Hvarfner2024]. Then no column needs to be chosen beforehand.
Columns count by their inverse hyperbolic sine: as they are where small, by their logarithm where large.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from scipy.linalg import cho_solve
from scipy.optimize import minimize

from .arrays import Floats, Mask

# Of the logarithms: mean and standard deviation of a normal prior, lower and upper bound. That of a length is for one
# column, of deviation 1; values are logarithms, or of the order of 1.
_LENGTH: Final = (math.log(3.0), 0.8, math.log(0.1), math.log(1e3))
_SPREAD: Final = (math.log(0.3), 0.7, math.log(0.01), math.log(3.0))
_NOISE: Final = (math.log(0.03), 0.5, math.log(1e-3), math.log(0.5))
_ITERATIONS: Final = 30
_JITTER: Final = 1e-6


@dataclass(frozen=True, slots=True)
class GaussianRegression:
    """What `regress` learnt."""

    varying: Mask  # (columns,): the others say nothing
    centre: Floats  # (varying,)
    scale: Floats  # (varying,): deviation times length
    constant: float
    spread: float
    points: Floats  # (rows, varying), centred and scaled
    weights: Floats  # (rows,)

    def mean(self, inputs: Floats) -> Floats:
        """The expected value of each row of `inputs`, shape (rows, columns); NaN stands for an unknown number."""
        near = np.exp(-0.5 * _squares(self._scaled(inputs), self.points))
        return np.asarray(self.constant + self.spread**2 * (near @ self.weights))

    def to_json(self) -> dict[str, Any]:
        """As it is kept."""
        return {
            "varying": np.flatnonzero(self.varying).tolist(),
            "centre": self.centre.tolist(),
            "scale": self.scale.tolist(),
            "constant": self.constant,
            "spread": self.spread,
            "points": self.points.tolist(),
            "weights": self.weights.tolist(),
        }

    @classmethod
    def from_json(cls, document: Any, columns: int) -> GaussianRegression:
        """The reverse of `to_json`, for inputs of so many columns. Raises ValueError, TypeError or KeyError."""
        varying = np.zeros(columns, dtype=np.bool_)
        at = [int(each) for each in document["varying"]]
        if at != sorted({each for each in at if 0 <= each < columns}):
            raise ValueError(f"it is not of {columns} columns")
        varying[at] = True
        centre, scale, weights = (_numbers(document[name], 1) for name in ("centre", "scale", "weights"))
        points = _numbers(document["points"], 2)
        if len(centre) != len(at) or len(scale) != len(at) or points.shape != (len(weights), len(at)):
            raise ValueError("its numbers are not of one size")
        if not (scale > 0).all():
            raise ValueError("a scale is not above 0")
        constant, spread = _numbers([document["constant"], document["spread"]], 1)
        return cls(varying, centre, scale, float(constant), float(spread), points, weights)

    def _scaled(self, inputs: Floats) -> Floats:
        return _known((np.arcsinh(inputs[:, self.varying]) - self.centre) / self.scale)


def regress(inputs: Floats, values: Floats) -> GaussianRegression:
    """Learn values, shape (rows,), at least one, from the numbers of each row, shape (rows, columns).

    NaN stands for an unknown number, which counts as that column's mean.
    """
    seen = np.isfinite(inputs)
    counts = np.maximum(seen.sum(axis=0), 1)
    shown = np.where(seen, np.arcsinh(inputs), 0.0)
    centre = shown.sum(axis=0) / counts
    deviation = np.sqrt((np.where(seen, shown - centre, 0.0) ** 2).sum(axis=0) / counts)
    varying = deviation > 1e-9
    centre, deviation = centre[varying], deviation[varying]
    standard = _known((np.arcsinh(inputs[:, varying]) - centre) / deviation)
    constant = float(values.mean())
    scales = _most_probable(standard, values - constant)
    points = standard / scales.lengths
    covariance = scales.covariance(points)
    return GaussianRegression(
        varying,
        centre,
        deviation * scales.lengths,
        constant,
        scales.spread,
        points,
        np.asarray(np.linalg.solve(covariance, values - constant), dtype=np.float64),
    )


class _Scales(NamedTuple):
    lengths: Floats
    spread: float
    noise: float

    @classmethod
    def of(cls, logs: Floats) -> _Scales:
        return cls(np.exp(logs[:-2]), math.exp(logs[-2]), math.exp(logs[-1]))

    def covariance(self, points: Floats) -> Floats:
        """Of rows whose columns were divided by the lengths, with the noise."""
        covariance = self.spread**2 * np.exp(-0.5 * _squares(points, points))
        covariance[np.diag_indices(len(points))] += self.noise**2 + _JITTER
        return covariance


def _most_probable(standard: Floats, values: Floats) -> _Scales:
    """Lengths, spread and noise at which likelihood times priors are greatest."""
    rows, columns = standard.shape
    grown = math.log(max(columns, 1)) / 2
    mean, deviation, low, high = np.array([_LENGTH] * columns + [_SPREAD, _NOISE]).T
    mean[:columns] += grown

    def cost(logs: Floats) -> tuple[float, Floats]:
        """The negative logarithm of that, and its slope (eqs. 5.8 and 5.9)."""
        scales = _Scales.of(logs)
        points = standard / scales.lengths
        covariance = scales.covariance(points)
        off = (logs - mean) / deviation
        factor = np.linalg.cholesky(covariance)
        inverse = cho_solve((factor, True), np.eye(rows), check_finite=False)
        weights = inverse @ values
        pull = 0.5 * (inverse - np.outer(weights, weights))
        noise = scales.noise**2
        alike = pull * covariance
        alike[np.diag_indices(rows)] -= np.diag(pull) * (noise + _JITTER)
        lengths = 2 * (alike.sum(axis=1) @ points**2 - (points * (alike @ points)).sum(axis=0))
        slope = np.array([*lengths, 2 * alike.sum(), 2 * noise * np.trace(pull)])
        value = 0.5 * values @ weights + np.log(np.diag(factor)).sum() + 0.5 * off @ off
        return float(value), slope + off / deviation

    bounds = list(zip(low, high, strict=True))
    found = minimize(cost, mean, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": _ITERATIONS})
    return _Scales.of(np.asarray(found.x, dtype=np.float64))


def _squares(some: Floats, others: Floats) -> Floats:
    """Squared distances, shape (some, others)."""
    apart = (some**2).sum(axis=1)[:, None] + (others**2).sum(axis=1) - 2 * some @ others.T
    return np.asarray(np.maximum(apart, 0.0))


def _numbers(document: Any, dimensions: int) -> Floats:
    """Raises ValueError or TypeError where they are not numbers of that many dimensions."""
    numbers = np.array(document, dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError("a number is not finite")
    if numbers.ndim != dimensions:
        raise ValueError(f"{numbers.ndim} dimensions for {dimensions}")
    return numbers


def _known(standard: Floats) -> Floats:
    return np.where(np.isfinite(standard), standard, 0.0)
