"""Gaussian-process regression over discrete parameters (Rasmussen & Williams 2006, chapters 2, 4 and 5).

A value is a constant plus a Gaussian process of covariance s^2 (C + g I). The correlation of two configurations is a
product over their parameters, C = prod_j (1 - w_j + w_j k_j): multiplied out it holds every parameter's own effect and
the interactions of every order (an ANOVA kernel), and w_j says how much parameter j matters. k_j is a Matern 5/2 kernel
(eq 4.17) of length l_j over the positions of ordered values, and 1 for equal, 0 for different ones without order. As
parameters take few levels, all of it is a table per parameter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_solve, solve_triangular
from scipy.optimize import minimize

from app.engine.strategies.features import Features, Floats, Levels

Vector = np.ndarray[tuple[int], np.dtype[np.float64]]
Singles = npt.NDArray[np.float32]

_CHUNK: Final = 4096  # candidates looked at together

# Mean and standard deviation of a normal prior, and bounds, of each hyperparameter: few points say little about them.
_LOG_LENGTH: Final = (math.log(0.6), 0.8, math.log(0.03), math.log(10.0))
_LOGIT_SHARE: Final = (1.0, 1.5, -6.0, 6.0)
_LOGIT_DERIVED: Final = (-1.0, 1.5, -6.0, 6.0)  # of derived axes: they matter less
_LOG_NOISE: Final = (math.log(1e-3), 1.5, math.log(1e-6), 0.0)


@dataclass(frozen=True)
class Kernel:
    """The correlation function. `theta` holds per axis the logit of w_j and, where ordered, log l_j; last log g."""

    features: Features
    theta: Floats

    @staticmethod
    def by_default(features: Features) -> Kernel:
        """The kernel at the middle of the priors."""
        return Kernel(features, _priors(features)[:, 0])

    @property
    def noise(self) -> float:
        """g: variance of the noise over that of the process."""
        return math.exp(self.theta[-1])

    @cached_property
    def log_table(self) -> Floats:
        """Log of the correlation of every pair of levels of an axis, shape (levels, levels), blocks on the diagonal."""
        return _log_tables(self.features, self.theta)[0]

    def correlation(self, some: Levels, others: Levels) -> Floats:
        """C between two sets of configurations, shape (some, others)."""
        sums: Floats = (_one_hot(self.features, some) @ self.log_table) @ _one_hot(self.features, others).T
        return np.exp(sums)


def log_likelihood(kernel: Kernel, levels: Levels, values: Floats) -> float:
    """Log marginal likelihood of the values (eq 5.8), constant and s^2 at their most likely, up to a constant."""
    return -_objective(kernel.theta, kernel.features, _one_hot(kernel.features, levels), values)[0]


def fit_kernel(start: Kernel, levels: Levels, values: Floats, iterations: int) -> Kernel:
    """The most probable kernel of values at configurations: marginal likelihood times priors, uphill from `start`."""
    features = start.features
    priors = _priors(features)
    one_hot = _one_hot(features, levels)

    def cost(theta: Vector) -> tuple[float, Floats]:
        minus_log, slope = _objective(theta, features, one_hot, values)
        off = (theta - priors[:, 0]) / priors[:, 1]
        return minus_log + 0.5 * float(off @ off), slope + off / priors[:, 1]

    found = minimize(
        cost,
        start.theta,
        jac=True,
        method="L-BFGS-B",
        bounds=[(low, high) for low, high in priors[:, 2:].tolist()],
        options={"maxiter": iterations, "maxfun": 2 * iterations},
    )
    theta = np.asarray(found.x, dtype=np.float64)
    return Kernel(features, theta) if np.isfinite(theta).all() else start


class Posterior:
    """What measured points say about a set of candidates, kept up to date as points and candidates are added.

    Holds the Cholesky factor L of C + g I over the points and V = L^-1 C over points x candidates, so that a point
    costs O(points x candidates). Points believed (a batch under way) narrow the variance and are forgotten again.
    """

    def __init__(self, kernel: Kernel, points: Levels, candidates: Levels, capacity: int) -> None:
        self.kernel = kernel
        self.capacity = capacity
        self.count = len(points)
        self._table = kernel.log_table
        self._points = np.zeros((capacity, points.shape[1]), dtype=np.intp)
        self._points[: self.count] = points
        covariance = kernel.correlation(points, points)
        covariance[np.diag_indices(self.count)] += kernel.noise
        self._factor = np.zeros((capacity, capacity))
        self._factor[: self.count, : self.count] = np.linalg.cholesky(covariance)
        self._candidates = np.empty((0, points.shape[1]), dtype=np.intp)
        self._reduced = np.zeros((capacity, 0), dtype=np.float32)  # V
        self._variance = np.empty(0, dtype=np.float32)  # of each candidate, over s^2
        self._before: int | None = None  # points before anything was believed
        self.extend(candidates)

    def extend(self, candidates: Levels) -> None:
        """More candidates."""
        n, old, new = self.count, len(self._candidates), len(self._candidates) + len(candidates)
        self._candidates = np.concatenate([self._candidates, candidates])
        if new > self._reduced.shape[1]:
            grown = np.zeros((self.capacity, new if not old else new + new // 2), dtype=np.float32)
            grown[:n, :old] = self._reduced[:n, :old]
            self._reduced = grown
        factor = self._factor[:n, :n].astype(np.float32)
        for start in range(old, new, _CHUNK):
            part = slice(start, min(start + _CHUNK, new))
            correlation = self.kernel.correlation(self._points[:n], self._candidates[part]).astype(np.float32)
            self._reduced[:n, part] = solve_triangular(factor, correlation, lower=True, check_finite=False)
        fresh = self._reduced[:n, old:new]
        self._variance = np.concatenate([self._variance, 1 - np.einsum("ij,ij->j", fresh, fresh)])

    def add(self, point: Levels) -> None:
        """A measured point, shape (axes,). Whatever was believed must be forgotten before."""
        assert self._before is None
        assert self.count < self.capacity
        self._append(point)

    def believe(self, point: Levels) -> None:
        """A point that will be measured: the candidates near it become less uncertain, their means stay."""
        if self._before is None:
            self._before = self.count
        if self.count < self.capacity:
            self._append(point)

    def forget(self) -> None:
        """Forget what was believed."""
        if self._before is not None:
            narrowed = self._reduced[self._before : self.count, : len(self._candidates)]
            self._variance = self._variance + np.einsum("ij,ij->j", narrowed, narrowed)
            self.count, self._before = self._before, None

    def predict(self, values: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation at every candidate, from the values of the measured points (eqs 2.23, 2.24).

        The deviation is that of the process, without the noise.
        """
        n = len(values)
        assert n == (self.count if self._before is None else self._before)
        constant, residual, scale = self._solve(values)
        mean: Floats = constant + (residual.astype(np.float32) @ self._reduced[:n, : len(self._candidates)]).astype(
            np.float64
        )
        return mean, scale * self.uncertainty()

    def uncertainty(self) -> Floats:
        """Standard deviation at every candidate over s: 1 far from every point."""
        return np.sqrt(np.maximum(self._variance, 1e-9).astype(np.float64))

    def draw(self, values: Floats, rng: np.random.Generator, among: npt.NDArray[np.intp]) -> Floats:
        """The values of one function drawn from the posterior at some of the candidates, given by their positions."""
        constant, residual, scale = self._solve(values)
        reduced = self._reduced[: self.count, among].astype(np.float64)
        chosen = self._candidates[among]
        covariance = self.kernel.correlation(chosen, chosen) - reduced.T @ reduced
        covariance[np.diag_indices(len(among))] += 1e-4  # single precision of V
        mean = constant + residual @ reduced[: len(values)]
        drawn: Floats = mean + scale * (np.linalg.cholesky(covariance) @ rng.standard_normal(len(among)))
        return drawn

    def _solve(self, values: Floats) -> tuple[float, Floats, float]:
        """The constant (generalised least squares), L^-1 (values - constant), and s."""
        n = len(values)
        both = solve_triangular(
            self._factor[:n, :n], np.column_stack([values, np.ones(n)]), lower=True, check_finite=False
        )
        constant = float(both[:, 1] @ both[:, 0] / (both[:, 1] @ both[:, 1]))
        residual = both[:, 0] - constant * both[:, 1]
        return constant, residual, math.sqrt(max(float(residual @ residual) / n, 1e-12))

    def _append(self, point: Levels) -> None:
        n = self.count
        towards = np.zeros(len(self._table))
        for level in point:
            towards += self._table[level]  # log correlation of each level of each axis with the point's
        own = np.exp(towards[self._points[:n]].sum(axis=1))
        row = solve_triangular(self._factor[:n, :n], own, lower=True, check_finite=False)
        pivot = math.sqrt(max(1 + self.kernel.noise - float(row @ row), 1e-8))
        self._factor[n, :n], self._factor[n, n] = row, pivot
        self._points[n] = point
        correlation = np.exp(towards.astype(np.float32)[self._candidates].sum(axis=1))
        width = len(self._candidates)
        reduced = (correlation - row.astype(np.float32) @ self._reduced[:n, :width]) / np.float32(pivot)
        self._reduced[n, :width] = reduced
        self._variance = self._variance - reduced * reduced
        self.count = n + 1


