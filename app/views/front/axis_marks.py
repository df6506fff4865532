"""`AxisMarks`: parallel axes and the values beside them, as one item: a text item each would take thrice as long."""

from __future__ import annotations

from collections.abc import Sequence

import pyqtgraph as pg
from PySide6.QtCore import QPointF, QRectF, Qt, Slot
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPen
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from ..plots import theme
from .parallel_axes import Axis

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
        for at, axis in enumerate(self._axes):
            x = (at + 0.5) * apart
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
