"""The frequency model: P(f) = min(P_max, P_idle + alpha f v(f)^2), fitted [Schoonhoven2024, eqs. 6.2, 6.3].

A fit holds the parameters, the clock of the least energy, clocks for other aims, and whether the points bracket the
optimum and the ridge or only bound them, with the reasons. A measured voltage curve gives the ridge as well: it is
constant below the ridge and ever steeper above [Schoonhoven2024, figure 6.8]. Several series give a fit at each memory
clock.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import ClassVar, Final, Literal

import numpy as np
import numpy.typing as npt

from ....base.formatting import counted
from ....base.records import Count, figure
from ...results.settings import HIGHEST_CLOCK, OWN_STATE
from ..arrays import Floats, Mask
from .clock_limits import effective_clocks, limited_points, only_followed
from .curve import Curve, Duration, fit_duration
from .flags import NO_SPEED, cap_reason, optimum_flag, ridge_flag, speed_reason
from .leakage import Leakage, fit_leakage
from .least_squares import LEAST_R2, Solution, fit_forms, r_squared
from .outliers import without_outliers
from .points import Points, choose
from .posterior import Posterior, posterior_of
from .recommend import Measured, candidates, follow_data, recommend, settable_interval, survey

_LEAST_CLOCKS = 5
_LEAST_RISE = 0.02  # relative, over the measured clocks: less is a constant
_STEPS = 400
_TRUSTED = 4.0  # growth of the squared residuals, in units of their variance, within the 95 % interval
_NOISE = 1e-3  # relative: no reading is better than its steps


@dataclass(frozen=True, slots=True)
class VoltageRidge:
    """Where the measured voltage begins to rise, MHz, with its 95 % interval."""

    ridge_mhz: float
    interval_mhz: tuple[float, float]
    floor: float  # the constant voltage below it, in the unit of the measurements

    def agrees(self, ridge_mhz: float, error_mhz: float) -> bool:
        """Whether another estimate lies no further off than the intervals of both explain.

        Parameters
        ----------
        ridge_mhz : float
            The other ridge in MHz.
        error_mhz : float
            Its standard error in MHz; with NaN the two do not agree.

        Returns
        -------
        bool
            True if they agree.
        """
        low, high = self.interval_mhz
        return low - 2 * error_mhz <= ridge_mhz <= high + 2 * error_mhz


def voltage_ridge(clock_mhz: Floats, voltage: Floats) -> VoltageRidge | None:
    """Find the ridge of a measured voltage curve.

    Parameters
    ----------
    clock_mhz : array, shape (n,)
        Clocks in MHz.
    voltage : array, shape (n,)
        Voltages in any unit; NaN if unknown.

    Returns
    -------
    VoltageRidge or None
        None where points on both sides do not show it.
    """
    finite = np.isfinite(voltage) & (voltage > 0)
    clock, value = clock_mhz[finite], voltage[finite]
    clocks = np.unique(clock)
    if len(clocks) < _LEAST_CLOCKS or value.max() < (1 + _LEAST_RISE) * value.min():
        return None
    scale = float(clocks[-1])
    ridges = np.linspace(clocks[0], clocks[-2], _STEPS)
    rss, floors = np.empty(_STEPS), np.empty(_STEPS)
    for i, ridge in enumerate(ridges):
        above = np.maximum(clock - ridge, 0.0) / scale
        design = np.stack([np.ones_like(above), above, above**2], axis=1)
        answer, *_ = np.linalg.lstsq(design, value, rcond=None)
        if answer[1] < 0:  # it only rises: without the straight part, then
            answer, *_ = np.linalg.lstsq(design[:, ::2], value, rcond=None)
            answer = np.asarray([answer[0], 0.0, answer[1]])
        rss[i], floors[i] = float(((design @ answer - value) ** 2).sum()), float(answer[0])
    best = int(rss.argmin())
    variance = max(float(rss[best]) / max(1, len(clock) - 4), (_NOISE * float(value.mean())) ** 2)
    near = ridges[rss <= rss[best] + _TRUSTED * variance]
    if near[0] < clocks[1]:  # fewer than two clocks below it
        return None
    return VoltageRidge(float(ridges[best]), (float(near[0]), float(near[-1])), float(floors[best]))


SLOWER = (0.05, 0.1)  # shares of the full speed that may be given up


@dataclass(frozen=True, slots=True)
class Choice:
    """The best clock for an aim, and what it costs and gains against the fastest clock."""

    wish: str
    clock_mhz: float
    energy: float  # expected, over that of the fastest clock
    time: float  # over that of the fastest clock


def choices(posterior: Posterior, clocks_mhz: Floats) -> tuple[Choice, ...]:
    """Choose the best clock for each aim, by the expected energy E and time t.

    Parameters
    ----------
    posterior : Posterior
        The curves that explain the points.
    clocks_mhz : array, shape (n,)
        Clocks to choose from in MHz.

    Returns
    -------
    tuple of Choice
        One for each aim.
    """
    time = np.interp(clocks_mhz, posterior.clock_mhz, posterior.time)
    drawn = posterior.energy / posterior.energy.min(axis=1)[:, None]
    energy = np.interp(clocks_mhz, posterior.clock_mhz, drawn.mean(axis=0))
    fastest = int(time.argmin())

    def choice(wish: str, cost: Floats) -> Choice:
        index = int(cost.argmin())
        return Choice(
            wish, float(clocks_mhz[index]), float(energy[index] / energy[fastest]), float(time[index] / time[fastest])
        )

    results = [choice("least energy x time", energy * time), choice("least energy x time^2", energy * time**2)]
    for share in SLOWER:
        allowed = time <= time.min() / (1.0 - share)
        results.append(
            choice(f"least energy within {100 * share:.0f} % of full speed", np.where(allowed, energy, np.inf))
        )
    return tuple(results)


MINIMUM_CLOCKS = 5  # four parameters and one clock to check them with
_IDLE_ERROR = 0.3  # of the lowest power: beyond this standard error P_idle is not reported
_NO_FLOATS: Final[Floats] = np.empty(0)
_DRAWN: Final = figure(key=None)  # for a chart; `--json` has the curve at some clocks
_EVERY: Final = 4  # of the clocks at which a fit is drawn


def _no_floats() -> Floats:
    return _NO_FLOATS


@dataclass(frozen=True, slots=True)
class MemoryClock:
    """What a memory clock makes possible, over the best of all memory clocks (energy) and the fastest of all (time)."""

    memory_clock_mhz: float
    recommended_clock_mhz: float
    energy: float
    time: float


@dataclass(frozen=True, kw_only=True)
class Samples:
    """The points of a fit; arrays of shape (n,), ascending by clock as given."""

    clock_mhz: Floats = field(metadata=_DRAWN)  # observed or effective
    power_w: Floats = field(metadata=_DRAWN)  # as measured
    used: Mask = field(metadata=_DRAWN)  # points that took part in the fit
    voltage_mv: Floats = field(default_factory=_no_floats, metadata=_DRAWN)  # NaN unknown; empty: none known
    rate: Floats = field(default_factory=_no_floats, metadata=_DRAWN)  # in any unit; empty: not known


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """The parameters of the curve as far as the points identify them, and what was fitted beside it."""

    form: Literal["sharp", "smooth"] = "sharp"
    p_idle_w: float | None = None
    p_max_w: float | None = None
    alpha_w_per_mhz: float | None = None
    beta_per_mhz: float | None = None
    ridge_mhz: float | None = None  # that of the voltage where the two disagree; an edge where not bracketed
    ridge_bracketed: bool = False
    softness_mhz: float | None = None  # w of the smooth form; None for the sharp one
    standard_errors: dict[str, float] = field(default_factory=dict)  # by parameter name
    # The fields of `Curve`; also where a parameter is not identified on its own.
    curve: tuple[float, ...] | None = field(default=None, metadata=_DRAWN)
    fixed_time_share: float | None = None  # of the time at the highest clock, what does not shrink with it
    leakage_w_per_c: float | None = None  # where identified; the curve, not the points, is at reference_c then
    reference_c: float | None = None
    voltage_ridge_mhz: float | None = None  # of the measured voltage curve
    voltage_ridge_interval_mhz: tuple[float, float] | None = None


@dataclass(frozen=True, kw_only=True)
class Optimum:
    """The clock of the least energy per work, and the one to use."""

    optimum_mhz: float | None = None  # of the least expected energy, continuous
    optimum_interval_mhz: tuple[float, float] | None = None  # 95 %
    optimum_bracketed: bool = False
    range_mhz: tuple[float, float] | None = None  # +-10 % of the optimum
    best_measured_mhz: float | None = None
    recommended_clock_mhz: float | None = None  # a sampled or supported clock
    expected_loss: float | None = None  # of energy, of the recommended clock over the unknown best one
    choices: tuple[Choice, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Quality:
    """How well the curve explains the points, and where it lies with 95 % probability."""

    identifiable: bool = False
    r2: float | None = None
    rmse_w: float | None = None
    band_mhz: Floats = field(default_factory=_no_floats, metadata=_DRAWN)  # (m,)
    band_w: Floats = field(default_factory=_no_floats, metadata=_DRAWN)  # (2, m): 95 % band of P(f) at those clocks


@dataclass(frozen=True, slots=True)
class ModelledCurve:
    """The modelled power over the clock, and where it lies with 95 % probability; the readings' own noise left out."""

    clock_mhz: Floats
    power_w: Floats
    low_w: Floats
    high_w: Floats


