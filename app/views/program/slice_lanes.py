"""`SliceLane`: slices of one stream, or ranges of one depth, of which any stretch is summed up per pixel column.

The time that each key, a family or a path, takes in a column is exact, and its cost does not depend on how many slices
there are: slices are sorted by key, and each edge of a column is looked up among the begins of every key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from ...engine.profile.attributed import AttributedTrace

Ints = npt.NDArray[Any]
_MOST_STREAMS: Final = 5
_MOST_DEPTHS: Final = 4
_MOST_KEYS: Final = 60  # in a lane, which are looked up; those that took less come together as
OTHERS: Final = -1
_LOOK_UPS: Final = 60_000  # for one picture of a lane at most, some 5 ms


class SliceLane:
    """Times in ns after the first slice. `rows` are the places in the trace, by begin."""

    def __init__(self, title: str, rows: Ints, begin: Ints, lasts: Ints, key: Ints, *, ranges: bool = False) -> None:
        self.title, self.rows, self.ranges = title, rows, ranges
        self._last: tuple[object, tuple[Ints, npt.NDArray[np.float64]]] | None = None  # columns of the last call
        self.begin, self.end, self.key = begin, begin + lasts, key
        keys, place = np.unique(key, return_inverse=True)
        ranked = np.argsort(-np.bincount(place, lasts))
        self._keys = np.append(keys[ranked[:_MOST_KEYS]], np.full(int(len(keys) > _MOST_KEYS), OTHERS))
        rank = np.empty(len(keys), np.int64)
        rank[ranked] = np.minimum(np.arange(len(keys)), _MOST_KEYS)
        order = np.lexsort((begin, rank[place]))
        self._longest = int(lasts.max())
        self._far = int(self.end.max() - begin.min()) + 2
        self._origin = int(begin.min())
        place = rank[place][order]
        self._sorted = begin[order] - self._origin + place * self._far
        self._ends = self.end[order]
        self._until = np.concatenate(([0], np.cumsum(lasts[order])))
        self._first = np.searchsorted(place, np.arange(len(self._keys)))

    def columns(self, start: int, end: int, number: int) -> tuple[Ints, npt.NDArray[np.float64]]:
        """The key that takes most of each column, and the part of it in which anything runs; some may be joined."""
        if self._last is None or self._last[0] != (start, end, number):
            self._last = (start, end, number), self._columns(start, end, number)
        return self._last[1]

    def _columns(self, start: int, end: int, number: int) -> tuple[Ints, npt.NDArray[np.float64]]:
        joined = -(-number * len(self._keys) // _LOOK_UPS)
        edges = np.linspace(start, end, -(-number // joined) + 1).astype(np.int64)
        clipped = np.clip(edges - self._origin, 0, self._far - 1)
        place = np.searchsorted(self._sorted, clipped + np.arange(len(self._keys))[:, None] * self._far)
        over = np.clip(self._ends[np.maximum(place - 1, 0)] - edges, 0, None)
        busy = np.diff(self._until[place] - np.where(place > self._first[:, None], over, 0), axis=1)
        share = np.clip(busy.sum(axis=0) / np.maximum(np.diff(edges), 1), 0.0, 1.0)
        top = self._keys[busy.argmax(axis=0)]
        return np.repeat(top, joined)[:number], np.repeat(share, joined)[:number]

    def wide(self, start: int, end: int, least: float) -> tuple[Ints, Ints]:
        """The slices of which so many ns are in the window, as places in the lane, and how many ns those are."""
        if self._longest < least:
            return self.begin[:0], self.begin[:0]
        last = np.searchsorted(self.begin, end)
        first = max(0, int(np.searchsorted(self.begin, start)) - 1) if not self.ranges else 0
        inside = np.minimum(self.end[first:last], end) - np.maximum(self.begin[first:last], start)
        found = np.flatnonzero(inside >= least)
        return first + found, inside[found]

    def nearest(self, instant: int, reach: float) -> int | None:
        """The slice at an instant, else the nearest within reach, in ns, as its place in the lane."""
        after = int(np.searchsorted(self.begin, instant, "right"))
        near = [at for at in (after - 1, after) if 0 <= at < len(self.begin)]
        apart = {at: max(self.begin[at] - instant, instant - self.end[at], 0) for at in near}
        found = min(apart, key=lambda at: apart[at])
        return found if apart[found] <= reach else None


def lanes_of(attributed: AttributedTrace) -> tuple[SliceLane, ...]:
    """A lane for each depth of ranges, and one for each stream, the busiest first; beyond some, one for the rest."""
    trace, lanes = attributed.trace, []
    origin = int(trace.start_ns[0])
    depth = np.array([len(path) - 1 for path in trace.paths] or [0])[trace.range_path]
    by_begin = np.argsort(trace.range_start_ns, kind="stable")
    for level in range(_MOST_DEPTHS):
        rows = by_begin[depth[by_begin] == level]
        if len(rows):
            times = trace.range_start_ns[rows] - origin, trace.range_duration_ns[rows]
            title = f"Ranges, level {level + 1}" if level else "Ranges"
            lanes.append(SliceLane(title, rows, *times, trace.range_path[rows], ranges=True))
    streams, which = np.unique(trace.stream, return_inverse=True)
    ranked = np.argsort(-np.bincount(which, trace.duration_ns))
    groups = [(f"Stream {streams[one]}", [one]) for one in ranked[:_MOST_STREAMS]]
    if len(rest := ranked[_MOST_STREAMS:]):
        groups.append((f"{len(rest)} other streams", list(rest)))
    for title, members in groups:
        rows = np.flatnonzero(np.isin(which, members))
        times = trace.start_ns[rows] - origin, trace.duration_ns[rows]
        lanes.append(SliceLane(title, rows, *times, attributed.family[rows]))
    return tuple(lanes)
