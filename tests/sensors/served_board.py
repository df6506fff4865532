"""A board at the other end of a connection, whose every reading says when it was made: run as a program.

    python served_board.py [SECONDS_AHEAD]

Its clock is the host's, so many seconds ahead. The temperature counts the readings; power and clock hold the stamp.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from app.engine.control.serving import BoardServer
from app.sensors.channel import PowerSample, Reading, channel
from app.sensors.gpu import GpuInfo, NotSupported, PowerLimit

NAMES = ("power_instant_w", "energy_j", "graphics_clock_mhz", "temperature_c", "event_reasons")


class Ahead:
    """The host's clock, and then some."""

    speed = 1.0
    kept_pace = True

    def __init__(self, ahead_s: float) -> None:
        self._ahead_ns = round(ahead_s * 1e9)

    def now_ns(self) -> int:
        return time.monotonic_ns() + self._ahead_ns

    def wait(self, seconds: float, stop: object = None) -> bool:
        time.sleep(max(0.0, seconds))
        return False


class CountingBoard:
    """Implements `Gpu`."""

    def __init__(self, ahead_s: float) -> None:
        self.clock = Ahead(ahead_s)
        self.channels = tuple(channel(name, "it counts none" if name == "energy_j" else None) for name in NAMES)
        limit = PowerLimit(100.0, 300.0, 250.0, 250.0)
        self.info = GpuInfo(0, "counting:0", "Counting", "simulated", "", limit, power_source="none")
        self._count = 0

    def read(self) -> Reading:
        self._count += 1
        now_ns = self.clock.now_ns()
        seconds, rest_ns = divmod(time.monotonic_ns(), 1_000_000_000)
        return Reading(now_ns, (1.0 + rest_ns / 1e9, math.nan, 100.0 + seconds, float(self._count), 0.0))

    def power_samples(self, since_ns: int) -> Sequence[PowerSample]:
        raise NotSupported("it has none")

    def energy_j(self) -> float:
        raise NotSupported("it counts none")

    def graphics_clocks_mhz(self) -> Sequence[int]:
        return (345, 1005)

    def memory_clocks_mhz(self) -> Sequence[int]:
        return ()

    def close(self) -> None:
        pass


def made_at_ns(reading: Reading, channels: Sequence[str]) -> int:
    """When a reading was made, on the host's clock, as it says itself."""
    values = dict(zip(channels, reading.values, strict=True))
    seconds, fraction = values["graphics_clock_mhz"] - 100.0, values["power_instant_w"] - 1.0
    return round(seconds) * 1_000_000_000 + round(fraction * 1e9)


if __name__ == "__main__":
    BoardServer(CountingBoard(float(sys.argv[1])), sys.stdin.buffer, sys.stdout.buffer).run()