@dataclass(frozen=True, kw_only=True)
class FrequencyFit(Quality, Optimum, Parameters, Samples):
    """A fitted model. None stands for 'not identifiable'; an edge with a false flag for 'not bracketed'."""

    IN_JSON: ClassVar = {
        "points": "points",
        "curve": "modelled",
        "energy_change": "energy_change",
        "baseline": "baseline",
    }

    gpu: str
    series: str  # which device, kernel or configuration the points belong to
    reasons: tuple[str, ...] = ()
    simulated: bool = False
    memory_clock_mhz: float | None = None
    memory_clocks: tuple[MemoryClock, ...] = ()  # where the same work was measured at several
    untouched_energy: float | None = None  # per work of the untouched board, in the unit of power over rate
    untouched_rate: float | None = field(default=None, metadata=_DRAWN)  # its speed

    @property
    def minimised(self) -> str:
        """The figure that is least at the optimum; without a measured speed no energy of the work is known."""
        return "energy per work" if len(self.rate) else "power per clock"

    @property
    def energy_change(self) -> float | None:
        """Energy per work at the recommended clock over that of `baseline`, less 1; None without a measured speed."""
        if self.recommended_clock_mhz is None or not len(self.rate):
            return None
        before = self.untouched_energy or self._measured_energy(float(self.clock_mhz.max()))
        change = self._measured_energy(self.recommended_clock_mhz) / before - 1
        return change if math.isfinite(change) else None

    @property
    def baseline(self) -> str:
        """What the energy at the recommended clock is compared with."""
        return HIGHEST_CLOCK if self.untouched_energy is None else OWN_STATE

    def _measured_energy(self, clock_mhz: float) -> float:
        """Per work at a clock: of the nearest point, carried over by the model where there is one."""
        nearest = int(np.abs(self.clock_mhz - clock_mhz).argmin())
        energy = float(self.power_w[nearest] / self.rate[nearest])
        if not self.identifiable or self.clock_mhz[nearest] == clock_mhz:
            return energy
        return energy * float(self.energy(clock_mhz) / self.energy(self.clock_mhz[nearest]))

    @property
    def points(self) -> Count:
        """How many points it was fitted to, those left out included."""
        return len(self.clock_mhz)

    @property
    def modelled(self) -> ModelledCurve | None:
        """The curve at some clocks; None if the model is not identifiable."""
        if not self.identifiable:
            return None
        clock_mhz, (low_w, high_w) = self.band_mhz[::_EVERY], self.band_w[:, ::_EVERY]
        return ModelledCurve(*(np.round(value, 3) for value in (clock_mhz, self.power(clock_mhz), low_w, high_w)))

    def power(self, clock_mhz: npt.ArrayLike) -> Floats:
        """Power P(f).

        Parameters
        ----------
        clock_mhz : array_like, any shape
            Clocks in MHz.

        Returns
        -------
        array, same shape
            Power in W.

        Raises
        ------
        ValueError
            If the model is not identifiable.
        """
        return self._curve().power_w(clock_mhz)

    def relative_voltage(self, clock_mhz: npt.ArrayLike) -> Floats:
        """Voltage v(f), relative to the voltage below the ridge.

        Parameters
        ----------
        clock_mhz : array_like, any shape
            Clocks in MHz.

        Returns
        -------
        array, same shape
            Without a unit, never volts.

        Raises
        ------
        ValueError
            If the model is not identifiable.
        """
        return self._curve().voltage(clock_mhz)

    def energy(self, clock_mhz: npt.ArrayLike) -> Floats:
        """Estimated energy per work, P(f) t(f).

        t(f) is 1/f, or 1/f and a fixed part where the measured speed shows one.

        Parameters
        ----------
        clock_mhz : array_like, any shape
            Clocks in MHz.

        Returns
        -------
        array, same shape
            Relative to its minimum over the sampled range (no unit).

        Raises
        ------
        ValueError
            If the model is not identifiable.
        """
        curve = self._curve()
        sampled = self.clock_mhz[self.used]
        lowest = float(curve.energy(np.linspace(sampled.min(), sampled.max(), 401)).min())
        return np.asarray(curve.energy(clock_mhz) / lowest)

    def speed(self, clock_mhz: npt.ArrayLike) -> Floats:
        """Estimated speed, the inverse of t(f).

        Parameters
        ----------
        clock_mhz : array_like, any shape
            Clocks in MHz.

        Returns
        -------
        array, same shape
            Relative to that at the highest sampled clock (no unit).

        Raises
        ------
        ValueError
            If the model is not identifiable.
        """
        time = self._curve().duration.relative
        return np.asarray(time(self.clock_mhz[self.used].max()) / time(clock_mhz))

    def _curve(self) -> Curve:
        if self.curve is None:
            raise ValueError("the frequency model is not identifiable from these points")
        return Curve(*self.curve)


