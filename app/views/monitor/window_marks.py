"""`WindowMarks`: the time windows of the marked measurements, drawn over the traces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QObject, QRectF, Slot
from PySide6.QtGui import QColor, QPainter

from ...engine.session_state import Purpose
from ..current_result import CurrentResult
from ..plots.theme import Colours
from .lane_layout import Layout
from .lane_view import LaneView

if TYPE_CHECKING:
    from ...engine.space.result_table import ResultTable

Windows = npt.NDArray[np.int64]  # shape (n, 2): start and end, ns on the GPU's clock
NO_WINDOWS: Windows = np.empty((0, 2), dtype=np.int64)
_STRIP_PX = 4.0
_FEW = 60  # stretches in sight up to which each is tinted over all lanes


def windows_of(table: ResultTable, start: int, end: int, opened_s: float) -> Windows:
    """The windows of measurements [start, end) that lie in this run's trace; (0, 0) where there is none.

    `opened_s` is when the trace began, s since the epoch: a measurement of before has stamps of another run.
    """
    measurements = (table.measurement(index) for index in range(start, end))
    found = [m.window_ns if m.window_ns is not None and m.timestamp_s >= opened_s else (0, 0) for m in measurements]
    return np.asarray(found, dtype=np.int64).reshape(-1, 2)


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
        found = self._known[rows]
        found = found[found[:, 1] > 0]
        return found[np.argsort(found[:, 0], kind="stable")]

    def _paint(self, painter: QPainter, layout: Layout, bounds: tuple[int, int], colours: Colours) -> None:
        stretches = stretches_px(self.windows, bounds, layout.left, layout.columns)
        paint_windows(painter, layout, stretches, colours)
