"""The valid rows nearest to continuous points: a k-d tree, or for the largest tables branch and bound over their keys.

The distance is Euclidean over the axes' codes, each axis scaled to 0..1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from app.engine.space.keys import KeyIndex

Rows = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]
_TREE_CELLS = 2**25  # rows x axes up to which a tree is built, at 8 B each
_JITTER = 1e-7  # of a code, so that ties fall to chance
_BEAM = 8
_TOGETHER = 256  # points walked at once
_FRONTIER = 2**20  # beginnings followed at once; beyond that the points are taken apart


class NearestRows:
    """Snaps points to the rows of one table. The tree is built when the first point is not a row itself."""

    def __init__(self, codes: npt.NDArray[np.unsignedinteger], index: KeyIndex, sizes: Sequence[int]) -> None:
        self._codes = codes
        self._index = index
        self._last = np.asarray(sizes, dtype=np.int64) - 1
        self._span = np.maximum(1, self._last).astype(np.float64)
        self._tree: Any = None

    def find(self, points: npt.NDArray[np.floating], rng: np.random.Generator | None = None) -> Rows:
        """The nearest row to each point in code space, shape (m, axes) -> (m,); ties by `rng`, else always the same."""
        places: Reals = np.asarray(points, dtype=np.float64)
        if rng is not None:
            places = places + rng.uniform(-_JITTER, _JITTER, places.shape)
        rows = self._index.find(np.clip(np.rint(places), 0, self._last).astype(np.int64))
        missed = np.flatnonzero(rows < 0)
        if len(missed):
            search = self._by_tree if self._codes.size <= _TREE_CELLS else self._by_keys
            rows[missed] = search(places[missed])
        return rows

    def _by_tree(self, points: Reals) -> Rows:
        if self._tree is None:
            from scipy.spatial import cKDTree

            self._tree = cKDTree(self._codes / self._span)
        return np.asarray(self._tree.query(points / self._span)[1], dtype=np.int64)

    def _by_keys(self, points: Reals) -> Rows:
        found = [self._branch_and_bound(points[at : at + _TOGETHER]) for at in range(0, len(points), _TOGETHER)]
        return np.concatenate(found)

    def _branch_and_bound(self, points: Reals) -> Rows:
        """Down the sorted table axis by axis: a beam finds a good row, then whatever may lead nearer.

        Distances are counted beyond that to the nearest combination of values, valid or not, so that bounds are tight.
        """
        bound = np.full(len(points), np.inf)
        excess = [self._excess(points, axis) for axis in range(len(self._last))]
        walked = self._walk(excess, bound, beam=_BEAM)
        if walked is not None:
            np.minimum.at(bound, walked[0], walked[2])
            walked = self._walk(excess, bound + 1e-12)
        if walked is None and len(points) > 1:
            middle = len(points) // 2
            return np.concatenate([self._branch_and_bound(points[:middle]), self._branch_and_bound(points[middle:])])
        if walked is None:
            return self._scan(excess)
        at, rows, total = walked
        order = np.lexsort([rows, total, at])
        return rows[order[np.searchsorted(at[order], np.arange(len(points)))]]

    def _excess(self, points: Reals, axis: int) -> Reals:
        """What each code of an axis adds to a point's squared distance beyond the nearest code. Shape (m, codes)."""
        squared: Reals = ((np.arange(self._last[axis] + 1) - points[:, axis, None]) / self._span[axis]) ** 2
        squared -= squared.min(axis=1, keepdims=True)
        return squared

    def _walk(self, excess: list[Reals], bound: Reals, beam: int | None = None) -> tuple[Rows, Rows, Reals] | None:
        """(point, row, excess) of each row within its point's bound, or the best few; None where they are too many."""
        at, prefix, total = np.arange(len(bound)), np.zeros(len(bound), dtype=np.int64), np.zeros(len(bound))
        for axis, extra in enumerate(excess):
            if len(at) * extra.shape[1] > _FRONTIER:
                return None
            grown = total[:, None] + extra[at]
            which, code = np.nonzero(grown <= bound[at, None])
            prefix, exists = self._index.extend(prefix[which], axis, code)
            which, code, prefix = which[exists], code[exists], prefix[exists]
            at, total = at[which], grown[which, code]
            if beam is not None:
                order = np.lexsort([total, at])
                first = np.searchsorted(at[order], np.arange(len(bound)))
                best = order[np.arange(len(order)) - first[at[order]] < beam]
                at, prefix, total = at[best], prefix[best], total[best]
        return at, prefix, total

    def _scan(self, excess: list[Reals]) -> Rows:
        """The nearest row to one point, by looking at every row."""
        total = np.zeros(len(self._codes))
        for axis, extra in enumerate(excess):
            total += extra[0][self._codes[:, axis]]
        return np.array([total.argmin()], dtype=np.int64)