def fit_frequency_model(points: Points) -> FrequencyFit:
    """Fit P(f) = min(P_max, P_idle + alpha f v(f)^2) to points [Schoonhoven2024, eqs. 6.2, 6.3].

    Parameters
    ----------
    points : Points
        One series, arrays of shape (n,); points that are not finite or not positive are left out.

    Returns
    -------
    FrequencyFit
        The fit; not identifiable, with the reasons, where the points do not determine it.

    Raises
    ------
    ValueError
        Where shapes differ.
    InputError
        Where no point is left.
    """
    readings = _Readings.of(points.usable())
    clocks = _distinct(readings.clock_mhz[readings.used])
    if clocks < MINIMUM_CLOCKS:
        what = f"{counted(clocks, 'different clock')} below any limit; the model needs at least {MINIMUM_CLOCKS}"
        return readings.without_model(what)
    readings = readings.checked()
    points, duration = readings.fitted, readings.duration
    solution, straight = fit_forms(points.clock_mhz, points.power_w, duration)
    modelled_w = solution.curve.power_w(points.clock_mhz)
    r2 = r_squared(points.power_w, modelled_w)
    if r2 < LEAST_R2 or solution.curve.alpha_w_per_mhz <= 0:
        return readings.without_model(f"power does not follow the clock as the model has it (R² {max(r2, 0.0):.3f})")
    curve = replace(
        solution.curve, p_max_w=readings.p_max_w, fixed_per_mhz=duration.fixed_per_mhz, blend=duration.blend
    )
    posterior = posterior_of(points, duration)
    optimum, optimum_reasons, overruled = _optimum(readings, posterior, curve)
    parameters, ridge_reasons = _parameters(readings, posterior, curve, solution, straight)
    speed = [NO_SPEED] if points.rate is None else speed_reason(duration, points.clock_mhz, points.rate)
    low, high = posterior.band_w()
    middle = curve.power_w(posterior.clock_mhz)  # its misfit is part of what is uncertain: the band holds it
    quality = Quality(
        identifiable=True,
        r2=r2,
        rmse_w=float(np.sqrt(((points.power_w - modelled_w) ** 2).mean())),
        band_mhz=posterior.clock_mhz,
        band_w=np.stack([np.minimum(low, middle), np.maximum(high, middle)]),
    )
    reasons = (*readings.reasons, *optimum_reasons, *ridge_reasons, *speed, *overruled)
    figures = {**vars(parameters), **vars(optimum), **vars(quality)}
    return replace(readings.blank(), **figures, reasons=reasons)


