"""A search space as a box of real numbers, for methods that know nothing else."""

from __future__ import annotations

from dataclasses import replace

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
        self._by_value, self._row_of = _by_value(space)
        self._axes = [j for j, size in enumerate(space.axis_sizes) if size > 1]
        self._row_of_cell: dict[bytes, int] = {}
        self.steps = np.array([space.axis_sizes[j] - 1 for j in self._axes], dtype=np.float64)  # along each axis
        self._place_of = None if self._row_of is None else np.argsort(self._row_of)

    @property
    def dimensions(self) -> int:
        return len(self._axes)

    def rows(self, points: Reals) -> list[int]:
        """The rows that points stand for, shape (m, dimensions). Points outside count as on the edge."""
        places = np.rint(np.clip(points, 0.0, 1.0) * self.steps)
        cells = [place.tobytes() for place in places]
        fresh = [at for at, cell in enumerate(cells) if cell not in self._row_of_cell]
        if fresh:
            if len(self._row_of_cell) + len(fresh) > _REMEMBERED:
                self._row_of_cell.clear()
                fresh = list(range(len(cells)))
            codes = np.zeros((len(fresh), len(self._space.axis_sizes)))
            codes[:, self._axes] = places[fresh]
            found = self._by_value.nearest_rows(codes)
            if self._row_of is not None:
                found = self._row_of[found]
            self._row_of_cell.update(zip([cells[at] for at in fresh], found.tolist(), strict=True))
        return [self._row_of_cell[cell] for cell in cells]

    def points(self, rows: Rows | list[int]) -> Reals:
        """Where rows lie, shape (m,) -> (m, dimensions)."""
        at = np.asarray(rows, dtype=np.int64)
        if self._place_of is not None:
            at = self._place_of[at]
        return np.asarray(self._by_value.codes[at][:, self._axes] / self.steps)

    def neighbours(self, row: int, kind: Neighbourhood) -> list[int]:
        """The rows next to a row."""
        return [int(near) for near in self._space.neighbours(row, kind)]


def _by_value(space: SearchSpace) -> tuple[SearchSpace, Rows | None]:
    """The space with every parameter's values in ascending order, and which row each of its rows is; None: the same."""
    columns = [column_of(parameter.values) for parameter in space.parameters]
    orders = [
        np.argsort(column, kind="stable") if column.dtype.kind in "bif" else np.arange(len(column))
        for column in columns
    ]
    if all((order[1:] > order[:-1]).all() for order in orders):
        return space, None
    codes = np.stack([np.argsort(order)[space.codes[:, j]] for j, order in enumerate(orders)], axis=1)
    row_of = np.lexsort(codes.T[::-1])
    parameters = tuple(
        replace(parameter, values=tuple(parameter.values[at] for at in order))
        for parameter, order in zip(space.parameters, orders, strict=True)
    )
    return replace(space, parameters=parameters, codes=codes[row_of].astype(space.codes.dtype)), row_of
