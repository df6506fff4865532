"""A GPU whose every value a test decides: `values(seconds)` gives the channels that are known at that time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from app.sensors.channel import CHANNELS, PowerSample, Reading, channel
from app.sensors.clock import Clock, HostClock
from app.sensors.event_reasons import EventReason
from app.sensors.gpu import GpuInfo, NotSupported, PowerLimit, Source
from app.sensors.trace.trace import Trace

UNAVAILABLE = {
    "core_voltage_mv": "nvidia-smi -q -d VOLTAGE answers N/A on this board",
    "fan_percent": "this board has no fan",
    "video_clock_mhz": "the driver does not report it",
}


class FakeGpu:
    """Implements `Gpu`. Time starts at the clock's present."""

    def __init__(
        self,
        values: Callable[[float], Mapping[str, float]],
        *,
        missing: Mapping[str, str] = UNAVAILABLE,
        clock: Clock | None = None,
        source: Source = "simulated",
        name: str = "Fake A100",
    ) -> None:
        self.clock: Clock = clock if clock is not None else HostClock()
        self.channels = tuple(channel(each, missing.get(each)) for each in CHANNELS)
        self.info = GpuInfo(0, "fake:0", name, source, "none", PowerLimit(100.0, 250.0, 250.0, 250.0))
        self._values = values
        self._start_ns = self.clock.now_ns()
        self.closed = False

    def read(self) -> Reading:
        now_ns = self.clock.now_ns()
        return self.reading((now_ns - self._start_ns) / 1e9, now_ns)

    def reading(self, seconds: float, time_ns: int) -> Reading:
        known = self._values(seconds)
        values = (known.get(c.name, math.nan) if c.available else math.nan for c in self.channels)
        return Reading(time_ns, tuple(values))

    def power_samples(self, since_ns: int) -> Sequence[PowerSample]:
        raise NotSupported("this fake has no driver buffer")

    def energy_j(self) -> float:
        raise NotSupported("this fake has no energy counter")

    def graphics_clocks_mhz(self) -> Sequence[int]:
        return ()

    def memory_clocks_mhz(self) -> Sequence[int]:
        return ()

    def close(self) -> None:
        self.closed = True


def working(seconds: float) -> dict[str, float]:
    """A board that works and rests in turns of ten seconds, at its power cap for the last third of each turn's work."""
    phase = seconds % 20.0
    busy = phase < 10.0
    capped = 6.0 < phase < 10.0
    ripple = math.sin(seconds * 9.0) + 0.6 * math.sin(seconds * 31.0)
    clock = (1305.0 if capped else 1410.0) if busy else 210.0
    reasons = EventReason.POWER_CAP if capped else EventReason.NONE if busy else EventReason.IDLE
    return {
        "power_instant_w": (247.0 if capped else 231.0) + 3.0 * ripple if busy else 34.0 + 0.4 * ripple,
        "power_average_w": 230.0 if busy else 35.0,
        "memory_power_w": 42.0 + ripple if busy else 9.0,
        "power_limit_w": 250.0,
        "energy_j": 150.0 * seconds,
        "graphics_clock_mhz": clock,
        "sm_clock_mhz": clock,
        "memory_clock_mhz": 1215.0,
        "requested_graphics_clock_mhz": 1410.0,
        "temperature_c": 52.0 + 8.0 * math.sin(seconds / 13.0),
        "memory_temperature_c": 58.0 + 5.0 * math.sin(seconds / 17.0),
        "utilisation_percent": 100.0 if busy else 0.0,
        "memory_utilisation_percent": 38.0 + 4.0 * ripple if busy else 0.0,
        "memory_used_mib": 8192.0 if busy else 512.0,
        "performance_state": 0.0 if busy else 8.0,
        "pcie_rx_mb_per_s": 12.5,
        "pcie_tx_mb_per_s": 3.5,
        "event_reasons": float(reasons),
    }


def filled_trace(gpu: FakeGpu, seconds: float, *, rate_hz: float = 50.0) -> Trace:
    """A trace that already holds that many seconds, ending now."""
    trace = Trace(gpu.channels, rate_hz=rate_hz)
    end_ns = gpu.clock.now_ns()
    count = int(seconds * rate_hz)
    for place in range(count):
        at = place / rate_hz
        trace.append(gpu.reading(at, end_ns - int((seconds - at) * 1e9)))
    return trace