@dataclass(frozen=True, slots=True)
class _Readings:
    """Usable points and what is known of them before any curve is fitted; arrays of shape (n,)."""

    points: Points
    clock_mhz: Floats  # that each ran at: by the speed where a limit held it below the requested one
    power_w: Floats  # at the reference temperature, where leakage is identified
    limited: Mask
    used: Mask
    duration: Duration
    reasons: tuple[str, ...] = ()
    leakage: Leakage | None = None

    @classmethod
    def of(cls, points: Points) -> _Readings:
        acted = limited_points(points)
        free, duration, rate = ~acted, Duration(), points.rate
        if rate is not None and free.any():
            duration = fit_duration(points.clock_mhz[free], rate[free])
        if _distinct(points.clock_mhz[free]) < MINIMUM_CLOCKS and rate is not None and duration.fixed_per_mhz == 0:
            free = free | acted  # too few without: where the speed gives the real clock under the cap, it is a point
        reasons = (cap_reason(points, acted),) if acted.any() else ()
        return cls(points, effective_clocks(points, acted), points.power_w, ~free, free, duration, reasons)

    def checked(self) -> _Readings:
        """With the leakage, and without readings that cannot belong to the curve."""
        points, free, power_w, reasons = self.points, self.used, self.power_w, list(self.reasons)
        leakage = None
        if points.temperature_c is not None:
            leakage = fit_leakage(self.clock_mhz[free], power_w[free], points.temperature_c[free])
            if leakage is not None:
                power_w = power_w - leakage.slope_w_per_c * (points.temperature_c - leakage.reference_c)
                reasons.append(leakage.words)
        used, wrong = without_outliers(self.clock_mhz, power_w, points.rate, free)
        duration = self.duration
        if wrong:
            reasons.append(wrong)
            if points.rate is not None:
                duration = fit_duration(points.clock_mhz[used], points.rate[used])
        return replace(self, power_w=power_w, used=used, duration=duration, reasons=tuple(reasons), leakage=leakage)

    @property
    def fitted(self) -> Points:
        """The points used, at the clocks they ran at and the reference temperature."""
        return replace(self.points, clock_mhz=self.clock_mhz, power_w=self.power_w).at(self.used)

    @property
    def p_max_w(self) -> float:
        """At which a limit held the board; infinite where none acted."""
        return float(np.median(self.points.power_w[self.limited])) if self.limited.any() else math.inf

    def measured(self) -> Measured:
        """The measured energy per work, by clock.

        It covers the points used, and limited ones where their speed is known; points left out count where others
        repeat them.

        Without it, the clock that a limited point really ran at is not known either.
        """
        kept = self.used | self.limited if self.points.rate is not None or not self.used.any() else self.used
        seen = ~self.limited | kept
        points = replace(self.points, clock_mhz=self.clock_mhz).at(seen)
        return Measured.of(points.clock_mhz, points.energy, points.requested_mhz, kept[seen])

    def blank(self) -> FrequencyFit:
        """What is known without a model."""
        points = self.points
        return FrequencyFit(
            gpu=points.gpu,
            series=points.series,
            clock_mhz=self.clock_mhz,
            power_w=points.power_w,
            used=self.used,
            voltage_mv=points.voltage_mv if points.voltage_mv is not None else _NO_FLOATS,
            rate=points.rate if points.rate is not None else _NO_FLOATS,
            best_measured_mhz=self.measured().best_mhz,
            simulated=points.simulated,
            untouched_energy=points.untouched_energy,
            untouched_rate=points.untouched_rate,
        )

    def without_model(self, reason: str) -> FrequencyFit:
        """The measured energies still give a clock, where speed was measured."""
        fit, reasons = self.blank(), (reason, *self.reasons)
        if self.points.rate is None or _distinct(self.points.clock_mhz) < 2:
            return replace(fit, reasons=reasons)
        what = "the recommended clock is the one with the least measured energy"
        measured = self.measured()
        clock, doubts = measured.checked(measured.best_mhz)
        return replace(fit, recommended_clock_mhz=clock, reasons=(*reasons, what, *doubts))


