"""`PowerSamples`: the power of a board over time, with what is known of the sensor that it was read through."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from .activity import Floats

FADED: Final = 4.0  # time constants, after which a low-pass has forgotten what was before
# Of the stamps' drift from sample to sample, of their jitter.
WALKS: Final = (0.0, *np.geomspace(1e-8, 1.0, 33).tolist())


@dataclass(frozen=True, slots=True)
class PowerSamples:
    """Samples of a board's power. Raises ValueError where the parts do not fit together.

    A sample at time t is the mean power of [t - lag - window, t - lag], or what a low-pass of first order with that
    window as its time constant shows at t - lag.

    Attributes
    ----------
    time_s : array of float64, shape (n,)
        When each sample appeared, or its stamp in the driver's buffer, s, ascending.
    power_w : array of float64, shape (n,)
        The samples, W.
    window_s, lag_s : float
        What a sample averages over, or the time constant, and how long before its time that ended, s.
    window_margin_s, lag_margin_s : float
        How far they may be off, 95 %, s.
    noise : float
        What a sample scatters by under constant load; relative, one sigma.
    clock_mhz, temperature_c : array of float64, shape (n,), or None
        The graphics clock and the temperature at each sample, where they were read.
    low_pass : bool or None
        Whether the sensor is such a low-pass. None: not known, and `window_s` is that of a mean.
    """

    time_s: Floats
    power_w: Floats
    window_s: float
    lag_s: float
    window_margin_s: float = 0.0
    lag_margin_s: float = 0.0
    noise: float = 0.0
    clock_mhz: Floats | None = None
    temperature_c: Floats | None = None
    low_pass: bool | None = False

    def __post_init__(self) -> None:
        series = [self.time_s, self.power_w, self.clock_mhz, self.temperature_c]
        if any(values is not None and values.shape != (len(self.time_s),) for values in series):
            raise ValueError("times, powers, clocks and temperatures are not arrays of one length")
        if not (np.isfinite(self.time_s).all() and np.isfinite(self.power_w).all()):
            raise ValueError("a time or a power of a sample is not finite")
        if (np.diff(self.time_s) <= 0).any():
            raise ValueError("the times of the samples do not ascend")
        if not self.window_s > 0:
            raise ValueError("a sample averages over no time")

    @property
    def refresh_s(self) -> float:
        """From one sample to the next, s."""
        return float(np.median(np.diff(self.time_s)))

    def within(self, begin_s: float, end_s: float) -> PowerSamples:
        """Return the samples whose windows lie wholly in a span.

        Parameters
        ----------
        begin_s, end_s : float
            The span, s.

        Returns
        -------
        PowerSamples
            Those samples.
        """
        ended_s = self.time_s - self.lag_s
        reach_s = self.window_s if self.low_pass is False else FADED * self.window_s
        return self._of((ended_s - reach_s >= begin_s) & (ended_s <= end_s))

    def first(self, count: int) -> PowerSamples:
        """Return the first samples.

        Parameters
        ----------
        count : int
            How many.

        Returns
        -------
        PowerSamples
            Those samples.
        """
        return self._of(np.arange(len(self.time_s)) < count)

    def _of(self, which: npt.NDArray[np.bool_]) -> PowerSamples:
        return replace(
            self,
            time_s=self.time_s[which],
            power_w=self.power_w[which],
            clock_mhz=None if self.clock_mhz is None else self.clock_mhz[which],
            temperature_c=None if self.temperature_c is None else self.temperature_c[which],
        )

    def evened(self) -> PowerSamples:
        """Return the samples at the times of a sensor that samples evenly, whose stamps jitter.

        Returns
        -------
        PowerSamples
            The same samples at times that ascend by whole refreshes, and drift slowly as the stamps do.
        """
        refresh_s = self.refresh_s
        steps = np.maximum(1.0, np.round(np.diff(self.time_s) / refresh_s))
        number = np.concatenate([[0.0], np.cumsum(steps)])
        refresh_s, first_s = np.polyfit(number, self.time_s, 1)
        evened = first_s + refresh_s * number + _drift(self.time_s - first_s - refresh_s * number)
        if (np.diff(evened) <= 0).any():
            return self
        return replace(self, time_s=evened)


def _drift(off: Floats) -> Floats:
    """The random walk in values that are such a walk and white noise: its posterior mean, by their spectrum.

    After a mean of so many neighbours, the noise that is left would pass for a change of the shares of what ran.
    """
    from scipy.fft import dct, idct  # imported late: the window opens without it

    spectrum = dct(off, norm="ortho")
    steps = 2.0 - 2.0 * np.cos(np.pi * np.arange(len(off)) / len(off))
    best, kept = math.inf, np.zeros(len(off))
    for ratio in WALKS:  # variance of the walk's steps relative to that of the noise
        variance = 1.0 + ratio / np.maximum(steps, 1e-300)
        cost = float(np.log(np.mean(spectrum[1:] ** 2 / variance[1:])) + np.mean(np.log(variance[1:])))
        if cost < best:
            best, kept = cost, 1.0 - 1.0 / variance
    kept[0] = 1.0
    return np.asarray(idct(spectrum * kept, norm="ortho"))
