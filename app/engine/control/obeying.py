"""Whether a board obeys: its settings against its observed state, in words. A call that succeeds does not show it."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from ...sensors.event_reasons import LIMITING, EventReason, names
from ...sensors.gpu import Gpu
from ..results.settings import (
    PROFILE,
    WORDS,
    BoardSettings,
    Setting,
    in_words,
    lower,
    shown,
    step_mhz,
    upper,
    with_unit,
)
from .controls import channels_now

_TOLERANCE_W: Final = 1.0
_LOOK_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class Observation:
    """The state of a board after a setting."""

    observed: dict[str, float | None]  # clocks and power limit, and a profile that was set; None if unknown
    obeyed: bool
    message: str


def watch_board(
    gpu: Gpu,
    applied: BoardSettings,
    read_back: Callable[[], Mapping[str, float | None]],
    settle_s: float,
    stop: threading.Event | None = None,
) -> Observation:
    """Poll until the settings read back and the clock is where it should be, or the board has had its time."""
    until_ns = gpu.clock.now_ns() + round(settle_s * 1e9)
    asked = applied.get("graphics_clock_mhz")
    while True:
        stopped = gpu.clock.wait(_LOOK_S, stop)
        now, settings = channels_now(gpu), read_back()
        clock, reasons = now.get("graphics_clock_mhz"), int(now.get("event_reasons") or 0)
        low = asked is not None and clock is not None and clock < lower(asked) - step_mhz(gpu)
        problems = differences(gpu, applied, settings)
        disobedience = disobeyed(gpu, asked, clock, reasons)
        late = stopped or gpu.clock.now_ns() >= until_ns
        if late or not (problems or disobedience or low):
            break
    if disobedience and not problems:
        problems = [disobedience]
    observed = {name: now.get(name) for name in ("graphics_clock_mhz", "memory_clock_mhz", "power_limit_w")}
    observed["power_limit_w"] = settings.get("power_limit_w") or observed["power_limit_w"]
    if PROFILE in applied:
        observed[PROFILE] = settings.get(PROFILE)
    message = in_words(applied) if applied else "the settings are as they were before"
    if low:
        message += f"; the clock is {clock:g} MHz now ({', '.join(names(reasons))})"
    return Observation(observed, not problems, "; ".join(problems) or message)


def disobeyed(gpu: Gpu, asked_mhz: Setting | None, clock_mhz: float | None, reasons: int) -> str:
    """How an observed graphics clock differs from the one that was set; empty if it does not, or is unknown.

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


def differences(gpu: Gpu, applied: BoardSettings, read_back: Mapping[str, float | None]) -> list[str]:
    """Settings that read back as something else; one that a board does not report cannot be compared."""
    problems = []
    for name, value in applied.items():
        now, asked = read_back.get(name), upper(value)
        tolerance = _TOLERANCE_W if name == "power_limit_w" else 0.0 if name == PROFILE else step_mhz(gpu) / 2
        if now is not None and abs(now - asked) > tolerance:
            problems.append(f"not obeyed: the {WORDS[name]} is {with_unit(name, now)} instead of {asked:g}")
    return problems
