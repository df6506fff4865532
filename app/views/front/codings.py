"""`Codings`: what the colours and shapes of a session's points stand for, from its first measurement to its last."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...engine.analysis.costs import readings_of
from ...engine.space.result_table import BOARD_NUMBER, ResultTable
from ..plots.markers import Coding, ShapeCoding, Styles, with_shapes
from .points import FrontPoints

Floats = npt.NDArray[np.float64]


class Codings:
    """Colours by one column, shapes by another (empty: shapes go with the colours).

    A parameter's values are known before the first measurement, so its colours never change. A figure's scale is
    extended when a value lies outside; `extended_at` then is the number of measurements at which that was last so. What
    a filter hides counts as well: hiding it changes no colour.
    """

    def __init__(self, table: ResultTable, colour_name: str, shape_name: str) -> None:
        self._table = table
        self.names = (colour_name, shape_name)
        self.colour, self.shape = self._made()
        self.extended_at = 0

    def _made(self) -> tuple[Coding, ShapeCoding | None]:
        colour_name, shape_name = self.names
        fixed = _known_values(self._table, colour_name)
        colour = Coding(fixed) if fixed is not None else Coding.of_figure(readings_of(self._table, colour_name))
        if not shape_name:
            return colour, None
        fixed = _known_values(self._table, shape_name)
        shape = ShapeCoding(fixed) if fixed is not None else ShapeCoding.of_figure(readings_of(self._table, shape_name))
        return colour, shape

    def styles(self, points: FrontPoints, start: int = 0) -> Styles:
        """The styles of the points from `start` on."""
        colour_name, shape_name = self.names
        styles = self.colour.styles(points.colour_values(colour_name, start))
        if self.shape is None:
            return styles
        return with_shapes(styles, self.shape.shapes(points.colour_values(shape_name, start)))

    def extend(self, points: FrontPoints, start: int) -> bool:
        """Find a place for the points from `start` on; True where colours or shapes of the others changed for that."""
        colour_name, shape_name = self.names
        covered = self.colour.covers(points.colour_values(colour_name, start))
        if self.shape is not None:
            covered &= self.shape.covers(points.colour_values(shape_name, start))
        if not covered:
            self.colour, self.shape = self._made()
            self.extended_at = points.seen if start else 0
        return not covered


def _known_values(table: ResultTable, name: str) -> Floats | None:
    """Values of which each has a marker of its own: a parameter's, and the numbers of boards. None for a figure."""
    if name != BOARD_NUMBER:
        return parameter_values(table, name)
    return np.arange(1.0, len(table.boards) + 1.0)


def parameter_values(table: ResultTable, name: str) -> Floats | None:
    """All values of a parameter as the table's columns have them: words by their places. None for a figure."""
    if name in table.value_names or name not in table.space.names:
        return None
    values = table.space.parameters[table.space.names.index(name)].values
    try:
        return np.asarray(values).astype(np.float64)
    except ValueError:
        return np.arange(len(values), dtype=np.float64)
