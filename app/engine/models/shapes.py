"""Every plausible bend at once: the frequency model on a grid of ridge, slope and softness.

For a given bend the model is linear in P_idle and alpha, so both follow from sums over the points. The square of the
voltage is a polynomial of the slope, so those sums are needed per ridge and softness only. Tens of thousands of bends
cost a few milliseconds. They give the starting points of the least-squares fit, and, weighted by how well each explains
the points, what the points say about ridge and optimum: an interval instead of a single number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.engine.models.curve import rise

Floats = npt.NDArray[np.float64]

_FLOOR = 1e-3  # relative: no reading and no model is better than this, so no weight rests on less
_NEGLIGIBLE = 1e-4  # a bend of less than this share of the best weight is left out
_TOP_VOLTAGE, _TOP_VOLTAGE_SPREAD = 0.3, 0.2  # logarithm of the voltage at the highest clock over that at the ridge
_SOFTNESS = np.asarray([0.0, 0.01, 0.02, 0.035, 0.055, 0.08, 0.11])  # in units of the highest clock


@dataclass(frozen=True, slots=True)
class Shapes:
    """Bends and their linear least-squares solutions, all of shape (k,); clocks in units of `scale_mhz`."""

    scale_mhz: float
    ridge: Floats
    slope: Floats
    softness: Floats
    p_idle_w: Floats
    alpha_w: Floats  # per unit of scaled clock
    rss: Floats  # weighted sum of squared residuals
    weight: Floats  # sums to 1

    def power_w(self, clock_mhz: Floats) -> Floats:
        """P(f) without a cap, shape (k, len(clock_mhz)), in W."""
        x = np.asarray(clock_mhz, dtype=np.float64) / self.scale_mhz
        above = np.empty((len(self.ridge), len(x)))
        for softness in np.unique(self.softness):
            rows = self.softness == softness
            above[rows] = rise(x[None, :], self.ridge[rows, None], float(softness))
        voltage = 1.0 + self.slope[:, None] * above
        return np.asarray(self.p_idle_w[:, None] + self.alpha_w[:, None] * x * voltage**2)

    def sample(self, count: int) -> Shapes:
        """`count` bends drawn evenly by weight, so that each counts the same; the same every time."""
        edges = np.cumsum(self.weight)
        at = np.searchsorted(edges, (np.arange(count) + 0.5) / count * edges[-1])
        even = np.full(count, 1.0 / count)
        rows = (self.ridge[at], self.slope[at], self.softness[at], self.p_idle_w[at], self.alpha_w[at], self.rss[at])
        return Shapes(self.scale_mhz, *rows, even)

    def best(self, sharp: bool) -> int | None:
        """Index of the bend with the smallest residuals among the sharp or the smooth ones; None where none is left."""
        rows = np.flatnonzero((self.softness == 0.0) == sharp)
        return int(rows[np.argmin(self.rss[rows])]) if len(rows) else None


def explore(clock_mhz: Floats, power_w: Floats, weights: Floats) -> Shapes:
    """The bends that explain the points, their weights summing to 1. All arrays of shape (n,), at least 3 points.

    `weights` are those of the squared residuals. Two looks: a wide grid, then a finer one where the first found weight.
    """
    scale = float(clock_mhz.max())
    x = clock_mhz / scale
    lowest = float(x.min())
    ridge = np.linspace(max(0.05, lowest - 0.15), 1.04, 64)
    slope = np.geomspace(0.1, 10.0, 40)
    first = _grid(x, power_w, weights, ridge, slope, _SOFTNESS, scale, len(x))
    seen = first.weight > _NEGLIGIBLE * first.weight.max()
    fine_ridge = _around(first.ridge[seen], ridge, 64)
    fine_slope = np.exp(_around(np.log(first.slope[seen]), np.log(slope), 48))
    return _grid(x, power_w, weights, fine_ridge, fine_slope, _SOFTNESS, scale, _independent(first, clock_mhz, power_w))


def _independent(shapes: Shapes, clock_mhz: Floats, power_w: Floats) -> float:
    """How many independent points these are worth: where the model is a little wrong, neighbours err alike."""
    best = int(shapes.rss.argmin())
    order = np.argsort(clock_mhz, kind="stable")
    residual = power_w[order] / shapes.power_w(clock_mhz[order])[best] - 1
    total = float(residual @ residual)
    if total == 0:
        return float(len(residual))
    alike = float(residual[1:] @ residual[:-1]) / total - 1 / len(residual) ** 0.5  # beyond what chance gives
    alike = min(max(alike, 0.0), 0.95)
    return float(len(residual) * (1 - alike) / (1 + alike))


def _around(found: Floats, axis: Floats, count: int) -> Floats:
    """An axis of `count` values over what was found and one step beyond, within the first axis."""
    step = axis[1] - axis[0]
    return np.linspace(max(axis[0], found.min() - step), min(axis[-1], found.max() + step), count)


def _grid(
    x: Floats,
    power_w: Floats,
    weights: Floats,
    ridge: Floats,
    slope: Floats,
    softness: Floats,
    scale: float,
    independent: float,
) -> Shapes:
    """Solve the linear part for every bend of the grid; the axes are (softness, ridge, slope)."""
    y = power_w
    above = np.stack([rise(x[None, :], ridge[:, None], float(s)) for s in softness])  # (s, r, n)
    power = np.stack([above**k for k in range(5)])  # moments of the rise, k = 0..4
    b = slope
    # g = x (1 + b u)^2 expanded in powers of b: the sums over the points do not depend on b
    first = power[:3] @ (weights * x)  # sum w x u^k, (3, s, r)
    cross = power[:3] @ (weights * x * y)
    second = power @ (weights * x * x)  # (5, s, r)
    sum_g = _polynomial(first, (1, 2, 1), b)
    sum_gy = _polynomial(cross, (1, 2, 1), b)
    sum_gg = _polynomial(second, (1, 4, 6, 4, 1), b)
    sum_w, sum_y, sum_yy = weights.sum(), weights @ y, weights @ (y * y)
    determinant = np.maximum(sum_w * sum_gg - sum_g**2, 1e-12 * sum_w * sum_gg)
    idle = np.maximum((sum_gg * sum_y - sum_g * sum_gy) / determinant, 0.0)
    alpha = np.maximum((sum_gy - idle * sum_g) / sum_gg, 0.0)
    rss = (
        sum_yy + idle**2 * sum_w + alpha**2 * sum_gg - 2 * idle * sum_y - 2 * alpha * sum_gy + 2 * idle * alpha * sum_g
    )
    floor = _FLOOR**2 * sum_yy
    rss = np.maximum(rss, 0.0)
    # Flat priors on the linear parameters and on the logarithm of the noise, integrated out; a wide one on the voltage
    # at the highest clock, which on no board is far from the one at the ridge.
    log_weight = -0.5 * max(1.0, independent - 2) * np.log(rss + floor) - 0.5 * np.log(determinant)
    top_voltage = np.log1p(b * above[:, :, [int(x.argmax())]])
    log_weight -= 0.5 * ((top_voltage - _TOP_VOLTAGE) / _TOP_VOLTAGE_SPREAD) ** 2
    weight = np.exp(log_weight - log_weight.max())
    keep = weight > _NEGLIGIBLE * weight.max()
    # The best sharp and the best smooth bend start the least-squares fits, whatever their weight.
    keep[0].flat[np.argmin(rss[0])] = True
    keep[1:].flat[np.argmin(rss[1:])] = True
    s_index, r_index, b_index = np.nonzero(keep)
    weight = weight[keep]
    return Shapes(
        scale_mhz=scale,
        ridge=ridge[r_index],
        slope=slope[b_index],
        softness=softness[s_index],
        p_idle_w=idle[keep],
        alpha_w=alpha[keep],
        rss=rss[keep],
        weight=weight / weight.sum(),
    )


def _polynomial(moments: Floats, binomial: tuple[int, ...], b: Floats) -> Floats:
    """sum_k binomial_k b^k moment_k, shape (s, r, len(b))."""
    total = np.zeros((*moments.shape[1:], len(b)))
    for k, factor in enumerate(binomial):
        total += factor * moments[k][..., None] * b**k
    return total
