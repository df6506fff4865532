"""Gaussian-process regression over discrete parameters [Rasmussen2006, chapters 2, 4 and 5].

A value is a constant plus a Gaussian process of covariance s^2 (C + g I). The correlation of two configurations is a
product over axes, C = prod_j (1 - w_j + w_j k_j): multiplied out it holds every axis' own effect and the interactions
of every order (an ANOVA kernel), and w_j is the share of axis j. k_j falls exponentially with the distance of
ordered levels, k = exp(-|u - u'| / l_j), as tuning landscapes are rough; that of a clock or power limit is smooth,
k = exp(-(u - u')^2 / 2 l_j^2); without order it is 1 for equal levels and 0 for others. As axes have few levels, all of
it is a table per axis.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_solve, solve_triangular
from scipy.optimize import minimize

from ..space.search_space import Rows
from .features import Axis, Features, Floats, Levels

Vector = np.ndarray[tuple[int], np.dtype[np.float64]]

_CHUNK: Final = 4096  # candidates computed together

# Mean and standard deviation of a normal prior, and bounds, of each hyperparameter: few points determine them poorly.
_LOG_LENGTH: Final = (math.log(0.6), 0.8, math.log(0.03), math.log(10.0))
_LOG_LENGTH_SMOOTH: Final = (1.0, 0.7, math.log(0.1), math.log(30.0))
_LOGIT_SHARE: Final = (1.0, 1.5, -6.0, 6.0)
_LOGIT_SHARE_DERIVED: Final = (-2.0, 2.0, -6.0, 6.0)
_LOG_NOISE: Final = (math.log(1e-3), 0.7, math.log(1e-6), math.log(0.1))
# The same where nothing but settings of the board varies: the cost is one smooth function of all of them together.
_LOG_LENGTH_ALONE: Final = (-0.7, 0.7, -3.0, 2.0)
_LOGIT_SHARE_ALONE: Final = (3.0, 0.5, 1.0, 6.0)
_LOG_NOISE_ALONE: Final = (-8.0, 1.5, -12.0, -2.0)
_LENGTH_DERIVED: Final = 0.5
_PRIOR_POINTS: Final = 5.0  # weight of the expectation that s^2 is the variance of the values, which is about 1

_NEW_AXES: Final = 6  # derived axes that a fit may add
_NEW_COMBINED: Final = 10  # derived axes, those added before and the most promising, multiplied with one another
_WORTH: Final = 1.0  # slope of the log likelihood along a derived axis' share from which on it is added
_WORTHLESS: Final = 0.01  # share below which it is dropped


@dataclass(frozen=True)
class Kernel:
    """The correlation function over some axes of a space.

    `theta` holds for each of them the logit of w_j and, where it is ordered and not derived, log l_j; last log g.
    """

    features: Features
    axes: tuple[int, ...]
    theta: Floats

    @staticmethod
    def by_default(features: Features) -> Kernel:
        """A kernel over the parameters' own axes, with theta at the middle of the priors.

        Parameters
        ----------
        features : Features
            The axes of the space.

        Returns
        -------
        Kernel
        """
        axes = tuple(range(features.own))
        return Kernel(features, axes, _priors(features, axes)[:, 0])

    @property
    def noise(self) -> float:
        """g: variance of the noise over that of the process."""
        return math.exp(self.theta[-1])

    @cached_property
    def starts(self) -> Levels:
        """The first level of each axis, numbered through over all of them, and the end."""
        return np.cumsum([0, *(self.features.axes[index].count for index in self.axes)]).astype(np.intp)

    @cached_property
    def log_table(self) -> Floats:
        """Log of the correlation of every pair of levels of an axis, shape (levels, levels), blocks on the diagonal."""
        return self.slopes[0]

    @cached_property
    def slopes(self) -> tuple[Floats, list[tuple[int, Floats]]]:
        """`log_table`, and for each of theta but the noise the position of its axis and the slope of that's block."""
        table = np.zeros((self.starts[-1], self.starts[-1]))
        slopes: list[tuple[int, Floats]] = []
        for place, index in enumerate(self.axes):
            start, end = self.starts[place : place + 2]
            axis = self.features.axes[index]
            share = 1 / (1 + math.exp(-self.theta[len(slopes)]))
            own_length = axis.positions is not None and not axis.derived
            length = math.exp(self.theta[len(slopes) + 1]) if own_length else _LENGTH_DERIVED
            similar, slope = _similarity(axis, length)
            correlation = 1 - share + share * similar
            table[start:end, start:end] = np.log(correlation)
            slopes.append((place, share * (1 - share) * (similar - 1) / correlation))
            if own_length:
                slopes.append((place, share * slope / correlation))
        return table, slopes

    def levels(self, rows: Sequence[int] | Rows) -> Levels:
        """The levels of rows on the kernel's axes, numbered through over all of them.

        Parameters
        ----------
        rows : sequence of int
            Rows of the space.

        Returns
        -------
        array of int, shape (rows, axes)
        """
        levels: Levels = self.features.of(rows, self.axes) + self.starts[:-1]
        return levels

    def correlation(self, some: Levels, others: Levels) -> Floats:
        """The correlation C between two sets of configurations.

        Parameters
        ----------
        some, others : array of int, shapes (n, axes) and (m, axes)
            Their levels, as of `levels`.

        Returns
        -------
        array, shape (n, m)
        """
        return np.exp((self.one_hot(some) @ self.log_table) @ self.one_hot(others).T)

    def one_hot(self, levels: Levels) -> Floats:
        """Levels as zeros and ones.

        Parameters
        ----------
        levels : array of int, shape (n, axes)
            The levels of n configurations, as of `levels`.

        Returns
        -------
        array, shape (n, all levels)
        """
        ones = np.zeros((len(levels), self.starts[-1]))
        np.put_along_axis(ones, levels, 1.0, axis=1)
        return ones


