"""`Timeline`: how much of any window of time falls to each family of an activity, and to the gaps.

Where n slices of one sort run at once, time passes for each of them at 1/n of its pace: U(t) is that pace, integrated,
so that a slice from s to e has U(min(e, b)) - U(max(s, a)) seconds of a window [a, b]. Slices are cut at the edges of
all windows, so that the cost is that of the slices and of the edges, not their product.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from .activity import Activity, Floats

STAGES_S: Final = (0.1, 1.0)  # into a gap, after which a board may lower its power: it waits, rests, sleeps
CELLS: Final = 2_000_000  # of shares between edges, that are held at a time


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
        kernel = np.asarray([kind == "kernel" for kind in activity.kinds], dtype=bool)
        self._kernel = kernel[activity.family] if len(activity) else np.zeros(0, dtype=bool)
        self._edges = np.unique(np.concatenate([activity.begin_s, activity.end_s]))
        self._enters = np.searchsorted(self._edges, activity.begin_s)
        self._leaves = np.searchsorted(self._edges, activity.end_s)
        lasts = np.diff(self._edges)
        kernels, others = (np.round(self._at_once(of * 1.0)) for of in (self._kernel, ~self._kernel))
        self._per_kernel, self._per_other = 1.0 / np.maximum(kernels, 1.0), 1.0 / np.maximum(others, 1.0)
        self._of_kernels = _cumulated(self._per_kernel * lasts)
        self._of_others = _cumulated(self._per_other * lasts)
        alone = _cumulated(self._per_other * (kernels == 0) * lasts)
        self.seconds = self._between(self._of_kernels, self._of_others)
        self.owed_s = self._between(self._of_kernels, alone)
        self._last_end = np.maximum.accumulate(activity.end_s) if len(activity) else activity.end_s
        self._gap_nodes, self._gap_seconds = self._stages(kernels + others == 0)

    def _at_once(self, weights: Floats) -> Floats:
        """The sum of the weights of the slices that run in each piece between edges."""
        count = len(self._edges)
        change = np.bincount(self._enters, weights, count) - np.bincount(self._leaves, weights, count)
        return np.asarray(np.cumsum(change)[:-1]) if count else np.zeros(0)

    def _between(self, of_kernels: Floats, of_others: Floats) -> Floats:
        """What has accumulated over each slice."""
        return np.where(
            self._kernel,
            of_kernels[self._leaves] - of_kernels[self._enters],
            of_others[self._leaves] - of_others[self._enters],
        )

    def _stages(self, empty: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """Times at which gaps go over to their next stage, and the seconds of each stage by then."""
        begin, end = self._edges[:-1][empty], self._edges[1:][empty]
        nodes = np.stack([begin, *(np.minimum(begin + stage, end) for stage in STAGES_S), end], axis=1)
        lasts = np.zeros((len(begin), len(STAGES_S) + 2, len(STAGES_S) + 1))
        for stage in range(len(STAGES_S) + 1):
            lasts[:, stage + 1, stage] = nodes[:, stage + 1] - nodes[:, stage]
        return nodes.ravel(), np.cumsum(lasts.reshape(-1, len(STAGES_S) + 1), axis=0)

    def gaps(self, begin_s: Floats, end_s: Floats) -> Floats:
        """Return the seconds of each window in which nothing ran, by the stage of the gap.

        Parameters
        ----------
        begin_s, end_s : array, shape (n,)
            The windows, s.

        Returns
        -------
        array, shape (n, 3)
            The seconds, of gaps up to 0.1 s, from there up to 1 s, and beyond.
        """
        if not len(self._gap_nodes):
            return np.zeros((len(begin_s), len(STAGES_S) + 1))
        by_stage = [
            np.interp(end_s, self._gap_nodes, seconds) - np.interp(begin_s, self._gap_nodes, seconds)
            for seconds in self._gap_seconds.T
        ]
        return np.column_stack(by_stage)

    def overlaps(self, begin_s: Floats, end_s: Floats) -> Floats:
        """Return the seconds of each window that fall to each family.

        Parameters
        ----------
        begin_s, end_s : array, shape (n,)
            The windows, s, ascending; they may overlap.

        Returns
        -------
        array, shape (n, families)
            The seconds.
        """
        families = len(self.activity.names)
        seconds = np.zeros((len(begin_s), families))
        at_a_time = max(1, CELLS // (2 * max(1, families)))
        for first in range(0, len(begin_s), at_a_time):
            some = slice(first, first + at_a_time)
            seconds[some] = self._some_overlaps(begin_s[some], end_s[some])
        return seconds

    def _some_overlaps(self, begin_s: Floats, end_s: Floats) -> Floats:
        activity, families = self.activity, len(self.activity.names)
        edges = np.unique(np.concatenate([begin_s, end_s]))
        near = slice(int(np.searchsorted(self._last_end, edges[0])), int(np.searchsorted(activity.begin_s, edges[-1])))
        family = activity.family[near]
        begin, end = (np.clip(of[near], edges[0], edges[-1]) for of in (activity.begin_s, activity.end_s))
        first = np.searchsorted(edges, begin, side="right") - 1
        pieces = np.maximum(np.searchsorted(edges, end, side="left") - first, 0)
        cut = np.repeat(np.arange(len(family)), pieces)
        cell = first[cut] + np.arange(len(cut)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        from_s, to_s = np.maximum(begin[cut], edges[cell]), np.minimum(end[cut], edges[cell + 1])
        kernel = self._kernel[near][cut]
        lasts = np.empty(len(cut))
        for of, pace in ((kernel, self._of_kernels), (~kernel, self._of_others)):
            lasts[of] = np.interp(to_s[of], self._edges, pace) - np.interp(from_s[of], self._edges, pace)
        cells = np.bincount(cell * families + family[cut], lasts, (len(edges) - 1) * families)
        by_then = np.zeros((len(edges), families))
        np.cumsum(cells.reshape(-1, families), axis=0, out=by_then[1:])
        return np.asarray(by_then[np.searchsorted(edges, end_s)] - by_then[np.searchsorted(edges, begin_s)])

    def energy_until(self, time_s: Floats, above_w: Floats, slice_factor: Floats) -> Floats:
        """Return the energy above the gaps' that a power of each family would have drawn by some times.

        Parameters
        ----------
        time_s : array, shape (n,)
            The times, s.
        above_w : array, shape (families,)
            The power of each family above that of the gaps, W.
        slice_factor : array, shape (slices,)
            What that power is multiplied by in each slice.

        Returns
        -------
        array, shape (n,)
            The energies, J.
        """
        of_slice = above_w[self.activity.family] * slice_factor
        power = self._at_once(of_slice * self._kernel) * self._per_kernel
        power += self._at_once(of_slice * ~self._kernel) * self._per_other
        return np.asarray(np.interp(time_s, self._edges, _cumulated(power * np.diff(self._edges))))


def _cumulated(values: Floats) -> Floats:
    return np.concatenate([[0.0], np.cumsum(values)])
