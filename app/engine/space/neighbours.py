"""The rows near other rows, and the rows nearest to points, in one sorted table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from ..expressions.arithmetic import Column
from .keys import KeyIndex

Rows = npt.NDArray[np.int64]
Reals = npt.NDArray[np.floating]
Neighbourhood = Literal["hamming", "adjacent", "strictly_adjacent"]
_CANDIDATES = 2**20  # looked up at once
_JITTER = 1e-4  # of a code, so that ties are broken by chance
_FIRST = 8  # blocks searched before others are ruled out
_SORTED = 256  # blocks put in order at first


class Neighbours:
    """Rows near rows: candidates are looked up by their keys.

    `values` has each axis's values by code; words keep the user's order.
    """

    def __init__(self, codes: npt.NDArray[np.unsignedinteger], index: KeyIndex, values: Sequence[Column]) -> None:
        self._codes = codes
        self._index = index
        self._sizes = [len(column) for column in values]
        self._every_axis = np.repeat(np.arange(len(values), dtype=np.int64), self._sizes)
        self._every_code = np.concatenate([np.arange(size, dtype=np.int64) for size in self._sizes])
        self._below, self._above = _steps(values)
        self._start = np.cumsum([0, *self._sizes[:-1]], dtype=np.int64)  # of each axis, in the arrays above

    def of_rows(self, rows: Rows, kind: Neighbourhood) -> tuple[Rows, Rows]:
        """(at, near): near[k] is a neighbour of rows[at[k]]; `at` ascends."""
        find = {"hamming": self._hamming, "adjacent": self._adjacent, "strictly_adjacent": self._strictly_adjacent}
        candidates = {
            "hamming": len(self._every_code),
            "adjacent": 2 * len(self._sizes),
            "strictly_adjacent": 3 ** min(len(self._sizes), 20),
        }
        step = max(1, _CANDIDATES // candidates[kind])
        found = [find[kind](rows[start : start + step], start) for start in range(0, len(rows), step)]
        if not found:
            return rows[:0], rows[:0]
        return np.concatenate([at for at, _ in found]), np.concatenate([near for _, near in found])

    def _hamming(self, rows: Rows, start: int) -> tuple[Rows, Rows]:
        own = self._codes[rows].astype(np.int64)
        code = np.where(own[:, self._every_axis] == self._every_code, -1, self._every_code)
        return self._changed(rows, own, self._every_axis, code, start)

    def _adjacent(self, rows: Rows, start: int) -> tuple[Rows, Rows]:
        own = self._codes[rows].astype(np.int64)
        place = own + self._start
        code = np.stack([self._below[place], self._above[place]], axis=2).reshape(len(rows), -1)
        return self._changed(rows, own, np.repeat(np.arange(len(self._sizes)), 2), code, start)

    def _changed(self, rows: Rows, own: Rows, axis: Rows, code: Rows, start: int) -> tuple[Rows, Rows]:
        found = self._index.find_changed(rows, own, axis, code)
        at, column = np.nonzero(found >= 0)
        return at + start, found[at, column]

    def _strictly_adjacent(self, rows: Rows, start: int) -> tuple[Rows, Rows]:
        """Down the tree of codes, axis by axis: only beginnings that some row has are followed."""
        at, prefix = np.arange(len(rows)), np.zeros(len(rows), dtype=np.int64)
        for axis, first in enumerate(self._start.tolist()):
            own = self._codes[rows[at], axis].astype(np.int64)
            code = np.stack([self._below[first + own], own, self._above[first + own]], axis=1)
            which, choice = np.nonzero(code >= 0)
            prefix, exists = self._index.extend(prefix[which], axis, code[which, choice])
            at, prefix = at[which[exists]], prefix[exists]
        other = prefix != rows[at]
        return at[other] + start, prefix[other]


def _steps(values: Sequence[Column]) -> tuple[Rows, Rows]:
    """For each code of each axis, axis after axis: the codes one step below and above in value order, or -1."""
    below: list[Rows] = []
    above: list[Rows] = []
    for column in values:
        order = np.argsort(column, kind="stable") if column.dtype.kind in "bif" else np.arange(len(column))
        down, up = np.full(len(column), -1, dtype=np.int64), np.full(len(column), -1, dtype=np.int64)
        down[order[1:]], up[order[:-1]] = order[:-1], order[1:]
        below.append(down)
        above.append(up)
    return np.concatenate(below), np.concatenate(above)


class NearestRows:
    """The valid rows nearest to points. The distance is Euclidean over the axes' codes, each scaled to 0..1.

    As the table is sorted, rows close to each other in it have much in common: for each block of them, the least and
    the greatest code on every axis are kept. For a point, the blocks that may hold its nearest row are searched, the
    most promising first. That is exact, needs next to no memory, and is as fast as a k-d tree over the whole table.
    """

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
        searched = np.zeros(len(bound), dtype=np.bool_)
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
                searched[blocks] = True
                start, count = start + count, min(2 * count, 1024)
            promising = np.flatnonzero((bound < best) & ~searched)
        return found

    def _distances(self, place: Reals, axis: int) -> npt.NDArray[np.float32]:
        """The squared distance of each code of an axis to the point along it."""
        steps = (np.arange(self._last[axis] + 1) - place[axis]) / self._last[axis]
        squared: npt.NDArray[np.float32] = np.square(steps).astype(np.float32)
        return squared
