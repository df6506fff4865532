"""Time as a GPU sees it. A real board lives on the host's monotonic clock; a simulated one may live faster."""

from __future__ import annotations

import threading
import time
from typing import Protocol


class Clock(Protocol):
    """Monotonic time in ns, and waiting in it."""

    speed: float  # seconds of this clock per second of the wall; inf where waiting costs nothing

    def now_ns(self) -> int: ...

    def wait(self, seconds: float, stop: threading.Event | None = None) -> bool:
        """Wait that long on this clock; True when `stop` was set meanwhile."""
        ...


class HostClock:
    """The host's monotonic clock."""

    speed = 1.0

    def now_ns(self) -> int:
        return time.monotonic_ns()

    def wait(self, seconds: float, stop: threading.Event | None = None) -> bool:
        wall_s = max(0.0, seconds) / self.speed
        if stop is not None:
            return stop.wait(wall_s)
        time.sleep(wall_s)
        return False


class ScaledClock(HostClock):
    """Runs `speed` times as fast as the host's clock, starting at its present time."""

    def __init__(self, speed: float) -> None:
        if not 0 < speed < float("inf"):
            raise ValueError(f"speed must be positive and finite, not {speed}")
        self.speed = speed
        self._origin_ns = time.monotonic_ns()

    def now_ns(self) -> int:
        return self._origin_ns + int((time.monotonic_ns() - self._origin_ns) * self.speed)


class VirtualClock:
    """Advances only while it is waited on: a session runs as fast as it can be computed, and repeats exactly."""

    speed = float("inf")

    def __init__(self, start_ns: int = 1_000_000_000) -> None:
        self._now_ns = start_ns
        self._lock = threading.Lock()

    def now_ns(self) -> int:
        with self._lock:
            return self._now_ns

    def wait(self, seconds: float, stop: threading.Event | None = None) -> bool:
        with self._lock:
            self._now_ns += round(max(0.0, seconds) * 1e9)
        return stop is not None and stop.is_set()


def make_clock(speed: float) -> Clock:
    """The clock for a speed: 1 is the host's, inf is virtual, anything between is scaled."""
    if speed == 1.0:
        return HostClock()
    if speed == float("inf"):
        return VirtualClock()
    return ScaledClock(speed)
