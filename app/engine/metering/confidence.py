"""How well a mean is known: 95 % confidence by Student's t, and what to add where samples are few or swing.

The mean of what a load did in a window, taken smoothly over it, and what that mean may be off by.

What a service does comes in waves: clients that fall in step have all their prompts read, then all their answers
written. A rate from the two ends of a window is off by a part of a wave, as much as the first and the last of seven are
of all. The slope of a straight line through the cumulated amount, by least squares, is the mean of the rate with a
weight of 6 u (1 - u) at the share u of the window [Welch1967]: the ends count for nothing, and the error that k waves
leave falls with 1 / k^2 instead of 1 / k. Of independent noise it has 1.10 times the plain mean's standard deviation.

The variance of that mean is the noise's at frequencies of a few cycles a window and below. It is estimated from
`PLACES` further weighted means, whose weights are orthonormal, and orthogonal to a constant and to the mean's own, so
that each of them is noise of that size alone: the orthonormally weighted area estimators of steady-state simulation
[Foley1999], with half-periods of a sine as the weights [Riedel1995], as these vanish at the ends too and see nothing of
the waves. Where neighbours are alike noise is larger at frequency 0 than there: by as much as in a first-order
autoregression with the correlation of neighbouring blocks [Andrews1992], where that is positive. Of waves it is not.
How often the intervals cover: tests/benchmarks/steady_window.txt.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean, median, stdev, variance
from typing import Final

import numpy as np
import numpy.typing as npt

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


Floats = npt.NDArray[np.float64]

CELLS: Final = 240  # of equal length, that a window is divided into
PLACES: Final = 6  # weighted means that show the noise: degrees of freedom of Student's t
_BLOCKS: Final = 24  # of a window, whose neighbours are compared
_MOST_ALIKE: Final = 0.9  # correlation of neighbours that is believed


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each place of a window counts for a mean over it: 1 on average. A place is a share of it, 0 to 1."""

    at: Callable[[Floats], Floats]
    until: Callable[[Floats], Floats]  # all weight before a place

    def between(self, begin: float, end: float) -> float:
        """The share of all weight that lies there."""
        first, last = self.until(np.clip(np.array([begin, end]), 0.0, 1.0))
        return float(last - first)


EVEN: Final = Weights(np.ones_like, lambda place: place)
SMOOTH: Final = Weights(lambda place: 6 * place * (1 - place), lambda place: place * place * (3 - 2 * place))


def rates_in_cells(start: float, end: float, times: Floats, amounts: Floats, begin: float = 0.0) -> Floats:
    """What came for each unit of time, in CELLS cells from `start` to `end`.

    Each amount came evenly between the time before its own and that; the first from `begin` on.
    """
    edges = np.linspace(start, end, CELLS + 1)
    done = np.interp(edges, np.concatenate([[begin], times]), np.concatenate([[0.0], np.cumsum(amounts)]))
    rates: Floats = np.diff(done) / np.diff(edges)
    return rates


def smooth_mean(rates: Floats) -> float:
    """The mean of the rates of CELLS cells, by `SMOOTH`."""
    return float(_weights()[0] @ rates)


def half_width(rates: Floats, scale: float | None = None) -> float:
    """Half of the 95 % interval of `smooth_mean`, relative to it or to `scale`; inf where that is not above 0."""
    mean = smooth_mean(rates)
    scale = mean if scale is None else scale
    if not scale > 0:
        return math.inf
    apart = rates - mean
    if float(np.abs(apart).max()) <= 1e-9 * scale:
        return 0.0
    own, others = _weights()
    alike = _alike(apart)
    more = _variance(own[None], alike).mean() / _variance(others, alike).mean()
    variance = float(np.mean((others @ apart) ** 2) * more)
    return student_t(PLACES) * math.sqrt(variance) / scale


def _alike(apart: Floats) -> float:
    """The correlation of neighbouring blocks, free of its bias to first order [Marriott1954]; not below 0."""
    blocks = apart.reshape(_BLOCKS, -1).mean(axis=1)
    blocks -= blocks.mean()
    squares = float(blocks @ blocks)
    if squares <= 0.0:
        return 0.0
    seen = float(blocks[1:] @ blocks[:-1]) / squares
    return min(_MOST_ALIKE, max(0.0, seen + (1 + 3 * seen) / _BLOCKS))


def _variance(weights: Floats, alike: float) -> Floats:
    """Of weighted means of noise whose neighbouring blocks have that correlation; any unit. Shape (n,)."""
    blocks = weights.reshape(len(weights), _BLOCKS, -1).sum(axis=2)
    correlation = alike ** np.abs(np.subtract.outer(np.arange(_BLOCKS), np.arange(_BLOCKS)))
    variances: Floats = np.einsum("ni,ij,nj->n", blocks, correlation, blocks)
    return variances


@lru_cache(maxsize=1)
def _weights() -> tuple[Floats, Floats]:
    """Of the mean, shape (CELLS,), and of those that show the noise, shape (PLACES, CELLS)."""
    own = np.diff(SMOOTH.until(np.linspace(0.0, 1.0, CELLS + 1)))
    middles = (np.arange(CELLS) + 0.5) / CELLS
    sines = np.sin(np.pi * np.outer(np.arange(1, PLACES + 3), middles))
    seen = sines @ np.stack([np.ones(CELLS), own], axis=1)
    blind = np.linalg.svd(seen.T)[2][2:] @ sines  # combinations that neither a constant nor the mean shows in
    others = np.linalg.qr(blind.T)[0].T / math.sqrt(CELLS)
    return own, others
