"""What launches report of themselves, as figures of a measurement: their own time, or a value."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from ....sensors.load import Execution
from ...specification.model import NOTHING, OF_THE_HOST, RETURNED_TIMES, KernelSpec

Figures = dict[str, float]
IDLE: Final = 0.1  # share of a window between launches that is worth saying


Reader = Callable[[float | None], Figures]  # of the mean that launches report; None where they report nothing


def reader_of(kernel: KernelSpec) -> Reader:
    """How figures of a launch follow from what the kernel's launches report."""
    returns = kernel.returns if kernel.language in OF_THE_HOST else "time_s"

    def read(reported: float | None) -> Figures:
        if reported is None or returns == NOTHING:
            return {}
        if returns in RETURNED_TIMES:
            return {"time_s": reported * RETURNED_TIMES[returns]}
        return {returns: reported}

    return read


def what_is_wrong(kernel: KernelSpec, figures: Figures) -> str:
    """Why they cannot be a launch's; empty where they can."""
    time_s = figures.get("time_s", 1.0)
    if math.isfinite(time_s) and time_s > 0:
        return ""
    if kernel.language not in OF_THE_HOST:
        return "the device reports no time for its launches"
    return (
        f"it returned {time_s / RETURNED_TIMES[kernel.returns]:g} as its {kernel.returns}: "
        f"return the time of a call as float, or write returns = '{NOTHING}'"
    )


def idle_words(kernel: KernelSpec, execution: Execution, figures: Figures) -> str:
    """What is to be said of a window in which the device waited for the host between launches; empty otherwise."""
    own_s = figures.get("time_s", execution.time_s)
    if kernel.language != "OpenCL" or own_s >= (1.0 - IDLE) * execution.time_s:
        return ""
    share = 1.0 - own_s / execution.time_s
    return f"the device was idle for {share:.0%} of the window between launches, which their energy contains"
