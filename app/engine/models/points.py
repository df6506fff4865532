"""One series of clocks and powers, as a file, a session or a sweep gives it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from .clock_log import Plateau

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

CLOCK_SETTINGS = ("graphics_clock_mhz", "nvml_gr_clock")
MEMORY_SETTINGS = ("memory_clock_mhz", "nvml_mem_clock")
LIMIT_SETTINGS = ("power_limit_w", "nvml_pwr_limit")


@dataclass(frozen=True, slots=True)
class Points:
    """One series; arrays of shape (n,)."""

    clock_mhz: Floats  # observed, where the file tells it; else requested
    power_w: Floats
    rate: Floats | None  # speed in any unit
    limited: Mask | None  # a limit acted, where event reasons were recorded
    limit_w: float | None  # the power limit in force, where it was set
    supported_mhz: tuple[float, ...] | None  # clocks known to be settable
    gpu: str
    series: str
    simulated: bool = False
    notes: tuple[str, ...] = ()
    voltage_mv: Floats | None = None  # NaN where unknown
    temperature_c: Floats | None = None
    memory_clock_mhz: float | None = None
    others: tuple[str, ...] = ()  # what tells the series from others, the memory clock aside
    plateaus: tuple[Plateau, ...] = ()  # of a log: what each point is made of
    requested_mhz: Floats | None = None  # where `clock_mhz` was observed and the request is known as well

    @property
    def clocks(self) -> int:
        """How many different clocks were sampled."""
        return len(np.unique(self.clock_mhz[np.isfinite(self.clock_mhz)]))

    @property
    def best_efficiency(self) -> float:
        """Most work per energy over the points: rate (else clock) per watt."""
        speed = self.rate if self.rate is not None else self.clock_mhz
        with np.errstate(all="ignore"):
            efficiency = speed / self.power_w
        return float(np.nanmax(efficiency)) if np.isfinite(efficiency).any() else -math.inf


def choose(series: Sequence[Points]) -> Points:
    """The one with the most clocks, then the most efficient; where others were there, its name says so."""
    chosen = max(series, key=lambda points: (points.clocks, points.best_efficiency))
    if len(series) == 1:
        return chosen
    how = f"of {len(series)} series the one with the most clocks, then the most efficient"
    return replace(chosen, notes=(*chosen.notes, how))
