"""The `PowerMeter` seam: access to a power meter other than a board's own sensor, whatever its connection."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ..channel import Channel
from ..gpu import SensorError

Times = npt.NDArray[np.int64]
Powers = npt.NDArray[np.float64]
Scope = Literal["board", "host", "node"]


class MeterLost(SensorError):
    """The meter was unplugged or does not answer any more. An event, not an exit."""


@dataclass(frozen=True, slots=True)
class MeterInfo:
    """What stays the same while a meter is open."""

    kind: str  # as in a selector: "powersensor3"
    label: str  # "PowerSensor3 on /dev/ttyACM0, firmware F411-1.6.1"
    scope: Scope  # whose power it reports: that of one board, of the host's processors, or of the whole node
    period_s: float  # between two values
    averaging_s: float  # each value is the mean of that long before its time stamp
    poll_s: float  # how often `read` wants to be called
    least_s: float = 0.0  # that a figure from it should be measured for, as its makers or users recommend
    margin_s: float = 0.0  # how far its time stamps may be off the host's clock, where that was measured
    boards_clock: bool = False  # a simulated one: it lives on its board's clock, not the host's,
    on_demand: bool = False  # and where that runs as fast as it can, it is read when its figures are wanted


class Samples(NamedTuple):
    """What a meter reported: `power_w[i, j]` is channel j at `time_ns[i]` on the host's monotonic clock, ascending."""

    time_ns: Times  # shape (n,)
    power_w: Powers  # shape (n, channels); NaN if a channel has no value


class PowerMeter(Protocol):
    """A meter that is open. One thread reads it. The first of its `channels` is the total, which figures use."""

    info: MeterInfo
    channels: tuple[Channel, ...]  # fixed once open; named `KIND_w`, `KIND_PART_w`

    @property
    def missed(self) -> int:
        """Samples known to have been lost since it was opened."""
        ...

    def read(self) -> Samples:
        """What has come since the last call; returns at once. Raises MeterLost where the meter is gone."""
        ...

    def reopen(self) -> None:
        """Look for it again after it was lost. Raises SensorError while it is not back."""
        ...

    def close(self) -> None:
        """Release the meter. Safe to call twice."""
        ...


def nothing(channels: int) -> Samples:
    """No samples."""
    return Samples(np.empty(0, np.int64), np.empty((0, channels)))


def meter_channels(kind: str, label: str, parts: tuple[str, ...]) -> tuple[Channel, ...]:
    """The total, and a channel for each part where there is more than one. Parts are named as the device names them."""
    total = Channel(f"{kind}_w", "W", label)
    if len(parts) < 2:
        return (total,)
    names: list[str] = []
    for part in parts:
        plain = "".join(letter if letter.isalnum() and letter.isascii() else "_" for letter in part.lower())
        name = f"{kind}_{plain.strip('_') or 'part'}"
        names.append(name if name not in names else f"{name}_{len(names) + 1}")
    return (total, *(Channel(f"{n}_w", "W", f"{label}, {p}") for n, p in zip(names, parts, strict=True)))


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