def log_likelihood(kernel: Kernel, rows: Rows, values: Floats) -> tuple[float, Floats]:
    """Log marginal likelihood of the values of rows and its slope along theta (eqs. 5.8, 5.9), up to a constant.

    The constant mean and s^2 are at their most likely.

    Parameters
    ----------
    kernel : Kernel
        With its theta.
    rows : array of int, shape (n,)
        Rows of the space.
    values : array, shape (n,)
        Their scores.

    Returns
    -------
    likelihood : float
        -inf if the covariance is not positive definite.
    slope : array, shape (m,)
        Along each of theta's components.
    """
    likelihood = _Likelihood(kernel, kernel.one_hot(kernel.levels(rows)), values)
    return likelihood.value, likelihood.slope


def fit_kernel(start: Kernel, rows: Rows, values: Floats, iterations: int) -> Kernel:
    """The most probable kernel of the values of rows: marginal likelihood times priors, uphill from `start`.

    The derived axes along which the likelihood rises most are then added, and all is fitted again.

    Parameters
    ----------
    start : Kernel
        Where the ascent begins.
    rows : array of int, shape (n,)
        Rows of the space.
    values : array, shape (n,)
        Their scores.
    iterations : int
        At most, of each ascent.

    Returns
    -------
    Kernel
    """
    fitted = _climb(_without_worthless(start), rows, values, iterations)
    wider = _with_worthy(fitted, rows, values)
    return _climb(wider, rows, values, iterations) if wider is not fitted else fitted


