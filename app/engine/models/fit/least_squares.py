"""Least squares of the frequency model: sharp form, smooth form, and no bend at all; standard errors and AICc.

The printed parameters come from here, the recommendation from all plausible curves (`posterior`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import Floats
from .bends import Family, Grid
from .curve import Curve, Duration, activity, rise
from .outliers import relative_weights
from .posterior import LEAST_FIXED, WAITING

LEAST_R2 = 0.8
_LEAST_RUN = 8  # points from which on a run of residuals can be detected
_ALIKE = 2.5  # standard deviations of what chance makes of the correlation of neighbours
_FLOOR = 1e-3  # relative: smaller residuals are clean, whatever their order
_FEW = 7  # points, up to which the correction of AICc outweighs any bend
_BY_CHANCE = 0.05
NAMES = ("p_idle_w", "alpha_w_per_mhz", "beta_per_mhz", "ridge_mhz", "softness_mhz")


@dataclass(frozen=True, slots=True)
class Solution:
    """A fitted curve without a cap. Standard errors by parameter name; NaN if a bound or the points leave none."""

    curve: Curve
    standard_errors: dict[str, float]
    weighted_rss: float  # relative to the square of the mean power
    aicc: float  # smaller is better; inf if there are too few points for the form
    points: int
    parameters: int


def fit_forms(clock_mhz: Floats, power_w: Floats, duration: Duration) -> tuple[Solution, Solution]:
    """Fit the sharp form, the smooth form and a straight line.

    The best is the form with the smallest AICc, of those that follow the points with clean residuals, where any do; of
    few points the sharp form where a straight line is clearly not enough (`is_bent`).

    Parameters
    ----------
    clock_mhz : array, shape (n,)
        Clocks of the points in MHz.
    power_w : array, shape (n,)
        Power at them in W.
    duration : Duration
        Time of the work over the clock.

    Returns
    -------
    tuple of Solution
        The best form, and the straight line that it was compared with.
    """
    weights = relative_weights(power_w)
    scale = float(clock_mhz.max())
    waiting = WAITING if duration.fixed_share(scale) > LEAST_FIXED else WAITING[:1]
    activities = np.stack([activity(clock_mhz, duration, share) for share in waiting])
    x = clock_mhz / scale
    family = Family(x, power_w, activities / scale, Grid.over(float(x.min()), 56, 32))
    bends = family.rotated(np.eye(len(x))).weighted(1.0 / weights)
    forms = []
    for sharp in (True, False):
        starts = bends.starts(sharp)
        for k, share in enumerate(starts.activity.tolist()):
            blank = Curve(
                0.0, 0.0, 0.0, 0.0, fixed_per_mhz=duration.fixed_per_mhz, waiting=waiting[share], blend=duration.blend
            )
            begun = (starts.p_idle_w[k], starts.alpha_w[k], starts.slope[k], starts.ridge[k], starts.softness[k])
            forms.append(solve(clock_mhz, power_w, weights, begun, activities[share], blank, sharp=sharp))
    straight = solve_straight(clock_mhz, power_w, weights)
    if straight.curve.p_idle_w >= 0:
        forms.append(straight)
    follow = [form for form in forms if r_squared(power_w, form.curve.power_w(clock_mhz)) >= LEAST_R2]
    clean = [form for form in follow if _clean(power_w / form.curve.power_w(clock_mhz) - 1)]
    best = min(clean or follow or forms, key=lambda form: form.aicc)
    sharp_form = min(
        (form for form in follow if form.parameters == 4), key=lambda form: form.weighted_rss, default=best
    )
    if not is_bent(best, straight) and is_bent(sharp_form, straight):
        best = sharp_form
    return best, straight


def is_bent(form: Solution, straight: Solution) -> bool:
    """Whether the points distinguish a form from the straight line.

    They do where its AICc is smaller. Of few points that criterion refuses every bend, however small its residuals;
    there the F-test decides: with m points and two parameters more than the line, residuals of a straight board shrink
    by chance to the share r with probability r^((m - 4)/2).

    Parameters
    ----------
    form, straight : Solution
        The fitted form and the straight line, of the same points.

    Returns
    -------
    bool
        True if they do; False where `form` is the straight line itself.
    """
    if form.aicc < straight.aicc:
        return True
    points, beyond = form.points, form.points - form.parameters
    if points > _FEW or form.parameters != 4 or beyond < 1:
        return False
    floor = points * _FLOOR**2  # in the unit of the residuals, which are relative to the mean power
    share = (form.weighted_rss + floor) / (straight.weighted_rss + floor)
    return bool(share ** (0.5 * beyond) < _BY_CHANCE)


def r_squared(power_w: Floats, model_w: Floats) -> float:
    """Compute the share of the variance of the power that a model explains.

    Parameters
    ----------
    power_w, model_w : array, shape (n,)
        Measured and modelled power in W.

    Returns
    -------
    float
        0 if the power does not vary.
    """
    spread = float(((power_w - power_w.mean()) ** 2).sum())
    return 1.0 - float(((power_w - model_w) ** 2).sum()) / spread if spread > 0 else 0.0


def solve(
    clock_mhz: Floats,
    power_w: Floats,
    weights: Floats,
    start: tuple[float, ...],
    switching: Floats,
    curve: Curve,
    *,
    sharp: bool,
) -> Solution:
    """Fit one form from a bend and the ones beside it, by a bounded trust region on parameters scaled to about one.

    Parameters
    ----------
    clock_mhz : array, shape (n,)
        Clocks of the points in MHz.
    power_w : array, shape (n,)
        Power at them in W.
    weights : array, shape (n,)
        Weights of the squared residuals.
    start : tuple of float
        P_idle and alpha in W, slope, ridge and softness in units of the highest clock.
    switching : array, shape (n,)
        The factor of alpha v^2 in MHz.
    curve : Curve
        The curve that keeps its other fields.
    sharp : bool
        Whether the softness is zero.

    Returns
    -------
    Solution
        The best fit of that form.
    """
    from scipy.optimize import least_squares  # imported late: the window opens without it

    scale, level = float(clock_mhz.max()), float(power_w.mean())
    x, a, y, root = clock_mhz / scale, switching / scale, power_w / level, np.sqrt(weights)
    free = 4 if sharp else 5

    def residuals(q: Floats) -> Floats:
        u = rise(x, q[3], 0.0 if sharp else q[4])
        return np.asarray(root * (q[0] + q[1] * a * (1 + q[2] * u) ** 2 - y))

    def jacobian(q: Floats) -> Floats:
        return root[:, None] * _gradient(x, a, q, sharp)

    lower = np.asarray([0.0, 1e-6, 0.0, 0.05, 0.005])[:free]
    upper = np.asarray([np.inf, np.inf, 30.0, 1.06, 0.2])[:free]
    step = 0.5 * float(np.diff(np.unique(x)).mean())
    begun = (start[0] / level, start[1] / level, *start[2:])
    best = None
    for shift in (0.0, -step, step) if sharp else (0.0,):  # a sharp bend can stick between two points
        q = np.asarray(begun, dtype=np.float64)[:free]
        q[3] += shift
        q = np.clip(q, lower + 1e-9, upper - 1e-9)
        solution = least_squares(
            residuals, q, jac=jacobian, bounds=(lower, upper), x_scale=np.maximum(q, 0.05), max_nfev=60
        )
        if best is None or solution.cost < best.cost:
            best = solution
    assert best is not None
    units = np.asarray([level, level / scale, 1.0 / scale, scale, scale])[:free]
    rss = float(2 * best.cost)
    errors = _standard_errors(root[:, None] * _gradient(x, a, best.x, sharp), rss) * units
    return _solution(curve, best.x * units, errors, rss, len(x))


def _solution(curve: Curve, values: Floats, errors: Floats, rss: float, points: int) -> Solution:
    """The curve with these parameters; a share that waits counts as one parameter more."""
    parameters = len(values)
    return Solution(
        curve=replace(curve, **dict(zip(NAMES, values.tolist(), strict=False))),
        standard_errors=dict(zip(NAMES, errors.tolist(), strict=False)),
        weighted_rss=rss,
        aicc=aicc(rss, points, parameters + (curve.waiting > 0)),
        points=points,
        parameters=parameters,
    )


def solve_straight(clock_mhz: Floats, power_w: Floats, weights: Floats) -> Solution:
    """Fit P = P_idle + alpha f: no bend within the points. A negative P_idle shows that there is one.

    Parameters
    ----------
    clock_mhz : array, shape (n,)
        Clocks of the points in MHz.
    power_w : array, shape (n,)
        Power at them in W.
    weights : array, shape (n,)
        Weights of the squared residuals.

    Returns
    -------
    Solution
        The straight line.
    """
    scale, level = float(clock_mhz.max()), float(power_w.mean())
    root = np.sqrt(weights)
    design = root[:, None] * np.stack([np.ones_like(clock_mhz), clock_mhz / scale], axis=1)
    target = root * power_w / level
    answer, *_ = np.linalg.lstsq(design, target, rcond=None)
    rss = float(((design @ answer - target) ** 2).sum())
    errors = _standard_errors(design, rss) * np.asarray([level, level / scale])
    values = np.asarray([answer[0] * level, answer[1] * level / scale])
    return _solution(Curve(0.0, 0.0, 0.0, scale), values, errors, rss, len(clock_mhz))


def aicc(rss: float, points: int, parameters: int) -> float:
    """Compute Akaike's criterion corrected for few points; the noise counts as one more parameter.

    Parameters
    ----------
    rss : float
        Sum of squared residuals, relative to the mean power.
    points, parameters : int
        How many of each.

    Returns
    -------
    float
        Smaller is better; inf if there are too few points.
    """
    k = parameters + 1
    if points - k - 1 <= 0:
        return math.inf
    return points * math.log(max(rss, 1e-12) / points) + 2 * k + 2 * k * (k + 1) / (points - k - 1)


def _clean(residual: Floats) -> bool:
    """Relative residuals, in the order of their clocks, that do not run in stretches above and below the curve."""
    if len(residual) < _LEAST_RUN or float(np.abs(residual).max()) < _FLOOR:
        return True
    total = float(residual @ residual)
    alike = float(residual[1:] @ residual[:-1]) / total
    return alike < _ALIKE / math.sqrt(len(residual))


def _gradient(x: Floats, a: Floats, q: Floats, sharp: bool) -> Floats:
    """Derivatives of the scaled model by its parameters, shape (n, 4 or 5)."""
    softness = 0.0 if sharp else float(q[4])
    u = rise(x, q[3], softness)
    if sharp:
        inside = (x > q[3]).astype(np.float64)
    else:
        z = (x - q[3]) / softness
        inside = 0.5 * (1.0 + np.tanh(0.5 * z))  # the logistic function without overflow
    v = 1 + q[2] * u
    outer = 2 * q[1] * a * v
    columns = [np.ones_like(x), a * v**2, outer * u, -outer * q[2] * inside]
    if not sharp:
        columns.append(outer * q[2] * (u / softness - z * inside))
    return np.stack(columns, axis=1)


def _standard_errors(jacobian: Floats, rss: float) -> Floats:
    """From the curvature at the solution; NaN if the points do not determine a parameter."""
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
