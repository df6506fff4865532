"""The scatter's plot: the cloud of measurements, the front through it and its ends, the figures under the mouse."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt, Signal, Slot
from PySide6.QtGui import QColor, QHideEvent, QResizeEvent
from PySide6.QtWidgets import QLabel, QWidget

from app.views import theme
from app.views.front_points import FrontPoints
from app.views.markers import Styles
from app.views.quantities import Quantity, is_efficiency, is_speed
from app.views.scatter import PointCloud

_MARGIN = 0.07  # of the span, left free around the points
_EDGE_PX = 14.0  # a new point that close to the edge makes the picture grow: its marker would be cut off


class FrontPlot(pg.PlotWidget):  # type: ignore[misc]  # pyqtgraph has no types
    """Shows one `FrontPoints`. Click picks; hovering shows what `describe` says of the measurement (rich text)."""

    picked = Signal(int)  # index into the result table; -1 where no point is

    def __init__(self, describe: Callable[[int], str], parent: QWidget | None = None) -> None:
        super().__init__(parent, enableMenu=False)
        self._describe = describe
        self._points: FrontPoints | None = None
        self._titles: tuple[Quantity, Quantity] | None = None
        self._follow_points = True  # until a person zooms
        self._hovered: int | None = None  # a point
        self._drawn_front = np.empty(0, dtype=np.int64)
        self._selected = -1  # a measurement
        view = self.getViewBox()
        self.hideButtons()
        self.cloud = PointCloud(view, theme.colours())
        self._line = pg.PlotCurveItem(antialias=True)
        self._rings, self._ends, self._chosen, self._hover = (pg.ScatterPlotItem(pxMode=True) for _ in range(4))
        for z, item in enumerate((self._line, self._rings, self._ends, self._chosen, self._hover)):
            item.setZValue(10 + z)
            self.addItem(item, ignoreBounds=True)
        self._labels = [pg.TextItem(fill=None) for _ in range(2)]
        for label in self._labels:
            label.setZValue(20)
            self.addItem(label, ignoreBounds=True)
        self._card = QLabel(self)
        self._card.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._card.setTextFormat(Qt.TextFormat.RichText)
        self._card.hide()
        self._note = QLabel(self)
        self._note.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._note.setWordWrap(True)
        self._note.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setMouseTracking(True)
        self.scene().sigMouseMoved.connect(self._mouse_moved)
        self.scene().sigMouseClicked.connect(self._mouse_clicked)
        view.sigRangeChangedManually.connect(self._zoomed)
        view.sigRangeChanged.connect(self._place_labels)
        view.sigResized.connect(self._place_labels)
        theme.notifier().changed.connect(self.recolour)
        self.recolour()

    # --- what is shown -----------------------------------------------------------------------------------------------

    def show_points(self, points: FrontPoints | None, styles: Styles, titles: tuple[Quantity, Quantity] | None) -> None:
        """Show other points, or none."""
        self._points, self._titles = points, titles
        self._hovered = None
        self._card.hide()
        empty = np.empty(0)
        self.cloud.set_points(points.x if points else empty, points.y if points else empty, styles)
        for axis, described in zip(("bottom", "left"), titles or (), strict=False):
            item = self.getAxis(axis)
            item.enableAutoSIPrefix(False)
            item.setScale(described.factor)
            item.setLabel(described.title)
        self.show_all()
        self._draw_front()
        self.select(self._selected)

    def add_points(self, styles: Styles) -> None:
        """Take in the points that `FrontPoints.update` has just added, in these styles."""
        assert self._points is not None
        start = len(self.cloud)
        self.cloud.append(self._points.x[start:], self._points.y[start:], styles)
        if self._follow_points and self._outside(start):
            self.show_all()
        if not np.array_equal(self._points.front, self._drawn_front):
            self._draw_front()

    def set_styles(self, styles: Styles) -> None:
        """Colour all points anew."""
        if self._points is not None:
            self.cloud.set_points(self._points.x, self._points.y, styles)

    def say(self, note: str) -> None:
        """Words in place of points: what to do first. Empty: none."""
        self._note.setText(note)
        self._note.setVisible(bool(note))
        for item in (self.getAxis("bottom"), self.getAxis("left")):
            item.setVisible(not note)

    @Slot()
    def show_all(self) -> None:
        """Zoom so that every point is in sight, and keep it so."""
        self._follow_points = True
        if self._points is None or not len(self._points):
            return
        view = self.getViewBox()
        for values, setter, pixels in (
            (self._points.x, self.setXRange, view.width()),
            (self._points.y, self.setYRange, view.height()),
        ):
            low, high = float(values.min()), float(values.max())
            margin = max(_MARGIN, 1.5 * _EDGE_PX / max(pixels, 8 * _EDGE_PX)) * (high - low) or 0.05 * abs(high) or 1.0
            setter(low - margin, high + margin, padding=0.0)

    @Slot(int)
    def select(self, index: int) -> None:
        """Ring the point of a measurement."""
        self._selected = index
        point = self._points.point_of(index) if self._points is not None and index >= 0 else None
        self._ring(self._chosen, point)

    @Slot()
    def recolour(self) -> None:
        """Take over the theme's colours."""
        colours = theme.colours()
        self.setBackground(colours.base)
        for name in ("bottom", "left"):
            axis = self.getAxis(name)
            axis.setPen(colours.border)
            axis.setTextPen(colours.text)
            axis.setStyle(maxTickLevel=0)  # lines at every small tick would cost six times the rest of the frame
            axis.setTickDensity(1.6)
        self.showGrid(x=True, y=True, alpha=0.12)
        self.cloud.set_colours(colours)
        self._line.setPen(pg.mkPen(colours.front, width=1.5))
        self._rings.setPen(pg.mkPen(colours.front, width=1.2))
        self._rings.setBrush(None)
        for item, colour in ((self._chosen, colours.accent), (self._hover, colours.text)):
            item.setPen(pg.mkPen(colour, width=2))
            item.setBrush(None)
        self._card.setStyleSheet(
            f"background: {colours.raised}; color: {colours.text}; border: 1px solid {colours.border};"
            "border-radius: 4px; padding: 6px;"
        )
        self._note.setStyleSheet(f"background: transparent; color: {colours.muted}; padding: 24px;")
        self._draw_front()
        self.select(self._selected)

    # --- the front and its ends --------------------------------------------------------------------------------------

    def _draw_front(self) -> None:
        points = self._points
        self._drawn_front = points.front if points is not None else np.empty(0, dtype=np.int64)
        if points is None or not len(points.front):
            self._line.setData([], [])
            self._rings.setData([], [])
            self._ends.setData([])
            for label in self._labels:
                label.hide()
            return
        x, y = points.x[points.front], points.y[points.front]
        self._line.setData(x, y)
        self._rings.setData(x, y, symbol="o", size=self.cloud.marker_size() + 5)
        colours = theme.colours()
        ends = zip((points.best_x, points.best_y), ("star", "d"), (colours.fastest, colours.efficient), strict=True)
        self._ends.setData(
            [
                {
                    "pos": (points.x[at], points.y[at]),
                    "symbol": symbol,
                    "size": 19,
                    "brush": colour,
                    "pen": colours.base,
                }
                for at, symbol, colour in ends
            ]
        )
        self._label_ends(points)

    def _label_ends(self, points: FrontPoints) -> None:
        assert self._titles is not None
        colours = theme.colours()
        ends = ((points.best_x, points.x, colours.fastest), (points.best_y, points.y, colours.efficient))
        for label, described, (at, values, colour) in zip(self._labels, self._titles, ends, strict=True):
            assert at is not None
            label.setText(f"{_best_in(described)}: {described.text(float(values[at]))}", QColor(colour))
            ground = QColor(colours.base)
            ground.setAlpha(215)
            label.fill = pg.mkBrush(ground)
            label.setPos(points.x[at], points.y[at])
            label.show()
        if points.best_x == points.best_y:
            self._labels[1].hide()
            self._labels[0].setText("best in both", QColor(colours.fastest))
        self._place_labels()

    @Slot()
    def _place_labels(self, *_: object) -> None:
        """Each label above or below its point, shifted so that it is not cut off, and the two not on one another."""
        if self._points is None or not len(self._points.front):
            return
        view = self.getViewBox()
        (x0, x1), (y0, y1) = view.viewRange()
        width, height = max(1.0, view.width()), max(1.0, view.height())
        below = [label.pos().y() > (y0 + y1) / 2 for label in self._labels]
        apart = abs(self._labels[0].pos().y() - self._labels[1].pos().y()) / (y1 - y0) * height
        if below[0] == below[1] and apart < 40:
            upper = int(self._labels[1].pos().y() > self._labels[0].pos().y())
            below[upper], below[1 - upper] = False, True
        for label, under in zip(self._labels, below, strict=True):
            at = (label.pos().x() - x0) / (x1 - x0) * width
            wide = max(1.0, label.boundingRect().width())
            headroom = (y1 - label.pos().y()) / (y1 - y0) * height
            if not under and headroom < 1.5 * label.boundingRect().height():  # beside its point: above it is no room
                aside = 12.0 if at < width / 2 and at + wide + 12.0 < width else -12.0 - wide
                label.setAnchor((-aside / wide, 0.5))
                continue
            left = min(max(at - wide / 2, 3.0), width - wide - 3.0)
            label.setAnchor(((at - left) / wide, -0.5 if under else 1.5))

    # --- the mouse ---------------------------------------------------------------------------------------------------

    def point_at(self, scene: QPointF) -> int | None:
        """The point at a place of the scene."""
        view = self.getViewBox()
        if not view.sceneBoundingRect().contains(scene):
            return None
        return self.cloud.nearest(view.mapFromScene(scene))

    @Slot(object)
    def _mouse_moved(self, scene: QPointF) -> None:
        point = self.point_at(scene)
        if point != self._hovered:
            self._hovered = point
            self._ring(self._hover, point)
            if point is not None and self._points is not None:
                self._card.setText(self._describe(int(self._points.index[point])))
                self._card.adjustSize()
        if point is None:
            self._leave_point()
        else:
            self._show_card(self.mapToGlobal(self.mapFromScene(scene)))

    @Slot(object)
    def _mouse_clicked(self, event: object) -> None:
        if event.button() != Qt.MouseButton.LeftButton:  # type: ignore[attr-defined]
            return
        if event.double():  # type: ignore[attr-defined]
            self.show_all()
            return
        point = self.point_at(event.scenePos())  # type: ignore[attr-defined]
        self.picked.emit(int(self._points.index[point]) if point is not None and self._points is not None else -1)

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._leave_point()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._leave_point()

    def _leave_point(self) -> None:
        self._hovered = None
        self._ring(self._hover, None)
        if not self._card.isHidden():
            self._card.setParent(self)  # which hides it; the window may outlive this plot

    @Slot()
    def _zoomed(self, *_: object) -> None:
        self._follow_points = False

    def _show_card(self, mouse: QPoint) -> None:
        """Beside the mouse and within the window: a child of it, since the plot may be too small to hold the card."""
        window, card = self.window(), self._card
        if card.parentWidget() is not window:
            card.setParent(window)
        at = window.mapFromGlobal(mouse)
        x = at.x() + 18 if at.x() + 18 + card.width() <= window.width() else at.x() - 18 - card.width()
        y = min(at.y() + 14, window.height() - card.height())
        card.move(max(0, x), max(0, y))
        card.show()
        card.raise_()

    def _ring(self, item: pg.ScatterPlotItem, point: int | None) -> None:
        if point is None or self._points is None:
            item.setData([], [])
        else:
            size = self.cloud.marker_size() + 9
            item.setData([self._points.x[point]], [self._points.y[point]], symbol="o", size=size)

    def _outside(self, start: int) -> bool:
        """Some point from `start` on lies outside what is in sight, or at its very edge."""
        assert self._points is not None
        view = self.getViewBox()
        for values, (low, high), pixels in (
            (self._points.x[start:], view.viewRange()[0], view.width()),
            (self._points.y[start:], view.viewRange()[1], view.height()),
        ):
            edge = _EDGE_PX / max(pixels, 4 * _EDGE_PX)
            share = (values - low) / (high - low)
            if ((share < edge) | (share > 1 - edge)).any():
                return True
        return False

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if hasattr(self, "_note"):
            self._note.setGeometry(self.rect())


def _best_in(described: Quantity) -> str:
    if is_speed(described.name):
        return "fastest"
    return "most efficient" if is_efficiency(described.name) else f"best {described.label}"
