"""The aftereffect of a load on the power of the next: the die is on its way to its temperature.

A light load draws a little more right after a heavy one than when it has run for seconds: a warmer die leaks more. On
an H200 the excess was about 1.3 % of the difference to the mean power of the last second. It is measured with a heavy
and a light load in turn, comparing each window with the end of its own turn, so that what warms slowly (the heat sink)
does not count. The same record shows how far the mean power of a short window wanders under a load that never changes.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Final

import numpy as np

from ....sensors.channel import PowerSample
from ....sensors.gpu import Load
from .sensor_figures import Aftereffect, Floats
from .square_wave import WaveDriver

HISTORY_S: Final = 1.0  # before a window, whose mean power has an effect on it
RISE_S: Final = 0.04  # as a meter waits before it opens a window
WINDOW_S: Final = 0.14  # as long as a meter's shortest
SAMPLE_S: Final = 0.02  # what a sample of the buffer averages over
TURNS: Final = 6
HEAVY_S: Final = 1.5
LIGHT_S: Final = 3.5
STEADY_S: Final = 2.0  # into a light turn, from when on its power is steady
SETTLED_S: Final = 0.3  # of a heavy turn, before its windows count
LEAST: Final = 4  # samples of a window, and turns
LEAST_DIFFERENCE_W: Final = 10.0  # between the two loads
SECONDS: Final = TURNS * (HEAVY_S + LIGHT_S)


def look_at_aftereffect(
    driver: WaveDriver, heavy: Load, light: Load, stop: threading.Event | None
) -> Aftereffect | None:
    """Run both loads in turn for 30 s, and fit the aftereffect to the samples of the driver's buffer.

    Parameters
    ----------
    driver : WaveDriver
        The driver of the board's loads.
    heavy, light : Load
        The loads.
    stop : threading.Event or None
        Ends the look when set.

    Returns
    -------
    Aftereffect or None
        The aftereffect; None if the buffer has too few samples or both draw alike.

    Raises
    ------
    Stopped
        When `stop` was set.
    SensorError
        Where the board does not answer.
    """
    seen = driver.start()
    for _ in range(TURNS):
        driver.run(heavy, HEAVY_S, stop)
        driver.run(light, LIGHT_S, stop)
    driver.rest(0.3, stop)  # until the buffer has published the last samples
    spans = [(start_ns / 1e9, end_ns / 1e9) for start_ns, end_ns in seen.spans]
    return aftereffect_of(seen.samples, spans)


def aftereffect_of(samples: Sequence[PowerSample], spans: Sequence[tuple[float, float]]) -> Aftereffect | None:
    """Fit the aftereffect: the excess of a window over the steady power by share * (history - window), through zero.

    Parameters
    ----------
    samples : sequence of PowerSample
        The buffer's samples.
    spans : sequence of tuple of float
        Begin and end of the heavy and the light load in turn, s on the samples' clock.

    Returns
    -------
    Aftereffect or None
        None if there are too few samples.
    """
    time_s = np.asarray([s.time_ns for s in samples], dtype=np.float64) / 1e9
    power_w = np.asarray([s.power_w for s in samples], dtype=np.float64)

    def mean(from_s: float, to_s: float) -> float:
        """The mean of the samples that lie wholly in that time, W; NaN if they are few."""
        inside = (time_s >= from_s + SAMPLE_S) & (time_s <= to_s)
        return float(power_w[inside].mean()) if inside.sum() >= LEAST else math.nan

    excess, difference = [], []
    for start_s, end_s in spans[1::2]:
        opened_s = start_s + RISE_S
        window_w = mean(opened_s, opened_s + WINDOW_S)
        excess.append(window_w - mean(start_s + STEADY_S, end_s))
        difference.append(mean(opened_s - HISTORY_S, opened_s) - window_w)
    finite = np.isfinite(excess) & np.isfinite(difference)
    x, y = np.asarray(difference)[finite], np.asarray(excess)[finite]
    if len(x) < LEAST or float(np.abs(x).mean()) < LEAST_DIFFERENCE_W:
        return None
    share = float(x @ y / (x @ x))
    error = math.sqrt(float(((y - share * x) ** 2).sum()) / (len(x) - 1) / float(x @ x))
    return Aftereffect(share, 2.0 * error, _wander(spans[0::2], time_s, power_w))


def _wander(heavy: Sequence[tuple[float, float]], time_s: Floats, power_w: Floats) -> float:
    """Scatter of the means of short windows under a constant load, less what the scatter of their samples explains."""
    means, sampled = [], []
    for start_s, end_s in heavy:
        for opened_s in np.arange(start_s + SETTLED_S, end_s - WINDOW_S, WINDOW_S):
            inside = power_w[(time_s >= opened_s + SAMPLE_S) & (time_s <= opened_s + WINDOW_S)]
            if len(inside) >= LEAST:
                means.append(inside.mean())
                sampled.append(np.diff(inside).var() / 2 / len(inside))  # of differences: a slow change adds little
    if len(means) < LEAST:
        return 0.0
    return math.sqrt(max(0.0, float(np.var(means, ddof=1)) - float(np.mean(sampled)))) / float(np.mean(means))
