"""The mean of what a load did in a window, taken smoothly over it, and what that mean may be off by.

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
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from .confidence import student_t

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
