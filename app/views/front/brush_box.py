"""`BrushBox`: a plot's inside in which a drag marks a rectangle; Shift or the right button moves, the wheel zooms."""

from __future__ import annotations

from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QGraphicsRectItem

from ..plots.plot import Box
from ..shared import theme


class BrushBox(Box):
    """As in the monitor: drag marks, Shift or right drag moves."""

    brushed = Signal(QRectF, bool, bool)  # in the box's own pixels; a drag begins; add to what was marked before it

    def __init__(self) -> None:
        super().__init__()
        self._rectangle = QGraphicsRectItem(self)
        self._rectangle.setZValue(1e6)
        self._rectangle.hide()

    def mouseDragEvent(self, ev: Any, axis: int | None = None) -> None:
        """pyqtgraph's hook."""
        moves = ev.button() != Qt.MouseButton.LeftButton or ev.modifiers() & Qt.KeyboardModifier.ShiftModifier
        if moves or axis is not None:
            self._pan(ev)
            return
        ev.accept()
        box = QRectF(ev.buttonDownPos(), ev.pos()).normalized().intersected(self.boundingRect())
        colours = theme.colours()
        fill = QColor(colours.accent)
        fill.setAlpha(30)
        self._rectangle.setPen(pg.mkPen(colours.accent, width=1))
        self._rectangle.setBrush(fill)
        self._rectangle.setRect(box)
        self._rectangle.setVisible(not ev.isFinish())
        self.brushed.emit(box, ev.isStart(), bool(ev.modifiers() & Qt.KeyboardModifier.ControlModifier))

    def _pan(self, ev: Any) -> None:
        ev.accept()
        before, now = self.mapToView(ev.lastPos()), self.mapToView(ev.pos())
        self.translateBy(x=before.x() - now.x(), y=before.y() - now.y())
        self.sigRangeChangedManually.emit(self.state["mouseEnabled"])
