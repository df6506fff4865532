"""The memory clock as a second axis: for each memory clock its best graphics clock, side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .frequency import FrequencyFit, MemoryClock

Floats = npt.NDArray[np.float64]


def over_memory_clocks(fits: Sequence[FrequencyFit]) -> tuple[MemoryClock, ...]:
    """One entry per fit that recommends a clock and knows the speed, by memory clock; the speeds must be alike."""
    found = []
    for fit in fits:
        if fit.recommended_clock_mhz is None or fit.memory_clock_mhz is None or not len(fit.rate):
            continue
        energy = float(np.exp(np.interp(fit.recommended_clock_mhz, fit.clock_mhz, np.log(fit.power_w / fit.rate))))
        time = float(np.exp(np.interp(fit.recommended_clock_mhz, fit.clock_mhz, -np.log(fit.rate))))
        found.append((fit.memory_clock_mhz, fit.recommended_clock_mhz, energy, time, float((1 / fit.rate).min())))
    if not found:
        return ()
    least, fastest = min(each[2] for each in found), min(each[4] for each in found)
    return tuple(
        MemoryClock(memory, clock, energy / least, time / fastest) for memory, clock, energy, time, _ in sorted(found)
    )
