"""The ridge on a measured voltage curve: constant below it, steeper and steeper above [Schoonhoven2024, figure 6.8]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import Floats

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
        """Whether another estimate with a standard error lies no further off than the intervals of both explain."""
        low, high = self.interval_mhz
        return low - 2 * error_mhz <= ridge_mhz <= high + 2 * error_mhz


def voltage_ridge(clock_mhz: Floats, voltage: Floats) -> VoltageRidge | None:
    """The ridge of voltages of shape (n,), NaN where unknown; None where points on both sides do not show it."""
    known = np.isfinite(voltage) & (voltage > 0)
    clock, value = clock_mhz[known], voltage[known]
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
