"""Power caps: power, speed and energy of a load over the power limit [Schoonhoven2024, section 6.5.3]."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ....base.records import Count, figure
from ...metering.limit_effect import LimitEffect, in_words, listed
from ...results.measurement import FEWEST
from ..arrays import Floats, Mask
from .frequency import FrequencyFit

_SAME_POWER = 0.005  # share by which powers under different limits may differ and be the same
_BELOW = 0.97  # of the limit: what is drawn there does not follow it
_LEAST_LIMITS = 3
_BINDS = 0.97  # of the power without a limit: what is drawn below it was held down
_MOST_BASE = 0.98  # of the least power drawn
_FAR_BETTER = 0.25  # of the squared residuals without a base
_OVERSHOOT = 0.03  # relative, beyond which a limit counts as not kept


@dataclass(frozen=True, slots=True)
class AllSeries:
    """Several series of power limits together."""

    series: Count
    median_saving: float
    largest_overshoot: float

    @classmethod
    def of(cls, fits: Sequence[CapFit]) -> AllSeries:
        """Summarise the fits of several series.

        Parameters
        ----------
        fits : sequence of CapFit
            At least one.

        Returns
        -------
        AllSeries
            How many there are, their median saving (NaN over fewer than FEWEST) and their largest overshoot.
        """
        return cls(len(fits), median_saving(fits), max(fit.largest_overshoot for fit in fits))


@dataclass(frozen=True, slots=True)
class Unbound:
    """Limits under which the same power is drawn, below the last of them."""

    from_w: float
    to_w: float
    drawn_w: float

    def __str__(self) -> str:
        return f"{self.from_w:g} to {self.to_w:g} W ({self.drawn_w:.0f} W drawn whatever is set)"


@dataclass(frozen=True, slots=True)
class CapFit:
    """Power limits and what they did; arrays of shape (n,), ascending by limit."""

    IN_JSON: ClassVar = ("energy", "points", "without_effect_from_w", "least_product_limit_w", "unbound")

    gpu: str
    series: str
    limit_w: Floats
    power_w: Floats
    rate: Floats  # speed in any unit
    best_limit_w: float  # of the least measured energy per work
    saving: float  # of energy there, against the highest limit
    slower: float  # loss of speed there, likewise
    free_power_w: float  # drawn where no limit binds
    kept: float | None  # power over the limit where it binds, the median; None if none does
    largest_overshoot: float  # of power over the limit, relative, of any point
    speed_exponent: float | None  # speed ~ (power - base)^k where the limit binds
    speed_base_w: float  # power that no speed comes from: what is drawn however slow the work
    best_within_5_percent_w: float  # the least energy at no less than 95 % of the full speed
    reasons: tuple[str, ...]
    simulated: bool = False
    observed_clock_mhz: Floats | None = None
    effects: tuple[LimitEffect, ...] = ()  # of power limits, those too that were not measured; none if not known
    all_series: AllSeries | None = field(default=None, metadata=figure(absent=True))  # of which it is one

    @property
    def points(self) -> Count:
        """How many limits were measured."""
        return len(self.limit_w)

    @property
    def without_effect_from_w(self) -> float | None:
        """The lowest limit that the load cannot reach; None if there is none, or that is not known."""
        return min((effect.limit_w for effect in self.effects if effect.without_effect), default=None)

    @property
    def least_product_limit_w(self) -> float:
        """The limit of the least energy per work times time per work."""
        return float(self.limit_w[(self.power_w / self.rate**2).argmin()])

    @property
    def unbound(self) -> tuple[Unbound, ...]:
        """Where another limit changes nothing: neighbouring limits under which the same power is drawn."""
        return tuple(_unbound(self.limit_w, self.power_w))

    @property
    def energy(self) -> Floats:
        """Per work, over that at the highest limit."""
        energy = self.power_w / self.rate
        return np.asarray(energy / energy[-1])

    def power(self, limit_w: npt.ArrayLike) -> Floats:
        """Modelled power at limits: what is free to be drawn, or as much of the limit as the board keeps to.

        Parameters
        ----------
        limit_w : array_like, any shape
            Power limits in W.

        Returns
        -------
        array, same shape
            Power in W.
        """
        limit = np.asarray(limit_w, dtype=np.float64)
        return np.minimum(self.free_power_w, (self.kept or 1.0) * limit)

    def speed(self, limit_w: npt.ArrayLike) -> Floats:
        """Modelled speed at limits.

        Parameters
        ----------
        limit_w : array_like, any shape
            Power limits in W.

        Returns
        -------
        array, same shape
            Speed over the full speed; 1 throughout where `speed_exponent` is None.
        """
        share = (self.power(limit_w) - self.speed_base_w) / (self.free_power_w - self.speed_base_w)
        return np.asarray(np.maximum(share, 0.0) ** (self.speed_exponent or 0.0))


def _unbound(limit_w: Floats, power_w: Floats) -> Iterator[Unbound]:
    first = 0
    for place in range(1, len(limit_w) + 1):
        here = power_w[first : place + 1]
        if place < len(limit_w) and float(np.ptp(here)) <= _SAME_POWER * float(here.mean()):
            continue
        drawn, last = float(power_w[first:place].mean()), float(limit_w[place - 1])
        if limit_w[first] < last and drawn < _BELOW * last:
            yield Unbound(float(limit_w[first]), last, drawn)
        first = place


def fit_caps(
    limit_w: npt.ArrayLike,
    power_w: npt.ArrayLike,
    rate: npt.ArrayLike,
    *,
    gpu: str = "",
    series: str = "",
    observed_clock_mhz: npt.ArrayLike | None = None,
    simulated: bool = False,
    effects: tuple[LimitEffect, ...] = (),
) -> CapFit | None:
    """Fit power, speed and energy over the power limit.

    Parameters
    ----------
    limit_w : array_like, shape (n,)
        Power limits in W.
    power_w : array_like, shape (n,)
        Power drawn under each in W.
    rate : array_like, shape (n,)
        Speed under each in any unit.
    gpu, series : str, optional
        The board, and the load or configuration that the points belong to.
    observed_clock_mhz : array_like, shape (n,), or None, optional
        Clocks in MHz; None if they were not observed.
    simulated : bool, optional
        Whether the board is simulated.
    effects : tuple of LimitEffect, optional
        What is known of the effects of power limits on the load, those that were not measured as well.

    Returns
    -------
    CapFit or None
        None where fewer than three different limits are known.
    """
    limit, power, speed = (np.asarray(value, dtype=np.float64) for value in (limit_w, power_w, rate))
    clock = None if observed_clock_mhz is None else np.asarray(observed_clock_mhz, dtype=np.float64)
    good = (limit > 0) & (power > 0) & (speed > 0) & np.isfinite(limit * power * speed)
    order = np.flatnonzero(good)[np.argsort(limit[good], kind="stable")]
    limit, power, speed = limit[order], power[order], speed[order]
    if len(np.unique(limit)) < _LEAST_LIMITS:
        return None
    free_power = float(power[-1])
    binds = power < _BINDS * free_power
    kept = float(np.median(power[binds] / limit[binds])) if binds.any() else None
    exponent, base = _speed_law(np.minimum(free_power, (kept or 1.0) * limit), speed, binds)
    energy = power / speed
    best = int(energy.argmin())
    quick = np.flatnonzero(speed >= 0.95 * speed.max())
    overshoot = float((power / limit - 1).max())
    left_out = [effect for effect in effects if effect.limit_w not in limit]
    spared = in_words([effect for effect in effects if effect.without_effect])
    reasons = [f"{spared} (not measured: {listed(left_out)})" if left_out else spared]
    if not binds.any():
        reasons.append(f"no limit binds: {free_power:.0f} W are drawn at each")
    if best == 0:
        reasons.append(f"the lowest limit, {limit[0]:.0f} W, is the best: a lower one or a lower clock may be better")
    if overshoot > _OVERSHOOT:
        steepest = float(limit[(power / limit).argmax()])
        reasons.append(f"the board draws up to {100 * overshoot:.0f} % more than its limit (at {steepest:.0f} W)")
    return CapFit(
        gpu=gpu,
        series=series,
        limit_w=limit,
        power_w=power,
        rate=speed,
        best_limit_w=float(limit[best]),
        saving=float(1 - energy[best] / energy[-1]),
        slower=float(1 - speed[best] / speed[-1]),
        free_power_w=free_power,
        kept=kept,
        largest_overshoot=overshoot,
        speed_exponent=exponent,
        speed_base_w=base,
        best_within_5_percent_w=float(limit[quick[energy[quick].argmin()]]),
        reasons=tuple(filter(None, reasons)),
        simulated=simulated,
        observed_clock_mhz=None if clock is None else clock[order],
        effects=effects,
    )


def _speed_law(power: Floats, speed: Floats, binds: Mask) -> tuple[float | None, float]:
    """How the speed follows the power it is held down to, (power - base)^k: k, and the base in W.

    Least squares of the logarithms, through full speed, for each of many bases; a base other than none must explain
    the points far better. `power` is what the limits let through.
    """
    if binds.sum() < 2:
        return None, 0.0
    full, y = float(power[-1]), np.log(speed[binds] / speed[-1])

    def fitted(base: float) -> tuple[float, float]:
        x = np.log((power[binds] - base) / (full - base))
        k = float(x @ y / (x @ x))
        return float(((k * x - y) ** 2).sum()), k

    none = fitted(0.0)
    if binds.sum() < _LEAST_LIMITS:
        return none[1], 0.0
    bases = np.linspace(0.0, _MOST_BASE * float(power.min()), 40)
    best = min(bases.tolist(), key=lambda base: fitted(base)[0])
    return (fitted(best)[1], best) if fitted(best)[0] < _FAR_BETTER * none[0] else (none[1], 0.0)


@dataclass(frozen=True, slots=True)
class Side:
    """The best of one way to save energy, over the board left to itself."""

    setting: float  # MHz, or W
    energy: float
    speed: float
    lowest_clock_mhz: float | None  # that it reaches


@dataclass(frozen=True, slots=True)
class CapsAgainstClocks:
    """The same load steered by clocks and by power limits [Schoonhoven2024, figures 6.6, 6.7]."""

    IN_JSON: ClassVar = ("words",)

    clocks: Side
    caps: Side
    without_effect_from_w: float | None  # the lowest power limit that the load cannot reach
    power_ratio: float | None  # at the same observed clocks: power with a locked clock over power under a limit

    @property
    def words(self) -> str:
        """Which is better, in a sentence."""
        better, other = ("clocks", "limits") if self.clocks.energy <= self.caps.energy else ("power limits", "clocks")
        low, high = sorted((self.clocks.energy, self.caps.energy))
        from_w = self.without_effect_from_w
        spared = "" if from_w is None else f"; limits from {from_w:.0f} W on are without effect on this load"
        return f"{better} reach {100 * (1 - low / high):.1f} % less energy than {other}{spared}"


def compare(fit: FrequencyFit, caps: CapFit) -> CapsAgainstClocks | None:
    """Compare clocks and power limits for the same load, relative to the highest limit without a locked clock.

    Parameters
    ----------
    fit : FrequencyFit
        Fit of the clocks.
    caps : CapFit
        Fit of the limits, with speeds in the same unit.

    Returns
    -------
    CapsAgainstClocks or None
        None if a fit holds no speed or recommends no clock.
    """
    if fit.recommended_clock_mhz is None or not len(fit.rate):
        return None
    full_energy, full_speed = float(caps.power_w[-1] / caps.rate[-1]), float(caps.rate[-1])
    energy = fit.power_w / fit.rate
    order = np.argsort(fit.clock_mhz)
    clock_mhz = fit.recommended_clock_mhz
    by_clocks = Side(
        clock_mhz,
        float(np.exp(np.interp(clock_mhz, fit.clock_mhz[order], np.log(energy[order])))) / full_energy,
        float(np.interp(clock_mhz, fit.clock_mhz[order], fit.rate[order])) / full_speed,
        float(fit.clock_mhz.min()),
    )
    best = int((caps.power_w / caps.rate).argmin())
    clock = caps.observed_clock_mhz
    lowest = None if clock is None or not np.isfinite(clock).any() else float(np.nanmin(clock))
    by_caps = Side(caps.best_limit_w, float(caps.energy[best]), float(caps.rate[best]) / full_speed, lowest)
    return CapsAgainstClocks(by_clocks, by_caps, caps.without_effect_from_w, _power_ratio(fit, caps))


def _power_ratio(fit: FrequencyFit, caps: CapFit) -> float | None:
    """Power with a locked clock over power under a limit where the observed clocks overlap, the median."""
    clock = caps.observed_clock_mhz
    if clock is None:
        return None
    order = np.argsort(fit.clock_mhz)
    inside = np.isfinite(clock) & (clock >= fit.clock_mhz.min()) & (clock <= fit.clock_mhz.max())
    if inside.sum() < _LEAST_LIMITS:
        return None
    locked = np.interp(clock[inside], fit.clock_mhz[order], fit.power_w[order])
    return float(np.median(locked / caps.power_w[inside]))


def most_telling(fits: Sequence[CapFit]) -> CapFit:
    """The series with the most limits; of several, the one on the strongest board.

    Parameters
    ----------
    fits : sequence of CapFit
        At least one.

    Returns
    -------
    CapFit
        One of them. The strongest board is the one that draws most where no limit binds.
    """
    return max(fits, key=lambda fit: (len(fit.limit_w), fit.free_power_w))


def median_saving(fits: Sequence[CapFit]) -> float:
    """The median saving over several series.

    Parameters
    ----------
    fits : sequence of CapFit
        One for each series.

    Returns
    -------
    float
        As a share of energy; NaN over fewer than FEWEST series.
    """
    return float(np.median([fit.saving for fit in fits])) if len(fits) >= FEWEST else math.nan
