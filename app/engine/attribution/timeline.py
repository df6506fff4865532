"""`Timeline`: how much of any window of time falls to each family of an activity, and to the gaps.

Where n slices of one sort run at once, time passes for each of them at 1/n of its pace: U(t) is that pace, integrated,
so that a slice from s to e has U(min(e, b)) - U(max(s, a)) seconds of a window [a, b]. What has passed by the edges of
all windows is added up over the slices, so that the cost is that of the slices and of the edges, not their product.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from .activity import Activity, Floats, Ints

STAGES_S: Final = (0.1, 1.0)  # into a gap, after which a board may lower its power: it waits, rests, sleeps
FORGOTTEN: Final = 20.0  # time constants, after which nothing is left of what ran
CELLS: Final = 1_000_000  # of seconds by edges and families, that are held at a time


class Timeline:
    """The slices of an activity on one axis of time. Times in s, on the activity's clock.

    Attributes
    ----------
    seconds : array, shape (slices,)
        The time of each slice, divided where slices overlap.
    owed_s : array, shape (slices,)
        The same without the time of copies and sets beside a kernel: the power that the board draws even between
        launches falls to the kernel.
    """

    def __init__(self, activity: Activity) -> None:
        self.activity = activity
        count = len(activity)
        self._of_kernel = np.asarray([kind == "kernel" for kind in activity.kinds], dtype=bool)
        kernel = self._of_kernel[activity.family] if count else np.zeros(0, dtype=bool)
        edges = np.concatenate([activity.begin_s, activity.end_s])
        order = np.argsort(edges, kind="stable")
        self._edges = edges[order]
        place = np.empty(2 * count, dtype=np.int32)
        place[order] = np.arange(2 * count, dtype=np.int32)
        self._enters, self._leaves = enters, leaves = place[:count], place[count:]
        step = np.where(order < count, 1, -1).astype(np.int32)
        of_kernel = kernel[order % max(count, 1)]
        lasts = np.diff(self._edges)
        kernels, others = (np.cumsum(step * of)[:-1] for of in (of_kernel, ~of_kernel))
        self._kernels, self._others = (
            1.0 / np.pad(np.maximum(each, 1), 1, constant_values=1) for each in (kernels, others)
        )
        del edges, order, place, step, of_kernel
        self._of_kernels = _cumulated(lasts / np.maximum(kernels, 1))
        self._of_others = _cumulated(lasts / np.maximum(others, 1))
        alone = _cumulated(lasts / np.maximum(others, 1) * (kernels == 0))
        self._entered = np.where(kernel, self._of_kernels[enters], self._of_others[enters])
        self.seconds = np.where(kernel, self._of_kernels[leaves], self._of_others[leaves]) - self._entered
        self.owed_s = np.where(kernel, self.seconds, alone[leaves] - alone[enters])
        self._last_end = np.maximum.accumulate(activity.end_s) if count else activity.end_s
        empty = (kernels == 0) & (others == 0)
        self._empty, self._waited = np.pad(empty, 1), _cumulated(lasts * empty)
        long = np.flatnonzero(empty & (lasts > STAGES_S[0]))
        self._gap_nodes, self._gap_seconds = self._stages(self._edges[long], self._edges[long + 1])
        paces = np.diff(self._gap_seconds, axis=0) / np.maximum(np.diff(self._gap_nodes)[:, None], 1e-12)
        self._gap_paces = np.pad(paces, ((1, 1), (0, 0)))

    @staticmethod
    def _stages(begin: Floats, end: Floats) -> tuple[Floats, Floats]:
        """Times at which long gaps go over to their next stage, and the seconds of each of these by then."""
        nodes = np.stack([*(np.minimum(begin + stage, end) for stage in STAGES_S), end], axis=1)
        lasts = np.zeros((len(begin), len(STAGES_S) + 1, len(STAGES_S)))
        for stage in range(len(STAGES_S)):
            lasts[:, stage + 1, stage] = nodes[:, stage + 1] - nodes[:, stage]
        return nodes.ravel(), np.cumsum(lasts.reshape(-1, len(STAGES_S)), axis=0)

    def gaps(self, begin_s: Floats, end_s: Floats) -> Floats:
        """Return the seconds of each window in which nothing ran, by the stage of the gap.

        Parameters
        ----------
        begin_s, end_s : float array, shape (n,)
            The windows, s.

        Returns
        -------
        array, shape (n, 3)
            The seconds, of gaps up to 0.1 s, from there up to 1 s, and beyond.
        """
        seconds = np.zeros((len(begin_s), len(STAGES_S) + 1))
        if len(self._edges):
            seconds[:, 0] = _between(begin_s, end_s, self._edges, self._waited)
        if len(self._gap_nodes):
            for stage, by_then in enumerate(self._gap_seconds.T, 1):
                seconds[:, stage] = _between(begin_s, end_s, self._gap_nodes, by_then)
            seconds[:, 0] -= seconds[:, 1:].sum(axis=1)
        return seconds

    def overlaps(self, begin_s: Floats, end_s: Floats, moved: Sequence[tuple[float, float]] = ((0.0, 1.0),)) -> Floats:
        """Return the seconds of each window that fall to each family.

        Parameters
        ----------
        begin_s, end_s : array, shape (n,)
            The windows, s, ascending; they may overlap.
        moved : sequence of (float, float), optional
            By how much windows are moved, s, and the weights with which what they then hold is added up.

        Returns
        -------
        array, shape (n, families)
            The seconds.
        """
        activity, families = self.activity, len(self.activity.names)
        seconds = np.zeros((len(begin_s), families))
        at_a_time = max(1, CELLS // (2 * len(moved) * max(1, families)))
        for first in range(0, len(begin_s), at_a_time):
            some = slice(first, first + at_a_time)
            edges = np.concatenate([edge[some] + off for off, _ in moved for edge in (begin_s, end_s)])
            order = np.argsort(edges, kind="stable")
            by_then = self._passed(edges[order], activity.family, families)
            place = np.empty(len(order), dtype=np.int64)
            place[order] = np.arange(len(order))
            for (begins, ends), (_, weight) in zip(place.reshape(len(moved), 2, -1), moved, strict=True):
                seconds[some] += weight * (by_then[ends] - by_then[begins])
        return seconds

    def decayed(
        self,
        time_s: Floats,
        constant_s: float,
        moved: Sequence[tuple[float, float]] = ((0.0, 1.0),),
        above_w: Floats | None = None,
    ) -> tuple[Floats, Floats]:
        """Return what a low-pass of first order shows at some times: shares of families, or their power, and of gaps.

        Parameters
        ----------
        time_s : array, shape (n,)
            The times, s, ascending.
        constant_s : float
            The time constant, s.
        moved : sequence of (float, float), optional
            By how much the times are moved, s, and the weights with which what is then shown is added up.
        above_w : array, shape (slices,), optional
            The power of each slice, W: what is shown is that of all slices together.

        Returns
        -------
        families : array, shape (n, families), or (n, 1) with `above_w`
            The shares, or W.
        gaps : array, shape (n, 3)
            The shares of gaps up to 0.1 s, from there up to 1 s, and beyond.
        """
        families = len(self.activity.names) if above_w is None else 1
        family = self.activity.family if above_w is None else np.zeros(len(above_w), dtype=np.int32)
        shown, gaps = np.zeros((len(time_s), families)), np.zeros((len(time_s), len(STAGES_S) + 1))
        at_a_time = max(1, CELLS // max(1, families))
        for first in range(0, len(time_s), at_a_time):
            some = slice(first, first + at_a_time)
            for off, weight in moved:
                times = time_s[some] + off
                times = np.concatenate([times[:1] - FORGOTTEN * constant_s, times])
                axis = _DecayingTime(self._edges, times, constant_s)
                passed = self._passed(times, family, families, above_w, axis)
                shown[some] += weight * axis.shown(passed)
                waited = [axis.until(self._empty)[1]]
                if len(self._gap_nodes):
                    long = _DecayingTime(self._gap_nodes, times, constant_s)
                    waited += [long.until(paces)[1] for paces in self._gap_paces.T]
                    waited[0] = waited[0] - sum(waited[1:])
                gaps[some, : len(waited)] += weight * axis.shown(np.stack(waited, axis=1))
        return shown, gaps

    def energy_until(self, time_s: Floats, above_w: Floats) -> Floats:
        """Return the energy above the gaps' that slices would have drawn by some times.

        Parameters
        ----------
        time_s : array, shape (n,)
            The times, s.
        above_w : array, shape (slices,)
            The power of each slice above that of the gaps, W.

        Returns
        -------
        array, shape (n,)
            The energies from any time before the first of these, J.
        """
        energy, order = np.empty(len(time_s)), np.argsort(time_s, kind="stable")
        energy[order] = self._passed(time_s[order], np.zeros(len(above_w), dtype=np.int32), 1, above_w)[:, 0]
        return energy

    def _passed(
        self,
        time_s: Floats,
        column: Ints,
        columns: int,
        weight: Floats | None = None,
        axis: _DecayingTime | None = None,
    ) -> Floats:
        """The seconds of slices by each of some ascending times, by column: from any time before the first of them.

        With an axis of decaying time, these are seconds on that.
        """
        activity, count = self.activity, len(time_s)
        near = slice(
            int(np.searchsorted(self._last_end, time_s[0])), int(np.searchsorted(activity.begin_s, time_s[-1]))
        )
        column, end_s = column[near], activity.end_s[near]
        if axis is None:
            entered, seconds = self._entered[near], self.seconds[near]
            of_kernels, of_others = (
                np.interp(time_s, self._edges, passed) for passed in (self._of_kernels, self._of_others)
            )
        else:
            enters, leaves = (axis.place(edges[near]) for edges in (self._enters, self._leaves))
            (kernels, of_kernels), (others, of_others) = (axis.until(pace) for pace in (self._kernels, self._others))
            kernel = self._of_kernel[activity.family[near]]
            entered = np.where(kernel, kernels[enters], others[enters])
            seconds = np.where(kernel, kernels[leaves], others[leaves]) - entered
        if weight is not None:
            weight = weight[near]
            seconds = seconds * weight
        begun = np.searchsorted(activity.begin_s[near], time_s, side="right")
        since = np.repeat(np.arange(count + 1), np.diff(begun, prepend=0, append=len(column)))
        cut = np.flatnonzero(end_s > np.append(time_s, np.inf)[since])  # slices that run at one of the times, or more
        begin, end = since[cut], np.searchsorted(time_s, end_s[cut])
        since[cut] = end
        passed = np.asarray(np.bincount(since * columns + column, seconds, (count + 1) * columns), dtype=np.float64)
        passed = passed[: count * columns].reshape(count, columns)
        np.cumsum(passed, axis=0, out=passed)
        pieces = end - begin
        running = np.repeat(cut, pieces)
        at = np.arange(len(running)) + np.repeat(begin - np.cumsum(pieces) + pieces, pieces)
        kernel = self._of_kernel[activity.family[near][running]]
        part = np.where(kernel, of_kernels[at], of_others[at]) - entered[running]
        np.add.at(passed, (at, column[running]), part if weight is None else part * weight[running])
        return passed


class _DecayingTime:
    """Time as a low-pass of first order counts it: each moment as much as it is shown at the next of some times."""

    def __init__(self, edges: Floats, time_s: Floats, constant_s: float) -> None:
        first, last = np.searchsorted(edges, time_s[0]), np.searchsorted(edges, time_s[-1], side="right")
        at = np.searchsorted(edges[first:last], time_s)
        points = np.insert(edges[first:last], at, time_s)
        self._first, self._last = int(first), int(last)
        self._of_time = at + np.arange(len(at))
        self._of_edge = np.ones(len(points), dtype=bool)
        self._of_edge[self._of_time] = False
        until = np.repeat(np.append(time_s, np.inf), np.diff(self._of_time, prepend=0, append=len(points)))[:-1]
        self._pieces = np.exp((points[1:] - until) / constant_s) * -np.expm1(-np.diff(points) / constant_s)
        self._time_s, self._constant_s = time_s, constant_s

    def place(self, edges: Ints) -> Ints:
        """Return the places of edges in what `until` returns."""
        return np.clip(edges - self._first + 1, 0, self._last - self._first + 1)

    def until(self, paces: Floats) -> tuple[Floats, Floats]:
        """Return what has passed at a pace by each edge (the first and last time at the ends), and by each time.

        The paces are those before the first of all edges, between edges, and behind the last.
        """
        pace = paces[self._first : self._last + 1][np.cumsum(self._of_edge)[:-1]]
        by_then = _cumulated(self._pieces * pace)
        return np.concatenate([[0.0], by_then[self._of_edge], by_then[-1:]]), by_then[self._of_time]

    def shown(self, passed: Floats) -> Floats:
        """Return what the low-pass shows at all times but the first, from what has passed by each."""
        fresh = np.diff(passed, axis=0)
        result, time_s = fresh.copy(), self._time_s[1:]
        for back in range(1, len(time_s)):
            left = np.exp((time_s[:-back] - time_s[back:]) / self._constant_s)
            if left.max() < math.exp(-FORGOTTEN):
                break
            result[back:] += left[:, None] * fresh[:-back]
        return result


def _cumulated(values: Floats) -> Floats:
    return np.concatenate([[0.0], np.cumsum(values)])


def _between(begin_s: Floats, end_s: Floats, edges: Floats, by_then: Floats) -> Floats:
    return np.asarray(np.interp(end_s, edges, by_then) - np.interp(begin_s, edges, by_then))
