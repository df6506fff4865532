"""Leakage, which grows with the temperature: identified where the temperature varied independently of power.

Temperature mostly follows power: a board that draws more gets warmer. The slope of power over such a temperature is the
inverse of the thermal resistance, one or two watts per degree, and not leakage.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import Floats
from .bends import closest_power_w
from .outliers import relative_weights

_LEAST_POINTS = 8
_LEAST_SPREAD_C = 2.0  # standard deviation of the temperature beyond what clock, or power, explains of it
# Of the lowest power, per degree. Leakage doubles over 30 °C or more (2.3 % per degree), and at the lowest power it is
# less than half of that power: switching, memory, fans and regulators draw the rest.
_LARGEST_SLOPE = 0.01
_CLEAR = 3.0  # standard errors
_ROUNDS = 4


@dataclass(frozen=True, slots=True)
class Leakage:
    """Power per degree around a temperature: P(f, T) = P(f) + slope (T - reference)."""

    slope_w_per_c: float
    standard_error: float
    reference_c: float

    @property
    def words(self) -> str:
        """In one line."""
        slope, error = self.slope_w_per_c, self.standard_error
        return f"power grows by {slope:.2g} ± {error:.1g} W per °C: the curve is that at {self.reference_c:.0f} °C"


def fit_leakage(clock_mhz: Floats, power_w: Floats, temperature_c: Floats) -> Leakage | None:
    """Fit the temperature term of the power, linear over the few tens of degrees of a sweep.

    The points hold it if the temperature differs by more than the clock explains, and by more than the measured
    power explains, where power follows it by three standard errors, and where the slope is one that leakage can have.

    Parameters
    ----------
    clock_mhz : array, shape (n,)
        Clocks in MHz.
    power_w : array, shape (n,)
        Power in W.
    temperature_c : array, shape (n,)
        Temperature in degrees Celsius; NaN if unknown.

    Returns
    -------
    Leakage or None
        None if the points do not hold the term.
    """
    finite = np.isfinite(temperature_c)
    if finite.sum() < _LEAST_POINTS or finite.sum() < len(clock_mhz):
        return None
    reference = float(temperature_c.mean())
    above = temperature_c - reference
    if _spread(above - _projected(np.stack([np.ones_like(above), power_w], axis=1), above)) < _LEAST_SPREAD_C:
        return None
    root = np.sqrt(relative_weights(power_w))
    slope = error = 0.0
    for _ in range(_ROUNDS):
        settled = power_w - slope * above
        curve = closest_power_w(clock_mhz, settled, 1.0 / relative_weights(settled), clock_mhz)
        design = root[:, None] * np.stack([np.ones_like(above), curve], axis=1)
        explained = _projected(design, root * above)
        left = root * above - explained
        if _spread(left) < _LEAST_SPREAD_C:
            return None
        residual = root * power_w - _projected(design, root * power_w)
        slope = float(left @ residual) / float(left @ left)
        rest = residual - slope * left
        error = float(np.sqrt((rest @ rest) / max(1, len(rest) - 6) / (left @ left)))
    possible = _CLEAR * error < slope <= _LARGEST_SLOPE * float(power_w.min())
    return Leakage(slope, error, reference) if possible else None


def _spread(residual: Floats) -> float:
    return float(np.sqrt((residual**2).mean()))


def _projected(design: Floats, target: Floats) -> Floats:
    answer, *_ = np.linalg.lstsq(design, target, rcond=None)
    return np.asarray(design @ answer)
