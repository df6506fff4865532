"""`DeviceClock`: where the ticks of a device that streams lie on the host's clock.

What arrives was sent earlier, never later: of many arrivals the promptest ones show the offset between the two clocks,
and the line below them how fast one runs against the other. A stream that stays late from one moment on has lost
samples that nothing else tells of.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Final

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.int64]
BIN_NS: Final = 250_000_000
BINS: Final = 40  # ten seconds
LEAST_BINS: Final = 8  # to see a drift
MOST_DRIFT: Final = 300e-6  # a ceramic resonator's; a crystal has a tenth of it
JUMP_NS: Final = 512_000  # half of what PowerSensor3's stamps can count
JUMPED_BINS: Final = 8  # in a row, all late: it was no busy moment of the host


class DeviceClock:
    """Not thread-safe."""

    def __init__(self) -> None:
        self._bins: deque[tuple[int, int]] = deque(maxlen=BINS)  # device time, and the least offset in that quarter
        self._open: tuple[int, int, int] | None = None  # its end, and the device time and offset of its promptest
        self._origin_ns = 0
        self._offset_ns = math.nan
        self._drift = 0.0
        self._behind_ns = self._jumped_ns = 0  # by the last jump, and when that was found
        self._told_ns = 0  # the last time on the host's clock

    def note(self, device_ns: int, host_ns: int) -> int:
        """A tick of the device arrived at that time; by how many ns the device's own count has fallen behind since.

        0 unless samples were lost without a trace; from then on the count is taken to be that much later. Below 0 where
        it turns out that the host was only late.
        """
        offset_ns = host_ns - device_ns
        if self._open is None or device_ns >= self._open[0]:
            behind_ns = self._finish_bin()
            self._open = device_ns + BIN_NS, device_ns, offset_ns
        else:
            behind_ns = 0
            if offset_ns < self._open[2] + self._drift * (device_ns - self._open[1]):
                self._open = self._open[0], device_ns, offset_ns
        late_ns = offset_ns - self._line(device_ns)
        if not late_ns >= 0.0:  # the promptest so far, or the first
            self._offset_ns = offset_ns - self._drift * (device_ns - self._origin_ns)
            if self._behind_ns and device_ns < self._jumped_ns + BINS * BIN_NS:
                returned_ns = min(self._behind_ns, round(-late_ns))
                self._behind_ns -= returned_ns
                behind_ns -= returned_ns
        return behind_ns

    def on_host(self, device_ns: Times) -> Times:
        """Those ticks, which rise, on the host's clock as far as it is known; later than all asked for before."""
        offset = self._offset_ns + self._drift * (device_ns - self._origin_ns)
        order = np.arange(len(device_ns))
        shifted = np.maximum(device_ns + np.rint(offset).astype(np.int64), self._told_ns + 1) - order
        rising: Times = np.maximum.accumulate(shifted) + order
        self._told_ns = int(rising[-1])
        return rising

    def _line(self, device_ns: int) -> float:
        return self._offset_ns + self._drift * (device_ns - self._origin_ns)

    def _finish_bin(self) -> int:
        if self._open is None:
            return 0
        self._bins.append(self._open[1:])
        newest = list(self._bins)[-JUMPED_BINS:]
        late_ns = [offset_ns - self._line(device_ns) for device_ns, offset_ns in newest]
        if len(self._bins) > JUMPED_BINS and min(late_ns) > JUMP_NS:
            self._bins.clear()
            self._bins.extend(newest)
            self._offset_ns += min(late_ns)
            self._behind_ns, self._jumped_ns = round(min(late_ns)), newest[-1][0]
            return self._behind_ns
        self._fit()
        return 0

    def _fit(self) -> None:
        device_ns, offset_ns = np.asarray(self._bins, dtype=np.int64).T
        self._origin_ns = int(device_ns[0])
        since_ns = (device_ns - self._origin_ns).astype(np.float64)
        rest_ns = (offset_ns - offset_ns[0]).astype(np.float64)
        if len(self._bins) >= LEAST_BINS:
            prompt = rest_ns <= np.median(rest_ns - self._drift * since_ns) + self._drift * since_ns
            if prompt.sum() >= LEAST_BINS // 2 and np.ptp(since_ns[prompt]) > since_ns[-1] / 2:
                slope = float(np.polyfit(since_ns[prompt], rest_ns[prompt], 1)[0])
                self._drift = min(MOST_DRIFT, max(-MOST_DRIFT, slope))
        self._offset_ns = float(offset_ns[0]) + float(np.min(rest_ns - self._drift * since_ns))
