"""Which of a board's power readings to trust, and how fast they are: found by looking at them, never assumed."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from ...errors import WattridgeError
from ...sensors.errors import NotSupported
from ...sensors.load import Load
from .characterisation.figures import CHANNEL_OF, Characterisation
from .characterisation.store import stored_characterisation
from .launching import LaunchingGpu

Floats = npt.NDArray[np.float64]
STEP_S: Final = 2.5  # how long the step response is watched
POLL_S: Final = 0.005
LEAST_POLL_S: Final = 0.004
SETTLED: Final = 0.03  # a reading within this share of the final one has settled
BUFFER_STEP_S: Final = 0.02  # the driver's buffer: a sample per 20 ms, each the mean of those 20 ms


@dataclass(frozen=True, slots=True)
class PowerSource:
    """A source of power readings as it was observed on one board."""

    name: str  # in words, as measurements tell it
    channel: str | None  # polled channel; None for the driver's buffer
    refresh_s: float  # a new value this often
    settle_s: float  # after a step of the power, this long until readings tell the new one
    averaging_s: float | None = None  # each value is the mean of that long; None where not characterised
    lag_s: float = 0.0  # between the end of that time and the value's appearance
    measure_s: float | None = None  # window that a mean power needs; None where not characterised
    aftereffect: float = 0.0  # W of excess per W by which the second before a window drew more
    wander: float = 0.0  # of the mean of a short window beyond its noise; relative, one sigma

    @property
    def buffered(self) -> bool:
        return self.channel is None

    @property
    def poll_s(self) -> float:
        """How often to look at a polled source, so that its values can be told apart in time."""
        return self.refresh_s if self.averaging_s is None else max(LEAST_POLL_S, self.refresh_s / 10)


def find_power_source(gpu: LaunchingGpu, load: Load, stop: threading.Event | None = None) -> PowerSource | None:
    """The best source: what the board's characterisation chose, where one is kept.

    Else the driver's buffer where it answers, else instant power, else the average. A polled source is then looked at
    in its answer to a step from idle to `load` (2.5 s on the board's clock). None when `stop` was set meanwhile. Raises
    WattridgeError where the board tells no power at all.
    """
    known = stored_characterisation(gpu.info)
    if known is not None:
        return _characterised(known)
    try:
        if gpu.power_samples(0):
            return PowerSource("driver buffer (20 ms samples)", None, BUFFER_STEP_S, BUFFER_STEP_S)
    except NotSupported:
        pass
    told = {channel.name for channel in gpu.channels if channel.available}
    for name, words in (("power_instant_w", "power instant"), ("power_average_w", "power average")):
        if name in told:
            return _step(gpu, load, name, words, stop)
    raise WattridgeError("the board tells no power", gpu.info.label, "energy cannot be measured on it")


def _characterised(known: Characterisation) -> PowerSource:
    best, after = known.best, known.aftereffect
    return PowerSource(
        name=known.words,
        channel=CHANNEL_OF.get(known.chosen),
        refresh_s=best.refresh_ms / 1e3,
        settle_s=best.settle_ms / 1e3,
        averaging_s=None if best.window_ms is None else best.window_ms / 1e3,
        lag_s=best.lag_ms / 1e3,
        measure_s=known.measure_ms / 1e3,
        aftereffect=0.0 if after is None or abs(after.share) < after.margin else after.share,
        wander=0.0 if after is None else after.wander,
    )


def _step(gpu: LaunchingGpu, load: Load, name: str, words: str, stop: threading.Event | None) -> PowerSource | None:
    at = [channel.name for channel in gpu.channels].index(name)
    times: list[float] = []
    powers: list[float] = []
    start_ns = gpu.clock.now_ns()
    gpu.begin(load)
    try:
        while not times or times[-1] < STEP_S:
            if gpu.clock.wait(POLL_S, stop):
                return None
            reading = gpu.read()
            if not math.isnan(reading.values[at]):
                times.append((reading.time_ns - start_ns) / 1e9)
                powers.append(reading.values[at])
            elif gpu.clock.now_ns() - start_ns > STEP_S * 1e9:
                break
    finally:
        gpu.end()
    if not powers:
        raise WattridgeError(f"{words} tells nothing", gpu.info.label, "look at it with: wattridge monitor")
    refresh_s, settle_s = step_response(np.asarray(times), np.asarray(powers))
    return PowerSource(f"{words}, polled every {refresh_s * 1e3:.0f} ms", name, refresh_s, settle_s)


def step_response(time_s: Floats, power_w: Floats) -> tuple[float, float]:
    """Refresh and settling time, s, of readings (shape (n,)) taken densely from the moment the power stepped up."""
    changed = np.flatnonzero(np.diff(power_w)) + 1
    intervals = np.diff(time_s[changed])
    refresh_s = float(np.median(intervals)) if len(intervals) else 0.1
    final = float(np.median(power_w[time_s >= time_s[-1] - 0.5]))
    off = np.flatnonzero(np.abs(power_w - final) > SETTLED * final)
    settled_at = float(time_s[off[-1]]) if len(off) else 0.0
    return refresh_s, min(settled_at + refresh_s, STEP_S)
