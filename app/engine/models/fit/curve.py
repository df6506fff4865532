"""The curve of the frequency model: power and relative voltage over the clock [Schoonhoven2024, eqs. 6.2, 6.3]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..arrays import Floats
from .duration import Duration


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
        """v(f) relative to the voltage below the ridge; no unit."""
        clock = np.asarray(clock_mhz, dtype=np.float64)
        return 1.0 + self.beta_per_mhz * rise(clock, self.ridge_mhz, self.softness_mhz)

    def power_w(self, clock_mhz: npt.ArrayLike) -> Floats:
        """P(f) in W."""
        clock = np.asarray(clock_mhz, dtype=np.float64)
        switching = activity(clock, self.duration, self.waiting) * self.voltage(clock) ** 2
        return np.minimum(self.p_max_w, self.p_idle_w + self.alpha_w_per_mhz * switching)

    def energy(self, clock_mhz: npt.ArrayLike) -> Floats:
        """P(f) t(f), up to a factor."""
        return self.power_w(clock_mhz) * self.duration.relative(clock_mhz)


def activity(clock_mhz: Floats, duration: Duration, waiting: float) -> Floats:
    """What alpha v^2 is multiplied by: the clock, or as far as units wait, the speed; in the unit of the clock."""
    return np.asarray((1.0 - waiting) * clock_mhz + waiting / duration.relative(clock_mhz))


def rise(clock_mhz: Floats, ridge_mhz: npt.ArrayLike, softness_mhz: float) -> Floats:
    """How far the clock is above the ridge, max(0, f - ridge), or its smooth counterpart; in the unit of the clock."""
    above = clock_mhz - np.asarray(ridge_mhz, dtype=np.float64)
    if softness_mhz <= 0.0:
        return np.maximum(above, 0.0)
    return softness_mhz * np.logaddexp(0.0, above / softness_mhz)
