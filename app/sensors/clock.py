"""Time as a GPU sees it. A real board lives on the host's monotonic clock; a simulated one may live faster."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

_SLICE_S: Final = 0.05  # of the wall's: what waits notices another speed so soon


class Clock(Protocol):
    """Monotonic time in ns, and waiting in it."""

    @property
    def speed(self) -> float:
        """Seconds of this clock per second of the wall; inf where waiting costs nothing."""
        ...

    @property
    def kept_pace(self) -> bool:
        """It has run as fast as the wall's from the start: its instants have a time of day."""
        ...

    def now_ns(self) -> int: ...

    def wait(self, seconds: float, stop: threading.Event | None = None) -> bool:
        """Wait that long on this clock; True when `stop` was set meanwhile."""
        ...


class HostClock:
    """The host's monotonic clock."""

    speed = 1.0
    kept_pace = True

    def now_ns(self) -> int:
        return time.monotonic_ns()

    def wait(self, seconds: float, stop: threading.Event | None = None) -> bool:
        return _wait(max(0.0, seconds), stop)


class ScaledClock:
    """Runs `speed` times as fast as the host's clock, starting at its present time. Thread-safe.

    The speed can be changed at any time: the clock goes on from where it is, and what waits, waits at the new speed.
    """

    def __init__(self, speed: float) -> None:
        self._lock = threading.Lock()
        self._speed = _checked(speed)
        self._wall_ns = self._own_ns = time.monotonic_ns()  # an instant on both clocks, from which the speed counts
        self._kept_pace = speed == 1.0
        self._mover: int | None = None  # the thread that moves it, by waiting until then
        self._until_ns = 0

    @property
    def speed(self) -> float:
        return self._speed

    @property
    def kept_pace(self) -> bool:
        return self._kept_pace

    def set_speed(self, speed: float) -> None:
        """Run at another speed from now on. Raises ValueError for one that is not positive and finite."""
        _checked(speed)
        with self._lock:
            self._wall_ns, self._own_ns = self._instant()
            self._speed = speed
            self._kept_pace = self._kept_pace and speed == 1.0

    @contextmanager
    def stepped(self) -> Iterator[None]:
        """Within, it goes on only as far as this thread waits: it is slower where the thread has much to do between.

        Of a board that is read by this thread nothing passes unseen then, at any speed.
        """
        with self._lock:
            self._wall_ns, self._own_ns = self._instant()
            self._mover, self._until_ns = threading.get_ident(), self._own_ns
        try:
            yield
        finally:
            with self._lock:
                self._wall_ns, self._own_ns = self._instant()
                self._mover, self._kept_pace = None, False

    def now_ns(self) -> int:
        with self._lock:
            return self._instant()[1]

    def wait(self, seconds: float, stop: threading.Event | None = None) -> bool:
        end_ns = self.now_ns() + math.ceil(max(0.0, seconds) * 1e9)
        moves = self._mover == threading.get_ident()
        if moves:
            self._until_ns = end_ns
        while (left_s := (end_ns - self.now_ns()) / 1e9 / self._speed) > 0:
            # a millisecond at least between two looks at a clock that another thread moves
            if _wait(min(left_s if moves or self._mover is None else max(left_s, 1e-3), _SLICE_S), stop):
                return True
        return _wait(0.0, stop)

    def _instant(self) -> tuple[int, int]:
        """Now, on the host's clock and on this one. Call with the lock held."""
        wall_ns = time.monotonic_ns()
        own_ns = self._own_ns + int((wall_ns - self._wall_ns) * self._speed)
        return wall_ns, own_ns if self._mover is None else min(own_ns, self._until_ns)


class VirtualClock:
    """Advances only while it is waited on: a session runs as fast as it can be computed, and repeats exactly."""

    speed = float("inf")
    kept_pace = False

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
    """The clock of a board that is not real: virtual for a speed of inf, else one whose speed can be changed."""
    return VirtualClock() if speed == float("inf") else ScaledClock(speed)


def _checked(speed: float) -> float:
    if not 0 < speed < float("inf"):
        raise ValueError(f"speed must be positive and finite, not {speed}")
    return speed


def _wait(wall_s: float, stop: threading.Event | None) -> bool:
    if stop is not None:
        return stop.wait(wall_s)
    time.sleep(wall_s)
    return False
