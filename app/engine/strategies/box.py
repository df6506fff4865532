"""A search space as a box of real numbers, for methods that know nothing else."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from app.engine.arithmetic import column_of
from app.engine.space.search_space import Neighbourhood, Rows, SearchSpace

Reals = npt.NDArray[np.float64]
_REMEMBERED = 2**16  # cells


class Box:
    """One axis from 0 to 1 per parameter that varies, its values evenly spread in ascending order.

    Words keep the user's order. A point stands for the combination of values nearest to it, and where that is not
    valid for the valid row nearest to that combination.
    """

    def __init__(self, space: SearchSpace) -> None:
        self._space = space
        self._axes = [j for j, size in enumerate(space.axis_sizes) if size > 1]
        self._code_at = [_ascending(space, j) for j in self._axes]
        self._place_of = [np.argsort(codes) for codes in self._code_at]
        self._sorted = all((codes[1:] > codes[:-1]).all() for codes in self._code_at)
        self._row_of_cell: dict[bytes, int] = {}
        self.steps = np.array([space.axis_sizes[j] - 1 for j in self._axes], dtype=np.float64)  # along each axis

    @property
    def dimensions(self) -> int:
        return len(self._axes)

    def rows(self, points: Reals) -> list[int]:
        """The rows that points stand for, shape (m, dimensions). Points outside count as on the edge."""
        places = np.rint(np.clip(points, 0.0, 1.0) * self.steps).astype(np.int64)
        cells = [place.tobytes() for place in places]
        fresh = [at for at, cell in enumerate(cells) if cell not in self._row_of_cell]
        if fresh:
            if len(self._row_of_cell) + len(fresh) > _REMEMBERED:
                self._row_of_cell.clear()
                fresh = list(range(len(cells)))
            found = self._space.nearest_rows(self._codes(places[fresh]).astype(np.float64))
            self._row_of_cell.update(zip([cells[at] for at in fresh], found.tolist(), strict=True))
        return [self._row_of_cell[cell] for cell in cells]

    def neighbours(self, row: int, kind: Neighbourhood) -> list[int]:
        """The rows next to a row."""
        return [int(near) for near in self._space.neighbours(row, kind)]

    def points(self, rows: Rows | list[int]) -> Reals:
        """Where rows lie, shape (m,) -> (m, dimensions)."""
        places = self._space.codes[np.asarray(rows, dtype=np.int64)][:, self._axes].astype(np.int64)
        if not self._sorted:
            places = np.stack([place[codes] for place, codes in zip(self._place_of, places.T, strict=True)], axis=1)
        return np.asarray(places / self.steps)

    def _codes(self, places: Rows) -> Rows:
        codes = np.zeros((len(places), len(self._space.axis_sizes)), dtype=np.int64)
        if not self._sorted:
            places = np.stack([code[place] for code, place in zip(self._code_at, places.T, strict=True)], axis=1)
        codes[:, self._axes] = places
        return codes


def _ascending(space: SearchSpace, axis: int) -> Rows:
    """The codes of a parameter by ascending value."""
    values = column_of(space.parameters[axis].values)
    return np.argsort(values, kind="stable") if values.dtype.kind in "bif" else np.arange(len(values))
