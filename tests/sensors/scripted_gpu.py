"""A `Gpu` that does what a test says: fails, goes missing, keeps a buffer, and all on a clock of the test's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from app.sensors.channel import PowerSample, Reading, channel
from app.sensors.clock import Clock, VirtualClock
from app.sensors.gpu import GpuInfo, NotSupported, PowerLimit


class ScriptedGpu:
    """`power` gives the instant power in W at a number of reads (or raises); `temperature` likewise."""

    def __init__(
        self,
        power: Callable[[int], float] = lambda read: 100.0,
        *,
        temperature: Callable[[int], float] = lambda read: 40.0,
        samples: Callable[[int, int], Sequence[PowerSample]] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.clock: Clock = clock or VirtualClock()
        self.channels = (
            channel("power_instant_w"),
            channel("energy_j", "this board counts none"),
            channel("graphics_clock_mhz"),
            channel("temperature_c"),
            channel("event_reasons"),
        )
        limit = PowerLimit(100.0, 300.0, 250.0, 250.0)
        self.info = GpuInfo(0, "scripted:0", "Scripted", "simulated", "", limit, power_source="scripted")
        self.reads = 0
        self._power = power
        self._temperature = temperature
        self._samples = samples

    def read(self) -> Reading:
        self.reads += 1
        power = self._power(self.reads)
        return Reading(self.clock.now_ns(), (power, math.nan, 1005.0, self._temperature(self.reads), 4.0))

    def power_samples(self, since_ns: int) -> Sequence[PowerSample]:
        if self._samples is None:
            raise NotSupported("no buffer")
        return self._samples(since_ns, self.clock.now_ns())

    def energy_j(self) -> float:
        raise NotSupported("this board counts none")

    def graphics_clocks_mhz(self) -> Sequence[int]:
        return (345, 1005, 1410)

    def memory_clocks_mhz(self) -> Sequence[int]:
        return (1215,)

    def close(self) -> None:
        """Nothing to let go of."""
