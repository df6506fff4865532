"""Means and their 95 % intervals: by Student's t, of few or swinging samples, and of rates that come in waves.

The work of a service comes in waves: clients that fall in step have all their prompts read, then all their answers
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
LEAST_SPREAD: Final = 4  # samples of a window, and windows, before a spread counts as usual
LIMITED_BLOCK: Final = 10  # samples of the driver's buffer that are averaged to see a swing under a limit

Interval = tuple[float, float]


@lru_cache(maxsize=256)
def student_t(degrees: int) -> float:
    """Return the 97.5 % quantile of Student's t, for 95 % intervals.

    Parameters
    ----------
    degrees : int
        The degrees of freedom, at least 1.

    Returns
    -------
    float
        The quantile, in standard errors.
    """
    from scipy.special import stdtrit  # imported late: the window opens without it

    return float(stdtrit(degrees, 0.975))


def confidence_interval(values: Sequence[float], independent: int | None = None) -> Interval | None:
    """Return the 95 % interval of a mean by Student's t.

    Parameters
    ----------
    values : sequence of float
        The values, of any unit.
    independent : int or None, optional
        How many of them count as independent; all by default.

    Returns
    -------
    tuple of float or None
        The interval; None below two independent values.
    """
    count = len(values) if independent is None else independent
    if len(values) < 2 or count < 2:
        return None
    half, mean = student_t(count - 1) * stdev(values) / math.sqrt(count), fmean(values)
    return mean - half, mean + half


def not_negative(interval: Interval) -> Interval:
    """Return the part of an interval that is possible for a quantity that cannot be negative: time, energy, power.

    It covers the truth as often as the whole [Mandelkern2002], and reaches down to 0 if two repeats differ by much.
    A logarithmic interval covers as often too, but its upper end runs away: to 100 times the mean and more, where
    two repeats scatter by 30 %.

    Parameters
    ----------
    interval : tuple of float
        The lower and the upper end, of any unit.

    Returns
    -------
    tuple of float
        The interval from 0 on; unchanged if its upper end is not above 0.
    """
    low, high = interval
    return (max(0.0, low), high) if high > 0 else interval


def interval_of_repeats(values: Sequence[float], intervals: Sequence[Interval]) -> Interval | None:
    """Return the wider of Student's t over repeats and the mean of the repeats' intervals.

    Repeating does not remove an error that all of the repeats have in common.

    Parameters
    ----------
    values : sequence of float
        The value of each repeat, of any unit.
    intervals : sequence of tuple of float
        The 95 % intervals of repeats, as far as they are known.

    Returns
    -------
    tuple of float or None
        The wider interval, 95 %; None without either: fewer than two repeats, and no interval known.
    """
    candidates = [] if (over_repeats := confidence_interval(values)) is None else [over_repeats]
    if intervals:
        candidates.append((fmean(low for low, _ in intervals), fmean(high for _, high in intervals)))
    return max(candidates, key=lambda ends: ends[1] - ends[0], default=None)


class Spread:
    """How much samples of power vary on this board, so that the few samples of one load need not show it alone.

    The variance of a load is estimated by the moderated t [Smyth2004]: its own, with its degrees of freedom, and the
    board's usual one, with `PRIOR_DEGREES`.
    """

    def __init__(self) -> None:
        self._seen: deque[float] = deque(maxlen=64)  # relative variances

    def note(self, powers: Sequence[float]) -> None:
        """Take in the powers of a window.

        Parameters
        ----------
        powers : sequence of float
            The samples, W; fewer than LEAST_SPREAD do not count.
        """
        if len(powers) >= LEAST_SPREAD:
            self._seen.append((stdev(powers) / fmean(powers)) ** 2)

    def half_w(self, powers: Sequence[float], due: int) -> float:
        """Return half of the 95 % interval of the mean of samples.

        Parameters
        ----------
        powers : sequence of float
            The samples so far, W.
        due : int
            How many independent samples such as these the mean is of.

        Returns
        -------
        float
            The half-width, W; NaN for fewer than two powers.
        """
        if len(powers) < 2:
            return math.nan
        degrees, moderated = len(powers) - 1, variance(powers)
        if len(self._seen) >= LEAST_SPREAD:
            usual = median(self._seen) * fmean(powers) ** 2
            moderated = (degrees * moderated + PRIOR_DEGREES * usual) / (degrees + PRIOR_DEGREES)
            degrees += PRIOR_DEGREES
        return student_t(degrees) * math.sqrt(moderated / due)


def limited_interval(powers: Sequence[float], independent: int, limit_w: float, settled: bool) -> Interval | None:
    """Return the interval of the mean power of a board at a limit, whose samples swing together.

    Student's t alone is too narrow. The interval reaches to the limit as well, and while the board is not settled to
    the extremes of the swing.

    Parameters
    ----------
    powers : sequence of float
        The samples, W.
    independent : int
        How many of them count as independent.
    limit_w : float
        The power limit, W; NaN if it is not known.
    settled : bool
        Whether the controller of the limit has come to rest.

    Returns
    -------
    tuple of float or None
        The 95 % interval, W; None below two independent samples.
    """
    interval = confidence_interval(powers, independent)
    if interval is None:
        return None
    parts = [*interval] if math.isnan(limit_w) else [*interval, limit_w]
    if not settled:
        parts.extend(fmean(powers[start : start + LIMITED_BLOCK]) for start in range(0, len(powers), LIMITED_BLOCK))
    return not_negative((min(parts), max(parts)))


Floats = npt.NDArray[np.float64]

CELLS: Final = 240  # of equal length, that a window is divided into
PLACES: Final = 6  # weighted means that show the noise: degrees of freedom of Student's t
_BLOCKS: Final = 24  # of a window, whose neighbours are compared
_MOST_ALIKE: Final = 0.9  # correlation of neighbours that is believed


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of each place of a window in a mean over it, 1 on average. A place is a share of the window, 0..1."""

    at: Callable[[Floats], Floats]
    until: Callable[[Floats], Floats]  # all weight before a place

    def between(self, begin: float, end: float) -> float:
        """Return the share of all weight between two places.

        Parameters
        ----------
        begin, end : float
            The places; beyond 0..1 they count as the window's ends.

        Returns
        -------
        float
            The share, 0..1.
        """
        first, last = self.until(np.clip(np.array([begin, end]), 0.0, 1.0))
        return float(last - first)


