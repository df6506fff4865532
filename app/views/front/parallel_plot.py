"""`ParallelPlot`: every measurement as a line over parallel axes; the denser the lines, the stronger they are drawn.

`AxisMarks`: parallel axes and the values beside them, as one item: a text item each would take thrice as long.

`ParallelAxes`: measurements on parallel axes, one for each parameter that varies and one for each of two figures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal, Slot
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetrics,
    QFontMetricsF,
    QHideEvent,
    QKeyEvent,
    QPainter,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from ...engine.analysis.quantities import Quantity, parameter_text
from ..plots.markers import round_span
from ..shared import theme
from ..shared.label import axis_title
from .hover_card import HoverCard
from .overlays import BrushBox
from .points import FrontPoints, among, place_of

Places = npt.NDArray[np.float32]
Levels = npt.NDArray[np.int32]
Indices = npt.NDArray[np.int64]
_STEPS = 40  # into which a figure's axis is divided to count what goes from where to where


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis; `marks` are (place between 0 and 1, text), from the bottom to the top."""

    name: str
    title: str
    marks: tuple[tuple[float, str], ...]
    steps: int  # places on it that can be distinguished


@dataclass(frozen=True, slots=True)
class Strands:
    """Lines between two neighbouring axes, those that coincide as one: from `left` to `right`, `count` of them."""

    left: Places
    right: Places
    count: npt.NDArray[np.int64]


