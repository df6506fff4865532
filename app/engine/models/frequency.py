"""The frequency model: P(f) = min(P_max, P_idle + alpha f v(f)^2), fitted (S1 eqs 6.2, 6.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


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

    def power(self, clock_mhz: Floats) -> Floats:
        """P(f) in W at the clocks. Raises ValueError where the model is not identifiable."""
        raise NotImplementedError

    def relative_voltage(self, clock_mhz: Floats) -> Floats:
        """v(f) relative to the voltage below the ridge: no unit, never volts."""
        raise NotImplementedError

    def energy(self, clock_mhz: Floats) -> Floats:
        """Estimated energy per work P(f)/f, relative to its minimum over the sampled range (no unit)."""
        raise NotImplementedError