class Posterior:
    """The posterior over a set of candidates given measured rows, kept up to date as rows and candidates are added.

    Holds the Cholesky factor L of C + g I over the rows and V = L^-1 C over rows x candidates, so that a row costs
    O(rows x candidates). Rows believed (a batch under way) narrow the variance and are forgotten again.
    """

    def __init__(self, kernel: Kernel, rows: Rows, candidates: Rows, capacity: int) -> None:
        self.kernel = kernel
        self.capacity = capacity
        self.count = len(rows)
        self._points = np.zeros((capacity, len(kernel.axes)), dtype=np.intp)
        self._points[: self.count] = points = kernel.levels(rows)
        self._towards = np.zeros((capacity, len(kernel.log_table)), dtype=np.float32)  # log C of a row with each level
        self._towards[: self.count] = kernel.one_hot(points) @ kernel.log_table
        covariance = kernel.correlation(points, points)
        covariance[np.diag_indices(self.count)] += kernel.noise
        self._factor = np.zeros((capacity, capacity))
        self._factor[: self.count, : self.count] = np.linalg.cholesky(covariance)
        self._candidates = np.empty((0, len(kernel.axes)), dtype=np.intp)
        self._reduced = np.zeros((capacity, 0), dtype=np.float32)  # V
        self._variance = np.empty(0, dtype=np.float32)  # of each candidate, over s^2
        self._before: int | None = None  # rows before anything was believed
        self.extend(candidates)

    def extend(self, candidates: Rows) -> None:
        """Add candidates.

        Parameters
        ----------
        candidates : array of int, shape (n,)
            Rows of the space, which follow the candidates there are.
        """
        n, old, new = self.count, len(self._candidates), len(self._candidates) + len(candidates)
        self._candidates = np.concatenate([self._candidates, self.kernel.levels(candidates)])
        if new > self._reduced.shape[1]:
            grown = np.zeros((self.capacity, new if not old else new + new // 2), dtype=np.float32)
            grown[:n, :old] = self._reduced[:n, :old]
            self._reduced = grown
        factor = self._factor[:n, :n].astype(np.float32)
        for start in range(old, new, _CHUNK):
            part = slice(start, min(start + _CHUNK, new))
            ones = self.kernel.one_hot(self._candidates[part]).astype(np.float32)
            correlation = np.exp(self._towards[:n] @ ones.T)
            self._reduced[:n, part] = solve_triangular(factor, correlation, lower=True, check_finite=False)
        fresh = self._reduced[:n, old:new]
        self._variance = np.concatenate([self._variance, 1 - np.einsum("ij,ij->j", fresh, fresh)])

    def add(self, row: int) -> None:
        """Add a measured row. Whatever was believed must be forgotten before.

        Parameters
        ----------
        row : int
            A row of the space; there must be room for it within `capacity`.
        """
        assert self._before is None
        assert self.count < self.capacity
        self._append(row)

    def believe(self, row: int) -> None:
        """Add a row that will be measured: the candidates near it become less uncertain, their means stay.

        Parameters
        ----------
        row : int
            A row of the space.
        """
        if self._before is None:
            self._before = self.count
        if self.count == self.capacity:  # boards that measure together may be more than there is room for
            self._grow()
        self._append(row)

    def forget(self) -> None:
        """Forget what was believed."""
        if self._before is not None:
            narrowed = self._reduced[self._before : self.count, : len(self._candidates)]
            self._variance = self._variance + np.einsum("ij,ij->j", narrowed, narrowed)
            self.count, self._before = self._before, None

    def predict(self, values: Floats) -> tuple[Floats, Floats]:
        """Predict every candidate's value from those of the measured rows (eqs. 2.23, 2.24).

        Parameters
        ----------
        values : array, shape (rows,)
            Those of the measured rows, in the order in which these were added, without those believed.

        Returns
        -------
        mean : array, shape (candidates,)
            In the unit of the values.
        deviation : array, shape (candidates,)
            The standard deviation of the process, without the noise, in the same unit.
        """
        n = len(values)
        assert n == (self.count if self._before is None else self._before)
        constant, residual, scale = self._solve(values)
        weighted = residual.astype(np.float32) @ self._reduced[:n, : len(self._candidates)]
        return constant + weighted.astype(np.float64), scale * self.uncertainty()

    def uncertainty(self) -> Floats:
        """Standard deviation at every candidate over s: 1 far from every row."""
        return np.sqrt(np.maximum(self._variance, 1e-9).astype(np.float64))

    def draw(self, values: Floats, rng: np.random.Generator, among: npt.NDArray[np.intp]) -> Floats:
        """Draw one function from the posterior.

        Parameters
        ----------
        values : array, shape (rows,)
            Those of the measured rows, in the order in which these were added, without those believed.
        rng : numpy.random.Generator
            Draws the function.
        among : array of int, shape (n,)
            Positions of the candidates at which it is drawn.

        Returns
        -------
        array, shape (n,)
            The function's values there, in the unit of `values`.
        """
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
        square = float(residual @ residual) + _PRIOR_POINTS * float(values.var())
        return constant, residual, math.sqrt(max(square / (n + _PRIOR_POINTS), 1e-12))

    def _grow(self) -> None:
        """Room for twice as many rows."""
        n, self.capacity = self.capacity, 2 * self.capacity
        wider = np.zeros((self.capacity, self.capacity))
        wider[:n, :n] = self._factor
        self._factor = wider
        self._points, self._towards, self._reduced = (
            np.concatenate([value, np.zeros_like(value)]) for value in (self._points, self._towards, self._reduced)
        )

    def _append(self, row: int) -> None:
        n, width = self.count, len(self._candidates)
        point = self.kernel.levels([row])[0]
        towards = self.kernel.log_table[point].sum(axis=0)
        self._towards[n] = towards
        covariance = np.exp(towards[self._points[:n]].sum(axis=1))
        reduced_row = solve_triangular(self._factor[:n, :n], covariance, lower=True, check_finite=False)
        pivot = math.sqrt(max(1 + self.kernel.noise - float(reduced_row @ reduced_row), 1e-8))
        self._factor[n, :n], self._factor[n, n] = reduced_row, pivot
        self._points[n] = point
        correlation = np.exp(towards.astype(np.float32)[self._candidates].sum(axis=1))
        reduced = (correlation - reduced_row.astype(np.float32) @ self._reduced[:n, :width]) / np.float32(pivot)
        self._reduced[n, :width] = reduced
        self._variance = self._variance - reduced * reduced
        self.count = n + 1


# --- fitting a kernel -----------------------------------------------------------------------------------------------


class _Likelihood:
    """Log marginal likelihood of values under a kernel, -inf if the covariance is not positive definite."""

    def __init__(self, kernel: Kernel, one_hot: Floats, values: Floats) -> None:
        count = len(values)
        table, slopes = kernel.slopes
        correlation = np.exp((one_hot @ table) @ one_hot.T)
        covariance = correlation.copy()
        covariance[np.diag_indices(count)] += kernel.noise
        self.slope = np.zeros(len(kernel.theta))
        try:
            factor = np.linalg.cholesky(covariance)
        except np.linalg.LinAlgError:
            self.value, self.pull = -math.inf, np.zeros_like(covariance)
            return
        inverse = cho_solve((factor, True), np.eye(count), check_finite=False)
        ones = inverse.sum(axis=1)
        residual = values - (ones @ values) / ones.sum()
        weights = inverse @ residual
        variance = max(float(residual @ weights) / count, 1e-12)
        self.value = -0.5 * count * math.log(variance) - float(np.log(np.diag(factor)).sum())
        pull = 0.5 * (np.outer(weights, weights) / variance - inverse)  # slope along each covariance
        self.slope[-1] = np.trace(pull) * kernel.noise
        self.pull = pull * correlation  # slope along each log correlation
        half = one_hot.T @ self.pull
        for index, (axis, block) in enumerate(slopes):
            part = slice(*kernel.starts[axis : axis + 2])
            self.slope[index] = float(((half[part] @ one_hot[:, part]) * block).sum())


def _climb(start: Kernel, rows: Rows, values: Floats, iterations: int) -> Kernel:
    """Uphill from a kernel to a more probable one of the same axes."""
    priors = _priors(start.features, start.axes)
    one_hot = start.one_hot(start.levels(rows))

    def cost(theta: Vector) -> tuple[float, Floats]:
        likelihood = _Likelihood(Kernel(start.features, start.axes, theta), one_hot, values)
        off = (theta - priors[:, 0]) / priors[:, 1]
        return min(-likelihood.value, 1e10) + 0.5 * float(off @ off), off / priors[:, 1] - likelihood.slope

    likelihood = minimize(
        cost,
        start.theta,
        jac=True,
        method="L-BFGS-B",
        bounds=[(low, high) for low, high in priors[:, 2:].tolist()],
        options={"maxiter": iterations, "maxfun": 2 * iterations},
    )
    theta = np.asarray(likelihood.x, dtype=np.float64)
    return Kernel(start.features, start.axes, theta) if np.isfinite(theta).all() else start


def _with_worthy(kernel: Kernel, rows: Rows, values: Floats) -> Kernel:
    """The kernel with the derived axes added along whose share the likelihood rises most; itself where none does."""
    pull = _Likelihood(kernel, kernel.one_hot(kernel.levels(rows)), values).pull

    def rising(indices: Iterable[int]) -> list[tuple[float, int]]:
        rises = []
        for index in indices:
            if index not in kernel.axes:
                axis = kernel.features.axes[index]
                similar, _ = _similarity(axis, _LENGTH_DERIVED)
                levels = kernel.features.of(rows, [index])[:, 0]
                rises.append((float((pull * (similar[levels][:, levels] - 1)).sum()), index))
        return sorted(rises, reverse=True)[:_NEW_AXES]

    features = kernel.features
    rises = rising(range(features.own, features.first))
    among = [*(index for index in kernel.axes if index >= features.own), *(i for rise, i in rises if rise > 0)]
    rises = sorted({*rises, *rising(features.products(among[-_NEW_COMBINED:]))}, reverse=True)
    worthy = [index for rise, index in rises[:_NEW_AXES] if rise > _WORTH]
    if not worthy:
        return kernel
    added = np.full(len(worthy), _LOGIT_SHARE_DERIVED[0])
    return Kernel(
        kernel.features, (*kernel.axes, *worthy), np.concatenate([kernel.theta[:-1], added, kernel.theta[-1:]])
    )


def _without_worthless(kernel: Kernel) -> Kernel:
    """The kernel without derived axes of next to no share."""
    least = math.log(_WORTHLESS / (1 - _WORTHLESS))
    derived = [place for place, index in enumerate(kernel.axes) if index >= kernel.features.own]
    shares = kernel.theta[-1 - len(derived) : -1]
    dropped = [position for position, share in zip(derived, shares, strict=True) if share < least]
    if not dropped:
        return kernel
    theta = np.concatenate([kernel.theta[: -1 - len(derived)], shares[shares >= least], kernel.theta[-1:]])
    return Kernel(kernel.features, tuple(i for place, i in enumerate(kernel.axes) if place not in dropped), theta)


def _similarity(axis: Axis, length: float) -> tuple[Floats, Floats]:
    """k_j of every two levels of an axis, and its slope along log l_j."""
    if axis.positions is None:
        return np.eye(axis.count), np.zeros((axis.count, axis.count))
    distance = np.abs(axis.positions[:, None] - axis.positions[None, :]) / length
    if axis.smooth:
        similar = np.exp(-0.5 * distance**2)
        return similar, distance**2 * similar
    return np.exp(-distance), distance * np.exp(-distance)


def _priors(features: Features, axes: Sequence[int]) -> Floats:
    """Mean, standard deviation, lower and upper bound of every hyperparameter, in the order of theta."""
    share, smooth, noise = _LOGIT_SHARE, _LOG_LENGTH_SMOOTH, _LOG_NOISE
    if features.smooth:
        share, smooth, noise = _LOGIT_SHARE_ALONE, _LOG_LENGTH_ALONE, _LOG_NOISE_ALONE
    rows = []
    for axis in (features.axes[index] for index in axes):
        rows.append(_LOGIT_SHARE_DERIVED if axis.derived else share)
        if axis.positions is not None and not axis.derived:
            rows.append(smooth if axis.smooth else _LOG_LENGTH)
    return np.array([*rows, noise])
