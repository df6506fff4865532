"""Every plausible bend at once: the frequency model on a grid of ridge, slope and kind.

For a given bend the model is linear in P_idle and alpha, so both follow from sums over the points. The square of the
voltage is a polynomial of the slope, so those sums are needed per ridge and kind only. Thousands of bends cost a
few milliseconds. They give the starting points of the least-squares fit, and, weighted by how well each explains the
points, the posterior of ridge and optimum: an interval instead of a single number.

What a reading departs from the curve by is noise of its own and a smooth part, shared with its neighbours, where the
board is no curve of this family. Both are relative to the power, and weigh the bends through their covariance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..arrays import Floats, Mask, Rows
from .curve import rise


@dataclass(frozen=True, slots=True)
class Kinds:
    """Kinds of bends: how soft, and how much steeper above the ridge, in units of the highest clock; shape (s,)."""

    softness: Floats
    curvature: Floats  # of v = 1 + slope (u + curvature u^2), u the clock above the ridge
    share: Floats  # of the prior

    @property
    def sharp(self) -> Mask:
        """The form of [Schoonhoven2024, eq. 6.3]."""
        return np.asarray((self.softness == 0.0) & (self.curvature == 0.0))

    @property
    def soft(self) -> Mask:
        """The smooth form."""
        return np.asarray(self.softness > 0.0)

    def above(self, x: Floats, ridge: Floats) -> Floats:
        """The rise of the voltage per slope.

        Parameters
        ----------
        x : array, shape (n,)
            Clocks, in units of the highest.
        ridge : array, shape (r,)
            Ridges, in the same unit.

        Returns
        -------
        array, shape (s, r, n)
            Of each kind, with each ridge, at each clock; in units of the highest clock.
        """
        return np.stack(
            [_bent(x[None, :], ridge[:, None], s, c) for s, c in zip(self.softness, self.curvature, strict=True)]
        )


def _bent(x: Floats, ridge: Floats, softness: float, curvature: float) -> Floats:
    above = rise(x, ridge, float(softness))
    return above + curvature * above**2 if curvature > 0 else above


def _kinds(softness: list[float], curvature: list[float], sharp_share: float) -> Kinds:
    """The first kind has that share, the others share the rest."""
    rest = [(1 - sharp_share) / (len(softness) - 1)] * (len(softness) - 1)
    return Kinds(np.asarray(softness), np.asarray(curvature), np.asarray([sharp_share, *rest]))


KINDS = _kinds([0.0, 0.01, 0.02, 0.035, 0.055, 0.08, 0.11], [0.0] * 7, 0.4)
FEW_KINDS = _kinds([0.0, 0.02, 0.07], [0.0] * 3, 0.4)
# A measured voltage rises at first straight, later ever steeper [Schoonhoven2024, figure 6.8]; power
# alone does not show it.
VOLTAGE_KINDS = _kinds([0.0, 0.0, 0.0, 0.02, 0.055], [0.0, 1.5, 4.0, 0.0, 0.0], 0.3)
_TOP_VOLTAGE, _TOP_VOLTAGE_SPREAD = 0.35, 0.3  # logarithm of the voltage at the highest clock over that at the ridge
_RIDGE, _RIDGE_SPREAD = 0.67, 0.3  # of the highest clock; measured boards lie at 0.49 to 0.8
_LOWEST_RIDGE, _BELOW = 0.05, 0.15  # a ridge so far below the lowest clock shows in the curvature
_HIGHEST_RIDGE = 1.03
_VOLTAGE_NOISE = 0.006  # relative: steps of 6 mV
_SLOPES = (0.1, 10.0)  # relative voltage per highest clock
_NEGLIGIBLE = 1e-4  # share of the best weight
_SMALL = 1e-12


@dataclass(frozen=True, slots=True)
class Grid:
    """The axes on which bends are tried, in units of the highest clock."""

    ridge: Floats
    slope: Floats
    kinds: Kinds

    @classmethod
    def over(cls, lowest: float, ridges: int, slopes: int, kinds: Kinds = KINDS) -> Grid:
        """Make a grid of ridges and slopes for points from a lowest clock up.

        Parameters
        ----------
        lowest : float
            The lowest clock, in units of the highest.
        ridges, slopes : int
            How many of each: ridges evenly spaced, slopes geometrically.
        kinds : Kinds, optional
            The kinds of bends.

        Returns
        -------
        Grid
            Its ridges begin a little below the lowest clock and end a little above the highest.
        """
        start = max(_LOWEST_RIDGE, lowest - _BELOW)
        return cls(np.linspace(start, _HIGHEST_RIDGE, ridges), np.geomspace(*_SLOPES, slopes), kinds)

    def around(self, weight: Floats, ridges: int, slopes: int, kinds: Kinds = KINDS) -> Grid:
        """Make a finer grid where the weight is, and a step beyond.

        Parameters
        ----------
        weight : array, shape (kinds, ridge, slope)
            Weight of each bend of this grid, up to a factor.
        ridges, slopes : int
            How many of each in the new grid.
        kinds : Kinds, optional
            The kinds of bends of the new grid.

        Returns
        -------
        Grid
            Never wider than this one.
        """
        seen = weight > _NEGLIGIBLE * weight.max()
        ridge = _around(self.ridge, seen.any(axis=(0, 2)), ridges)
        slope = np.exp(_around(np.log(self.slope), seen.any(axis=(0, 1)), slopes))
        return Grid(ridge, slope, kinds)


@dataclass(frozen=True, slots=True)
class Bends:
    """The bends of a grid with their linear solutions; arrays of shape (activities, kinds, ridge, slope)."""

    grid: Grid
    log_weight: Floats  # up to a constant that all grids on the same points share
    p_idle_w: Floats
    alpha_w: Floats  # per unit of scaled clock
    rss: Floats  # of relative residuals, in units of their variance
    information: tuple[float, Floats, Floats]  # of P_idle and alpha: its three different elements

    @property
    def weight(self) -> Floats:
        """Over the best weight, summed over the activities; shape (kinds, ridge, slope)."""
        return np.asarray(np.exp(self.log_weight - self.log_weight.max()).sum(axis=0))

    @property
    def log_evidence(self) -> float:
        """How well all of them together explain the points."""
        top = float(self.log_weight.max())
        return top + float(np.log(np.exp(self.log_weight - top).sum()))

    def drawn(self, count: int, rng: np.random.Generator) -> Drawn:
        """Draw bends evenly by weight, P_idle and alpha each from its posterior.

        Parameters
        ----------
        count : int
            How many to draw, k.
        rng : numpy.random.Generator
            Source of the normal deviates of P_idle and alpha.

        Returns
        -------
        Drawn
            Arrays of shape (k,); no P_idle or alpha is below zero.
        """
        weight = np.exp(self.log_weight - self.log_weight.max()).ravel()
        edges = np.cumsum(weight)
        index = np.searchsorted(edges, (np.arange(count) + 0.5) / count * edges[-1])
        unit = self.information[0]
        cross, square = (part.ravel()[index] for part in self.information[1:])
        # Cholesky factor of the 2 x 2 information, solved for two normal deviates: a draw from its inverse.
        first = np.sqrt(unit)
        lower = cross / first
        second = np.sqrt(np.maximum(square - lower**2, _SMALL * square))
        deviate = rng.standard_normal((2, count))
        best = self._at(np.unravel_index(index, self.log_weight.shape))
        alpha = best.alpha_w + deviate[1] / second
        # Neither is below zero. Where one would be, it is zero and the other follows it: they belong together, since
        # work whose speed hardly follows the clock shows little more than their sum.
        alpha = np.maximum(alpha, 0.0)
        idle = best.p_idle_w + deviate[0] / first - cross / unit * (alpha - best.alpha_w)
        free = best.alpha_w + deviate[1] / np.sqrt(square) - cross / square * (0.0 - best.p_idle_w)
        return replace(
            best,
            p_idle_w=np.maximum(idle, 0.0),
            alpha_w=np.where(idle < 0.0, np.maximum(free, 0.0), alpha),
        )

    def best(self) -> Drawn:
        """The bend with the smallest residuals, as k = 1."""
        return self._at(np.unravel_index([int(self.rss.argmin())], self.rss.shape))

    def starts(self, sharp: bool) -> Drawn:
        """Find where to look for the best sharp or soft bend.

        Parameters
        ----------
        sharp : bool
            Whether to look among the sharp kinds; False is for the soft ones.

        Returns
        -------
        Drawn
            Two bends, k = 2: the one with the smallest residuals, and the most likely one.
        """
        other = ~(self.grid.kinds.sharp if sharp else self.grid.kinds.soft)
        closest, likeliest = self.rss.copy(), self.log_weight.copy()
        closest[:, other], likeliest[:, other] = np.inf, -np.inf
        return self._at(np.unravel_index([int(closest.argmin()), int(likeliest.argmax())], self.rss.shape))

    def _at(self, at: tuple[Rows, ...]) -> Drawn:
        activity, soft, ridge, slope = at
        return Drawn(
            activity=activity,
            softness=self.grid.kinds.softness[soft],
            curvature=self.grid.kinds.curvature[soft],
            ridge=self.grid.ridge[ridge],
            slope=self.grid.slope[slope],
            p_idle_w=self.p_idle_w[at],
            alpha_w=self.alpha_w[at],
        )


@dataclass(frozen=True, slots=True)
class Drawn:
    """Single curves; arrays of shape (k,), clocks in units of the highest."""

    activity: Rows  # which of the activities
    softness: Floats
    curvature: Floats
    ridge: Floats
    slope: Floats
    p_idle_w: Floats
    alpha_w: Floats

    def power_w(self, x: Floats, activities: Floats) -> Floats:
        """Compute the power P without a cap.

        Parameters
        ----------
        x : array, shape (m,)
            Clocks, in units of the highest.
        activities : array, shape (a, m)
            What alpha v^2 is multiplied by at them, for each of the activities.

        Returns
        -------
        array, shape (k, m)
            Power of each curve in W.
        """
        above = np.empty((len(self.ridge), len(x)))
        for softness, curvature in set(zip(self.softness.tolist(), self.curvature.tolist(), strict=True)):
            rows = (self.softness == softness) & (self.curvature == curvature)
            above[rows] = _bent(x[None, :], self.ridge[rows, None], softness, curvature)
        voltage = 1.0 + self.slope[:, None] * above
        return np.asarray(self.p_idle_w[:, None] + self.alpha_w[:, None] * activities[self.activity] * voltage**2)


class Family:
    """The frequency model on one set of points, ready to be weighted under any covariance of their departures."""

    def __init__(
        self,
        x: Floats,
        power_w: Floats,
        activities: Floats,
        grid: Grid,
        voltage: Floats | None = None,
        level_w: Floats | None = None,
    ) -> None:
        """`x`: clocks in units of the highest, shape (n,); `activities`: what alpha v^2 is multiplied by, (a, n).

        The clock itself, or a mixture of the clock and the speed, where work waits for memory. `voltage`: measured, in
        any unit, NaN if it is not known. `level_w`: what departures are relative to; a smooth curve near the points,
        as their noise must not be in it, or the points themselves where only independent noise is looked at.
        """
        level = power_w if level_w is None else level_w
        self.grid = grid
        above = grid.kinds.above(x, grid.ridge)
        scaled = activities / level
        self.columns = np.stack([scaled, scaled, scaled], axis=1)[:, :, None, None, :] * np.stack(
            [np.ones_like(above), above, above**2]
        )  # (a, 3, s, r, n): relative derivative by alpha is their sum with powers of the slope
        self.unit = 1.0 / level
        self.target = power_w / level
        b = grid.slope
        self.linear = np.stack([np.ones_like(b), 2 * b, b**2])
        self.square = np.stack([np.ones_like(b), 4 * b, 6 * b**2, 4 * b**3, b**4])
        self.prior = _prior(grid, above[:, :, int(x.argmax())])
        if voltage is not None:
            self.prior = self.prior + _voltage_fits(grid, above, voltage)

    def rotated(self, vectors: Floats) -> Rotated:
        """Turn the family into the basis in which the covariance of the departures is diagonal.

        Parameters
        ----------
        vectors : array, shape (n, n)
            The directions of that basis, one in each column.

        Returns
        -------
        Rotated
            The family in that basis.
        """
        columns = self.columns @ vectors
        first, second, third = columns[:, 0], columns[:, 1], columns[:, 2]
        squares = np.stack(
            [first**2, first * second, (2 * second**2 + first * third) / 3, second * third, third**2], axis=1
        )
        return Rotated(self, columns, squares, self.unit @ vectors, self.target @ vectors)


@dataclass(frozen=True, slots=True)
class Rotated:
    """A family in the basis of a covariance."""

    family: Family
    columns: Floats  # (a, 3, s, r, n)
    squares: Floats  # (a, 5, s, r, n)
    unit: Floats
    target: Floats

    def weighted(self, variance: Floats) -> Bends:
        """Solve and weight the bends, with flat priors on P_idle and alpha >= 0.

        Parameters
        ----------
        variance : array, shape (n,)
            Variances of the relative departures, along each direction of the basis.

        Returns
        -------
        Bends
            Every bend of the grid, with its P_idle and alpha, its residuals and its weight.
        """
        family, share = self.family, 1.0 / variance
        cross = np.einsum("aksr,kb->asrb", self.columns @ (share * self.unit), family.linear)
        target = np.einsum("aksr,kb->asrb", self.columns @ (share * self.target), family.linear)
        square = np.einsum("aksr,kb->asrb", self.squares @ share, family.square)
        unit = float((self.unit**2) @ share)
        level = float((self.unit * self.target) @ share)
        total = float((self.target**2) @ share)
        determinant = np.maximum(unit * square - cross**2, _SMALL * unit * square)
        idle = np.maximum((square * level - cross * target) / determinant, 0.0)
        alpha = np.maximum((target - idle * cross) / square, 0.0)
        rss = total + idle**2 * unit + alpha**2 * square - 2 * (idle * level + alpha * target - idle * alpha * cross)
        rss = np.maximum(rss, 0.0)
        log_weight = family.prior - 0.5 * (rss + np.log(variance).sum() + np.log(determinant))
        return Bends(family.grid, log_weight, idle, alpha, rss, (unit, cross, square))


def _around(axis: Floats, seen: Mask, count: int) -> Floats:
    """`count` values over those of an evenly spaced axis that were seen, and one step beyond."""
    likely, step = axis[seen], axis[1] - axis[0]
    return np.linspace(max(axis[0], likely[0] - step), min(axis[-1], likely[-1] + step), count)


def _prior(grid: Grid, top_rise: Floats) -> Floats:
    """The logarithm of the prior; shape (kinds, ridge, slope)."""
    top = np.log1p(grid.slope * top_rise[:, :, None])
    return np.asarray(
        np.log(grid.kinds.share)[:, None, None]
        - 0.5 * ((top - _TOP_VOLTAGE) / _TOP_VOLTAGE_SPREAD) ** 2
        - 0.5 * ((grid.ridge[None, :, None] - _RIDGE) / _RIDGE_SPREAD) ** 2
    )


def _voltage_fits(grid: Grid, above: Floats, voltage: Floats) -> Floats:
    """How well each bend explains a measured voltage curve, as logarithms; its level is free."""
    finite = np.isfinite(voltage) & (voltage > 0)
    if finite.sum() < 3:
        return np.zeros((len(grid.kinds.share), len(grid.ridge), len(grid.slope)))
    relative = (1.0 + grid.slope[None, None, :, None] * above[:, :, None, finite]) / voltage[finite]
    level = relative.sum(axis=-1) / (relative**2).sum(axis=-1)
    departure = level[..., None] * relative - 1.0
    return np.asarray(-0.5 * (departure**2).sum(axis=-1) / _VOLTAGE_NOISE**2)


def closest_power_w(clock_mhz: Floats, power_w: Floats, variance: Floats, at_mhz: Floats) -> Floats:
    """Compute the power of the bend closest to the points.

    A quick look on a coarse grid, for points that lie far from any bend.

    Parameters
    ----------
    clock_mhz : array, shape (n,)
        Clocks of the points in MHz.
    power_w : array, shape (n,)
        Power at them in W.
    variance : array, shape (n,)
        Variance of each relative to its power.
    at_mhz : array, shape (m,)
        Clocks in MHz at which the power is returned.

    Returns
    -------
    array, shape (m,)
        Power in W.
    """
    scale = float(clock_mhz.max())
    x, there = clock_mhz / scale, at_mhz / scale
    family = Family(x, power_w, x[None, :], Grid.over(float(x.min()), 40, 24, FEW_KINDS))
    best = family.rotated(np.eye(len(x))).weighted(variance).best()
    return np.asarray(best.power_w(there, there[None, :])[0])