EVEN: Final = Weights(np.ones_like, lambda place: place)
SMOOTH: Final = Weights(lambda place: 6 * place * (1 - place), lambda place: place * place * (3 - 2 * place))


def rates_in_cells(start: float, end: float, times: Floats, amounts: Floats, begin: float = 0.0) -> Floats:
    """Return the rates in equal cells of a window.

    Parameters
    ----------
    start, end : float
        The window.
    times : array, shape (n,)
        When each amount was complete, ascending, in the unit of the window.
    amounts : array, shape (n,)
        Each came evenly since the time before its own.
    begin : float, optional
        When the first amount began.

    Returns
    -------
    array, shape (CELLS,)
        Amount for each unit of time.
    """
    edges = np.linspace(start, end, CELLS + 1)
    done = np.interp(edges, np.concatenate([[begin], times]), np.concatenate([[0.0], np.cumsum(amounts)]))
    rates: Floats = np.diff(done) / np.diff(edges)
    return rates


def smooth_mean(rates: Floats) -> float:
    """Return the mean of rates by the weights `SMOOTH`.

    Parameters
    ----------
    rates : array, shape (CELLS,)
        The rates in equal cells of a window, of any unit.

    Returns
    -------
    float
        The mean, in their unit.
    """
    return float(_weights()[0] @ rates)


def half_width(rates: Floats, scale: float | None = None) -> float:
    """Return half of the 95 % interval of `smooth_mean`.

    Parameters
    ----------
    rates : array, shape (CELLS,)
        The rates.
    scale : float or None, optional
        What the result is relative to; the mean by default.

    Returns
    -------
    float
        The half-width, relative; inf if the scale is not above 0.
    """
    mean = smooth_mean(rates)
    scale = mean if scale is None else scale
    if not scale > 0:
        return math.inf
    apart = rates - mean
    if float(np.abs(apart).max()) <= 1e-9 * scale:
        return 0.0
    of_mean, others = _weights()
    alike = _alike(apart)
    more = _variance(of_mean[None], alike).mean() / _variance(others, alike).mean()
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
    """The variances of weighted means of noise whose neighbouring blocks have that correlation, shape (n,)."""
    blocks = weights.reshape(len(weights), _BLOCKS, -1).sum(axis=2)
    correlation = alike ** np.abs(np.subtract.outer(np.arange(_BLOCKS), np.arange(_BLOCKS)))
    variances: Floats = np.einsum("ni,ij,nj->n", blocks, correlation, blocks)
    return variances


@lru_cache(maxsize=1)
def _weights() -> tuple[Floats, Floats]:
    """The weights of the mean, shape (CELLS,), and of the means that show the noise, shape (PLACES, CELLS)."""
    of_mean = np.diff(SMOOTH.until(np.linspace(0.0, 1.0, CELLS + 1)))
    middles = (np.arange(CELLS) + 0.5) / CELLS
    sines = np.sin(np.pi * np.outer(np.arange(1, PLACES + 3), middles))
    seen = sines @ np.stack([np.ones(CELLS), of_mean], axis=1)
    blind = np.linalg.svd(seen.T)[2][2:] @ sines  # combinations orthogonal to a constant and to the mean
    others = np.linalg.qr(blind.T)[0].T / math.sqrt(CELLS)
    return of_mean, others
