"""Power, relative voltage and time over the clock: the curves of the frequency model [Schoonhoven2024, eqs. 6.2, 6.3].

The time of the same work is t = a + b/f, and the measured speed departs from it smoothly. The part a does not shrink
with the clock: memory that is waited for, gaps between launches, the host. Where one part hides behind the other, as
under a roofline, the time is nearer to the longer of the two than to their sum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..arrays import Floats
from .departure import OF_TIME, Smooth

_BLENDS = (1.0, 4.0)
_FAR_BETTER = 0.25  # of the variance of the residuals of the sum
_ENOUGH_CLOCKS = 6
_LEAST_FIXED = 0.03  # share of fixed time at the highest clock, below which it may be scatter


@dataclass(frozen=True, slots=True)
class Duration:
    """Time of the same work over the clock: t ~ 1/f + fixed; `fixed_per_mhz` is 0 if all of it scales.

    With a `blend` p above 1 the two overlap, as under a roofline: t ~ (f^-p + fixed^p)^(1/p).
    """

    fixed_per_mhz: float = 0.0
    inverse_mhz: float = 1.0  # the factor of that sum, in the unit of 1/rate
    blend: float = 1.0

    def relative(self, clock_mhz: npt.ArrayLike) -> Floats:
        """Time of the work, up to a factor.

        Parameters
        ----------
        clock_mhz : array_like, any shape
            Clocks in MHz.

        Returns
        -------
        array, same shape
            In 1/MHz: 1/f where all of the time scales.
        """
        clock = np.asarray(clock_mhz, dtype=np.float64)
        return np.asarray((1.0 + (self.fixed_per_mhz * clock) ** self.blend) ** (1.0 / self.blend) / clock)

    def fixed_share(self, clock_mhz: float) -> float:
        """The part of the time that does not shrink with the clock.

        Parameters
        ----------
        clock_mhz : float
            The clock in MHz.

        Returns
        -------
        float
            Share of the time at that clock, 0..1.
        """
        return float((self.fixed_per_mhz / self.relative(clock_mhz)) ** self.blend)

    def clock_of(self, rate: Floats) -> Floats:
        """The clock at which a rate is reached.

        Parameters
        ----------
        rate : array, any shape
            Speeds in the unit of those that the duration was fitted to.

        Returns
        -------
        array, same shape
            Clocks in MHz; inf if a rate is above what any clock gives.
        """
        inverse = (rate * self.inverse_mhz) ** -self.blend - self.fixed_per_mhz**self.blend
        return np.where(inverse > 0, np.where(inverse > 0, inverse, 1.0) ** (-1.0 / self.blend), np.inf)


def fit_duration(clock_mhz: Floats, rate: Floats) -> Duration:
    """Fit 1/rate = a + b/f with a, b >= 0 by least squares of relative residuals.

    The two parts overlap instead where that explains the points far better.

    Parameters
    ----------
    clock_mhz : array, shape (n,)
        Clocks in MHz below any cap.
    rate : array, shape (n,)
        Speed at each clock in any unit.

    Returns
    -------
    Duration
        Its `inverse_mhz` is in the unit of 1/rate.
    """
    fits = [_fit(clock_mhz, rate, blend) for blend in _BLENDS]
    misses = [float(np.var(np.log(fit.relative(clock_mhz) * rate))) for fit in fits]
    return fits[1] if misses[1] < _FAR_BETTER * misses[0] and len(np.unique(clock_mhz)) >= _ENOUGH_CLOCKS else fits[0]


def _fit(clock_mhz: Floats, rate: Floats, blend: float) -> Duration:
    scale = float(np.median(clock_mhz))
    clock, time = (clock_mhz / scale) ** blend, (float(np.median(rate)) / rate) ** blend
    level = (1.0 / float(np.median(rate))) ** blend
    design = np.stack([1.0 / time, 1.0 / (clock * time)], axis=1)
    norm = np.linalg.norm(design, axis=0)
    gram = (design / norm).T @ (design / norm)
    target = (design / norm).sum(axis=0)

    def found(a: float, b: float) -> Duration:
        return Duration((a / b) ** (1 / blend) / scale, (b * level) ** (1 / blend) * scale, blend)

    alone = found(0.0, float(target[1] / gram[1, 1] / norm[1]))
    if len(np.unique(clock)) < 3 or abs(np.linalg.det(gram)) < 1e-9:
        return alone
    a, b = (float(part) for part in np.linalg.solve(gram, target) / norm)
    if b <= 0:  # the clock does nothing for the speed: keep a trace of it, so that a clock can be derived
        b = 1e-3 * float(np.median(clock * time))
        a = float(np.median(time)) * (1 - 1e-3)
    return found(a, b) if a * float(clock.max()) / b >= _LEAST_FIXED else alone


@dataclass(frozen=True, slots=True)
class Times:
    """Time over the clock, in the unit of 1/rate: the law, and the departures of the points from it."""

    duration: Duration
    scale_mhz: float
    beyond: Smooth | None  # None if no speed was measured: all of the time shrinks with the clock then

    @classmethod
    def of(cls, duration: Duration, clock_mhz: Floats, rate: Floats | None) -> Times:
        """Find how the times of points depart from their law.

        Parameters
        ----------
        duration : Duration
            The law, fitted to them.
        clock_mhz : array, shape (n,)
            Clocks in MHz.
        rate : array, shape (n,), or None
            Speed in any unit; None if it was not measured.

        Returns
        -------
        Times
            The law and the departures.
        """
        scale = float(clock_mhz.max())
        if rate is None:
            return cls(duration, scale, None)
        beyond = -np.log(duration.inverse_mhz * duration.relative(clock_mhz) * rate)
        return cls(duration, scale, Smooth.of(clock_mhz / scale, beyond, OF_TIME))

    def at(self, clock_mhz: Floats) -> Floats:
        """The expected time.

        Parameters
        ----------
        clock_mhz : array, shape (m,)
            Clocks in MHz.

        Returns
        -------
        array, shape (m,)
            In the unit of 1/rate.
        """
        law = self.duration.inverse_mhz * self.duration.relative(clock_mhz)
        return law if self.beyond is None else np.asarray(law * np.exp(self.beyond.mean(clock_mhz / self.scale_mhz)))

    def drawn(self, clock_mhz: Floats, count: int, rng: np.random.Generator) -> Floats:
        """Draw curves of the time, each as likely as the next.

        Parameters
        ----------
        clock_mhz : array, shape (m,)
            Clocks in MHz.
        count : int
            How many curves to draw.
        rng : numpy.random.Generator
            Source of the draws.

        Returns
        -------
        array, shape (count, m)
            In the unit of 1/rate; all alike, and read-only, if no speed was measured.
        """
        law = self.duration.inverse_mhz * self.duration.relative(clock_mhz)
        if self.beyond is None:
            return np.broadcast_to(law, (count, len(law)))
        return np.asarray(law * np.exp(self.beyond.drawn(clock_mhz / self.scale_mhz, count, rng)))


@dataclass(frozen=True, slots=True)
class Curve:
    """P(f) = min(P_max, P_idle + alpha f v(f)^2), v(f) = 1 below the ridge and 1 + beta (f - ridge) above it.

    With a softness w > 0 the bend is smooth: v(f) = 1 + beta w ln(1 + exp((f - ridge)/w)); w -> 0 is the sharp form.
    Of work with a fixed part of time (`Duration`), the share `waiting` of alpha f v^2 follows the speed in place of the
    clock: units that wait for memory switch less.
    """

    p_idle_w: float
    alpha_w_per_mhz: float
    beta_per_mhz: float
    ridge_mhz: float
    softness_mhz: float = 0.0
    p_max_w: float = np.inf
    fixed_per_mhz: float = 0.0
    waiting: float = 0.0
    blend: float = 1.0

    @property
    def duration(self) -> Duration:
        """How the time of the work follows the clock, up to a factor."""
        return Duration(self.fixed_per_mhz, blend=self.blend)

    def voltage(self, clock_mhz: npt.ArrayLike) -> Floats:
        """Voltage v(f), relative to the voltage below the ridge.

        Parameters
        ----------
        clock_mhz : array_like, any shape
            Clocks in MHz.

        Returns
        -------
        array, same shape
            Without a unit.
        """
        clock = np.asarray(clock_mhz, dtype=np.float64)
        return 1.0 + self.beta_per_mhz * rise(clock, self.ridge_mhz, self.softness_mhz)

    def power_w(self, clock_mhz: npt.ArrayLike) -> Floats:
        """Power P(f), under the cap where there is one.

        Parameters
        ----------
        clock_mhz : array_like, any shape
            Clocks in MHz.

        Returns
        -------
        array, same shape
            Power in W.
        """
        clock = np.asarray(clock_mhz, dtype=np.float64)
        switching = activity(clock, self.duration, self.waiting) * self.voltage(clock) ** 2
        return np.minimum(self.p_max_w, self.p_idle_w + self.alpha_w_per_mhz * switching)

    def energy(self, clock_mhz: npt.ArrayLike) -> Floats:
        """Energy P(f) t(f), up to a factor.

        Parameters
        ----------
        clock_mhz : array_like, any shape
            Clocks in MHz.

        Returns
        -------
        array, same shape
            For the same work, in W/MHz.
        """
        return self.power_w(clock_mhz) * self.duration.relative(clock_mhz)


def activity(clock_mhz: Floats, duration: Duration, waiting: float) -> Floats:
    """Compute the factor of alpha v^2: the clock, or as far as units wait, the speed.

    Parameters
    ----------
    clock_mhz : array, any shape
        Clocks in MHz.
    duration : Duration
        Time of the work over the clock.
    waiting : float
        Share of the dynamic power that follows the speed, 0..1.

    Returns
    -------
    array, same shape
        In MHz.
    """
    return np.asarray((1.0 - waiting) * clock_mhz + waiting / duration.relative(clock_mhz))


def rise(clock_mhz: Floats, ridge_mhz: npt.ArrayLike, softness_mhz: float) -> Floats:
    """Compute how far clocks are above the ridge, max(0, f - ridge), or its smooth counterpart.

    Parameters
    ----------
    clock_mhz, ridge_mhz : array_like, shapes that broadcast
        Clocks and ridges in one unit.
    softness_mhz : float
        Width w of the smooth bend in that unit; 0 or less for the sharp one.

    Returns
    -------
    array, broadcast shape
        In the unit of the clocks.
    """
    above = clock_mhz - np.asarray(ridge_mhz, dtype=np.float64)
    if softness_mhz <= 0.0:
        return np.maximum(above, 0.0)
    return softness_mhz * np.logaddexp(0.0, above / softness_mhz)
