"""Finding a row by its codes in O(log n): one integer key of mixed radix per row.

Keys have several levels where 62 bits are too few for one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Keys = npt.NDArray[np.int64]
MAX_SPAN = 2**62


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
        rank = np.zeros(len(codes), dtype=np.int64)
        for level, run in enumerate(self._runs):
            key = rank * self._span[level]
            for weight, j in zip(self._radix[level].tolist(), run, strict=True):
                key += weight * codes[:, j].astype(np.int64)
            if level < len(self._runs) - 1:  # the table is sorted, so a new key begins wherever it changes
                new = np.concatenate([[False], key[1:] != key[:-1]])
                rank = np.cumsum(new, dtype=np.int64)
                key = key[np.concatenate([[True], new[1:]])]
            self._keys.append(key)

    def find(self, codes: Keys) -> Keys:
        """Rows of code vectors, shape (m, axes) -> (m,); -1 where there is none."""
        inside = ((codes >= 0) & (codes < self._sizes)).all(axis=1)
        rank = np.zeros(len(codes), dtype=np.int64)
        for run, weights, span, keys in zip(self._runs, self._radix, self._span, self._keys, strict=True):
            key = rank * span + codes[:, run.start : run.stop] @ weights
            rank = np.searchsorted(keys, key)
            rank[rank == len(keys)] = 0
            inside &= (keys[rank] if len(keys) else -1) == key
        return np.where(inside, rank, -1)
