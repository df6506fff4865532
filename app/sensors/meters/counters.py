"""From counters of energy that are read now and then to samples of power."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .meter import Samples, nothing


class EnergyCounters:
    """Several counters that are read together. The first is the total."""

    def __init__(self, counters: int) -> None:
        self._counters = counters
        self._last_ns = 0
        self._last_j: Sequence[float] | None = None

    def sample(self, time_ns: int, energy_j: Sequence[float]) -> Samples:
        """The mean power since the reading before; nothing at the first reading, or where no time has passed."""
        last_ns, last_j = self._last_ns, self._last_j
        if last_j is not None and time_ns <= last_ns:
            return nothing(self._counters)
        self._last_ns, self._last_j = time_ns, tuple(energy_j)
        if last_j is None:
            return nothing(self._counters)
        seconds = (time_ns - last_ns) / 1e9
        power_w = [
            (now - then) / seconds if now >= then else math.nan for now, then in zip(energy_j, last_j, strict=True)
        ]
        return Samples(np.asarray([time_ns], np.int64), np.asarray([power_w]))

    def forget(self) -> None:
        """The next reading is the first again."""
        self._last_j = None
