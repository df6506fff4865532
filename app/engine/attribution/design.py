"""`Design`: what the samples of a program's power are a linear function of, and what its joules are.

    P(t) = base + stages of long gaps + sum over families of share(t) * power above base * clock factor + slow drift

Each sample is the mean of that over its window, or what a low-pass of first order shows of it. Joules of anything are
linear in the same unknowns: a family's are its seconds times its power above the base, and those of the base and its
drift for as long as it runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from .activity import Floats
from .samples import PowerSamples
from .timeline import Timeline

SLOWEST_S: Final = 4.0  # of a drift, half a period
MOST_DRIFTS: Final = 8
DEEPEST: Final = 0.4  # clock factor: below it no kernel runs
WARMING_C: Final = 10.0  # what the drift with temperature is counted in
SEEN_C: Final = 2.0  # of temperature, below which readings in whole degrees show no drift
CELLS: Final = 2000  # of a span, in which drifts are taken for constant: at most so many,
CELL_S: Final = 0.05  # and no shorter
DIFFERENCE: Final = 0.02  # of a window, to find how samples change with lag and window
# Of a Gaussian: places, in standard deviations, and weights, which integrate polynomials up to the ninth degree.
NODES: Final = ((-2.857, 0.01126), (-1.3556, 0.22208), (0.0, 0.53332), (1.3556, 0.22208), (2.857, 0.01126))


@dataclass(frozen=True, slots=True)
class Design:
    """The columns of the unknowns: base, two stages of long gaps, families, drifts, errors of the lag and the window.

    Attributes
    ----------
    columns : array, shape (samples, unknowns)
        What each sample is a sum of: W for W, and W for s of the last two.
    families, drifts : slice
        Where their columns are.
    factor : array, shape (samples,)
        The clock factor of each sample.
    waits : array, shape (samples,)
        The share of each sample's window that falls to the gaps.
    uneven : array, shape (samples,)
        The sum of the squares of the families' shares times their mean slice over the window: how much of the variation
        from launch to launch is left in a sample.
    """

    columns: Floats
    families: slice
    drifts: slice
    factor: Floats
    waits: Floats
    uneven: Floats

    @property
    def shares(self) -> Floats:
        """The share of each sample's window that falls to each family, and to the gaps: (samples, families + 1)."""
        return np.column_stack([self.columns[:, self.families] / self.factor[:, None], self.waits])


