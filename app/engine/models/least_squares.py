"""Least squares of the frequency model: sharp form, smooth form, and no bend at all; standard errors and AICc."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.engine.models.curve import Curve, rise
from app.engine.models.shapes import Shapes

Floats = npt.NDArray[np.float64]

NAMES = ("p_idle_w", "alpha_w_per_mhz", "beta_per_mhz", "ridge_mhz", "softness_mhz")


@dataclass(frozen=True, slots=True)
class Solution:
    """A fitted curve without a cap. Standard errors by parameter name; NaN where a bound or the points leave none."""

    curve: Curve
    standard_errors: dict[str, float]
    weighted_rss: float
    aicc: float  # smaller is better; inf where there are too few points for the form


def solve(clock_mhz: Floats, power_w: Floats, weights: Floats, shapes: Shapes, *, sharp: bool) -> Solution | None:
    """The best fit of one form from the best bend of `shapes` and the ones beside it; None where there is no start.

    Bounded trust region on parameters scaled to about one; residuals weighted by the root of `weights`; shape (n,).
    """
    from scipy.optimize import least_squares  # imported late: the window opens without it

    start = shapes.best(sharp)
    if start is None:
        return None
    scale, level = shapes.scale_mhz, float(power_w.mean())
    x, y, root = clock_mhz / scale, power_w / level, np.sqrt(weights)
    free = 4 if sharp else 5

    def residuals(q: Floats) -> Floats:
        u = rise(x, q[3], 0.0 if sharp else q[4])
        return np.asarray(root * (q[0] + q[1] * x * (1 + q[2] * u) ** 2 - y))

    def jacobian(q: Floats) -> Floats:
        return root[:, None] * _gradient(x, q, sharp)

    lower = np.asarray([0.0, 1e-6, 0.0, 0.05, 0.005])[:free]
    upper = np.asarray([np.inf, np.inf, 30.0, 1.06, 0.2])[:free]
    step = 0.5 * float(np.diff(np.unique(x)).mean())
    best = None
    for shift in (0.0, -step, step) if sharp else (0.0,):  # a sharp bend can stick between two points
        q = np.asarray(
            [
                shapes.p_idle_w[start] / level,
                shapes.alpha_w[start] / level,
                shapes.slope[start],
                shapes.ridge[start] + shift,
                shapes.softness[start],
            ]
        )[:free]
        q = np.clip(q, lower + 1e-9, upper - 1e-9)
        found = least_squares(
            residuals, q, jac=jacobian, bounds=(lower, upper), x_scale=np.maximum(q, 0.05), max_nfev=60
        )
        if best is None or found.cost < best.cost:
            best = found
    assert best is not None
    q = best.x
    units = np.asarray([level, level / scale, 1.0 / scale, scale, scale])[:free]
    values = q * units
    curve = Curve(*(float(v) for v in values))
    rss = float(2 * best.cost)
    errors = _standard_errors(root[:, None] * _gradient(x, q, sharp), rss) * units
    return Solution(
        curve=curve,
        standard_errors={name: float(error) for name, error in zip(NAMES, errors, strict=False)},
        weighted_rss=rss,
        aicc=aicc(rss, len(x), free),
    )


def solve_straight(clock_mhz: Floats, power_w: Floats, weights: Floats) -> Solution:
    """P = P_idle + alpha f: no bend within the points. P_idle may come out negative, which says that there is one."""
    scale, level = float(clock_mhz.max()), float(power_w.mean())
    root = np.sqrt(weights)
    design = root[:, None] * np.stack([np.ones_like(clock_mhz), clock_mhz / scale], axis=1)
    target = root * power_w / level
    answer, *_ = np.linalg.lstsq(design, target, rcond=None)
    rss = float(((design @ answer - target) ** 2).sum())
    idle, alpha = float(answer[0] * level), float(answer[1] * level / scale)
    errors = _standard_errors(design, rss) * np.asarray([level, level / scale])
    return Solution(
        curve=Curve(idle, alpha, 0.0, scale),
        standard_errors={name: float(error) for name, error in zip(NAMES, errors, strict=False)},
        weighted_rss=rss,
        aicc=aicc(rss, len(clock_mhz), 2),
    )


def aicc(rss: float, points: int, parameters: int) -> float:
    """Akaike's criterion corrected for few points; the noise counts as one more parameter."""
    k = parameters + 1
    if points - k - 1 <= 0:
        return math.inf
    return points * math.log(max(rss, 1e-12) / points) + 2 * k + 2 * k * (k + 1) / (points - k - 1)


def _gradient(x: Floats, q: Floats, sharp: bool) -> Floats:
    """Derivatives of the scaled model by its parameters, shape (n, 4 or 5)."""
    softness = 0.0 if sharp else float(q[4])
    u = rise(x, q[3], softness)
    if sharp:
        inside = (x > q[3]).astype(np.float64)
    else:
        z = (x - q[3]) / softness
        inside = 0.5 * (1.0 + np.tanh(0.5 * z))  # the logistic function without overflow
    v = 1 + q[2] * u
    outer = 2 * q[1] * x * v
    columns = [np.ones_like(x), x * v**2, outer * u, -outer * q[2] * inside]
    if not sharp:
        columns.append(outer * q[2] * (u / softness - z * inside))
    return np.stack(columns, axis=1)


def _standard_errors(jacobian: Floats, rss: float) -> Floats:
    """From the curvature at the solution; NaN where the points do not determine a parameter."""
    points, free = jacobian.shape
    if points <= free:
        return np.full(free, np.nan)
    norms = np.linalg.norm(jacobian, axis=0)
    if (norms == 0).any():
        return np.full(free, np.nan)
    scaled = jacobian / norms
    if np.linalg.cond(scaled) > 1e7:
        return np.full(free, np.nan)
    covariance = np.linalg.inv(scaled.T @ scaled) * rss / (points - free)
    return np.asarray(np.sqrt(np.diag(covariance)) / norms)
