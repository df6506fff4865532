"""The frequency model: P(f) = min(P_max, P_idle + alpha f v(f)^2), fitted (S1 eqs 6.2, 6.3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from .belief import believe
from .choices import Choice, choices
from .curve import Curve
from .duration import Duration, fit_duration
from .flags import cap_reason, optimum_flag, ridge_flag, speed_reason
from .leakage import Leakage, fit_leakage
from .least_squares import LEAST_R2, Solution, fit_forms, r_squared
from .limits import effective_clocks, limited_points
from .measured import Measured
from .outliers import without_outliers
from .recommend import candidates, follow_data, recommend, settable_interval, survey
from .voltage import voltage_ridge


@dataclass(frozen=True, slots=True)
class MemoryClock:
    """What a memory clock makes possible, over the best of all memory clocks (energy) and the fastest of all (time)."""

    memory_clock_mhz: float
    recommended_clock_mhz: float
    energy: float
    time: float


Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

MINIMUM_CLOCKS = 5  # four parameters and one clock to check them with
_IDLE_ERROR = 0.3  # of the lowest power: beyond this standard error P_idle is not told
_NO_FLOATS: Floats = np.empty(0)


@dataclass(frozen=True, slots=True)
class FrequencyFit:
    """A fitted model. None stands for 'not identifiable'; an edge with a false flag for 'not bracketed'."""

    gpu: str
    series: str  # which device, kernel or configuration the points belong to
    points: int
    clock_mhz: Floats  # the points: observed or effective clock
    power_w: Floats  # as measured
    used: Mask  # points that took part in the fit
    form: Literal["sharp", "smooth"] = "sharp"
    p_idle_w: float | None = None
    p_max_w: float | None = None
    alpha_w_per_mhz: float | None = None
    beta_per_mhz: float | None = None
    ridge_mhz: float | None = None
    softness_mhz: float | None = None  # w of the smooth form; None for the sharp one
    optimum_mhz: float | None = None  # of the least expected energy, continuous
    optimum_interval_mhz: tuple[float, float] | None = None  # 95 %
    recommended_clock_mhz: float | None = None  # a sampled or supported clock
    best_measured_mhz: float | None = None
    range_mhz: tuple[float, float] | None = None  # +-10 % of the optimum
    r2: float | None = None
    rmse_w: float | None = None
    identifiable: bool = False
    optimum_bracketed: bool = False
    ridge_bracketed: bool = False
    reasons: tuple[str, ...] = ()
    standard_errors: dict[str, float] = field(default_factory=dict)  # by parameter name
    simulated: bool = False
    # What Curve is made of: P_idle, alpha, beta, ridge, softness (0: sharp), P_max (inf: none seen), the fixed time
    # per 1/MHz, the share that waits and the blend; also where a parameter is not told on its own.
    curve: tuple[float, ...] | None = None
    expected_loss: float | None = None  # of energy, of the recommended clock over the unknown best one
    fixed_time_share: float | None = None  # of the time at the highest clock, what does not shrink with it
    choices: tuple[Choice, ...] = ()
    band_mhz: Floats = field(default_factory=lambda: _NO_FLOATS)
    band_w: Floats = field(default_factory=lambda: _NO_FLOATS)  # (2, m): 95 % band of P(f) at those clocks
    voltage_mv: Floats = field(default_factory=lambda: _NO_FLOATS)  # of the points, NaN unknown; empty: none known
    voltage_ridge_mhz: float | None = None  # of the measured voltage curve
    voltage_ridge_interval_mhz: tuple[float, float] | None = None
    leakage_w_per_c: float | None = None  # where the points tell it; the curve, not the points, is at reference_c then
    reference_c: float | None = None
    memory_clock_mhz: float | None = None
    memory_clocks: tuple[MemoryClock, ...] = ()  # where the same work was measured at several
    rate: Floats = field(default_factory=lambda: _NO_FLOATS)  # of the points, in any unit; empty: not known

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
        duration = curve.duration
        sampled = self.clock_mhz[self.used]
        inside = np.linspace(sampled.min(), sampled.max(), 401)
        lowest = float((curve.power_w(inside) * duration.relative(inside)).min())
        return np.asarray(curve.power_w(clock_mhz) * duration.relative(clock_mhz) / lowest)

    def _curve(self) -> Curve:
        if self.curve is None:
            raise ValueError("the frequency model is not identifiable from these points")
        return Curve(*self.curve)


def fit_frequency_model(
    clock_mhz: npt.ArrayLike,
    power_w: npt.ArrayLike,
    *,
    rate: npt.ArrayLike | None = None,
    limited: npt.ArrayLike | None = None,
    limit_w: float | None = None,
    requested_mhz: npt.ArrayLike | None = None,
    voltage_mv: npt.ArrayLike | None = None,
    temperature_c: npt.ArrayLike | None = None,
    supported_mhz: Sequence[float] | None = None,
    gpu: str = "",
    series: str = "",
    simulated: bool = False,
) -> FrequencyFit:
    """Fit P(f) = min(P_max, P_idle + alpha f v(f)^2) to points of shape (n,) (S1 eqs 6.2 and 6.3).

    `clock_mhz` is the observed clock, or the requested one where nothing else is known; `rate` any measure of speed
    (its unit does not matter); `limited` tells at which points a power or thermal limit acted, where that is known;
    `limit_w` is the limit in force; `requested_mhz` the requested clocks where the others were observed; voltage and
    temperature are NaN where unknown. `supported_mhz` are the clocks that can be set. Points that are not finite or not
    positive are left out. Raises ValueError where shapes differ, InputError where no point is left.
    """
    points = _Points.of(clock_mhz, power_w, rate, limited, voltage_mv, temperature_c, requested_mhz)
    acted = limited_points(points.clock, points.power, points.rate, points.limited, limit_w, points.requested)
    effective = effective_clocks(points.clock, points.rate, acted)
    reasons: list[str] = []
    if acted.any():
        reasons.append(cap_reason(points.clock, points.power, acted, told=points.limited is not None))
    free = ~acted
    duration = Duration()
    if points.rate is not None and free.any():
        duration = fit_duration(points.clock[free], points.rate[free])
    if _distinct(points.clock[free]) < MINIMUM_CLOCKS and points.rate is not None and duration.fixed_per_mhz == 0:
        free = free | acted  # too few without: where the speed tells the real clock under the cap, it is a point too
    measured = points.measured(effective, free, acted)
    blank = FrequencyFit(
        gpu=gpu,
        series=series,
        points=len(effective),
        clock_mhz=effective,
        power_w=points.power,
        used=free,
        best_measured_mhz=measured.best_mhz,
        simulated=simulated,
        voltage_mv=points.voltage if points.voltage is not None else _NO_FLOATS,
        rate=points.rate if points.rate is not None else _NO_FLOATS,
    )
    distinct = _distinct(effective[free])
    if distinct < MINIMUM_CLOCKS:
        what = f"{distinct} different clocks below any limit; the model needs at least {MINIMUM_CLOCKS}"
        return _by_measurement(blank, points, (*reasons, what))
    return _modelled(blank, points, duration, reasons, supported_mhz)


def _modelled(
    blank: FrequencyFit,
    points: _Points,
    duration: Duration,
    reasons: list[str],
    supported_mhz: Sequence[float] | None,
) -> FrequencyFit:
    """The fit to the points that `blank` uses; those it does not use were limited. `reasons` are the ones so far."""
    effective, free = blank.clock_mhz, blank.used
    leakage = fit_leakage(effective[free], points.power[free], points.temperature[free])
    settled_w = points.power
    if leakage is not None:
        settled_w = settled_w - leakage.slope_w_per_c * (points.temperature - leakage.reference_c)
        reasons.append(_leakage_reason(leakage))
    used, outlier_reason = without_outliers(effective, settled_w, points.rate, free)
    if outlier_reason:
        reasons.append(outlier_reason)
        if points.rate is not None:
            duration = fit_duration(points.clock[used], points.rate[used])
    measured = points.measured(effective, used, ~free)
    blank = replace(blank, used=used, best_measured_mhz=measured.best_mhz)

    clock, power = effective[used], settled_w[used]
    solution, straight = fit_forms(clock, power, duration)
    curve = solution.curve
    residual = power - curve.power_w(clock)
    r2 = r_squared(power, curve.power_w(clock))
    if r2 < LEAST_R2 or curve.alpha_w_per_mhz <= 0:
        reasons.append(f"power does not follow the clock as the model has it (R² {max(r2, 0.0):.3f})")
        return _by_measurement(blank, points, tuple(reasons))

    limited = ~free
    p_max = float(np.median(points.power[limited])) if limited.any() else None
    curve = replace(
        curve,
        p_max_w=math.inf if p_max is None else p_max,
        fixed_per_mhz=duration.fixed_per_mhz,
        blend=duration.blend,
    )
    rate = points.rate[used] if points.rate is not None else None
    voltage = points.voltage[used] if points.voltage is not None else None
    belief = believe(clock, power, rate, duration, voltage)
    valley = survey(belief.clock_mhz, belief.energy)
    clocks = np.unique(clock)
    optimum_bracketed, why = optimum_flag(valley.optimum_mhz, valley.interval_mhz, clocks)
    reasons += why
    ridge, ridge_bracketed, why = ridge_flag(solution, straight, belief.ridge_mhz, clocks)
    reasons += why
    if rate is not None:
        reasons += speed_reason(duration, clock, rate)
    interval = settable_interval(valley, supported_mhz)
    energy = power / (rate if rate is not None else clock)
    chosen = recommend(valley, interval, clock, energy, supported_mhz, bracketed=optimum_bracketed)
    chosen, why = follow_data(chosen, interval, measured, belief, curve, supported_mhz)
    reasons += why
    # of the points that were fitted: what a limit took away is no fault of the model
    misfit = Measured.of(clock, energy).misfit(belief.clock_mhz, belief.energy.mean(axis=0), belief.noise)
    measured_ridge = voltage_ridge(clock, voltage) if voltage is not None else None
    shown = _shown_parameters(curve, solution, ridge, ridge_bracketed, float(clocks[0]), float(power.min()))
    return replace(
        blank,
        form="sharp" if curve.softness_mhz == 0 else "smooth",
        p_idle_w=shown["p_idle_w"],
        p_max_w=p_max,
        alpha_w_per_mhz=shown["alpha_w_per_mhz"],
        beta_per_mhz=shown["beta_per_mhz"],
        ridge_mhz=ridge,
        softness_mhz=shown["softness_mhz"],
        optimum_mhz=valley.optimum_mhz,
        optimum_interval_mhz=interval,
        recommended_clock_mhz=chosen,
        range_mhz=(0.9 * valley.optimum_mhz, 1.1 * valley.optimum_mhz),
        r2=r2,
        rmse_w=float(np.sqrt((residual**2).mean())),
        identifiable=True,
        optimum_bracketed=optimum_bracketed,
        ridge_bracketed=ridge_bracketed,
        reasons=tuple(reasons),
        standard_errors=solution.standard_errors,
        curve=astuple(curve),
        expected_loss=math.hypot(float(valley.loss_at(chosen)), misfit),
        fixed_time_share=duration.fixed_share(float(clocks[-1])) if rate is not None else None,
        choices=choices(belief, candidates(clock, supported_mhz)),
        band_mhz=belief.clock_mhz,
        band_w=_around(belief.band_w(), curve.power_w(belief.clock_mhz)),
        voltage_ridge_mhz=measured_ridge.ridge_mhz if measured_ridge is not None else None,
        voltage_ridge_interval_mhz=measured_ridge.interval_mhz if measured_ridge is not None else None,
        leakage_w_per_c=leakage.slope_w_per_c if leakage is not None else None,
        reference_c=leakage.reference_c if leakage is not None else None,
    )


@dataclass(frozen=True, slots=True)
class _Points:
    """The points that can be used, ascending by clock; shape (n,)."""

    clock: Floats
    power: Floats
    rate: Floats | None
    limited: Mask | None
    voltage: Floats | None
    temperature: Floats
    requested: Floats | None

    @classmethod
    def of(
        cls,
        clock_mhz: npt.ArrayLike,
        power_w: npt.ArrayLike,
        rate: npt.ArrayLike | None,
        limited: npt.ArrayLike | None,
        voltage_mv: npt.ArrayLike | None,
        temperature_c: npt.ArrayLike | None,
        requested_mhz: npt.ArrayLike | None,
    ) -> _Points:
        clock = np.asarray(clock_mhz, dtype=np.float64)
        unknown = np.full(clock.shape, np.nan)
        power = np.asarray(power_w, dtype=np.float64)
        speed = None if rate is None else np.asarray(rate, dtype=np.float64)
        told = None if limited is None else np.asarray(limited, dtype=np.bool_)
        voltage = unknown if voltage_mv is None else np.asarray(voltage_mv, dtype=np.float64)
        temperature = unknown if temperature_c is None else np.asarray(temperature_c, dtype=np.float64)
        requested = None if requested_mhz is None else np.asarray(requested_mhz, dtype=np.float64)
        given = (power, speed, told, voltage, temperature, requested)
        if clock.ndim != 1 or any(a is not None and a.shape != clock.shape for a in given):
            raise ValueError("clocks, power, rate, limited, voltage and temperature must be of the same length")
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
            voltage[order] if _within(voltage[order], 1.0, 1e5).any() else None,
            temperature[order],
            None if requested is None else requested[order],
        )

    def measured(self, effective_mhz: Floats, used: Mask, limited: Mask) -> Measured:
        """The energy per work by clock: of those used, and of the limited ones where their speed is known.

        Without it, the clock that a limited point really ran at is not known either.
        """
        kept = used | limited if self.rate is not None or not used.any() else used
        per_work = self.power / (self.rate if self.rate is not None else effective_mhz)
        requested = self.requested[kept] if self.requested is not None else None
        return Measured.of(effective_mhz[kept], per_work[kept], requested)


def _within(values: Floats, low: float, high: float) -> Mask:
    """Neither NaN nor beyond the bounds."""
    return np.asarray((values >= low) & (values <= high))


def _by_measurement(blank: FrequencyFit, points: _Points, reasons: tuple[str, ...]) -> FrequencyFit:
    """Without a model the measured energies still tell a clock, where speed was measured."""
    if points.rate is None or _distinct(points.clock) < 2:
        return replace(blank, reasons=reasons)
    what = "the recommended clock is the one with the least measured energy"
    return replace(blank, recommended_clock_mhz=blank.best_measured_mhz, reasons=(*reasons, what))


def _distinct(clock: Floats) -> int:
    """How many clocks, those within a per cent of each other counted once."""
    count, last = 0, 0.0
    for each in np.sort(clock).tolist():
        if each > 1.01 * last:
            count, last = count + 1, each
    return count


def _around(band_w: Floats, curve_w: Floats) -> Floats:
    """The band of shape (2, m) as wide as it takes to hold the curve, whose misfit is part of what is uncertain."""
    low, high = band_w
    return np.stack([np.minimum(low, curve_w), np.maximum(high, curve_w)])


def _leakage_reason(leakage: Leakage) -> str:
    slope, error = leakage.slope_w_per_c, leakage.standard_error
    return f"power grows by {slope:.2g} ± {error:.1g} W per °C: the curve is that at {leakage.reference_c:.0f} °C"


def _shown_parameters(
    curve: Curve, solution: Solution, ridge: float, ridge_bracketed: bool, low: float, least_power: float
) -> dict[str, float | None]:
    """The parameters as far as the points tell them: what a reader would take for a fact must be one."""
    errors = solution.standard_errors
    below_range = not ridge_bracketed and ridge <= low  # the voltage all is relative to was never seen
    straight = not ridge_bracketed and not below_range
    idle_error = errors.get("p_idle_w", math.nan)
    idle_told = idle_error <= _IDLE_ERROR * least_power and not below_range
    idle = curve.p_idle_w if curve.p_idle_w > 1e-6 * least_power else 0.0  # at its bound
    return {
        "p_idle_w": idle if idle_told else None,
        "alpha_w_per_mhz": None if below_range else curve.alpha_w_per_mhz,
        "beta_per_mhz": None if below_range or straight else curve.beta_per_mhz,
        "softness_mhz": curve.softness_mhz if curve.softness_mhz > 0 and ridge_bracketed else None,
    }