class Program:
    """A program on its timeline, with clocks and drifts, from which designs and joules follow."""

    def __init__(self, timeline: Timeline, samples: PowerSamples, span: tuple[float, float], exponent: float) -> None:
        self.timeline, self.samples, self.span, self.exponent = timeline, samples, span, exponent
        activity = timeline.activity
        edges, middles = _cells(*span), (activity.begin_s + activity.end_s) / 2
        self._cell = np.clip(np.searchsorted(edges, middles) - 1, 0, len(edges) - 2).astype(np.int32)
        self._cell_drifts = self._drifts((edges[1:] + edges[:-1]) / 2)
        self.slice_factor = self._clock_factor(middles)
        self.count = 3 + len(activity.names) + self._cell_drifts.shape[1] + 2

    # --- columns ----------------------------------------------------------------------------------------------------

    def design(self, lag_s: float, window_s: float, jitter_s: float) -> Design:
        """Return the design for a lag and a window.

        A stamp that is off by chance would make shares look as if they varied where they do not, and powers too alike.
        So shares are those to be expected where a sample may have been taken a little before or after its stamp.

        Parameters
        ----------
        lag_s, window_s, jitter_s : float
            Lag and window of the sensor, and how far stamps are off, one sigma, s.

        Returns
        -------
        Design
            The design; the columns of the errors of lag and window are 0 as long as no powers are known.
        """
        end_s = self.samples.time_s - lag_s
        begin_s, low_pass = end_s - window_s, self.samples.low_pass
        timeline, families = self.timeline, len(self.timeline.activity.names)
        lasts = (end_s - begin_s)[:, None]
        moved = [(off * jitter_s, weight) for off, weight in NODES] if jitter_s > 0 else [(0.0, 1.0)]
        if low_pass:
            shares, gaps = timeline.decayed(end_s, window_s, moved)
        else:
            shares, gaps = timeline.overlaps(begin_s, end_s, moved) / lasts, np.zeros((len(end_s), 3))
            for off, weight in moved:
                gaps += weight / lasts * timeline.gaps(begin_s + off, end_s + off)
        middles = begin_s if low_pass else (begin_s + end_s) / 2
        awake = 1.0 - gaps[:, 1:].sum(axis=1)
        factor = self._clock_factor(middles)
        columns = np.empty((len(end_s), self.count))
        columns[:, 0] = awake
        columns[:, 1:3] = gaps[:, 1:]
        columns[:, 3 + families : -2] = self._drifts(middles) * awake[:, None]
        columns[:, -2:] = 0.0
        counts = np.maximum(timeline.activity.counts, 1)
        each_s = np.bincount(timeline.activity.family, timeline.seconds, families) / counts
        uneven = np.einsum("sf,sf,f->s", shares, shares, np.minimum(1.0, each_s / np.maximum(window_s, 1e-9)))
        np.multiply(shares, factor[:, None], out=columns[:, 3 : 3 + families])
        return Design(
            columns,
            slice(3, 3 + families),
            slice(3 + families, self.count - 2),
            factor,
            gaps.sum(axis=1),
            np.asarray(uneven),
        )

    def lag_column(self, design: Design, lag_s: float, window_s: float, powers: Floats) -> Floats:
        """Return how samples change with the error of the lag.

        Parameters
        ----------
        design : Design
            The design for this lag and window.
        lag_s, window_s : float
            Lag and window of the sensor, s.
        powers : array, shape (unknowns,)
            The unknowns as far as known.

        Returns
        -------
        array, shape (samples,)
            The changes, W for s.
        """
        left_w = self._seen_w(design, powers) if self.samples.low_pass else self._drawn_w(lag_s + window_s, powers)
        return np.asarray((left_w - self._drawn_w(lag_s, powers)) / window_s)

    def window_column(self, design: Design, lag_s: float, window_s: float, powers: Floats) -> Floats:
        """Return how samples change with the error of the window.

        Parameters
        ----------
        design : Design
            The design for this lag and window.
        lag_s, window_s : float
            Lag and window of the sensor, s.
        powers : array, shape (unknowns,)
            The unknowns as far as known.

        Returns
        -------
        array, shape (samples,)
            The changes, W for s.
        """
        if not self.samples.low_pass:
            return np.asarray((self._drawn_w(lag_s + window_s, powers) - self._seen_w(design, powers)) / window_s)
        step_s, shown = DIFFERENCE * window_s, []
        above_w = powers[design.families][self.timeline.activity.family] * self.slice_factor
        for constant_s in (window_s + step_s, window_s - step_s):
            of_slices, gaps = self.timeline.decayed(self.samples.time_s - lag_s, constant_s, above_w=above_w)
            shown.append(of_slices[:, 0] + gaps[:, 1:] @ (powers[1:3] - powers[0]))
        return np.asarray((shown[0] - shown[1]) / (2 * step_s))

    @staticmethod
    def _seen_w(design: Design, powers: Floats) -> Floats:
        """The samples without the drifts."""
        return np.asarray(design.columns[:, : design.families.stop] @ powers[: design.families.stop])

    def _drawn_w(self, before_s: float, powers: Floats) -> Floats:
        """The power so long before each sample."""
        at, step_s = self.samples.time_s - before_s, DIFFERENCE * self.samples.window_s
        sooner, later = self._energy_until(np.concatenate([at - step_s, at + step_s]), powers).reshape(2, -1)
        return np.asarray((later - sooner) / (2 * step_s))

    def _energy_until(self, time_s: Floats, powers: Floats) -> Floats:
        above_w = powers[3 : 3 + len(self.timeline.activity.names)]
        energy = self.timeline.energy_until(time_s, above_w[self.timeline.activity.family] * self.slice_factor)
        start = np.full(len(time_s), min(self.span[0], float(time_s.min())))
        below = self.timeline.gaps(start, time_s)[:, 1:]
        return np.asarray(energy + powers[0] * (time_s - start) + below @ (powers[1:3] - powers[0]))

    def _clock_factor(self, time_s: Floats) -> Floats:
        """What powers above the base are multiplied by for the clock at some times: 1 at the median clock."""
        clock = self.samples.clock_mhz
        if clock is None or not self.exponent:
            return np.ones(len(time_s))
        relative = np.interp(time_s, self.samples.time_s, clock) / float(np.median(clock))
        return np.asarray(np.maximum(relative, DEEPEST) ** self.exponent)

    def _drifts(self, time_s: Floats) -> Floats:
        """Slow changes of the base: cosines over the span, and the temperature where it was read and changed."""
        first, last = self.span
        count = int(min(MOST_DRIFTS, (last - first) / SLOWEST_S))
        place = np.clip((time_s - first) / max(last - first, 1e-9), 0.0, 1.0)
        columns = [np.cos(math.pi * number * place) for number in range(1, count + 1)]
        warm = self.samples.temperature_c
        if warm is not None and np.ptp(warm) >= SEEN_C:
            columns.append((np.interp(time_s, self.samples.time_s, warm) - float(np.mean(warm))) / WARMING_C)
        return np.column_stack(columns) if columns else np.zeros((len(time_s), 0))

    # --- joules -----------------------------------------------------------------------------------------------------

    def of_families(self, slices: npt.NDArray[np.bool_] | None = None) -> Floats:
        """Return the joules of each family as a linear function of the unknowns.

        Parameters
        ----------
        slices : array of bool, shape (slices,), or None, optional
            The slices that count; all by default.

        Returns
        -------
        array, shape (families, unknowns)
            The seconds that each unknown counts for.
        """
        timeline, activity = self.timeline, self.timeline.activity
        families, cells = len(activity.names), len(self._cell_drifts)
        some = slice(None) if slices is None else slices
        family = activity.family[some]
        owed_s = np.bincount(family * cells + self._cell[some], timeline.owed_s[some], families * cells)
        owed_s = owed_s.reshape(families, cells)
        places = np.arange(families)
        rows = np.zeros((families, self.count))
        rows[:, 0] = owed_s.sum(axis=1)
        rows[places, 3 + places] = np.bincount(family, (timeline.seconds * self.slice_factor)[some], families)
        rows[:, 3 + families : -2] = owed_s @ self._cell_drifts
        return rows

    def of_slices(self, powers: Floats) -> Floats:
        """Return the joules of each slice.

        Parameters
        ----------
        powers : array, shape (unknowns,)
            The unknowns.

        Returns
        -------
        array, shape (slices,)
            The joules.
        """
        timeline, families = self.timeline, len(self.timeline.activity.names)
        above_w = powers[3 : 3 + families][timeline.activity.family] * self.slice_factor
        base_w = (powers[0] + self._cell_drifts @ powers[3 + families : -2])[self._cell]
        return np.asarray(timeline.seconds * above_w + timeline.owed_s * base_w)

    def of_gaps(self, begin_s: float, end_s: float) -> Floats:
        """Return the joules of the gaps between two times as a linear function of the unknowns.

        Parameters
        ----------
        begin_s, end_s : float
            The times, s.

        Returns
        -------
        array, shape (unknowns,)
            The seconds that each unknown counts for.
        """
        cells = _cells(begin_s, end_s)
        gaps = self.timeline.gaps(cells[:-1], cells[1:])
        row = np.zeros(self.count)
        row[:3] = gaps.sum(axis=0)
        drifts = self._drifts((cells[1:] + cells[:-1]) / 2)
        row[self.count - 2 - drifts.shape[1] : -2] = gaps[:, 0] @ drifts
        return row


def _cells(begin_s: float, end_s: float) -> Floats:
    """Edges of cells of a span, in each of which drifts are taken for constant."""
    return np.linspace(begin_s, end_s, max(2, min(CELLS, round((end_s - begin_s) / CELL_S))))
