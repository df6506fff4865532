"""The valid rows nearest to continuous points. The distance is Euclidean over the axes' codes, each scaled to 0..1.

As the table is sorted, rows that lie together have much in common: each block of them knows its least and greatest
code on every axis. A point looks at the blocks that may hold its nearest row, the most promising first. That is exact,
costs next to no memory, and is as quick as a k-d tree over the whole table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .keys import KeyIndex

Rows = npt.NDArray[np.int64]
Reals = npt.NDArray[np.floating]
_JITTER = 1e-4  # of a code, so that ties fall to chance
_FIRST = 8  # blocks looked at before others are ruled out
_SORTED = 256  # blocks put in order at first


class NearestRows:
    """Snaps points to the rows of one table."""

    def __init__(self, codes: npt.NDArray[np.unsignedinteger], index: KeyIndex, sizes: Sequence[int]) -> None:
        self._codes = codes
        self._index = index
        self._last = np.asarray(sizes, dtype=np.int64) - 1
        self._axes = [axis for axis, size in enumerate(sizes) if size > 1]
        self._length = max(8, math.isqrt(len(codes)) // 16)  # rows of a block
        starts = np.arange(0, len(codes), self._length)
        self._low = np.ascontiguousarray(np.minimum.reduceat(codes, starts, axis=0).T)
        self._high = np.ascontiguousarray(np.maximum.reduceat(codes, starts, axis=0).T)

    def find(self, points: Reals, rng: np.random.Generator | None = None) -> Rows:
        """The nearest row to each point in code space, shape (m, axes) -> (m,); ties by `rng`, else always the same."""
        places = np.array(points, dtype=np.float64)
        if rng is not None:
            places += rng.uniform(-_JITTER, _JITTER, places.shape)
        rounded = np.clip(np.rint(places), 0, self._last).astype(np.int64)
        rows = self._index.find(rounded)
        for at in np.flatnonzero(rows < 0).tolist():
            rows[at] = self._nearest(places[at], rounded[at])
        return rows

    def _nearest(self, place: Reals, rounded: Rows) -> int:
        """The nearest row to one point that is not a row itself when it is rounded."""
        distances = [self._distances(place, axis) for axis in self._axes]
        bound = np.zeros(self._low.shape[1], dtype=np.float32)
        for axis, distance in zip(self._axes, distances, strict=True):
            bound += distance[np.clip(rounded[axis], self._low[axis], self._high[axis])]
        best, found = math.inf, -1
        looked_at = np.zeros(len(bound), dtype=np.bool_)
        promising = np.argpartition(bound, _SORTED)[:_SORTED] if len(bound) > _SORTED else np.arange(len(bound))
        while len(promising):
            order = promising[np.argsort(bound[promising])]
            start, count = 0, _FIRST
            while start < len(order) and bound[order[start]] < best:
                blocks = order[start : start + count]
                rows = (blocks[:, None] * self._length + np.arange(self._length)).ravel()
                rows = rows[rows < len(self._codes)]
                codes = self._codes[rows]
                total = np.zeros(len(rows), dtype=np.float32)
                for axis, distance in zip(self._axes, distances, strict=True):
                    total += distance[codes[:, axis]]
                nearest = int(total.argmin())
                if total[nearest] < best:
                    best, found = float(total[nearest]), int(rows[nearest])
                looked_at[blocks] = True
                start, count = start + count, min(2 * count, 1024)
            promising = np.flatnonzero((bound < best) & ~looked_at)
        return found

    def _distances(self, place: Reals, axis: int) -> npt.NDArray[np.float32]:
        """The squared distance of each code of an axis to the point along it."""
        steps = (np.arange(self._last[axis] + 1) - place[axis]) / self._last[axis]
        squared: npt.NDArray[np.float32] = np.square(steps).astype(np.float32)
        return squared
