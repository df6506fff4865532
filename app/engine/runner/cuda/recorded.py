"""Many launches at once by a recorded graph: Python queues a launch in microseconds, kernels may be quicker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from .driver import Driver, Recording

GRAPHED: Final = 64  # launches in one recorded graph


def launch_recorded(
    driver: Driver, queue: Callable[[int], None], recording: Recording | None, times: int
) -> Recording | None:
    """Queue so many launches, in graphs as far as it pays; the recording, made now if there is none and one pays."""
    if times >= 2 * GRAPHED:
        if recording is None:
            recording = driver.record(lambda: queue(GRAPHED))
        for _ in range(times // GRAPHED):
            recording.launch()
        times %= GRAPHED
    queue(times)
    return recording
