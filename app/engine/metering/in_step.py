"""Launches that keep step with the driver's samples of power: each sample then sees the same part of a launch.

Power differs between the beginning and the end of one launch, and a sample is not the mean of the whole time since the
one before, so that samples follow the phase of the launch that they fall into, like a stroboscope. Launches of 20.05 ms
and samples of 20 ms come out of step within 7 s, and a window of 0.2 s is off by as much as the samples swing: on an
H200 by 1.4 % (one sigma) against 0.4 % (tests/benchmarks/reference.txt). A second window whose launches begin half a
launch earlier or later sees the opposite part; in the mean of both the first harmonic is gone.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

# The first two harmonics, relative, one sigma: 0.53 and 0.27 % in 23 runs of kernels of 5 to 146 ms on one H200, 0.8
# and 0.3 % in 24 runs of 6 to 43 ms on another. Shorter launches average out within a sample.
HARMONICS: Final = (0.007, 0.003)
SEEN_FROM_S: Final = 0.004
WORTH: Final = 0.7  # of the first harmonic left in the mean of a window: from here on a second one is worth its time


def phases(times_s: Floats, launch_s: float) -> Floats:
    """Of launches back to back since time 0, at these times; in launches, not wrapped."""
    return times_s / launch_s


def unseen(windows: list[Floats]) -> float:
    """How far the mean of windows may be off by what their samples see of a launch; relative, one sigma.

    Each has the phases of its samples, and the windows count alike, however many samples they have.
    """
    orders = np.arange(1, len(HARMONICS) + 1)
    seen = np.mean([np.exp(2j * np.pi * np.outer(each, orders)).mean(axis=0) for each in windows], axis=0)
    return float(np.hypot.reduce(np.asarray(HARMONICS) * np.abs(seen)))


def keeps_step(samples: int, refresh_s: float, launch_s: float) -> bool:
    """Whether the mean of so many samples shows mostly one part of the launches."""
    if not launch_s >= SEEN_FROM_S or samples < 1:
        return False
    at = phases(refresh_s * np.arange(samples, dtype=np.float64), launch_s)
    return abs(complex(np.exp(2j * np.pi * at).mean())) > WORTH


def opposite_s(least_s: float, between_s: float, refresh_s: float, launch_s: float) -> float:
    """From the end of launches until others should begin that are seen half a launch apart, at least `least_s`.

    From the middle of the ones' samples to that of the others' passes a number of samples; in launches, without the
    time in which none ran, it should be half a launch more than whole ones. `between_s` is the time from one middle to
    the other in which launches ran.
    """
    reach = max(refresh_s, launch_s) / 2 * (1 + 1e-9)
    fewest = math.floor((least_s + between_s) / refresh_s)
    found = []
    for count in range(fewest, fewest + 3):
        first = math.ceil((between_s - reach) / launch_s - 0.5)
        last = math.floor((between_s + reach) / launch_s - 0.5)
        found += [count * refresh_s - (whole + 0.5) * launch_s for whole in range(first, last + 1)]
    return min(each for each in found if each >= least_s)
