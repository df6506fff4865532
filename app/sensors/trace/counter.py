"""Whether a board's energy counter counts what its power shows over the same seconds."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Final

from ..gpu import Gpu, SensorError
from .trace import Trace

LEAST_S: Final = 1.0  # a counter is refreshed every 20 to 100 ms
APART: Final = 0.2  # of the power; the module of a GH200 draws more than that beside its GPU

Counted = tuple[int, float, int]  # on the GPU's clock when the counter was asked, J, and when it had answered


def counter_now(gpu: Gpu) -> Counted:
    """The energy counter, asked now; NaN where there is none."""
    asked_ns, energy_j = gpu.clock.now_ns(), math.nan
    with suppress(SensorError):
        energy_j = gpu.energy_j()
    return asked_ns, energy_j, gpu.clock.now_ns()


def counter_note(trace: Trace, before: Counted, after: Counted) -> str:
    """Whose energy the counter counts, where it is not the GPU's, in words; empty if it fits or is not known.

    It fits where it lies within the power's range, whenever between question and answer it was read.
    """
    counted_j, power = after[1] - before[1], trace.statistics(trace.power_name, before[0], after[2])
    shortest_s, longest_s = (after[0] - before[2]) / 1e9, (after[2] - before[0]) / 1e9
    above = counted_j > (1 + APART) * power.maximum * longest_s
    if shortest_s < LEAST_S or not (above or counted_j < (1 - APART) * power.minimum * shortest_s):
        return ""
    counted_w, module_w = counted_j / longest_s, trace.statistics("module_power_w", before[0], after[2]).mean
    whose = "the module's" if abs(counted_w - module_w) <= APART * module_w else "none that the board reports"
    return f"the energy counter rises by {counted_w:.4g} W, a power that is {whose}; the GPU's is {power.mean:.4g} W"
