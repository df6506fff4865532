"""Whether a board's energy counter counts what its power shows over the same seconds."""

from __future__ import annotations

import math
from typing import Final

from ..gpu import Gpu, SensorError
from .trace import Trace

LEAST_S: Final = 1.0  # a counter is refreshed every 20 to 100 ms
APART: Final = 0.2  # of the power; the module of a GH200 draws more than that beside its GPU

Counted = tuple[int, float]  # when the counter was asked, on the GPU's clock, and J


def counter_now(gpu: Gpu) -> Counted:
    """The energy counter, asked now; NaN where there is none."""
    try:
        energy_j = gpu.energy_j()
    except SensorError:
        energy_j = math.nan
    return gpu.clock.now_ns(), energy_j


def counter_note(trace: Trace, before: Counted, after: Counted) -> str:
    """Whose energy the counter counts, where it is not the GPU's, in words; empty if it fits or is not known."""
    passed_s, power = (after[0] - before[0]) / 1e9, trace.statistics(trace.power_name, before[0], after[0])
    counted_w = (after[1] - before[1]) / max(passed_s, 1e-9)
    beyond = counted_w > (1 + APART) * power.maximum or counted_w < (1 - APART) * power.minimum
    if passed_s < LEAST_S or not beyond:
        return ""
    module_w = trace.statistics("module_power_w", before[0], after[0]).mean
    whose = "the module's" if abs(counted_w - module_w) <= APART * module_w else "none that the board reports"
    return f"the energy counter rises by {counted_w:.4g} W, a power that is {whose}; the GPU's is {power.mean:.4g} W"
