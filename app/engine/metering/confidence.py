"""How well a mean is known: 95 % confidence by Student's t, and what to add where samples are few or swing."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from statistics import fmean, median, stdev, variance
from typing import Final

NORMAL_95: Final = 1.96
PRIOR_DEGREES: Final = 8
LEAST_SPREAD: Final = 4  # samples of a window, and windows, before a spread is usual
LIMITED_BLOCK: Final = 10  # samples of the driver's buffer that a swing under a limit is looked at by

Interval = tuple[float, float]


@lru_cache(maxsize=256)
def student_t(degrees: int) -> float:
    """The 97.5 % quantile with so many degrees of freedom, at least 1."""
    from scipy.special import stdtrit  # imported late: the window opens without it

    return float(stdtrit(degrees, 0.975))


def confidence_interval(values: Sequence[float], independent: int | None = None) -> Interval | None:
    """95 % confidence of the mean by Student's t, of which `independent` values count (all); None below two."""
    count = len(values) if independent is None else independent
    if len(values) < 2 or count < 2:
        return None
    half, mean = student_t(count - 1) * stdev(values) / math.sqrt(count), fmean(values)
    return mean - half, mean + half


def not_negative(interval: Interval) -> Interval:
    """The part of an interval that is possible for what cannot be negative: a time, an energy drawn, a power.

    It covers the truth as often as the whole [Mandelkern2002], and reaches down to 0 where two repeats differ by much.
    A logarithmic interval covers as often too, but its upper end runs away: to 100 times the mean and more, where
    two repeats scatter by 30 %.
    """
    low, high = interval
    return (max(0.0, low), high) if high > 0 else interval


def interval_of_repeats(values: Sequence[float], own: Sequence[Interval]) -> Interval | None:
    """The wider of Student's t over repeats and the mean of their own intervals; None where neither is known.

    Repeating does not make up for what every one of the repeats may be off by.
    """
    found = [] if (over := confidence_interval(values)) is None else [over]
    if own:
        found.append((fmean(low for low, _ in own), fmean(high for _, high in own)))
    return max(found, key=lambda ends: ends[1] - ends[0], default=None)


class Spread:
    """How much samples of power vary on this board, so that the few samples of one load need not show it alone.

    The variance of a load is estimated by the moderated t [Smyth2004]: its own, with its degrees of freedom, and the
    board's usual one, with `PRIOR_DEGREES`.
    """

    def __init__(self) -> None:
        self._seen: deque[float] = deque(maxlen=64)  # relative variances

    def note(self, powers: Sequence[float]) -> None:
        """A window that was measured."""
        if len(powers) >= LEAST_SPREAD:
            self._seen.append((stdev(powers) / fmean(powers)) ** 2)

    def half_w(self, powers: Sequence[float], due: int) -> float:
        """Half of the 95 % interval of a mean of `due` samples such as these; NaN below two."""
        if len(powers) < 2:
            return math.nan
        degrees, own = len(powers) - 1, variance(powers)
        if len(self._seen) >= LEAST_SPREAD:
            usual = median(self._seen) * fmean(powers) ** 2
            own = (degrees * own + PRIOR_DEGREES * usual) / (degrees + PRIOR_DEGREES)
            degrees += PRIOR_DEGREES
        return student_t(degrees) * math.sqrt(own / due)


def limited_interval(powers: Sequence[float], independent: int, limit_w: float, settled: bool) -> Interval | None:
    """Where the mean power of a board at a limit lies, W: its samples swing together, so Student's t is too narrow.

    It reaches to the limit as well, and while the board is not settled to the extremes of the swing.
    """
    interval = confidence_interval(powers, independent)
    if interval is None:
        return None
    parts = [*interval] if math.isnan(limit_w) else [*interval, limit_w]
    if not settled:
        parts.extend(fmean(powers[at : at + LIMITED_BLOCK]) for at in range(0, len(powers), LIMITED_BLOCK))
    return not_negative((min(parts), max(parts)))
