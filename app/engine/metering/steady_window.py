"""The window over a load that does not end by itself: from when it is steady, until its figures are known well enough.

The beginning is cut off by the marginal standard error rule [White1997]: of all places to begin at, the first after
which the mean is known nearly as well as at best. The load counts as steady once that place lies in the first half of
the time so far, for throughput and for power. Means and their 95 % intervals are those of `smooth_mean`. Where waves
hide a slow beginning from that rule, the window begins at the first place whose intervals are less than 3 times the
least.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from .confidence import CELLS, half_width, rates_in_cells, smooth_mean

Floats = npt.NDArray[np.float64]

BLOCKS: Final = 24  # that the time since the load began is divided into, for its beginning
FEWEST: Final = 8  # of them in a window, and pieces of work
_NEARLY: Final = 1.3  # times the least variance of the mean: less is what chance makes of 24 blocks
_STRIDE: Final = 2  # blocks, from one later beginning that is tried to the next
_FAR: Final = 3.0  # times as well known as from the beginning before: chance hardly makes that


@dataclass(frozen=True, slots=True)
class Known:
    """The precision of a window's figures: half-widths of 95 % intervals, relative; inf if not known."""

    rate_half: float  # of the throughput
    power_half: float  # of the mean power, by its changes alone
    cost_half: float  # of the energy for a unit of work, without what throughput and power have in common
    smooth_power: float  # the smooth mean of the power, over the plain one


@dataclass(frozen=True, slots=True)
class Look:
    """A window over a load as it would be now."""

    start_s: float  # since the load began
    end_s: float
    steady: bool  # in throughput and in power
    known: Known

    @property
    def half(self) -> float:
        """The wider half-width of throughput and power, relative."""
        return max(self.known.rate_half, self.known.power_half)

    def narrow(self, precision: float) -> bool:
        """Return whether the figures are known well enough.

        Parameters
        ----------
        precision : float
            The largest half-width of a 95 % interval, relative.

        Returns
        -------
        bool
            Whether the load is steady, and throughput and power are known to that precision.
        """
        return self.steady and self.half <= precision


def look(times_s: Floats, work: Floats, power_times_s: Floats, power_w: Floats, end_s: float) -> Look:
    """Return the best window over a load that began at 0.

    Parameters
    ----------
    times_s : array, shape (n,)
        When each piece of work was done, s since the load began, ascending.
    work : array, shape (n,)
        The work of each piece, of any unit.
    power_times_s : array, shape (m,)
        When each power was measured, s, ascending; m may be 0.
    power_w : array, shape (m,)
        The powers, W.
    end_s : float
        The time by now, s.

    Returns
    -------
    Look
        The window, from the first beginning that is tried whose intervals are at most 3 times as wide as the least.
    """
    first = begins_at(_in_blocks(rates_in_cells(0.0, end_s, times_s, work)))
    if len(power_w):
        first = max(first, begins_at(_in_blocks(power_in_cells(0.0, end_s, power_times_s, power_w))))
    latest = BLOCKS // 2
    looks = [
        Look(start_s, end_s, first < latest, known_of(start_s, end_s, times_s, work, power_times_s, power_w))
        for start_s in end_s * np.arange(min(first, latest), latest + 1, _STRIDE) / BLOCKS
    ]
    best = min(window.half for window in looks)
    return next(window for window in looks if window.half <= _FAR * best)


def known_of(
    start_s: float, end_s: float, times_s: Floats, work: Floats, power_times_s: Floats, power_w: Floats
) -> Known:
    """Return the precision of throughput, power and their ratio over a window.

    Parameters
    ----------
    start_s, end_s : float
        The window, s since the load began.
    times_s, work : array, shape (n,)
        When each piece of work was done, s, and its work, as for `look`.
    power_times_s, power_w : array, shape (m,)
        When each power was measured, s, and the powers, W, as for `look`.

    Returns
    -------
    Known
        The half-widths; those of throughput and cost are inf for fewer than 8 pieces of work in the window. Without
        powers that of the power is 0, and that of the cost inf.
    """
    rate = rates_in_cells(start_s, end_s, times_s, work)
    pieces = int(np.count_nonzero(work[(times_s > start_s) & (times_s <= end_s)]))
    rate_half = half_width(rate) if pieces >= FEWEST else math.inf
    if not len(power_w):
        return Known(rate_half, power_half=0.0, cost_half=math.inf, smooth_power=1.0)
    power = power_in_cells(start_s, end_s, power_times_s, power_w)
    mean_rate, mean_w, plain_w = smooth_mean(rate), smooth_mean(power), float(power.mean())
    cost_half = math.inf
    if math.isfinite(rate_half) and mean_w > 0:
        # of a ratio of means, by the deviation of each place from it [Cochran1977, eq. 6.13]
        cost_half = half_width(power / mean_w - rate / mean_rate, 1.0)
    return Known(rate_half, half_width(power), cost_half, smooth_power=mean_w / plain_w if plain_w > 0 else 1.0)


def begins_at(values: Floats) -> int:
    """Return the first place from which on the mean is known nearly as well as from any [White1997].

    Parameters
    ----------
    values : array, shape (n,)
        The values, of any unit.

    Returns
    -------
    int
        The index, with at least FEWEST values from there on, as far as there are so many.
    """
    last = max(0, len(values) - FEWEST)
    errors = [float(np.var(values[place:])) / (len(values) - place) for place in range(last + 1)]
    enough = _NEARLY * min(errors) + (1e-9 * float(np.abs(values).max(initial=0.0))) ** 2
    return next(place for place, error in enumerate(errors) if error <= enough)


def _in_blocks(cells: Floats) -> Floats:
    blocks: Floats = cells.reshape(BLOCKS, CELLS // BLOCKS).mean(axis=1)
    return blocks


def power_in_cells(start_s: float, end_s: float, times_s: Floats, power_w: Floats) -> Floats:
    """Return the power in equal cells of a window; each value counts for the time nearer to it than to another.

    Parameters
    ----------
    start_s, end_s : float
        The window, s.
    times_s : array, shape (n,)
        When each power was measured, s, ascending.
    power_w : array, shape (n,)
        The powers, W.

    Returns
    -------
    array, shape (CELLS,)
        The mean power in each cell, W.
    """
    ends = np.concatenate([(times_s[1:] + times_s[:-1]) / 2, [max(end_s, float(times_s[-1]))]])
    lengths = np.diff(ends, prepend=min(0.0, float(times_s[0])))
    return rates_in_cells(start_s, end_s, ends, power_w * lengths, min(0.0, float(times_s[0])))