def _optimum(readings: _Readings, posterior: Posterior, curve: Curve) -> tuple[Optimum, list[str], list[str]]:
    """The optimum and the clock to use; why it is not bracketed, and why the model's own choice is overruled."""
    points, measured = readings.fitted, readings.measured()
    clock, supported = points.clock_mhz, points.supported_mhz
    valley = survey(posterior.clock_mhz, posterior.energy)
    bracketed, reasons = optimum_flag(valley.optimum_mhz, valley.interval_mhz, np.unique(clock))
    interval = settable_interval(valley, supported)
    chosen = recommend(valley, interval, clock, points.energy, supported, bracketed=bracketed)
    chosen, overruled = follow_data(chosen, interval, measured, posterior, curve, supported)
    chosen, doubts = measured.checked(chosen)
    overruled += doubts
    # of the points that were fitted: what a limit removed is no fault of the model
    misfit = Measured.of(clock, points.energy).misfit(posterior.clock_mhz, posterior.energy.mean(0), posterior.noise)
    optimum = Optimum(
        optimum_mhz=valley.optimum_mhz,
        optimum_interval_mhz=interval,
        optimum_bracketed=bracketed,
        range_mhz=(0.9 * valley.optimum_mhz, 1.1 * valley.optimum_mhz),
        best_measured_mhz=measured.best_mhz,
        recommended_clock_mhz=chosen,
        expected_loss=math.hypot(float(valley.loss_at(chosen)), misfit),
        choices=choices(posterior, candidates(clock, supported)),
    )
    return optimum, reasons, overruled


