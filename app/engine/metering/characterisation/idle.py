"""Whether a board idles: so that a look that has time waits for it, and does not disturb what runs there."""

from __future__ import annotations

import math
import threading
from typing import Final

from ....errors import WattridgeError
from ....sensors.gpu import Gpu

IDLE_S: Final = 10.0  # without work: longer than a program pauses between two of its steps
_LOOK_S: Final = 0.25


def is_busy(gpu: Gpu) -> bool:
    """Whether anything works on the board now. Raises WattridgeError where it does not report its utilisation."""
    at = next((i for i, each in enumerate(gpu.channels) if each.name == "utilisation_percent" and each.available), None)
    if at is None:
        raise WattridgeError("it does not report whether it idles", gpu.info.label, "leave out --when-idle")
    percent = gpu.read().values[at]
    return not math.isnan(percent) and percent > 0


def await_idle(gpu: Gpu, stop: threading.Event | None) -> None:
    """Return once nothing has worked on the board for `IDLE_S`, or `stop` was set. Raises WattridgeError."""
    since_ns = gpu.clock.now_ns()
    while gpu.clock.now_ns() - since_ns < IDLE_S * 1e9:
        if is_busy(gpu):
            since_ns = gpu.clock.now_ns()
        if gpu.clock.wait(_LOOK_S, stop):
            return
