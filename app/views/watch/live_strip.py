"""`LiveStrip`: power, clock and voltage on one time axis, low enough to stand below what is worked on.

`WindowMarks`: the time windows of the marked measurements, drawn over the traces.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QLine, QObject, QPointF, QRectF, QSize, Slot
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF, QShowEvent
from PySide6.QtWidgets import QWidget

from ...engine.results.state import Purpose
from ..shared.current_result import CurrentResult
from ..shared.theme import Colours
from ..shared.watched_boards import ShownReading, beat, shown_reading
from ..shared.widgets import vbox
from .lane_view import LaneView
from .lanes import LANES, MORE_LANES, LaneChoice, Layout

if TYPE_CHECKING:
    from ...engine.models.fit.voltage import VoltageEstimate
    from ...engine.space.result_table import ResultTable
    from ...sensors.gpu import Gpu
    from ...sensors.trace.alarms import Alarm
    from ...sensors.trace.trace import Trace

_SHOWN = ("Power", "Graphics clock", "Core voltage")
LOWEST_PX, HIGHEST_PX = 100, 300
_FLAG_PX = 6.0  # of an alarm


class LiveStrip(QWidget):
    """Reads and paints nothing while it is out of sight."""

    def __init__(self, gpu: Gpu, trace: Trace, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._trace = trace
        self.view = LaneView(gpu, trace, low=True)
        self.view.setAccessibleName("Live traces: power, graphics clock and core voltage")
        titles = [lane.title for lane in (*LANES, *MORE_LANES)]
        self.view.set_choice(LaneChoice(switched={title: title in _SHOWN for title in titles}))
        vbox((self.view, 1), of=self, margins=0)
        self.setMinimumHeight(LOWEST_PX)
        self.setMaximumHeight(HIGHEST_PX)
        self._seen: ShownReading | None = None
        beat().struck.connect(self.tick)

    def sizeHint(self) -> QSize:
        return QSize(820, 150)

    def show_board(self, gpu: Gpu, trace: Trace) -> None:
        """Show another board's traces."""
        self._trace, self._seen = trace, None
        self.view.show_board(gpu, trace)
        self.tick()

    @Slot(object)
    def show_estimate(self, estimate: VoltageEstimate) -> None:
        """Draw this estimate where the board reports no voltage."""
        self.view.set_estimate(estimate)

    @Slot()
    def tick(self) -> None:
        """Show new readings, where there are any and it is in sight."""
        if not self.isVisible() or self.window().isMinimized():
            return
        shown = shown_reading(self._trace)
        if shown is not self._seen:
            self._seen = shown
            self.view.refresh(self.view.present_values())

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.tick()


Windows = npt.NDArray[np.int64]  # shape (n, 2): start and end, ns on the GPU's clock
NO_WINDOWS: Windows = np.empty((0, 2), dtype=np.int64)
_STRIP_PX = 4.0
_FEW = 60  # stretches in sight up to which each is tinted over all lanes


def windows_of(table: ResultTable, start: int, end: int, opened_s: float) -> Windows:
    """The windows of measurements [start, end) that lie in this run's trace; (0, 0) if there is none.

    `opened_s` is when the trace began, s since the epoch: a measurement of before has stamps of another run.
    """
    measurements = (table.measurement(index) for index in range(start, end))
    windows = [m.window_ns if m.window_ns is not None and m.timestamp_s >= opened_s else (0, 0) for m in measurements]
    return np.asarray(windows, dtype=np.int64).reshape(-1, 2)


def stretches_px(windows: Windows, bounds: tuple[int, int], left: float, width: float) -> npt.NDArray[np.float64]:
    """(start, end) in pixels of what lies within bounds, windows that touch joined; shape (k, 2)."""
    start_ns, end_ns = bounds
    seen = windows[(windows[:, 1] > start_ns) & (windows[:, 0] < end_ns)]
    if not len(seen):
        return np.empty((0, 2))
    x = left + (np.clip(seen, start_ns, end_ns) - start_ns) / max(1, end_ns - start_ns) * width
    apart = np.concatenate([[True], x[1:, 0] > np.maximum.accumulate(x[:, 1])[:-1] + 1.0])
    first = np.flatnonzero(apart)
    return np.column_stack([x[first, 0], np.maximum.reduceat(x[:, 1], first)])


