"""A search space as a box of real numbers, for continuous optimisers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..space.arithmetic import column_of
from ..space.search_space import Rows, SearchSpace

Reals = npt.NDArray[np.float64]
_REMEMBERED = 2**16  # cells
_ANCHORS = 2048  # rows


class Box:
    """One axis from 0 to 1 per parameter that varies, its values evenly spread in ascending order.

    Words keep the user's order. A point stands for the combination of values nearest to it; where that is not valid,
    for the nearest valid one that differs in one parameter; and if there is none, for a valid one near by that has
    as many of its values as possible.
    """

    def __init__(self, space: SearchSpace) -> None:
        self._space = space
        self._by_value, self._row_of = _by_value(space)
        self._place_of = None if self._row_of is None else np.argsort(self._row_of)
        self._axes = np.flatnonzero(np.array(space.axis_sizes) > 1)
        sizes = np.array(space.axis_sizes)[self._axes]
        self.steps = (sizes - 1).astype(np.float64)  # along each axis
        self._every_axis = np.repeat(np.arange(len(sizes)), sizes)
        self._every_place = np.arange(len(self._every_axis)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        self._anchors = np.unique(np.linspace(0, space.size - 1, _ANCHORS).astype(np.int64))
        self._anchored = self._by_value.codes[self._anchors][:, self._axes].astype(np.int64)
        self._row_of_cell: dict[bytes, int] = {}

    @property
    def dimensions(self) -> int:
        return len(self._axes)

    def rows(self, points: Reals) -> list[int]:
        """The rows that points stand for.

        Parameters
        ----------
        points : array, shape (m, dimensions)
            Points of the box, each coordinate from 0 to 1; those outside count as on the edge.

        Returns
        -------
        list of int
            The row of each.
        """
        places = np.rint(np.clip(points, 0.0, 1.0) * self.steps).astype(np.int64)
        cells = [place.tobytes() for place in places]
        fresh = [index for index, cell in enumerate(cells) if cell not in self._row_of_cell]
        if fresh:
            if len(self._row_of_cell) + len(fresh) > _REMEMBERED:
                self._row_of_cell.clear()
                fresh = list(range(len(cells)))
            candidates = self._repaired(places[fresh])
            if self._row_of is not None:
                candidates = self._row_of[candidates]
            self._row_of_cell.update(zip([cells[position] for position in fresh], candidates.tolist(), strict=True))
        return [self._row_of_cell[cell] for cell in cells]

    def points(self, rows: Rows | list[int]) -> Reals:
        """Where rows lie in the box.

        Parameters
        ----------
        rows : sequence of int
            m rows of the space.

        Returns
        -------
        array, shape (m, dimensions)
            Each coordinate from 0 to 1.
        """
        places = np.asarray(rows, dtype=np.int64)
        if self._place_of is not None:
            places = self._place_of[places]
        return np.asarray(self._by_value.codes[places][:, self._axes] / self.steps)

    # --- inside: places are whole steps along the axes, shape (m, dimensions); rows are those of `_by_value` ----------

    def _repaired(self, places: Rows) -> Rows:
        rows = self._find(places)
        for repair in (self._changed_in_one, self._towards):
            missed = np.flatnonzero(rows < 0)
            if len(missed):
                rows[missed] = repair(places[missed])
        return rows

    def _find(self, places: Rows) -> Rows:
        codes = np.zeros((len(places), len(self._space.axis_sizes)), dtype=np.int64)
        codes[:, self._axes] = places
        return self._by_value.rows_of_codes(codes)

    def _changed_in_one(self, places: Rows) -> Rows:
        """The nearest row that differs in one parameter; -1 if there is none."""
        every = len(self._every_axis)
        candidates = np.repeat(places, every, axis=0)
        candidates[np.arange(len(candidates)), np.tile(self._every_axis, len(places))] = np.tile(
            self._every_place, len(places)
        )
        rows = self._find(candidates).reshape(len(places), every)
        far = np.abs(places[:, self._every_axis] - self._every_place) / self.steps[self._every_axis]
        nearest = np.where(rows >= 0, far, np.inf).argmin(axis=1)
        return np.asarray(rows[np.arange(len(places)), nearest])

    def _towards(self, places: Rows) -> Rows:
        """From the nearest of some rows that lie everywhere, one parameter after another to the place wanted."""
        far = (((self._anchored - places[:, None, :]) / self.steps) ** 2).sum(axis=2)
        nearest = far.argmin(axis=1)
        here = self._anchored[nearest]
        rows: Rows = self._anchors[nearest]
        for axis in range(self.dimensions):
            there = here.copy()
            there[:, axis] = places[:, axis]
            row = self._find(there)
            valid = row >= 0
            here[valid], rows[valid] = there[valid], row[valid]
        return rows


def _by_value(space: SearchSpace) -> tuple[SearchSpace, Rows | None]:
    """The space with every parameter's values in ascending order, and which row each of its rows is; None: the same."""
    columns = [column_of(p.values) if p.numbers is None else p.numbers for p in space.parameters]
    orders = [
        np.argsort(column, kind="stable") if column.dtype.kind in "bif" else np.arange(len(column))
        for column in columns
    ]
    if all((order[1:] > order[:-1]).all() for order in orders):
        return space, None
    codes = np.stack([np.argsort(order)[space.codes[:, j]] for j, order in enumerate(orders)], axis=1)
    row_of = np.lexsort(codes.T[::-1])
    parameters = tuple(
        replace(parameter, values=tuple(parameter.values[index] for index in order))
        for parameter, order in zip(space.parameters, orders, strict=True)
    )
    return replace(space, parameters=parameters, codes=codes[row_of].astype(space.codes.dtype)), row_of
