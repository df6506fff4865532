"""Success does not mean obeyed: what a board was asked for against what it does, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from app.engine.control.settings import WORDS, Setting, lower, shown, step_mhz, unit, upper
from app.sensors.event_reasons import LIMITING, EventReason, names
from app.sensors.gpu import Gpu

_TOLERANCE_W: Final = 1.0


def disobeyed(gpu: Gpu, asked_mhz: Setting | None, clock_mhz: float | None, reasons: int) -> str:
    """How an observed graphics clock differs from the one asked for; empty where it does not, or is not told.

    A clock below is explained by a limit that acts, and by a board without work. One supported step either way counts
    as the same.
    """
    if asked_mhz is None or clock_mhz is None or math.isnan(clock_mhz):
        return ""
    step = step_mhz(gpu)
    slower_for_a_reason = EventReason(reasons) & (LIMITING | EventReason.IDLE)
    if clock_mhz > upper(asked_mhz) + step or (clock_mhz < lower(asked_mhz) - step and not slower_for_a_reason):
        why = ", ".join(names(reasons & ~int(EventReason.APPLICATION_CLOCKS))) or "the board gives no reason"
        return f"not obeyed: the clock runs at {clock_mhz:.4g} MHz instead of {shown(asked_mhz)} ({why})"
    return ""


def is_low(gpu: Gpu, asked_mhz: Setting | None, clock_mhz: float | None) -> bool:
    """Whether an observed graphics clock is below the one asked for, for whatever reason."""
    return asked_mhz is not None and clock_mhz is not None and clock_mhz < lower(asked_mhz) - step_mhz(gpu)


def differences(gpu: Gpu, applied: Mapping[str, Setting], read_back: Mapping[str, float | None]) -> list[str]:
    """Settings that read back as something else; one that a board does not tell cannot be caught."""
    found = []
    for name, value in applied.items():
        now, asked = read_back.get(name), upper(value)
        tolerance = _TOLERANCE_W if name == "power_limit_w" else step_mhz(gpu) / 2
        if now is not None and abs(now - asked) > tolerance:
            found.append(f"not obeyed: the {WORDS[name]} is {now:g} {unit(name)} instead of {asked:g}")
    return found
