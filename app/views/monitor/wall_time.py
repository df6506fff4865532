"""Wall-clock time of instants on a GPU's clock."""

from __future__ import annotations

import time
from datetime import datetime

from ...sensors.clock import Clock


class WallTime:
    """Only for a clock that runs as fast as the wall's: a simulated hour that took a second has no time of day."""

    def __init__(self, clock: Clock) -> None:
        self._real = clock.speed == 1.0
        self._epoch_ns = time.time_ns() - clock.now_ns()

    def text(self, instant_ns: int) -> str:
        """'14:03:21.4', in the person's time zone; empty where there is none."""
        if not self._real:
            return ""
        moment = datetime.fromtimestamp((instant_ns + self._epoch_ns) / 1e9).astimezone()
        return f"{moment:%H:%M:%S}.{moment.microsecond // 100_000}"
