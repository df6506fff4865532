"""The curve of the frequency model: power and relative voltage over the clock (S1 eqs 6.2 and 6.3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Curve:
    """P(f) = min(P_max, P_idle + alpha f v(f)^2), v(f) = 1 below the ridge and 1 + beta (f - ridge) above it.

    With a softness w > 0 the bend is smooth: v(f) = 1 + beta w ln(1 + exp((f - ridge)/w)); w -> 0 is the sharp form.
    """

    p_idle_w: float
    alpha_w_per_mhz: float
    beta_per_mhz: float
    ridge_mhz: float
    softness_mhz: float = 0.0
    p_max_w: float = np.inf

    def voltage(self, clock_mhz: npt.ArrayLike) -> Floats:
        """v(f) relative to the voltage below the ridge; no unit."""
        clock = np.asarray(clock_mhz, dtype=np.float64)
        return 1.0 + self.beta_per_mhz * rise(clock, self.ridge_mhz, self.softness_mhz)

    def power_w(self, clock_mhz: npt.ArrayLike) -> Floats:
        """P(f) in W."""
        clock = np.asarray(clock_mhz, dtype=np.float64)
        return np.minimum(self.p_max_w, self.p_idle_w + self.alpha_w_per_mhz * clock * self.voltage(clock) ** 2)

    @property
    def cap_clock_mhz(self) -> float:
        """The clock at which P_max is reached, by bisection; inf where there is no cap."""
        if not np.isfinite(self.p_max_w) or self.alpha_w_per_mhz <= 0:
            return np.inf
        low, high = 0.0, max(2.0 * self.ridge_mhz, (self.p_max_w - self.p_idle_w) / self.alpha_w_per_mhz)
        for _ in range(60):
            middle = 0.5 * (low + high)
            below = self.p_idle_w + self.alpha_w_per_mhz * middle * float(self.voltage(middle)) ** 2 < self.p_max_w
            low, high = (middle, high) if below else (low, middle)
        return high


def rise(clock_mhz: Floats, ridge_mhz: npt.ArrayLike, softness_mhz: float) -> Floats:
    """How far the clock is above the ridge, max(0, f - ridge), or its smooth counterpart; in the unit of the clock."""
    above = clock_mhz - np.asarray(ridge_mhz, dtype=np.float64)
    if softness_mhz <= 0.0:
        return np.maximum(above, 0.0)
    return softness_mhz * np.logaddexp(0.0, above / softness_mhz)