class ParallelAxes:
    """`places` has shape (axes, points), each between 0, the bottom, and 1; `index` are the points' measurements."""

    def __init__(
        self, points: FrontPoints, titles: tuple[Quantity, Quantity], described: Mapping[str, Quantity]
    ) -> None:
        self.index, self.front = points.index, points.front  # as they are now: the points may grow
        space = points.table.space
        rows = points.table.rows()[points.index]
        self.axes: list[Axis] = []
        levels: list[Levels] = []  # on each axis, the step of each point
        columns: list[Places] = []
        for index, parameter in enumerate(space.parameters):
            last = len(parameter.values) - 1
            if last < 1:
                continue
            levels.append(space.codes[rows, index].astype(np.int32))
            columns.append(_scaled(levels[-1], last + 1))
            marks = tuple((place / last, parameter_text(value)) for place, value in enumerate(parameter.values))
            self.axes.append(Axis(parameter.name, described[parameter.name].title, marks, last + 1))
        for goal, title, values in zip(points.goals, titles, (points.x, points.y), strict=True):
            low, high = round_span(float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
            columns.append(((values - low) / (high - low)).astype(np.float32))
            levels.append(np.rint(columns[-1] * (_STEPS - 1)).astype(np.int32))
            marks = tuple((share, title.number(low + share * (high - low))) for share in (0.0, 0.25, 0.5, 0.75, 1.0))
            self.axes.append(Axis(goal.name, title.title, marks, _STEPS))
        self.places: Places = np.stack(columns)
        self._levels = levels

    @cached_property
    def _pieces(self) -> list[Levels]:
        """Of each gap the piece of every point's line, numbered by where it begins and ends."""
        pairs = zip(self._levels[:-1], self._levels[1:], self.axes[1:], strict=True)
        return [left * np.int32(axis.steps) + right for left, right, axis in pairs]

    @cached_property
    def all_strands(self) -> list[Strands]:
        """What goes from each axis to the next one."""
        return self.strands_of(None)

    def strands_of(self, points: Indices | None) -> list[Strands]:
        """The same of some of the points; None: of all."""
        pieces = self._pieces if points is None else [item[points] for item in self._pieces]
        return [self._strands(gap, piece) for gap, piece in enumerate(pieces)]

    def _strands(self, gap: int, pieces: Levels) -> Strands:
        steps = self.axes[gap].steps, self.axes[gap + 1].steps
        counts = np.bincount(pieces, minlength=steps[0] * steps[1])
        some = np.flatnonzero(counts)
        lefts, rights = np.divmod(some, steps[1])
        return Strands(_scaled(lefts, steps[0]), _scaled(rights, steps[1]), counts[some])

    def within(self, ranges: Mapping[int, tuple[float, float]]) -> Indices:
        """Points that lie within the range of every axis that has one."""
        inside = np.ones(self.places.shape[1], dtype=np.bool_)
        for axis, (low, high) in ranges.items():
            inside &= (self.places[axis] >= low) & (self.places[axis] <= high)
        return np.flatnonzero(inside)

    def nearest(self, x: float, y: float) -> tuple[int, float] | None:
        """The point whose line passes nearest to a place, axes one apart, and how far above or below it passes."""
        count = len(self.axes)
        if not self.places.shape[1] or not 0 <= x <= count - 1:
            return None
        gap = min(int(x), count - 2)
        share = np.float32(x - gap)
        away = np.abs(self.places[gap] * (1 - share) + self.places[gap + 1] * share - np.float32(y))
        best = int(away.argmin())
        return best, float(away[best])


def _scaled(levels: npt.NDArray[np.integer], steps: int) -> Places:
    """Steps of an axis as places between 0 and 1."""
    return (levels / (steps - 1)).astype(np.float32)


ABOVE, BELOW = 1.06, -0.06  # the ends of what is in sight, where an axis reaches from 0 to 1
_MARK_PX = 15.0  # between two values on an axis
_GROUND_ALPHA = 170
_BESIDE_PX, _MARGIN_PX = 4.0, 2.0


class AxisMarks(QGraphicsItem):
    """Painted in the pixels of the `ViewBox`, whose child it is."""

    def __init__(self, view: pg.ViewBox, z: float) -> None:
        super().__init__(view)
        self._view = view
        self._axes: Sequence[Axis] = ()
        self._font = QFont()
        self.setZValue(z)
        view.sigTransformChanged.connect(self._view_moved)

    def show_axes(self, axes: Sequence[Axis], font: QFont) -> None:
        """Show these; none: nothing."""
        self._axes, self._font = axes, font
        self.update()

    @Slot()
    def _view_moved(self, *_: object) -> None:
        self.prepareGeometryChange()
        self.update()

    def boundingRect(self) -> QRectF:
        return QRectF(0.0, 0.0, self._view.width(), self._view.height())

    def paint(self, painter: QPainter, _option: QStyleOptionGraphicsItem, _widget: QWidget | None = None) -> None:
        if not self._axes:
            return
        colours, high = theme.colours(), self._view.height() / (ABOVE - BELOW)
        apart = self._view.width() / len(self._axes)
        ground = QColor(colours.base)
        ground.setAlpha(_GROUND_ALPHA)
        metrics = QFontMetricsF(self._font)
        painter.setFont(self._font)
        for index, axis in enumerate(self._axes):
            x = (index + 0.5) * apart
            painter.setPen(QPen(QColor(colours.muted), 1.0))
            painter.drawLine(QPointF(x, (ABOVE - 1.0) * high), QPointF(x, ABOVE * high))
            painter.setPen(QColor(colours.text))
            every = max(1, -int(-_MARK_PX * len(axis.marks) // high)) if high else 1
            for share, words in axis.marks[::every]:
                shown = metrics.elidedText(words, Qt.TextElideMode.ElideRight, max(20.0, apart - 10.0))
                y = (ABOVE - share) * high
                size = metrics.horizontalAdvance(shown) + 2 * _MARGIN_PX, metrics.height()
                box = QRectF(x + _BESIDE_PX, y - size[1] / 2, *size)
                if box.right() > self._view.width():  # the last axis has but half the room
                    box.moveRight(x - _BESIDE_PX)
                painter.fillRect(box, ground)
                painter.drawText(QPointF(box.left() + _MARGIN_PX, box.top() + metrics.ascent()), shown)


Floats = npt.NDArray[np.float64]
_STRENGTHS = (0.16, 0.3, 0.5, 0.75)  # of lines, by the logarithm of how many coincide
_NEAR_PX = 10.0  # of a line under the pointer, and of an axis that is meant
_FEW_LINES = 800  # up to which lines are smoothed
_FEW_SMOOTH = 200  # whole lines up to which they are smoothed
_FINE_SCREEN = 1.5  # device pixels to a logical one from which on wide lines need no smoothing


class ParallelPlot(pg.PlotWidget):  # type: ignore[misc]  # pyqtgraph has no types
    """A drag along an axis marks what lies in that range of it, and further drags on other axes narrow that down.

    A click picks the line below it, with Ctrl it pins. Escape removes the mark.
    """

    picked = Signal(int)  # index into the result table
    pinned = Signal(int)
    brushed = Signal(object)  # indices into the result table

    def __init__(self, describe: Callable[[int], str], parent: QWidget | None = None) -> None:
        super().__init__(parent, viewBox=BrushBox(), enableMenu=False)
        self._describe = describe
        self.axes: ParallelAxes | None = None
        self.ranges: dict[int, tuple[float, float]] = {}
        self._brushed = np.empty(0, dtype=np.int64)  # what the ranges marked
        self._marked = np.empty(0, dtype=np.int64)
        self._selected = -1
        self._pins: tuple[int, ...] = ()
        self.hideButtons()
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Parallel coordinates of the measurements; drag along an axis to mark a range")
        self._crowd = [self._curve(z) for z in range(len(_STRENGTHS))]
        self._bright = [self._curve(5 + z) for z in range(len(_STRENGTHS))]
        self._front, self._pin, self._chosen, self._range = (self._curve(10 + z) for z in range(4))
        view = self.getViewBox()
        self._marks = AxisMarks(view, 1)
        self._laid_out: object = None
        self._drawn: tuple[ParallelAxes | None, str] = (None, "")  # the crowd, and its colour
        view.setMouseEnabled(x=False, y=False)
        self.hideAxis("left")
        self.card = HoverCard(self)
        self.scene().sigMouseMoved.connect(self.hover)
        self.scene().sigMouseClicked.connect(self._mouse_clicked)
        view.brushed.connect(self._dragged)
        theme.notifier().changed.connect(self.recolour)
        self.recolour()

    def _curve(self, z: float) -> pg.PlotCurveItem:
        curve = pg.PlotCurveItem(connect="pairs")
        curve.setSegmentedLineMode("on")  # as one path, translucent lines take twenty times as long
        curve.setZValue(z)
        self.addItem(curve, ignoreBounds=True)
        return curve

    # --- what is shown -----------------------------------------------------------------------------------------------

    def show_points(
        self,
        points: FrontPoints | None,
        titles: tuple[Quantity, Quantity] | None,
        described: Mapping[str, Quantity],
        marked: Indices,
    ) -> None:
        """Show other points, or what they have grown by, and which measurements are marked; None or none: nothing."""
        shown = points is not None and titles is not None and len(points) > 0
        before = [axis.name for axis in self.axes.axes] if self.axes is not None else []
        self.axes = ParallelAxes(points, titles, described) if shown else None  # type: ignore[arg-type]
        if self.axes is None or [axis.name for axis in self.axes.axes] != before:
            self.ranges = {}
        self._lay_out_axes()
        self.mark(marked)

    def mark(self, rows: Indices) -> None:
        """These measurements (ascending) stand out from all others; none: all are alike."""
        self._marked = rows
        if not np.array_equal(rows, self._brushed):  # marked somewhere else
            self.ranges = {}
        self._draw_crowd()
        self._draw_above()

    def select(self, index: int) -> None:
        """Draw one measurement above all others."""
        self._selected = index
        self._draw_above()

    def set_pinned(self, pins: tuple[int, ...]) -> None:
        """These measurements are pinned."""
        self._pins = pins
        self._draw_above()

    @Slot()
    def recolour(self) -> None:
        """Take over the theme's colours."""
        colours = theme.colours()
        self.setBackground(colours.base)
        axis = self.getAxis("bottom")
        axis.setPen(pg.mkPen(None))
        axis.setTextPen(colours.text)
        self._lay_out_axes()
        self._draw_crowd()
        self._draw_above()

    # --- drawing -----------------------------------------------------------------------------------------------------

    def _lay_out_axes(self) -> None:
        """Titles below, values beside each axis where they have room; only where any of that is new."""
        size = self.getViewBox().width(), self.getViewBox().height()
        laid_out = (self.axes.axes if self.axes is not None else [], size, theme.colours())
        if laid_out == self._laid_out:
            return
        self._laid_out = laid_out
        self._marks.show_axes(self.axes.axes if self.axes is not None else [], self.font())
        if self.axes is None:
            self.getAxis("bottom").setTicks([[]])
            return
        axes = self.axes.axes
        view = self.getViewBox()
        view.setRange(xRange=(-0.5, len(axes) - 0.5), yRange=(BELOW, ABOVE), padding=0)
        wide = int(max(1.0, view.width()) / len(axes)) - 6
        metrics = QFontMetrics(self.font())
        titles = [metrics.elidedText(axis.title, Qt.TextElideMode.ElideMiddle, wide) for axis in axes]
        self.getAxis("bottom").setTicks([[(float(index), axis_title(title)) for index, title in enumerate(titles)]])

    def _draw_crowd(self) -> None:
        """All lines, and those that are marked above them; what is drawn already stays."""
        colours, axes, some = theme.colours(), self.axes, bool(len(self._marked))
        crowd = (axes, colours.muted if some else colours.blue)
        if crowd != self._drawn:
            self._drawn = crowd
            self._draw_strands(self._crowd, axes.all_strands if axes is not None else [], crowd[1])
        marked = np.flatnonzero(among(self._marked, axes.index)) if axes is not None and some else None
        strands = axes.strands_of(marked) if axes is not None and marked is not None else []
        self._draw_strands(self._bright, strands, colours.orange)

    def _draw_strands(self, curves: list[pg.PlotCurveItem], strands: list[Strands], colour: str) -> None:
        if not strands:
            for curve in curves:
                curve.setData([], [])
            return
        most = max((int(item.count.max(initial=1)) for item in strands), default=1)
        xs: list[Floats] = []
        ys: list[Floats] = []
        strength: list[Indices] = []
        for gap, strand in enumerate(strands):
            xs.append(np.tile([float(gap), gap + 1.0], (len(strand.count), 1)))
            ys.append(np.column_stack([strand.left, strand.right]).astype(np.float64))
            share = np.log(strand.count) / np.log(max(2, most))
            strength.append((share * (len(curves) - 1)).round().astype(np.int64))
        x, y, strong = np.concatenate(xs), np.concatenate(ys), np.concatenate(strength)
        for place, (curve, alpha) in enumerate(zip(curves, _STRENGTHS, strict=True)):
            pen = QColor(colour)
            pen.setAlphaF(alpha)
            curve.opts["antialias"] = len(strong) < _FEW_LINES
            curve.setPen(pg.mkPen(pen, width=0))  # one pixel of the screen, whatever its scale: wider ones take long
            curve.setData(x[strong == place].ravel(), y[strong == place].ravel())

    def _draw_above(self) -> None:
        """The front, what is pinned, what is selected, and the ranges that were dragged."""
        colours, axes, fine = theme.colours(), self.axes, self.devicePixelRatioF() >= _FINE_SCREEN
        lines = (
            (self._front, colours.front, 1.0, axes.front.tolist() if axes is not None else []),
            (self._pin, colours.vermillion, 2.0, self._points_of(self._pins)),
            (self._chosen, colours.accent, 3.0, self._points_of((self._selected,))),
        )
        for curve, colour, width, points in lines:
            # smoothed lines that are wider than 1 take Qt ten times as long
            curve.opts["antialias"] = len(points) < _FEW_SMOOTH and (width <= 1.0 or not fine)
            curve.setPen(pg.mkPen(colour, width=width))
            x, y = self._polylines(points)
            curve.setData(x, y)
        ends = [(float(axis), end) for axis, both in self.ranges.items() for end in both]
        bar = QColor(colours.orange)
        bar.setAlpha(170)
        self._range.setPen(pg.mkPen(bar, width=9))
        self._range.setData(*(np.asarray([end[index] for end in ends], dtype=np.float64) for index in (0, 1)))

    def _points_of(self, measurements: tuple[int, ...]) -> list[int]:
        places = [place_of(self.axes.index, index) for index in measurements] if self.axes is not None else []
        return [point for point in places if point is not None]

    def _polylines(self, points: list[int]) -> tuple[Floats, Floats]:
        """Pairs of the ends of every piece."""
        if self.axes is None or not points:
            return np.empty(0), np.empty(0)
        y = self.axes.places[:, points].T.astype(np.float64)  # (points, axes)
        x = np.arange(y.shape[1], dtype=np.float64)
        pieces = np.stack([y[:, :-1], y[:, 1:]], axis=2)
        return np.tile(np.stack([x[:-1], x[1:]], axis=1), (len(points), 1, 1)).ravel(), pieces.ravel()

    # --- the mouse ---------------------------------------------------------------------------------------------------

    def index_at(self, scene: QPointF) -> int | None:
        """The measurement whose line passes below a place of the scene."""
        view = self.getViewBox()
        if self.axes is None or not view.sceneBoundingRect().contains(scene):
            return None
        at = view.mapSceneToView(scene)
        nearest = self.axes.nearest(at.x(), at.y())
        if nearest is None or nearest[1] * view.height() / (ABOVE - BELOW) > _NEAR_PX:
            return None
        return int(self.axes.index[nearest[0]])

    @Slot(object)
    def hover(self, scene: QPointF) -> None:
        """Show the card of the measurement below a place of the scene; hide it if there is none."""
        index = self.index_at(scene)
        if index is None:
            self.card.leave()
        else:
            self.card.show_text(self._describe(index))
            self.card.show_at(self.mapToGlobal(self.mapFromScene(scene)))

    @Slot(object)
    def _mouse_clicked(self, event: object) -> None:
        if event.button() != Qt.MouseButton.LeftButton:  # type: ignore[attr-defined]
            return
        if event.double():  # type: ignore[attr-defined]
            self._laid_out = None
            self._lay_out_axes()
            return
        index = self.index_at(event.scenePos())  # type: ignore[attr-defined]
        pins = event.modifiers() & Qt.KeyboardModifier.ControlModifier  # type: ignore[attr-defined]
        if index is not None:
            (self.pinned if pins else self.picked).emit(index)

    @Slot(QRectF, bool, bool)
    def _dragged(self, box: QRectF, begins: bool, _adds: bool) -> None:
        """The axes that the rectangle crosses, else the one next to it, take its height as their range."""
        if self.axes is None:
            return
        if begins:
            self.card.leave()
        view = self.getViewBox()
        upper, lower = view.mapToView(box.topLeft()), view.mapToView(box.bottomRight())
        reach = _NEAR_PX / max(1.0, view.width()) * len(self.axes.axes)
        count = len(self.axes.axes)
        crossed = [index for index in range(count) if upper.x() - reach <= index <= lower.x() + reach]
        for place in crossed or [min(max(round((upper.x() + lower.x()) / 2), 0), count - 1)]:
            self.ranges[place] = (lower.y(), upper.y())
        inside = self.axes.within(self.ranges)
        self._brushed = np.sort(self.axes.index[inside])
        self._draw_above()
        self.brushed.emit(self._brushed)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape removes the mark, P pins."""
        if event.key() == Qt.Key.Key_Escape:
            self.ranges = {}
            self._brushed = np.empty(0, dtype=np.int64)
            self.brushed.emit(self._brushed)
            self._draw_above()
        elif event.key() == Qt.Key.Key_P:
            self.pinned.emit(self._selected)
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if hasattr(self, "card"):
            self._lay_out_axes()

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self.card.leave()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.card.leave()
