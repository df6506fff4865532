"""Neighbours of many rows at once: candidates by their keys, looked up in the sorted table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from ..expressions.arithmetic import Column
from .keys import KeyIndex

Rows = npt.NDArray[np.int64]
Neighbourhood = Literal["hamming", "adjacent", "strictly_adjacent"]
_CANDIDATES = 2**20  # looked up at once


class Neighbours:
    """Who is near whom in one table. `values` has each axis's values by code; words keep the user's order."""

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