def _parameters(
    readings: _Readings, posterior: Posterior, curve: Curve, solution: Solution, straight: Solution
) -> tuple[Parameters, list[str]]:
    """The parameters as far as the points identify them, and why the ridge is not bracketed.

    What a reader would take for a fact must be one.
    """
    points, leakage = readings.fitted, readings.leakage
    clocks = np.unique(points.clock_mhz)
    ridge, bracketed, reasons = ridge_flag(solution, straight, posterior.ridge_mhz, clocks)
    least_w = float(points.power_w.min())
    below_range = not bracketed and ridge <= clocks[0]  # the voltage all is relative to was never seen
    idle_known = solution.standard_errors["p_idle_w"] <= _IDLE_ERROR * least_w and not below_range
    idle_w = curve.p_idle_w if curve.p_idle_w > 1e-6 * least_w else 0.0  # at its bound
    by_voltage = None if points.voltage_mv is None else voltage_ridge(points.clock_mhz, points.voltage_mv)
    stated, errors = (ridge, bracketed), dict(solution.standard_errors)
    error = errors.get("ridge_mhz", math.nan)
    if by_voltage is not None and not (bracketed and by_voltage.agrees(ridge, error)):
        bend = f"the curve of power bends at {ridge:.0f} ± {error:.2g} MHz" if bracketed else "power alone shows none"
        reasons = [*reasons, f"the ridge is that of the measured voltage, {by_voltage.ridge_mhz:.0f} MHz: {bend}"]
        stated = (by_voltage.ridge_mhz, True)
        errors.pop("ridge_mhz", None)
    parameters = Parameters(
        form="sharp" if curve.softness_mhz == 0 else "smooth",
        p_idle_w=idle_w if idle_known else None,
        p_max_w=curve.p_max_w if math.isfinite(curve.p_max_w) else None,
        alpha_w_per_mhz=None if below_range else curve.alpha_w_per_mhz,
        beta_per_mhz=curve.beta_per_mhz if bracketed else None,
        ridge_mhz=stated[0],
        ridge_bracketed=stated[1],
        softness_mhz=curve.softness_mhz if curve.softness_mhz > 0 and bracketed else None,
        standard_errors=errors,
        curve=astuple(curve),
        fixed_time_share=None if points.rate is None else readings.duration.fixed_share(float(clocks[-1])),
        leakage_w_per_c=leakage.slope_w_per_c if leakage is not None else None,
        reference_c=leakage.reference_c if leakage is not None else None,
        voltage_ridge_mhz=by_voltage.ridge_mhz if by_voltage is not None else None,
        voltage_ridge_interval_mhz=by_voltage.interval_mhz if by_voltage is not None else None,
    )
    return parameters, reasons


