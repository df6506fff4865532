"""Finding a row by its codes in O(log n): one integer key of mixed radix per row.

Keys have several levels where 62 bits are too few for one. As the table is sorted, the rows that begin with the same
codes lie together, so the same keys serve as a tree over the axes: see `KeyIndex.extend`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Keys = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
MAX_SPAN = 2**62
_BLOCK = 2**16  # keys made at once


def smallest_dtype(sizes: Sequence[int]) -> type[np.unsignedinteger]:
    """The smallest unsigned integer that holds every code of axes with so many values."""
    largest = max(sizes, default=1)
    return np.uint8 if largest <= 2**8 else np.uint16 if largest <= 2**16 else np.uint32


def levels(sizes: Sequence[int], rows: int) -> list[range]:
    """Split the axes into runs whose keys, with the rank of the run before them, fit into 62 bits."""
    runs: list[range] = []
    start, span = 0, 1
    for j, size in enumerate(sizes):
        if span * size > MAX_SPAN:
            runs.append(range(start, j))
            start, span = j, max(1, rows)
        span *= size
    runs.append(range(start, len(sizes)))
    return runs


def radix(sizes: Sequence[int]) -> Keys:
    """The weight of each axis, so that keys order as code vectors do."""
    weights = np.ones(len(sizes), dtype=np.int64)
    for j in range(len(sizes) - 2, -1, -1):
        weights[j] = weights[j + 1] * sizes[j + 1]
    return weights


class KeyIndex:
    """Row numbers of code vectors in a table that is sorted by code and holds no row twice."""

    def __init__(self, codes: npt.NDArray[np.unsignedinteger], sizes: Sequence[int]) -> None:
        self._sizes = np.asarray(sizes, dtype=np.int64)
        self._runs = levels(sizes, len(codes))
        self._radix = [radix([sizes[j] for j in run]) for run in self._runs]
        self._span = [int(np.prod([sizes[j] for j in run], dtype=np.int64)) for run in self._runs]
        self._keys: list[Keys] = []
        rank = np.zeros(1, dtype=np.int64)
        for level, run in enumerate(self._runs):
            key = np.empty(len(codes), dtype=np.int64)
            for start in range(0, len(codes), _BLOCK):
                block = slice(start, start + _BLOCK)
                key[block] = codes[block, run.start : run.stop] @ self._radix[level]
            key += rank * self._span[level]
            if level < len(self._runs) - 1:  # the table is sorted, so a new key begins wherever it changes
                new = np.concatenate([[False], key[1:] != key[:-1]])
                rank = np.cumsum(new, dtype=np.int64)
                key = key[np.concatenate([[True], new[1:]])]
            self._keys.append(key)

    def find(self, codes: Keys) -> Keys:
        """Rows of code vectors, shape (m, axes) -> (m,); -1 if there is none."""
        inside = ((codes >= 0) & (codes < self._sizes)).all(axis=1)
        rank = np.zeros(len(codes), dtype=np.int64)
        for run, weights, span, keys in zip(self._runs, self._radix, self._span, self._keys, strict=True):
            key = rank * span + codes[:, run.start : run.stop] @ weights
            rank = np.searchsorted(keys, key)
            rank[rank == len(keys)] = 0
            inside &= (keys[rank] if len(keys) else -1) == key
        return np.where(inside, rank, -1)

    def find_changed(self, rows: Keys, own: Keys, axis: Keys, code: Keys) -> Keys:
        """Rows that come of changing one axis of rows of the table; -1 if there is none.

        `own` are the codes of `rows`, shape (m, axes); row i is given code[i, k] on axis[k], for each k. A negative
        code means no change. Shapes (m,), (m, axes), (k,), (m, k) -> (m, k).
        """
        if len(self._runs) == 1:
            key = self._keys[0][rows][:, None] + (code - own[:, axis]) * self._radix[0][axis]
            places = np.searchsorted(self._keys[0], key)
            places[places == len(self._keys[0])] = 0
            return np.where((self._keys[0][places] == key) & (code >= 0), places, -1)
        changed = np.repeat(own[:, None, :], len(axis), axis=1)
        changed[:, np.arange(len(axis)), axis] = code
        return self.find(changed.reshape(-1, own.shape[1])).reshape(code.shape)

    def extend(self, prefix: Keys, axis: int, code: Keys) -> tuple[Keys, Mask]:
        """Prefixes of code vectors made longer by the code on the next axis, and whether any row begins so.

        A prefix of no axes is 0; one of all axes is the row number. Shapes (m,), (m,) -> (m,), (m,).
        """
        level = next(index for index, run in enumerate(self._runs) if axis < run.stop)
        run, keys = self._runs[level], self._keys[level]
        weight = int(self._radix[level][axis - run.start])
        key = prefix + code * weight
        place = np.searchsorted(keys, key)
        exists = (place < len(keys)) & (keys[np.minimum(place, len(keys) - 1)] - key < weight)
        if axis < run.stop - 1:
            return key, exists
        last = level == len(self._runs) - 1
        return place if last else place * self._span[level + 1], exists
