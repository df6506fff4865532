"""`BoardRow`: one board at a glance: its name, a small trace of its power, and the figures of this moment."""

from __future__ import annotations

import html
import math

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QFrame, QGridLayout, QPushButton, QSizePolicy, QToolButton, QWidget

from ...base.formatting import duration, number
from ...sensors.channel import CHANNELS
from ...sensors.gpu import StreamsReadings
from ..plots.figures import value_text
from ..shared import theme
from ..shared.label import PlainLabel, plain_tip
from ..shared.watched_boards import WatchedBoard, is_real, shown_reading
from ..shared.widgets import hbox
from .time_window import TimeWindow

_SHOWN_S = 60.0
_FIGURES = ("graphics_clock_mhz", "temperature_c", "utilisation_percent", "memory_used_mib")


class BoardRow(QFrame):
    """`refresh` shows what is new. Pressing 'In full' asks for the board to be shown over the whole window."""

    opened = Signal(str)  # the selector
    removed = Signal(object)  # the WatchedBoard

    def __init__(self, board: WatchedBoard, *, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.board = board
        info = board.gpu.info
        self.setFrameShape(QFrame.Shape.StyledPanel)
        self.setAccessibleName(info.label)
        self.name = PlainLabel()
        self.name.setTextFormat(Qt.TextFormat.RichText)
        name = f"<b>{html.escape(info.name)}</b>"
        where = f" · {html.escape(info.host)}" if info.host else ""
        self.name.setText(name + where + (f" · {info.source}" if not info.live else ""))
        self.name.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.name.setToolTip(plain_tip(f"{info.label}\n{info.power_source}"))
        self.power = PlainLabel()
        self.power.setFont(theme.number_font(1.0))
        self.spark = Spark(board)
        self.full = QPushButton()
        self.full.setAccessibleName(f"Show {info.label} in full")
        self.full.clicked.connect(lambda: self.opened.emit(board.uuid))
        self.remove = QToolButton()
        self.remove.setText("×")
        self.remove.setToolTip("Watch this board no longer")
        self.remove.setAccessibleName(f"Watch {info.label} no longer")
        self.remove.clicked.connect(lambda: self.removed.emit(board))
        self._figures = {name: PlainLabel(muted=True) for name in _FIGURES}
        figures = hbox(self.power, spacing=16)
        for name, label in self._figures.items():
            label.setToolTip(CHANNELS[name].label)
            label.setFont(theme.number_font(-0.5))
            figures.addWidget(label)
        figures.addStretch(1)
        self.times = PlainLabel(muted=True)  # how well those of another machine are known
        self.times.setFont(theme.number_font(-0.5))
        self.times.setVisible(isinstance(board.gpu, StreamsReadings))
        figures.addWidget(self.times)
        grid = QGridLayout(self)
        grid.setContentsMargins(6, 4, 6, 4)
        grid.setVerticalSpacing(2)
        grid.addWidget(self.name, 0, 0)
        grid.addWidget(self.full, 0, 2)
        grid.addWidget(self.remove, 0, 3)
        grid.addWidget(self.spark, 1, 0, 1, 4)
        grid.addLayout(figures, 2, 0, 1, 4)
        grid.setColumnStretch(0, 1)

    def set_in_full(self, in_full: bool) -> None:
        """Whether this is the board that is shown; that one is not removed, and a real one here is always there."""
        self.full.setText("Shown in full" if in_full else "In full")
        self.full.setEnabled(not in_full)
        always = is_real(self.board.uuid) and self.board.gpu.info.here
        self.remove.setVisible(not in_full and not always)

    def refresh(self) -> None:
        """Show the values of the present beat."""
        now = shown_reading(self.board.trace)
        if not now.values:
            return
        limit = now.limit_w(self.board.gpu)
        of = "" if math.isnan(limit) else f" of {limit:.0f} W"
        self.power.setText(value_text(now.power_name, "W", now.power_w) + of)
        for name, label in self._figures.items():
            value = now.values.get(name, math.nan)
            label.setVisible(not math.isnan(value))
            label.setText(value_text(name, CHANNELS[name].unit, value))
        if isinstance(self.board.gpu, StreamsReadings):
            ahead_s, error_s = self.board.gpu.clock_offset_s()
            self.times.setText(
                f"times ±{number(1e3 * error_s, 2)} ms" if math.isfinite(error_s) else "times not known yet"
            )
            there = f"{duration(abs(ahead_s))} {'ahead of' if ahead_s >= 0 else 'behind'} this one's"
            self.times.setToolTip(
                plain_tip(f"The clock of {self.board.gpu.info.host} is {there}; traces have times of this one")
            )
        self.spark.refresh()


class Spark(QWidget):
    """The power of the last minute, from nothing to the limit; the limit is the upper edge."""

    def __init__(self, board: WatchedBoard, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._board = board
        self._x = self._y = np.empty(0)
        self._window, self.end_ns = TimeWindow(_SHOWN_S), 0  # what is drawn ends with the figures beside it
        self._limit_w = math.nan
        self.setMinimumHeight(34)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setToolTip("Power of the last minute; the upper edge is the power limit")
        self.setAccessibleName("Power of the last minute")

    def sizeHint(self) -> QSize:
        return QSize(200, 44)

    def show_board(self, board: WatchedBoard) -> None:
        """Show another board's power."""
        self._board = board
        self._x = self._y = np.empty(0)
        self.end_ns = 0
        self.refresh()

    @property
    def points(self) -> int:
        """How many points are drawn."""
        return len(self._y)

    def refresh(self) -> None:
        """Copy the last minute, where it has moved by a pixel."""
        now = shown_reading(self._board.trace)
        _, end = self._window.bounds(now.time_ns, max(50, self.width()))
        if end == self.end_ns:
            return
        self.end_ns, self._limit_w, name = end, now.limit_w(self._board.gpu), now.power_name
        series = self._board.trace.view(end - int(_SHOWN_S * 1e9), end, max(50, self.width()), (name,)).get(name)
        if series is not None:
            self._x, self._y = np.array(series.time_s), np.array(series.value, dtype=np.float64)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        c = theme.colours()
        painter = QPainter(self)
        box = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        painter.fillRect(self.rect(), QColor(c.base))
        painter.setPen(QPen(QColor(c.grid), 1))
        painter.drawRect(box)
        finite = self._y[~np.isnan(self._y)]
        if not len(finite):
            return
        top = np.nanmax([self._limit_w, float(finite.max()), 1.0])
        xs = box.left() + self._x / _SHOWN_S * box.width()
        ys = box.bottom() - 2 - self._y / top * (box.height() - 4)
        painter.setPen(QPen(QColor(c.orange), 1))
        breaks = np.flatnonzero(np.isnan(ys))
        for part in np.split(np.arange(len(ys)), breaks):
            points = [QPointF(xs[i], ys[i]) for i in part if not math.isnan(ys[i])]
            painter.drawPolyline(QPolygonF(points))
