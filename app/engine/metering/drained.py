"""Power from the driver's buffer, taken over at every look: what was seen once is kept, however late the next look is.

A driver keeps its samples for 2.4 s of the board's time. That is long, unless the board is simulated and runs twenty
times as fast as the program that looks at it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Final

from ...sensors.channel import PowerSample
from ...sensors.gpu import Gpu

KEPT_S: Final = 30.0  # longer than a window, its history and the run after it take


class DrainedPower:
    """What the buffer of one board told lately. Not thread-safe."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._samples: list[PowerSample] = []  # oldest first

    @property
    def newest_ns(self) -> int:
        """The time of the newest sample; 0 before any."""
        return self._samples[-1].time_ns if self._samples else 0

    def drain(self) -> None:
        """Take over what is new. Raises what the board's `power_samples` raises."""
        new = self._gpu.power_samples(self.newest_ns)
        if not new:
            return
        self._samples.extend(new)
        old = self._samples[-1].time_ns - round(KEPT_S * 1e9)
        if self._samples[0].time_ns < old - round(KEPT_S * 1e9):  # now and then, not at every look
            del self._samples[: bisect_left(self._samples, old, key=_time_ns)]

    def powers(self, from_ns: int, to_ns: int) -> list[float]:
        """Powers, W, of the samples that end between two times, both included, oldest first."""
        start = bisect_left(self._samples, from_ns, key=_time_ns)
        return [sample.power_w for sample in self._samples[start : bisect_right(self._samples, to_ns, key=_time_ns)]]


def _time_ns(sample: PowerSample) -> int:
    return sample.time_ns