def _distinct(clock: Floats) -> int:
    """How many clocks, those within a per cent of each other counted once."""
    count, last = 0, 0.0
    for value in np.sort(clock).tolist():
        if value > 1.01 * last:
            count, last = count + 1, value
    return count


def fit_points(points: Points) -> FrequencyFit:
    """Fit the frequency model to one series; one of very many rows by the medians at each clock.

    Parameters
    ----------
    points : Points
        One series, arrays of one shape (n,). Of its supported clocks those that the board follows are used.

    Returns
    -------
    FrequencyFit
        As `fit_frequency_model` returns it, with the notes and the memory clock of the series.

    Raises
    ------
    ValueError
        Where shapes differ.
    InputError
        Where no point is left.
    """
    points = only_followed(points.condensed())
    fit = fit_frequency_model(points)
    return replace(fit, reasons=(*fit.reasons, *points.notes), memory_clock_mhz=points.memory_clock_mhz)


def fit_memory_clocks(series: Sequence[Points]) -> FrequencyFit:
    """Fit the chosen one of several series, and those that differ from it in nothing but the memory clock beside it.

    Parameters
    ----------
    series : sequence of Points
        At least one; `choose` takes one of them.

    Returns
    -------
    FrequencyFit
        The fit of the chosen series; its `memory_clocks` are empty where fewer than two memory clocks are known.

    Raises
    ------
    InputError
        Where no point of a series is left.
    """
    chosen = choose(series)
    fit = fit_points(chosen)
    alike = [points for points in series if points.others == chosen.others and points.memory_clock_mhz is not None]
    if chosen.memory_clock_mhz is None or len({points.memory_clock_mhz for points in alike}) < 2:
        return fit
    fits = [fit if points.series == chosen.series else fit_points(points) for points in alike]
    return replace(fit, memory_clocks=_side_by_side(fits))


def _side_by_side(fits: Sequence[FrequencyFit]) -> tuple[MemoryClock, ...]:
    """One entry per fit that recommends a clock and knows the speed, by memory clock; the speeds must be alike."""
    optima = []
    for fit in fits:
        clock, memory = fit.recommended_clock_mhz, fit.memory_clock_mhz
        if clock is None or memory is None or not len(fit.rate):
            continue
        energy = float(np.exp(np.interp(clock, fit.clock_mhz, np.log(fit.power_w / fit.rate))))
        time = float(np.exp(np.interp(clock, fit.clock_mhz, -np.log(fit.rate))))
        optima.append((memory, clock, energy, time, float((1 / fit.rate).min())))
    least, fastest = (min((match[index] for match in optima), default=1.0) for index in (2, 4))
    return tuple(
        MemoryClock(memory, clock, energy / least, time / fastest) for memory, clock, energy, time, _ in sorted(optima)
    )
