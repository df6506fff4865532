"""Whether a board's energy counter counts what its power shows over the same seconds."""

from __future__ import annotations

import math
from typing import Final

from ..gpu import Gpu, SensorError
from .trace import Trace

APART: Final = 0.2  # of the power: a counter is refreshed every 20 to 100 ms, and a GH200's module draws more than that

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
    counted_w = (after[1] - before[1]) / max(1, after[0] - before[0]) * 1e9
    gpu_w, module_w = (trace.statistics(n, before[0], after[0]).mean for n in (trace.power_name, "module_power_w"))
    if not abs(counted_w - gpu_w) > APART * gpu_w:
        return ""
    whose = "the module's" if abs(counted_w - module_w) <= APART * module_w else "none that the board reports"
    return f"the energy counter rises by {counted_w:.4g} W, a power that is {whose}; the GPU's is {gpu_w:.4g} W"
