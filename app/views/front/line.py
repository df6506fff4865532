"""The Pareto front drawn through the scatter, its points ringed, and its two ends marked and named."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QObject, Slot
from PySide6.QtGui import QColor

from ...engine.analysis.quantities import Quantity, is_efficiency, is_speed
from ..plots import theme
from .points import FrontPoints


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
        view = plot.getViewBox()
        view.sigRangeChanged.connect(self._place_labels)
        view.sigResized.connect(self._place_labels)

    def differs(self, points: FrontPoints) -> bool:
        """The front of these points is another than the one that is drawn."""
        return not np.array_equal(points.front, self._drawn)

    def draw(
        self,
        points: FrontPoints | None,
        titles: tuple[Quantity, Quantity] | None,
        names: AbstractSet[str],
        marker_size: float,
    ) -> None:
        """Draw the front of these points, or none."""
        colours = theme.colours()
        self._points, self._titles = points, titles
        self._drawn = points.front if points is not None else np.empty(0, dtype=np.int64)
        self._line.setPen(pg.mkPen(colours.front, width=1.5))
        self._rings.setPen(pg.mkPen(colours.front, width=1.2))
        self._rings.setBrush(None)
        self._line.setData([], [])
        self._rings.setData([], [])
        self._ends.setData([])
        for label in self.labels:
            label.hide()
        if points is None or not len(points.front):
            return
        x, y = points.plot_x[points.front], points.plot_y[points.front]
        if "front" in names:
            self._line.setData(x, y)
            self._rings.setData(x, y, symbol="o", size=marker_size + 5)
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
            label.setPos(points.plot_x[at], points.plot_y[at])
            label.show()
        if points.best_x == points.best_y:
            self.labels[1].hide()
            self.labels[0].setText("best in both", QColor(colours.fastest))
        self._place_labels()

    @Slot()
    def _place_labels(self, *_: object) -> None:
        """Each label above or below its point, shifted so that it is not cut off, and the two not on one another."""
        if self._points is None or not len(self._points.front) or not self.labels[0].isVisible():
            return
        view = self._plot.getViewBox()
        (x0, x1), (y0, y1) = view.viewRange()
        width, height = max(1.0, view.width()), max(1.0, view.height())
        below = [label.pos().y() > (y0 + y1) / 2 for label in self.labels]
        apart = abs(self.labels[0].pos().y() - self.labels[1].pos().y()) / (y1 - y0) * height
        if below[0] == below[1] and apart < 40:
            upper = int(self.labels[1].pos().y() > self.labels[0].pos().y())
            below[upper], below[1 - upper] = False, True
        for label, under in zip(self.labels, below, strict=True):
            at = (label.pos().x() - x0) / (x1 - x0) * width
            wide = max(1.0, label.boundingRect().width())
            headroom = ((label.pos().y() - y0) if under else (y1 - label.pos().y())) / (y1 - y0) * height
            if headroom < 1.5 * label.boundingRect().height():  # beside its point: above or below is no room
                aside = 12.0 if at < width / 2 and at + wide + 12.0 < width else -12.0 - wide
                label.setAnchor((-aside / wide, 0.5))
                continue
            left = min(max(at - wide / 2, 3.0), width - wide - 3.0)
            label.setAnchor(((at - left) / wide, -0.5 if under else 1.5))


def best_in(described: Quantity) -> str:
    """The name of the best in a figure."""
    if is_speed(described.name):
        return "fastest"
    return "most efficient" if is_efficiency(described.name) else f"best {described.label}"