def paint_windows(painter: QPainter, layout: Layout, stretches: npt.NDArray[np.float64], colours: Colours) -> None:
    """A strip above the time axis; a tint over the lanes where the windows are few."""
    full, faint = QColor(colours.orange), QColor(colours.orange)
    faint.setAlpha(28)
    for x0, x1 in stretches.tolist():
        width = max(1.0, x1 - x0)
        if len(stretches) <= _FEW:
            painter.fillRect(QRectF(x0, layout.span.top(), width, layout.span.height()), faint)
        painter.fillRect(QRectF(x0, layout.axis.top() - _STRIP_PX, width, _STRIP_PX), full)


def paint_alarms(
    painter: QPainter,
    alarms: Iterable[tuple[datetime, Alarm]],
    layout: Layout,
    bounds: tuple[int, int],
    colours: Colours,
) -> None:
    """Paint a flagged line in every lane for each alarm within bounds."""
    start, end = bounds
    plots = [box.plot for box in layout.lanes if box.shown.lines] + [layout.events]
    painter.setPen(QPen(QColor(colours.vermillion), 1))
    painter.setBrush(QColor(colours.vermillion))
    for _, alarm in alarms:
        if start <= alarm.time_ns <= end:
            x = round(layout.left + (alarm.time_ns - start) / max(1, end - start) * layout.columns)
            top = plots[0].top()
            painter.drawLines([QLine(x, plot.top(), x, plot.bottom()) for plot in plots])
            flag = (QPointF(x, top), QPointF(x + _FLAG_PX, top + _FLAG_PX / 2), QPointF(x, top + _FLAG_PX))
            painter.drawPolygon(QPolygonF(flag))
    painter.setBrush(QColor(0, 0, 0, 0))


class Watched(Protocol):
    """The board whose traces are shown; `opened_s` is when they began, s since the epoch."""

    opened_s: float

    @property
    def uuid(self) -> str: ...


class WindowMarks(QObject):
    """Follows the current result: the marked measurements, else the selected one, of the board that is shown."""

    def __init__(self, result: CurrentResult, view: LaneView, board: Watched) -> None:
        super().__init__(view)
        self._result, self._view, self._board = result, view, board
        self._table: ResultTable | None = None
        self._known = NO_WINDOWS  # of every measurement of the table that has been looked at
        self.windows = NO_WINDOWS
        result.brushed.connect(self._follow)
        result.changed.connect(self._follow)
        view.add_overlay(self._paint)

    def show_board(self, board: Watched) -> None:
        """Another board's traces are shown."""
        self._board, self._table = board, None
        self._follow()

    @Slot()
    def _follow(self, *_: object) -> None:
        table, rows, plan = self._result.table, self._result.rows, self._result.plan
        if plan is not None and plan.origin.get("gpu", self._board.uuid) != self._board.uuid:
            table = None  # another board's clock
        if plan is not None and plan.purpose is Purpose.REPLAY:
            table = None  # another run's
        if not len(rows) and self._result.index >= 0:
            rows = np.asarray([self._result.index], dtype=np.int64)
        self.windows = self._windows_among(table, rows) if table is not None and len(rows) else NO_WINDOWS
        self._view.update()

    def _windows_among(self, table: ResultTable, rows: npt.NDArray[np.int64]) -> Windows:
        """Of these measurements, in order of their starts; each is looked at but once."""
        if table is not self._table:
            self._table, self._known = table, NO_WINDOWS
        fresh = windows_of(table, len(self._known), len(table), self._board.opened_s)
        self._known = np.concatenate([self._known, fresh])
        windows = self._known[rows]
        windows = windows[windows[:, 1] > 0]
        return windows[np.argsort(windows[:, 0], kind="stable")]

    def _paint(self, painter: QPainter, layout: Layout, bounds: tuple[int, int], colours: Colours) -> None:
        stretches = stretches_px(self.windows, bounds, layout.left, layout.columns)
        paint_windows(painter, layout, stretches, colours)
