"""`CountedPower`: mean power between two readings of a board's energy counter, by the counter's own time."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import Final

from ..channel import PowerSample

PERIOD_S: Final = 0.02
_KEPT: Final = 1500
_LEAST_S: Final = 0.5 * PERIOD_S  # over less the counter's own step, a millisecond, shows


class CountedPower:
    """Samples as a driver's buffer has them. Thread-safe."""

    def __init__(self) -> None:
        self._samples: deque[PowerSample] = deque(maxlen=_KEPT)
        self._lock = threading.Lock()
        self._before: tuple[float, int] | None = None

    def count(self, energy_uj: float, counted_ns: int, now_ns: int) -> None:
        """A reading of the counter: its energy and its time, and the time on the board's clock.

        One that has not moved is waited for; after one that fell, as a reset makes it, counting begins again.
        """
        if self._before is None or energy_uj < self._before[0] or counted_ns < self._before[1]:
            self._before = energy_uj, counted_ns
            return
        passed_s = (counted_ns - self._before[1]) / 1e9
        if passed_s < _LEAST_S or energy_uj == self._before[0]:
            return
        sample = PowerSample(now_ns, (energy_uj - self._before[0]) * 1e-6 / passed_s)
        self._before = energy_uj, counted_ns
        with self._lock:
            self._samples.append(sample)

    def since(self, since_ns: int) -> Sequence[PowerSample]:
        """Samples newer than a time, oldest first."""
        with self._lock:
            return [sample for sample in self._samples if sample.time_ns > since_ns]