# --- the marginal likelihood ----------------------------------------------------------------------------------------


def _priors(features: Features) -> Floats:
    """Mean, standard deviation, lower and upper bound of every hyperparameter, in the order of theta."""
    rows = []
    for axis, positions in enumerate(features.positions):
        rows.append(_LOGIT_SHARE if axis < features.own else _LOGIT_DERIVED)
        if positions is not None:
            rows.append(_LOG_LENGTH)
    return np.array([*rows, _LOG_NOISE])


def _log_tables(features: Features, theta: Floats) -> tuple[Floats, list[tuple[int, int, Floats]]]:
    """The log correlations of all pairs of levels; and (axis, index in theta, slope of its block) for each of theta."""
    table = np.zeros((features.total, features.total))
    slopes: list[tuple[int, int, Floats]] = []
    at = 0
    for axis, positions in enumerate(features.positions):
        start, end = features.starts[axis : axis + 2]
        share = 1 / (1 + math.exp(-theta[at]))
        if positions is None:
            similar, by_length = np.eye(end - start), None
        else:
            distance = math.sqrt(5) * np.abs(positions[:, None] - positions[None, :]) / math.exp(theta[at + 1])
            decay = np.exp(-distance)
            similar = (1 + distance + distance**2 / 3) * decay
            by_length = distance**2 / 3 * (1 + distance) * decay
        correlation = 1 - share + share * similar
        table[start:end, start:end] = np.log(correlation)
        slopes.append((axis, at, share * (1 - share) * (similar - 1) / correlation))
        if by_length is not None:
            slopes.append((axis, at + 1, share * by_length / correlation))
        at += 1 if by_length is None else 2
    return table, slopes


