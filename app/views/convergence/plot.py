"""`ConvergencePlot`: every evaluation as a faint point, the best so far as steps, its improvements as marks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QPointF, Qt, Signal, Slot
from PySide6.QtGui import QColor, QKeyEvent
from PySide6.QtWidgets import QWidget

from ..in_parts import InParts
from ..plots import theme
from ..plots.axes import FigureAxis
from ..plots.box import Box
from ..plots.dress import DENSE, dress
from ..plots.markers import DIM
from ..plots.note import PlotNote
from ..plots.scatter import PointCloud
from .history import Floats, History, Improvement

_REACH_PX = 14.0
_NOTHING = "Start a session, or open a result: how its search came to its best is drawn here."
_NONE_OK = "No evaluation has succeeded yet."
_SECONDS = "Time spent on measuring (s)"


class ConvergencePlot(pg.PlotWidget, InParts):  # type: ignore[misc]  # pyqtgraph has no types
    """Over the evaluations, or over the time that was spent on them. The mouse, or Left and Right, point at one."""

    pointed = Signal(object)  # an Improvement; None: at none
    chosen = Signal(int)  # index into the table

    def __init__(self, parent: QWidget | None = None, *, at_once: bool = True) -> None:
        self._axis = FigureAxis("left")
        super().__init__(parent, viewBox=Box(), enableMenu=False, axisItems={"left": self._axis})
        self._history: History | None = None
        self._over_seconds = False
        self._selected = -1
        self._pointed: Improvement | None = None
        self._drawn = 0  # evaluations
        self.begin(at_once)

    def make(self) -> Iterator[None]:
        """What is drawn into it, then what is heard."""
        self.getPlotItem().setContentsMargins(2, 8, 12, 2)  # so that the ticks at the ends are whole
        self.setMouseEnabled(x=False, y=False)
        self.hideButtons()
        self.setAccessibleName("Best so far over the evaluations")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.getAxis("bottom").enableAutoSIPrefix(False)
        self._cloud = PointCloud(self.getViewBox(), theme.colours())
        self._curve = pg.PlotCurveItem(name="best so far")
        self._marks = pg.ScatterPlotItem(size=8, name="improvements")
        self._choice = pg.ScatterPlotItem(size=15, brush=None)
        for item in (self._curve, self._marks, self._choice):
            self.addItem(item)
        self.note = PlotNote(self)
        yield
        self.scene().sigMouseMoved.connect(self._mouse_moved)
        self.scene().sigMouseClicked.connect(self._mouse_clicked)
        theme.notifier().changed.connect(self.recolour)
        self.recolour()
        self.redraw()

    def show_history(self, history: History) -> None:
        """Another session's."""
        self._history, self._pointed = history, None
        self._axis.show_quantity(history.quantity, log=False)
        self.redraw()

    @Slot(bool)
    def show_over_seconds(self, over_seconds: bool) -> None:
        """Draw over the time that was spent, or else over the number of evaluations."""
        self._over_seconds = over_seconds
        self.redraw()

    def select(self, index: int) -> None:
        """Ring the evaluation of that index; -1: none."""
        self._selected = index
        self._show_choice()

    def redraw(self) -> None:
        """Draw everything."""
        self._cloud.set_points(np.empty(0), np.empty(0), np.empty(0, dtype=np.uint16))
        self._drawn = 0
        self.getAxis("bottom").setLabel(_SECONDS if self._over_seconds else "Evaluations")
        self.refresh()

    def refresh(self) -> None:
        """Draw what is new in the history."""
        history = self._history
        for name in ("left", "bottom"):
            self.getAxis(name).setVisible(history is not None)
        if history is None:
            self.note.setText(_NOTHING)
            return
        x, values = self._places(self._drawn), history.values(self._drawn)
        known = np.isfinite(values)
        self._cloud.append(x[known], values[known], np.full(int(known.sum()), DIM, dtype=np.uint16))
        self._drawn = len(history)
        self.note.setText("" if history.improvements else _NONE_OK)
        self._draw_steps(history)
        self._fit(history)
        self._show_choice()

    def _draw_steps(self, history: History) -> None:
        places = self._places()
        x = places[[each.place for each in history.improvements]] if history.improvements else np.empty(0)
        y = np.array([each.value for each in history.improvements])
        self._marks.setData(x, y)
        if not len(x):
            self._curve.setData([], [])
            return
        ends, bests = np.append(x, max(places[-1], x[-1])), np.append(y, y[-1])
        self._curve.setData(np.repeat(ends, 2)[1:], np.repeat(bests, 2)[:-1])

    def _fit(self, history: History) -> None:
        """The whole course in sight."""
        places, (_, y) = self._places(), self._cloud.points()
        if not len(y):
            return
        low, high = float(y.min()), float(y.max())
        margin = 0.06 * ((high - low) or abs(high) or 1.0)
        self.setYRange(low - margin, high + margin, padding=0)
        self.setXRange(0.0, 1.02 * float(places[-1] or 1.0), padding=0)

    def _places(self, start: int = 0) -> Floats:
        """Along x, of the evaluations from `start` on."""
        assert self._history is not None
        if self._over_seconds:
            return self._history.seconds(start)
        return np.arange(start + 1, len(self._history) + 1, dtype=np.float64)

    def _show_choice(self) -> None:
        history = self._history
        place = -1 if history is None else history.place(self._selected)
        if history is None or place < 0 or not np.isfinite(history.values()[place]):
            self._choice.setData([], [])
        else:
            self._choice.setData([self._places()[place]], [history.values()[place]])

    # --- pointing -----------------------------------------------------------------------------------------------------

    def _nearest(self, at: QPointF) -> Improvement | None:
        """The improvement nearest to a place in the scene."""
        if self._history is None or not self._history.improvements:
            return None
        place = self._cloud.mapFromScene(at)
        found = self._history.improvements
        x, y = self._cloud.in_pixels(self._places()[[each.place for each in found]], np.array([e.value for e in found]))
        distances = np.hypot(x - place.x(), y - place.y())
        return found[int(np.argmin(distances))] if distances.min() <= _REACH_PX else None

    @Slot(object)
    def _mouse_moved(self, at: Any) -> None:
        self._point_at(self._nearest(at))

    @Slot(object)
    def _mouse_clicked(self, event: Any) -> None:
        if event.button() != Qt.MouseButton.LeftButton:
            return
        near = self._nearest(event.scenePos())
        if near is not None:
            self.chosen.emit(near.index)
            return
        place = self._cloud.nearest(self._cloud.mapFromScene(event.scenePos()))
        if place is not None and self._history is not None:
            known = self._history.indices[np.isfinite(self._history.values())]
            self.chosen.emit(int(known[place]))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Left and Right select the improvement before and after."""
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()))
        if step is None or self._history is None or not self._history.improvements:
            super().keyPressEvent(event)
            return
        found = self._history.improvements
        places, selected = [each.place for each in found], self._history.place(self._selected)
        at = int(np.searchsorted(places, selected, side="left" if step < 0 else "right")) + min(step, 0)
        self.chosen.emit(found[min(max(at, 0), len(found) - 1)].index)

    def _point_at(self, improvement: Improvement | None) -> None:
        if improvement is not self._pointed:
            self._pointed = improvement
            self.pointed.emit(improvement)

    @Slot()
    def recolour(self) -> None:
        colours = theme.colours()
        dress(self, ("left", "bottom"), upright=False, density=DENSE)
        self._cloud.set_colours(colours)
        self._curve.setPen(pg.mkPen(colours.accent, width=2))
        self._marks.setBrush(pg.mkBrush(colours.accent))
        self._marks.setPen(pg.mkPen(colours.base))
        self._choice.setPen(pg.mkPen(QColor(colours.text), width=2))
