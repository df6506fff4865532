"""`Pins`: the pinned measurements in the scatter, each ringed and with its letter."""

from __future__ import annotations

from collections.abc import Iterator

import pyqtgraph as pg
from PySide6.QtCore import QObject
from PySide6.QtGui import QColor

from ..current_result import PIN_NAMES
from ..plots import theme
from .labels import Wish
from .points import FrontPoints

_SIZE = 17.0  # of a ring, pixels
_REACH = 200.0  # between a ring and its letter


class Pins(QObject):
    """Draws into a plot."""

    def __init__(self, plot: pg.PlotWidget) -> None:
        super().__init__(plot)
        self._points: FrontPoints | None = None
        self.pinned: tuple[int, ...] = ()  # measurements
        self._rings = pg.ScatterPlotItem(pxMode=True)
        self._rings.setZValue(17)
        plot.addItem(self._rings, ignoreBounds=True)
        self.letters = [pg.TextItem(name) for name in PIN_NAMES]
        for letter in self.letters:
            letter.setZValue(22)
            letter.hide()
            plot.addItem(letter, ignoreBounds=True)

    def show_points(self, points: FrontPoints | None) -> None:
        """Draw over other points."""
        self._points = points
        self.draw()

    def set_pinned(self, pinned: tuple[int, ...]) -> None:
        """These measurements are pinned: A, B and C."""
        self.pinned = pinned
        self.draw()

    def places(self) -> list[tuple[int, float, float]]:
        """(which pin, x, y) of those that have a point."""
        if self._points is None:
            return []
        found = [(place, self._points.point_of(index)) for place, index in enumerate(self.pinned)]
        return [
            (place, float(self._points.plot_x[point]), float(self._points.plot_y[point]))
            for place, point in found
            if point is not None
        ]

    def draw(self) -> None:
        """Draw again, in the colours in use."""
        colours, places = theme.colours(), self.places()
        self._rings.setPen(pg.mkPen(colours.vermillion, width=2))
        self._rings.setBrush(None)
        self._rings.setData([x for _, x, _ in places], [y for _, _, y in places], symbol="s", size=_SIZE)
        for letter in self.letters:
            letter.setText(letter.toPlainText(), QColor(colours.vermillion))
            letter.hide()

    def wishes(self) -> Iterator[Wish]:
        """The letters, for the layout of the labels."""
        for place, x, y in self.places():
            yield Wish(self.letters[place], [x], [y], _REACH, leader=True)