def _objective(theta: Floats, features: Features, one_hot: Floats, values: Floats) -> tuple[float, Floats]:
    """Minus the log marginal likelihood and its slope along theta (eq 5.9)."""
    count = len(values)
    table, slopes = _log_tables(features, theta)
    correlation = np.exp((one_hot @ table) @ one_hot.T)
    noise = math.exp(theta[-1])
    covariance = correlation.copy()
    covariance[np.diag_indices(count)] += noise
    try:
        factor = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        return 1e10, np.zeros_like(theta)
    inverse = cho_solve((factor, True), np.eye(count), check_finite=False)
    ones = inverse.sum(axis=1)
    residual = values - (ones @ values) / ones.sum()
    weights = inverse @ residual
    variance = max(float(residual @ weights) / count, 1e-12)
    minus_log = 0.5 * count * math.log(variance) + float(np.log(np.diag(factor)).sum())
    pull = 0.5 * (inverse - np.outer(weights, weights) / variance)
    slope = np.zeros_like(theta)
    slope[-1] = np.trace(pull) * noise
    of_levels = one_hot.T @ (pull * correlation) @ one_hot
    for axis, at, block in slopes:
        start, end = features.starts[axis : axis + 2]
        slope[at] = float((of_levels[start:end, start:end] * block).sum())
    return minus_log, slope


def _one_hot(features: Features, levels: Levels) -> Floats:
    ones = np.zeros((len(levels), features.total))
    np.put_along_axis(ones, levels, 1.0, axis=1)
    return ones
