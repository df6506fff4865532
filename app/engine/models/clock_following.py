"""Up to where a board follows the clock that is requested: beyond, power, speed and observed clock stand still."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .arrays import Floats, Mask, Rows
from .points import Points

_FLAT = 0.015  # relative: medians that stand still lie this close to their level, or within four of their scatter
_SPAN = 0.04  # relative: the least span of requested clocks over which standing still is significant
_STILL = 0.2  # per cent of a figure for each per cent of requested clock: less is standing still
_ROSE = 0.05  # relative: what power rises by, at least, below the clocks at which it stands
_ROBUST = 1.48  # standard deviation of a normal distribution over its median distance from the middle
_MANY = 24  # clocks close enough together to show the scatter
_MOST_SCATTER = 0.02
_LAG = 0.006  # relative: how far a clock that was reached may lie below the line through those under it


@dataclass(frozen=True, slots=True)
class Held:
    """A board that was held back."""

    followed_mhz: float  # the highest requested clock that it followed
    requested_mhz: float  # the highest requested clock
    ran_at_mhz: float | None  # beyond, where the clock was observed
    power_w: float  # beyond
    points: Mask  # shape (n,): those beyond

    @property
    def words(self) -> str:
        """In one line."""
        ran = "" if self.ran_at_mhz is None else f" ran at about {self.ran_at_mhz:.0f} MHz and"
        return (
            f"the board follows the requested clock up to {self.followed_mhz:.0f} MHz: beyond, up to "
            f"{self.requested_mhz:.0f} MHz, it{ran} drew about {self.power_w:.0f} W whatever was requested"
        )


def where_held(points: Points) -> Held | None:
    """Where neither power nor the observed clock nor the speed rises with the requested clock any more.

    The clocks count as requested where no requests are given. Points in any order; repeats of a clock count by their
    median. None where the board follows throughout, where neither the clock nor the speed was observed, or where fewer
    than four clocks were requested.
    """
    power_w, rate = points.power_w, points.rate
    observed_mhz = None if points.requested_mhz is None else points.clock_mhz
    requested_mhz = points.asked_mhz
    known = np.isfinite(requested_mhz) & (requested_mhz > 0) & (power_w > 0)
    followers = [each for each in (observed_mhz, rate) if each is not None]
    for each in followers:
        known &= each > 0  # false for NaN
    clocks = np.unique(requested_mhz[known])
    if not followers or len(clocks) < 4:
        return None
    rows = [np.flatnonzero(known & (requested_mhz == clock)) for clock in clocks]
    signals = [_Signal.of(each, rows) for each in (power_w, *followers)]
    x = np.log(clocks)
    for first in range(2, len(clocks) - 1):
        if clocks[-1] < (1 + _SPAN) * clocks[first]:
            return None
        if all(signal.stands(x, first) for signal in signals) and signals[0].rose_before(first):
            break
    else:
        return None
    last = _last_followed(x, signals[0], signals[1:], first)
    if last >= len(clocks) - 1:
        return None
    beyond = known & (requested_mhz > clocks[last])
    ran_at = None if observed_mhz is None else float(np.median(observed_mhz[beyond]))
    power = float(np.median(power_w[beyond]))
    return Held(float(clocks[last]), float(clocks[-1]), ran_at, power, beyond)


@dataclass(frozen=True, slots=True)
class _Signal:
    """The logarithm of a figure: its median at each clock, and how far such a median may be off."""

    median: Floats
    scatter: float

    @classmethod
    def of(cls, values: Floats, rows: list[Rows]) -> _Signal:
        log = [np.log(values[at]) for at in rows]
        median = np.asarray([float(np.median(each)) for each in log])
        deviations = [float(each.std(ddof=1)) for each in log if len(each) > 1]
        if deviations:  # the median one: of a few clocks a reading may be wrong
            scatter = float(np.median(deviations))
        elif len(median) >= _MANY:  # second differences scatter 6^0.5 times as much as readings
            scatter = _ROBUST * float(np.median(np.abs(np.diff(median, 2)))) / 6**0.5
        else:
            scatter = 0.0
        return cls(median, min(scatter, _MOST_SCATTER))

    def stands(self, x: Floats, first: int) -> bool:
        """Whether it stands still from the clock `first` on."""
        top = self.median[first:]
        if np.abs(top - np.median(top)).max() > max(_FLAT, 4 * self.scatter):
            return False
        slope = np.polynomial.polynomial.polyfit(x[first:], top, 1)[1]
        return bool(abs(slope) <= _STILL)

    def spread(self, first: int) -> float:
        """The standard deviation of its medians from the clock `first` on, where it stands still; 0 where too few."""
        top = self.median[first:]
        return _ROBUST * float(np.median(np.abs(top - np.median(top)))) if len(top) > 2 else 0.0

    def is_near(self, at: int, first: int) -> bool:
        """Whether the clock `at` comes near the level at which it stands from the clock `first` on."""
        return bool(abs(self.median[at] - np.median(self.median[first:])) < 2 * max(_FLAT, 3 * self.scatter))

    def rose_before(self, first: int) -> bool:
        """Whether it rose up to the clock `first`."""
        return bool(np.median(self.median[first:]) - self.median[0] > max(_ROSE, 3 * self.scatter))


def _last_followed(x: Floats, power: _Signal, followers: list[_Signal], first: int) -> int:
    """The highest clock that was reached: each one keeps to the line through the two below it.

    It is looked for around the clock `first`, from which on everything stands still within the scatter.
    """

    def lags(at: int, last: int, below: int) -> bool:
        """The clock `at` against the line through the clocks `below` and the one before, moved to the clock `last`."""
        step = (x[at] - x[last]) / (x[below] - x[below - 1])
        return any(
            signal.median[last] + (signal.median[below] - signal.median[below - 1]) * step - signal.median[at]
            > tolerance
            for signal, tolerance in zip(followers, tolerances, strict=True)
        )

    tolerances = [max(_LAG, 3 * max(signal.scatter, signal.spread(first))) for signal in followers]
    if first > 2 and power.is_near(first - 1, first) and lags(first - 1, first - 2, first - 2):
        first -= 1  # the observed clock still creeps up, but the board is held back
    last = first - 1
    while last + 1 < len(x) and not lags(last + 1, last, first - 1):
        last += 1
    return last
