"""A meter beside a simulated board: what that board really draws, at 200 Hz, as a meter in its supply would see it.

Its gain is 1 unless named (`simulated:1.02`). With it the way of a meter's figures can be tried without one.
"""

from __future__ import annotations

import math
from typing import Final, Protocol, runtime_checkable

import numpy as np

from ...base.errors import InputError
from ..clock import Clock
from ..gpu import Gpu, GpuInfo
from .meter import MeterInfo, Samples, meter_channels, nothing

KIND: Final = "simulated"
PERIOD_NS: Final = 5_000_000
_MOST: Final = 1200  # samples at once: the board knows the last few seconds


@runtime_checkable
class DrawsPower(Protocol):
    """A simulated board, of which it is known what it draws."""

    info: GpuInfo
    clock: Clock

    def drawn_j(self, time_ns: int) -> float:
        """The energy that it has drawn by a time of its last seconds, free of its own sensors' errors."""
        ...


class SimulatedMeter:
    """Implements `PowerMeter`."""

    def __init__(self, gpu: DrawsPower, gain: float = 1.0) -> None:
        self._gpu = gpu
        self._gain = gain
        self._last_ns = gpu.clock.now_ns() // PERIOD_NS * PERIOD_NS
        self.missed = 0
        self.channels = meter_channels(KIND, "Meter (simulated)", ())
        period_s = PERIOD_NS / 1e9
        label = f"simulated meter beside the {gpu.info.name}"
        at_once = math.isinf(gpu.clock.speed)
        self.info = MeterInfo(KIND, label, "board", period_s, period_s, 0.02, boards_clock=True, on_demand=at_once)

    @classmethod
    def beside(cls, gpu: Gpu, gain: str) -> SimulatedMeter:
        """Raises InputError for a board that is not simulated, or for a gain that is no number near 1."""
        if not isinstance(gpu, DrawsPower):
            raise InputError("only a simulated board has a simulated meter", gpu.info.label, "choose another --meter")
        try:
            number = float(gain or 1.0)
        except ValueError:
            number = math.nan
        if not 0.5 <= number <= 2.0:
            raise InputError(f"a gain of '{gain}' makes no sense", f"--meter {KIND}:", "choose 0.5 to 2")
        return cls(gpu, number)

    def read(self) -> Samples:
        now_ns = self._gpu.clock.now_ns()
        ticks = min(_MOST, (now_ns - self._last_ns) // PERIOD_NS)
        if ticks < 1:
            return nothing(1)
        newest_ns = now_ns // PERIOD_NS * PERIOD_NS
        edges = newest_ns + PERIOD_NS * np.arange(-ticks, 1, dtype=np.int64)
        self._last_ns = newest_ns
        drawn_j = np.asarray([self._gpu.drawn_j(int(edge)) for edge in edges])
        return Samples(edges[1:], (self._gain * np.diff(drawn_j) / (PERIOD_NS / 1e9))[:, None])

    def reopen(self) -> None:
        """It is never lost."""

    def close(self) -> None:
        """Nothing is held."""
