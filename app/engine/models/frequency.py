"""The frequency model: P(f) = min(P_max, P_idle + alpha f v(f)^2), fitted (S1 eqs 6.2, 6.3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from app.engine.models.curve import Curve
from app.engine.models.least_squares import Solution, solve, solve_straight
from app.engine.models.limits import Duration, effective_clocks, fit_duration, limited_points
from app.engine.models.outliers import relative_weights, without_outliers
from app.engine.models.recommend import recommend, survey
from app.engine.models.shapes import Shapes, explore
from app.errors import InputError

Floats = npt.NDArray[np.float64]

MINIMUM_CLOCKS = 5  # four parameters and one clock to check them with
_LEAST_R2 = 0.8
_SPEED_SCATTER = 0.03  # relative
_UNLIKELY = 0.05  # weight of the bends on one side
_IDLE_ERROR = 0.3  # of the lowest power: beyond this standard error P_idle is not told


@dataclass(frozen=True, slots=True)
class FrequencyFit:
    """A fitted model. None stands for 'not identifiable'; an edge with a false flag for 'not bracketed'."""

    gpu: str
    series: str  # which device, kernel or configuration the points belong to
    points: int
    form: Literal["sharp", "smooth"]
    p_idle_w: float | None
    p_max_w: float | None
    alpha_w_per_mhz: float | None
    beta_per_mhz: float | None
    ridge_mhz: float | None
    softness_mhz: float | None  # w of the smooth form; None for the sharp one
    optimum_mhz: float | None  # continuous minimum of E(f) ~ P(f)/f
    optimum_interval_mhz: tuple[float, float] | None
    recommended_clock_mhz: float | None  # a sampled or supported clock
    best_measured_mhz: float | None
    range_mhz: tuple[float, float] | None  # +-10 % of the optimum
    r2: float | None
    rmse_w: float | None
    identifiable: bool
    optimum_bracketed: bool
    ridge_bracketed: bool
    reasons: tuple[str, ...]
    standard_errors: dict[str, float]  # by parameter name
    clock_mhz: Floats  # the points: observed or effective clock
    power_w: Floats
    used: npt.NDArray[np.bool_]  # points that took part in the fit
    simulated: bool = False
    # P_idle, alpha, beta, ridge, softness (0: sharp), P_max (inf: none seen) and the fixed time per 1/MHz: what the
    # curves below are drawn from, also where a parameter is not told on its own.
    curve: tuple[float, ...] | None = None

    @classmethod
    def unidentified(
        cls,
        gpu: str,
        series: str,
        clock_mhz: Floats,
        power_w: Floats,
        used: npt.NDArray[np.bool_],
        best_measured_mhz: float,
        simulated: bool,
    ) -> FrequencyFit:
        """The points without a model."""
        return cls(
            gpu=gpu,
            series=series,
            points=len(clock_mhz),
            form="sharp",
            p_idle_w=None,
            p_max_w=None,
            alpha_w_per_mhz=None,
            beta_per_mhz=None,
            ridge_mhz=None,
            softness_mhz=None,
            optimum_mhz=None,
            optimum_interval_mhz=None,
            recommended_clock_mhz=None,
            best_measured_mhz=best_measured_mhz,
            range_mhz=None,
            r2=None,
            rmse_w=None,
            identifiable=False,
            optimum_bracketed=False,
            ridge_bracketed=False,
            reasons=(),
            standard_errors={},
            clock_mhz=clock_mhz,
            power_w=power_w,
            used=used,
            simulated=simulated,
        )

    def power(self, clock_mhz: npt.ArrayLike) -> Floats:
        """P(f) in W at the clocks. Raises ValueError where the model is not identifiable."""
        return self._curve().power_w(clock_mhz)

    def relative_voltage(self, clock_mhz: npt.ArrayLike) -> Floats:
        """v(f) relative to the voltage below the ridge: no unit, never volts. Raises ValueError as `power` does."""
        return self._curve().voltage(clock_mhz)

    def energy(self, clock_mhz: npt.ArrayLike) -> Floats:
        """Estimated energy per work, P(f) t(f), relative to its minimum over the sampled range (no unit).

        t(f) is 1/f, or 1/f and a fixed part where the measured speed says so. Raises ValueError as `power` does.
        """
        curve = self._curve()
        assert self.curve is not None
        duration = Duration(self.curve[6])
        sampled = self.clock_mhz[self.used]
        inside = np.linspace(sampled.min(), sampled.max(), 401)
        lowest = float((curve.power_w(inside) * duration.relative(inside)).min())
        return np.asarray(curve.power_w(clock_mhz) * duration.relative(clock_mhz) / lowest)

    def _curve(self) -> Curve:
        if self.curve is None:
            raise ValueError("the frequency model is not identifiable from these points")
        p_idle_w, alpha, beta, ridge_mhz, softness_mhz, p_max_w, _ = self.curve
        return Curve(p_idle_w, alpha, beta, ridge_mhz, softness_mhz, p_max_w)


def fit_frequency_model(
    clock_mhz: npt.ArrayLike,
    power_w: npt.ArrayLike,
    *,
    rate: npt.ArrayLike | None = None,
    limited: npt.ArrayLike | None = None,
    limit_w: float | None = None,
    supported_mhz: Sequence[float] | None = None,
    gpu: str = "",
    series: str = "",
    simulated: bool = False,
) -> FrequencyFit:
    """Fit P(f) = min(P_max, P_idle + alpha f v(f)^2) to points of shape (n,) (S1 eqs 6.2 and 6.3).

    `clock_mhz` is the observed clock, or the requested one where nothing else is known; `rate` any measure of speed
    (its unit does not matter); `limited` tells at which points a power or thermal limit acted, where that is known;
    `limit_w` is the limit in force. `supported_mhz` are the clocks that can be set. Points that are not finite or not
    positive are left out. Raises ValueError where shapes differ, InputError where no point is left.
    """
    points = _Points.of(clock_mhz, power_w, rate, limited)
    acted = limited_points(points.clock, points.power, points.rate, points.limited, limit_w)
    effective = effective_clocks(points.clock, points.rate, acted)
    reasons: list[str] = []
    why: Sequence[str]
    if acted.any():
        reasons.append(_cap_reason(points, acted, told=points.limited is not None))
    free = ~acted
    duration = Duration()
    if points.rate is not None and free.any():
        duration = fit_duration(points.clock[free], points.rate[free])
    best_measured = _best_measured(points, effective)
    blank = FrequencyFit.unidentified(gpu, series, effective, points.power, free, best_measured, simulated)

    if _distinct(points.clock[free]) < MINIMUM_CLOCKS and points.rate is not None and duration.fixed_per_mhz == 0:
        free = free | acted  # too few without: where the speed tells the real clock under the cap, it is a point too
    distinct = _distinct(effective[free])
    if distinct < MINIMUM_CLOCKS:
        what = f"{distinct} different clocks below any limit; the model needs at least {MINIMUM_CLOCKS}"
        return replace(blank, reasons=(*reasons, what))
    used, outlier_reason = without_outliers(effective, points.power, free)
    if outlier_reason:
        reasons.append(outlier_reason)
    clock, power = effective[used], points.power[used]
    weights = relative_weights(power)
    shapes = explore(clock, power, weights)
    forms = [solve(clock, power, weights, shapes, sharp=sharp) for sharp in (True, False)]
    straight = solve_straight(clock, power, weights)
    if straight.curve.p_idle_w >= 0:
        forms.append(straight)
    solution = min((found for found in forms if found is not None), key=lambda found: found.aicc)
    curve = solution.curve
    residual = power - curve.power_w(clock)
    spread = float(((power - power.mean()) ** 2).sum())
    r2 = 1.0 - float((residual**2).sum()) / spread if spread > 0 else 0.0
    rmse = float(np.sqrt((residual**2).mean()))
    if r2 < _LEAST_R2 or curve.alpha_w_per_mhz <= 0:
        what = f"power does not follow the clock as the model has it (R² {max(r2, 0.0):.3f})"
        clock_told, why = _measured_choice(points, best_measured)
        reasons.append(what)
        return replace(blank, recommended_clock_mhz=clock_told, reasons=(*reasons, *why), used=used)

    p_max = float(np.median(points.power[acted])) if acted.any() else None
    curve = replace(curve, p_max_w=p_max) if p_max is not None and p_max > float(power.max()) else curve
    low, high = float(clock.min()), float(clock.max())
    valley = survey(shapes, duration, low, high)
    optimum = _optimum(curve, duration, low, high)
    optimum_bracketed, why = _optimum_flag(optimum, low, high, valley.interval_mhz, np.unique(clock))
    reasons += why
    ridge, ridge_bracketed, why = _ridge_flag(solution, straight, shapes, np.unique(clock))
    reasons += why
    if points.rate is not None:
        reasons += _speed_reason(duration, clock, points.rate[used])
    energy = points.power[used] / points.rate[used] if points.rate is not None else power / clock
    chosen, why_chosen = recommend(valley, clock, energy, supported_mhz)
    if why_chosen:
        reasons.append(why_chosen)
    interval = min(valley.interval_mhz[0], optimum), max(valley.interval_mhz[1], optimum)
    shown = _shown_parameters(curve, solution, ridge, ridge_bracketed, low, float(power.min()))
    return replace(
        blank,
        form="sharp" if curve.softness_mhz == 0 else "smooth",
        p_idle_w=shown["p_idle_w"],
        p_max_w=p_max,
        alpha_w_per_mhz=shown["alpha_w_per_mhz"],
        beta_per_mhz=shown["beta_per_mhz"],
        ridge_mhz=ridge,
        softness_mhz=shown["softness_mhz"],
        optimum_mhz=optimum,
        optimum_interval_mhz=interval,
        recommended_clock_mhz=chosen,
        range_mhz=(0.9 * optimum, 1.1 * optimum),
        r2=r2,
        rmse_w=rmse,
        identifiable=True,
        optimum_bracketed=optimum_bracketed,
        ridge_bracketed=ridge_bracketed,
        reasons=tuple(reasons),
        standard_errors=solution.standard_errors,
        used=used,
        curve=(
            curve.p_idle_w,
            curve.alpha_w_per_mhz,
            curve.beta_per_mhz,
            curve.ridge_mhz,
            curve.softness_mhz,
            p_max if p_max is not None else math.inf,
            duration.fixed_per_mhz,
        ),
    )


@dataclass(frozen=True, slots=True)
class _Points:
    """The points that can be used, ascending by clock; shape (n,)."""

    clock: Floats
    power: Floats
    rate: Floats | None
    limited: npt.NDArray[np.bool_] | None

    @classmethod
    def of(
        cls, clock_mhz: npt.ArrayLike, power_w: npt.ArrayLike, rate: npt.ArrayLike | None, limited: npt.ArrayLike | None
    ) -> _Points:
        clock = np.asarray(clock_mhz, dtype=np.float64)
        power = np.asarray(power_w, dtype=np.float64)
        speed = None if rate is None else np.asarray(rate, dtype=np.float64)
        told = None if limited is None else np.asarray(limited, dtype=np.bool_)
        if clock.ndim != 1 or any(a is not None and a.shape != clock.shape for a in (power, speed, told)):
            raise ValueError("clock, power, rate and limited must be of the same length")
        good = _within(clock, 1.0, 1e5) & _within(power, 1e-2, 1e6)  # MHz and W that a board can have
        if speed is not None:
            known = _within(speed, 1e-100, 1e100)
            if known[good].sum() >= 2:
                good &= known
            else:
                speed = None
        if not good.any():
            raise InputError(
                "no point has a clock and a power", "fit", "name columns with clocks in MHz and power in W"
            )
        order = np.flatnonzero(good)[np.argsort(clock[good], kind="stable")]
        return cls(
            clock[order],
            power[order],
            None if speed is None else speed[order],
            None if told is None else told[order],
        )


def _within(values: Floats, low: float, high: float) -> npt.NDArray[np.bool_]:
    """Neither NaN nor beyond the bounds."""
    return np.asarray((values >= low) & (values <= high))


def _best_measured(points: _Points, effective: Floats) -> float:
    """The given clock of the point with the least measured energy per work."""
    per_work = points.power / (points.rate if points.rate is not None else effective)
    return float(points.clock[per_work.argmin()])


def _distinct(clock: Floats) -> int:
    """How many clocks, those within a per cent of each other counted once."""
    count, last = 0, 0.0
    for each in np.sort(clock).tolist():
        if each > 1.01 * last:
            count, last = count + 1, each
    return count


def _measured_choice(points: _Points, best_measured: float) -> tuple[float | None, tuple[str, ...]]:
    """Without a model the measured energies still tell a clock, where speed was measured."""
    if points.rate is None:
        return None, ()
    return best_measured, ("the recommended clock is the one with the least measured energy",)


def _cap_reason(points: _Points, acted: npt.NDArray[np.bool_], *, told: bool) -> str:
    count, first = int(acted.sum()), float(points.clock[acted].min())
    level = float(np.median(points.power[acted]))
    source = "by the event reasons" if told else "as power or speed tell"
    return f"a limit acted at {count} points from {first:.0f} MHz up, at about {level:.0f} W ({source})"


def _speed_reason(duration: Duration, clock: Floats, rate: Floats) -> list[str]:
    """What the measured speed says against P/f as the energy."""
    spread = float(np.std(np.log(duration.relative(clock) * rate)))
    if spread > _SPEED_SCATTER:
        return [f"speed follows the clock only to {100 * spread:.0f} %: the estimated energy is rough"]
    if duration.fixed_per_mhz > 0:
        share = duration.fixed_per_mhz / float(duration.relative(clock.max()))
        return [f"{100 * share:.0f} % of the time at {clock.max():.0f} MHz does not shrink with the clock"]
    return []


def _optimum(curve: Curve, duration: Duration, low: float, high: float) -> float:
    """The clock of least energy P(f) t(f) within the sampled range, to a fraction of a MHz."""
    for _ in range(3):
        clock = np.linspace(low, high, 401)
        at = int((curve.power_w(clock) * duration.relative(clock)).argmin())
        low, high = float(clock[max(0, at - 1)]), float(clock[min(400, at + 1)])
    return float(clock[at])


def _optimum_flag(
    optimum: float, low: float, high: float, interval: tuple[float, float], clocks: Floats
) -> tuple[bool, list[str]]:
    """Bracketed: the optimum lies inside the samples, and it is unlikely that it lies at their edge."""
    if optimum <= low + 0.5 or interval[0] < 0.5 * (clocks[0] + clocks[1]):
        side, edge = "lower", low
    elif optimum >= high - 0.5 or interval[1] > 0.5 * (clocks[-1] + clocks[-2]):
        side, edge = "upper", high
    else:
        return True, []
    return False, [f"optimum not bracketed: it may lie at or beyond the {side} end of the points ({edge:.0f} MHz)"]


def _ridge_flag(
    solution: Solution, straight: Solution, shapes: Shapes, clocks: Floats
) -> tuple[float, bool, list[str]]:
    """The ridge, or the edge that it lies beyond; whether points on both sides tell it, and why not."""
    lowest, highest = float(clocks[0]), float(clocks[-1])
    if solution is straight:
        return (
            highest,
            False,
            ["ridge not bracketed: over these clocks power is a straight line"],
        )
    if straight.aicc <= solution.aicc:  # but with a negative P_idle: the line is a piece of the bend
        what = "over these clocks power is as well a straight line, and too steep for the voltage of low clocks"
        return lowest, False, [f"ridge not bracketed: {what}"]
    ridges = shapes.ridge * shapes.scale_mhz
    ridge = solution.curve.ridge_mhz
    if ridge <= clocks[1] or float(shapes.weight[ridges <= clocks[1]].sum()) > _UNLIKELY:
        return lowest, False, [f"ridge not bracketed: it may lie below the swept clocks ({lowest:.0f} MHz)"]
    if ridge >= clocks[-2] or float(shapes.weight[ridges >= clocks[-2]].sum()) > _UNLIKELY:
        return highest, False, [f"ridge not bracketed: it may lie above the swept clocks ({highest:.0f} MHz)"]
    return ridge, True, []


def _shown_parameters(
    curve: Curve, solution: Solution, ridge: float, ridge_bracketed: bool, low: float, least_power: float
) -> dict[str, float | None]:
    """The parameters as far as the points tell them: what a reader would take for a fact must be one."""
    errors = solution.standard_errors
    below_range = not ridge_bracketed and ridge <= low  # the voltage all is relative to was never seen
    straight = not ridge_bracketed and not below_range
    idle_error = errors.get("p_idle_w", math.nan)
    idle_told = idle_error <= _IDLE_ERROR * least_power and not below_range
    return {
        "p_idle_w": curve.p_idle_w if idle_told else None,
        "alpha_w_per_mhz": None if below_range else curve.alpha_w_per_mhz,
        "beta_per_mhz": None if below_range or straight else curve.beta_per_mhz,
        "softness_mhz": curve.softness_mhz if curve.softness_mhz > 0 and ridge_bracketed else None,
    }
