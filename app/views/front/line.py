"""The Pareto front drawn through the scatter, its points ringed, and its two ends marked and named."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QObject
from PySide6.QtGui import QColor

from ...engine.analysis.quantities import Quantity, is_efficiency, is_speed
from ..plots import theme
from ..plots.markers import COLOURS, DIM, SHAPES, Styles, colour_scale, dim_colour
from .labels import Wish
from .points import Floats, FrontPoints

_LEAST_PX = 9.0  # of a front point's marker: larger than that of the crowd
_REACH = 400.0  # pixels between an end and its name
# pyqtgraph's names of our shapes.
_SYMBOLS = dict(zip(SHAPES, ("o", "s", "t1", "d", "t", "p", "x"), strict=True))


class FrontLine(QObject):
    """Draws into a plot. `names` of what is shown: 'front', 'ends'."""

    def __init__(self, plot: pg.PlotWidget) -> None:
        super().__init__(plot)
        self._plot = plot
        self._points: FrontPoints | None = None
        self._titles: tuple[Quantity, Quantity] | None = None
        self._drawn = np.empty(0, dtype=np.int64)
        self._line = pg.PlotCurveItem(antialias=True)
        self._rings, self._ends = (pg.ScatterPlotItem(pxMode=True) for _ in range(2))
        self.labels = [pg.TextItem(fill=None) for _ in range(2)]
        for z, item in enumerate((self._line, self._rings, self._ends)):
            item.setZValue(10 + z)
            plot.addItem(item, ignoreBounds=True)
        for label in self.labels:
            label.setZValue(20)
            plot.addItem(label, ignoreBounds=True)
        self._named: list[pg.TextItem] = []

    def wishes(self) -> Iterator[Wish]:
        """The names of the ends, for the layout of the labels."""
        for label, at in zip(self._named, self._ends_at(), strict=False):
            yield Wish(label, [at[0]], [at[1]], _REACH, leader=True)

    def curve(self) -> tuple[Floats, Floats]:
        """The line that is drawn."""
        x, y = self._line.getData()
        return (np.empty(0), np.empty(0)) if x is None else (x, y)

    def drawn_points(self) -> tuple[Floats, Floats]:
        """Where the front's own markers lie, above the crowd."""
        x, y = self._rings.getData()
        return x[len(x) // 2 :], y[len(y) // 2 :]

    def _ends_at(self) -> list[tuple[float, float]]:
        points = self._points
        if points is None or points.best_x is None or points.best_y is None:
            return []
        return [(float(points.plot_x[at]), float(points.plot_y[at])) for at in (points.best_x, points.best_y)]

    def differs(self, points: FrontPoints) -> bool:
        """The front of these points is another than the one that is drawn."""
        return not np.array_equal(points.front, self._drawn)

    def draw(
        self,
        points: FrontPoints | None,
        titles: tuple[Quantity, Quantity] | None,
        names: AbstractSet[str],
        marker_size: float,
        styles: Styles,
    ) -> None:
        """Draw the front of these points, or none; `styles` are those of all points. Its own lie above the crowd."""
        colours = theme.colours()
        self._points, self._titles = points, titles
        self._drawn = points.front if points is not None else np.empty(0, dtype=np.int64)
        self._line.setPen(pg.mkPen(colours.front, width=1.5))
        self._line.setData([], [])
        self._rings.setData([], [])
        self._ends.setData([])
        self._named = []
        for label in self.labels:
            label.hide()
        if points is None or not len(points.front):
            return
        x, y = points.plot_x[points.front], points.plot_y[points.front]
        if "front" in names:
            self._line.setData(x, y)
            size = max(marker_size, _LEAST_PX)
            own = styles[points.front]
            self._rings.setData(
                np.tile(x, 2),
                np.tile(y, 2),
                symbol=["o"] * len(x) + [symbol_of(style) for style in own],
                size=np.repeat([size + 5, size], len(x)),
                brush=[pg.mkBrush(colours.base)] * len(x) + [pg.mkBrush(colour_of(style)) for style in own],
                pen=[pg.mkPen(colours.front, width=1.2)] * len(x) + [pg.mkPen(None)] * len(x),
            )
        if "ends" in names:
            self._draw_ends(points)

    def _draw_ends(self, points: FrontPoints) -> None:
        colours = theme.colours()
        ends = zip((points.best_x, points.best_y), ("star", "d"), (colours.fastest, colours.efficient), strict=True)
        self._ends.setData(
            [
                {
                    "pos": (points.plot_x[at], points.plot_y[at]),
                    "symbol": symbol,
                    "size": 19,
                    "brush": colour,
                    "pen": colours.base,
                }
                for at, symbol, colour in ends
            ]
        )
        self._name_ends(points)

    def _name_ends(self, points: FrontPoints) -> None:
        assert self._titles is not None
        colours = theme.colours()
        ends = ((points.best_x, points.x, colours.fastest), (points.best_y, points.y, colours.efficient))
        for label, described, (at, values, colour) in zip(self.labels, self._titles, ends, strict=True):
            assert at is not None
            label.setText(f"{best_in(described)}: {described.text(float(values[at]))}", QColor(colour))
            ground = QColor(colours.base)
            ground.setAlpha(215)
            label.fill = pg.mkBrush(ground)
            label.show()
        self._named = list(self.labels)
        if points.best_x == points.best_y:
            self.labels[1].hide()
            self._named.pop()
            self.labels[0].setText("best in both", QColor(colours.fastest))


def symbol_of(style: int) -> str:
    """pyqtgraph's symbol for the shape of a style."""
    return _SYMBOLS[SHAPES[int(style) // COLOURS % len(SHAPES)]]


def colour_of(style: int) -> QColor:
    """The colour of a style."""
    colours = theme.colours()
    return dim_colour(colours) if style >= DIM else colour_scale(colours)[int(style) % COLOURS]


def best_in(described: Quantity) -> str:
    """The name of the best in a figure."""
    if is_speed(described.name):
        return "fastest"
    return "most efficient" if is_efficiency(described.name) else f"best {described.label}"
