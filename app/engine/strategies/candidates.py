"""The rows among which a model-based strategy looks for its next one: the whole space, or a pool where it is large."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from ..space.search_space import Rows, SearchSpace

WHOLE: Final = 20_000  # spaces up to this size are looked at as a whole
_RANDOM: Final = 3000  # a pool begins with so many random rows and the neighbours of the best
_MOST: Final = 2 * _RANDOM


class Candidates:
    """Rows in a fixed order, each open until it is asked for."""

    def __init__(self, space: SearchSpace, rng: np.random.Generator) -> None:
        self._space = space
        self._rng = rng
        self._asked = np.zeros(space.size, dtype=bool)
        self._whole = space.size <= WHOLE
        self._pooled = np.full(space.size, self._whole)
        self.rows: Rows = np.arange(space.size if self._whole else 0, dtype=np.int64)

    @property
    def exhausted(self) -> bool:
        """Every row of the space was asked for."""
        return bool(self._asked.all())

    @property
    def open(self) -> npt.NDArray[np.intp]:
        """Positions in `rows` of those not asked for."""
        return np.flatnonzero(~self._asked[self.rows])

    def close(self, rows: Sequence[int]) -> None:
        """These rows are asked for."""
        self._asked[np.asarray(rows, dtype=np.int64)] = True

    def renew(self, best: Sequence[int]) -> None:
        """Draw a new pool, around the best rows so far too. The whole space stays as it is."""
        if self._whole:
            return
        drawn = self._rng.integers(self._space.size, size=_RANDOM)
        pool = np.unique(np.concatenate([drawn, self._space.neighbours_of(best)[1]]))
        pool = pool[~self._asked[pool]]
        if not len(pool):
            pool = self._rng.permutation(np.flatnonzero(~self._asked))[:_RANDOM]
        self._pooled[self.rows] = False
        self._pooled[pool] = True
        self.rows = pool

    def around(self, row: int) -> Rows:
        """Add the neighbours of a row to the pool: the new ones, none where the pool is full or the space whole."""
        if self._whole or len(self.rows) >= _MOST:
            return np.empty(0, dtype=np.int64)
        near = self._space.neighbours(row)
        fresh: Rows = near[~(self._asked[near] | self._pooled[near])]
        self._pooled[fresh] = True
        self.rows = np.concatenate([self.rows, fresh])
        return fresh
