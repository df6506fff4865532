"""`Timeline`: a whole recording: its traces, and below them the overview with the window that they show.

`TimelineLanes`: the traces: a place that is looked at, marks, two spans. `Overview`: power and clock events from the
first reading to the last; the window in it is dragged, or resized at its ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QLineF, QPoint, QPointF, QRect, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import (
    QColor,
    QFontMetrics,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QWidget

from ...base.formatting import MINUS
from ...sensors.channel import Channel
from ...sensors.clock import HostClock
from ...sensors.gpu import GpuInfo
from ..shared import theme
from ..shared.panel import Part
from ..shared.widgets import vbox
from .lane_painter import known_runs, paint_span, polygon
from .lane_view import LaneView, Span
from .lanes import Layout
from .time_window import SHORTEST_S, TimeWindow

if TYPE_CHECKING:
    from ...sensors.recorded.header import Mark
    from ...sensors.timeline.stored import Stored

SPANS: Final = ("A", "B")
_STRIP_PX: Final = 58
_EDGE_PX: Final = 6  # about the ends of the window, by which it is resized
_MOST_LABELS: Final = 200  # of marks that are written in one picture
_DAY_S: Final = 86400.0


@dataclass(frozen=True, slots=True)
class RecordedBoard:
    """What the traces need to know of a board that is not there."""

    channels: tuple[Channel, ...]
    info: GpuInfo
    clock: HostClock = field(default_factory=HostClock)


class TimelineLanes(LaneView):
    """Instants are ns after the recording's beginning."""

    place_moved = Signal(object)  # int: the instant that is looked at
    mark_asked = Signal()  # M: at the place

    def __init__(self, board: Stored, *, low: bool = False, shortest_s: float = SHORTEST_S) -> None:
        like = RecordedBoard(board.facts.channels, board.facts.info)
        self._end_ns = board.end_ns
        super().__init__(like, board.trace, low=low)  # type: ignore[arg-type]  # what it asks of a board
        self.setAccessibleName("Recording over time")
        self.absolute = False
        self.marks: Sequence[Mark] = board.marks
        self.spans: dict[str, Span | None] = dict.fromkeys(SPANS)
        self.active = SPANS[0]
        self.place_ns = 0
        self._began_s = board.facts.began_s
        self.window_of_time = TimeWindow(longest_s=self._end_ns / 1e9 + shortest_s, shortest_s=shortest_s)
        self.add_overlay(self._paint_over)
        self.span_changed.connect(self._span_changed)
        self.show_whole()
        self._values = self.values_at(self.place_ns)

    @property
    def dated(self) -> bool:
        """It is known when it was recorded."""
        return math.isfinite(self._began_s)

    @property
    def end_ns(self) -> int:
        """The end of the recording."""
        return self._end_ns

    @property
    def bounds(self) -> Span:
        """The window that is shown."""
        return self._bounds()

    @property
    def _newest_ns(self) -> int:
        return self._end_ns

    @property
    def origin_ns(self) -> int:
        """The recording's beginning; in absolute time the midnight before, so that ticks are at round times."""
        if not self.absolute:
            return 0
        midnight = self._moment(0.0).replace(hour=0, minute=0, second=0, microsecond=0)
        return -round((self._moment(0.0) - midnight).total_seconds() * 1e9)

    def _moment(self, seconds: float) -> datetime:
        return datetime.fromtimestamp(self._began_s) + timedelta(seconds=seconds)

    def time_text(self, seconds: float, step: float) -> str:
        """'0:12.5' after the beginning, or the time of day; with the day where there are several."""
        decimals = 0 if step >= 1 else min(3, math.ceil(-math.log10(step)))
        if not self.absolute:
            return elapsed_text(seconds, decimals)
        moment = self._moment(seconds + self.origin_ns / 1e9)
        day = f"{moment:%d %b} " if self._end_ns - self.origin_ns > _DAY_S * 1e9 and step >= 60 else ""
        text = f"{day}{moment:%H:%M}" if step >= 60 else f"{moment:%H:%M:%S}"
        return text + (f".{moment.microsecond / 1e6:.{decimals}f}".replace(".0.", ".") if decimals else "")

    def instant_text(self, instant: int) -> str:
        """An instant as the axis has it."""
        return self.time_text((instant - self.origin_ns) / 1e9, 0.001)

    def show_recording(self, board: Stored) -> None:
        """Show more of the same recording, which has grown."""
        whole = self.bounds == (0, self._end_ns)
        self._trace, self._end_ns, self.marks = board.trace, board.end_ns, board.marks
        before = self.window_of_time
        self.window_of_time = TimeWindow(longest_s=self._end_ns / 1e9 + SHORTEST_S)
        if whole:
            self.show_whole()
        else:
            end = before.bounds(0, 1)[1]
            self.window_of_time.show(end - int(before.length_s * 1e9), end, self._end_ns)
        self._key = ()
        self._window_moved()

    def show_marks(self, marks: Sequence[Mark]) -> None:
        """Draw these marks."""
        self.marks = marks
        self.update()

    def show_absolute(self, absolute: bool) -> None:
        """Count the time from the recording's beginning, or show the time of day."""
        self.absolute = absolute and self.dated
        self.redraw()

    @Slot()
    def show_whole(self) -> None:
        """Show all of it."""
        self.show_window(0, self._end_ns)

    def show_window(self, start: int, end: int) -> None:
        """Show from one instant to another."""
        self.window_of_time.show(max(0, start), min(end, self._end_ns), self._end_ns)
        self._window_moved()

    def activate(self, name: str) -> None:
        """Let the mouse mark this span from now on."""
        self.active = name
        self.span = None  # the other one stays as it is
        self.set_span(self.spans[name])
        self.update()

    def go(self, instant: int) -> None:
        """Look at an instant, and move the window to it where it is out of sight."""
        self.place_ns = min(max(0, instant), self._end_ns)
        start, end = self.bounds
        if not start <= self.place_ns <= end:
            self.show_window(*_moved((start, end), self.place_ns - (start + end) // 2, self._end_ns))
        self._values = self.values_at(self.place_ns)
        self.place_moved.emit(self.place_ns)
        self.update()

    def go_to_mark(self, *, before: bool = False) -> bool:
        """Look at the next mark, or the one before; False if there is none."""
        return self._go_to([mark.time_ns for mark in self.marks], before)

    def go_to_event(self, *, before: bool = False) -> bool:
        """Look at the next change of the clock event reasons, or the one before; False if there is none."""
        instant = self._trace.next_event_ns(self.place_ns, before=before)
        return self._go_to([] if instant is None else [instant], before)

    def _go_to(self, instants: Sequence[int], before: bool) -> bool:
        there = [at for at in instants if (at < self.place_ns if before else at > self.place_ns)]
        if there:
            self.go(max(there) if before else min(there))
        return bool(there)

    # --- inside -------------------------------------------------------------------------------------------------------

    def _look_for_service(self) -> None:
        """No service runs on a board that is not there."""

    def _window_moved(self) -> None:
        start, end = self.bounds
        if start < 0 or end > self._end_ns:
            held = _moved((start, end), 0, self._end_ns)
            self.window_of_time.show(*held, self._end_ns)
        super()._window_moved()

    def hold(self, held: bool) -> None:
        """A recording has no newest reading to follow: the whole is shown again."""
        if not held:
            self.show_whole()

    def _cursor_text(self) -> str:
        return "" if self._cursor_ns is None else self.instant_text(self._cursor_ns)

    def _set_cursor(self, instant: int | None) -> None:
        super()._set_cursor(instant)
        if instant is None:
            self._values = self.values_at(self.place_ns)

    @Slot(object)
    def _span_changed(self, span: Span | None) -> None:
        self.spans[self.active] = span

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """A click looks at an instant, and the span stays."""
        drag, span = self._drag, self.span
        super().mouseReleaseEvent(event)
        if drag is not None and drag[0] == "span" and span is not None and self.span is None:
            self.set_span(span)
        if drag is not None and drag[0] == "span" and (event.position().toPoint() - drag[1]).manhattanLength() < 4:
            self.go(drag[2])

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrows move the place, Home and End go to the ends, + and - zoom, M sets a mark."""
        start, end = self.bounds
        step = (end - start) // (100 if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 20)
        places = {
            Qt.Key.Key_Left: self.place_ns - step, Qt.Key.Key_Right: self.place_ns + step,
            Qt.Key.Key_Home: 0, Qt.Key.Key_End: self._end_ns,
        }  # fmt: skip
        key = Qt.Key(event.key())
        if key in places:
            self.go(places[key])
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Minus):
            self._cursor_ns = self.place_ns
            self.zoom(0.5 if key == Qt.Key.Key_Plus else 2.0)
            self._cursor_ns = None
        elif key == Qt.Key.Key_M:
            self.mark_asked.emit()
        else:
            super().keyPressEvent(event)

    def _paint_over(self, painter: QPainter, layout: Layout, bounds: Span, colours: theme.Colours) -> None:
        metrics = QFontMetrics(painter.font())
        area = layout.span

        def x_of(instant: int) -> float:
            return layout.left + (instant - bounds[0]) / max(1, bounds[1] - bounds[0]) * layout.columns

        for name, span in self.spans.items():
            if span is None:
                continue
            x0, x1 = x_of(span[0]), x_of(span[1])
            if name != self.active:
                paint_span(painter, layout, x0, x1, colours)
            if layout.left < x1 and x0 < layout.right:
                painter.setPen(QColor(colours.accent))
                painter.drawText(QPointF(max(x0, layout.left) + 3, area.bottom() - 3), name)
        painter.setPen(QPen(QColor(colours.text), 1, Qt.PenStyle.DotLine))
        if bounds[0] <= self.place_ns <= bounds[1]:
            painter.drawLine(QLineF(x_of(self.place_ns), area.top(), x_of(self.place_ns), area.bottom()))
        free = float(layout.left)
        shown = [mark for mark in self.marks if bounds[0] <= mark.time_ns <= bounds[1]]
        for mark in shown[: layout.columns]:
            x = x_of(mark.time_ns)
            painter.setPen(QPen(QColor(colours.purple), 1))
            painter.drawLine(QLineF(x, area.top(), x, area.bottom()))
            width = metrics.horizontalAdvance(mark.text)
            if x >= free and len(shown) <= _MOST_LABELS and x + 4 < layout.right:
                text = metrics.elidedText(mark.text, Qt.TextElideMode.ElideRight, int(min(180, layout.right - x - 4)))
                width = metrics.horizontalAdvance(text)
                flag = QRectF(x, area.bottom() - 2 * metrics.height(), width + 6, metrics.height())
                painter.fillRect(flag, QColor(colours.purple))
                painter.setPen(QColor(colours.base))
                painter.drawText(flag, Qt.AlignmentFlag.AlignCenter, text)
                free = flag.right() + 2


def elapsed_text(seconds: float, decimals: int = 0) -> str:
    """'12.5 s', '1:02.5', '3:01:02' after the beginning."""
    sign, size = (MINUS, -seconds) if seconds < -0.5 * 10.0**-decimals else ("", max(0.0, seconds))
    size = round(size, decimals)
    if size < 60:
        return f"{sign}{size:.{decimals}f} s"
    minutes, rest = divmod(size, 60)
    width = 3 + decimals if decimals else 2
    hours, minutes = divmod(int(minutes), 60)
    tail = f"{rest:0{width}.{decimals}f}"
    return f"{sign}{hours}:{minutes:02d}:{tail}" if hours else f"{sign}{minutes}:{tail}"


class Overview(QWidget):
    """The whole recording; what the traces show is the window in it."""

    moved = Signal(object)  # (start, end): by the user's hand

    def __init__(self, lanes: TimelineLanes) -> None:
        super().__init__()
        self._lanes = lanes
        self._picture = QPixmap()
        self._drag: tuple[str, int, Span] | None = None  # what ("move", "start", "end"), the instant there, the window
        self.setFixedHeight(_STRIP_PX)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Overview of the recording")
        self.setToolTip("Drag the window, or its ends; wheel: zoom; double click: the whole recording")
        lanes.window_changed.connect(self.update)
        theme.notifier().changed.connect(self.draw_again)

    def sizeHint(self) -> QSize:
        return QSize(600, _STRIP_PX)

    @Slot()
    def draw_again(self) -> None:
        """The recording has grown, or is drawn in other colours."""
        self._picture = QPixmap()
        self.update()

    @property
    def _area(self) -> QRect:
        return self.rect().adjusted(8, 2, -8, -2)

    def _x_of(self, instant: int) -> float:
        return self._area.left() + instant / max(1, self._lanes.end_ns) * self._area.width()

    def _instant_at(self, x: float) -> int:
        return round((x - self._area.left()) / max(1, self._area.width()) * self._lanes.end_ns)

    def _draw(self) -> None:
        """Power from the least to the largest of each column, gaps left out, and a bar for clock events."""
        ratio, colours, area, trace = self.devicePixelRatioF(), theme.colours(), self._area, self._lanes._trace
        self._picture = QPixmap(self.size() * ratio)
        self._picture.setDevicePixelRatio(ratio)
        self._picture.fill(QColor(colours.window))
        painter = QPainter(self._picture)
        painter.fillRect(area, QColor(colours.base))
        power = trace.view(0, self._lanes.end_ns, 2 * max(1, area.width()), (trace.power_name,))[trace.power_name]
        top = float(np.nanmax(power.value, initial=0.0)) or 1.0
        x = area.left() + power.time_s * (1e9 * area.width() / max(1, self._lanes.end_ns))
        y = area.bottom() - 5 - power.value / top * (area.height() - 8)
        painter.setPen(QPen(QColor(colours.of_channel(trace.power_name)), 1))
        for start, stop in known_runs(y):
            painter.drawPolyline(polygon(x[start:stop], y[start:stop]))
        for span in trace.event_spans(0, self._lanes.end_ns):
            x0, x1 = self._x_of(span.start_ns), self._x_of(span.end_ns)
            painter.fillRect(
                QRectF(x0, area.bottom() - 3, max(1.0, x1 - x0), 3), QColor(colours.of_reason(span.reason))
            )
        painter.end()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._picture.isNull():
            self._draw()
        painter, colours, area = QPainter(self), theme.colours(), self._area
        painter.drawPixmap(0, 0, self._picture)
        for name in SPANS:
            if (span := self._lanes.spans[name]) is not None:
                shade = QColor(colours.accent)
                shade.setAlpha(50)
                x0, x1 = self._x_of(span[0]), self._x_of(span[1])
                painter.fillRect(QRectF(x0, area.top(), max(1.0, x1 - x0), area.height()), shade)
        painter.setPen(QPen(QColor(colours.purple), 1))
        for mark in self._lanes.marks[: 4 * self.width()]:
            painter.drawLine(QLineF(self._x_of(mark.time_ns), area.top(), self._x_of(mark.time_ns), area.top() + 8))
        x0, x1 = (self._x_of(instant) for instant in self._lanes.bounds)
        veil = QColor(colours.window)
        veil.setAlpha(150)
        painter.fillRect(QRectF(area.left(), area.top(), x0 - area.left(), area.height()), veil)
        painter.fillRect(QRectF(x1, area.top(), area.right() - x1, area.height()), veil)
        painter.setPen(QPen(QColor(colours.accent), 2 if self.hasFocus() else 1))
        painter.drawRect(QRectF(x0, area.top(), max(2.0, x1 - x0), area.height() - 1))

    def _part_at(self, place: QPoint) -> str:
        x0, x1 = (self._x_of(instant) for instant in self._lanes.bounds)
        near = min((abs(place.x() - x0), "start"), (abs(place.x() - x1), "end"))
        return near[1] if near[0] <= _EDGE_PX else "move"

    def mousePressEvent(self, event: QMouseEvent) -> None:
        place, (start, end) = event.position().toPoint(), self._lanes.bounds
        part, instant = self._part_at(place), self._instant_at(place.x())
        if part == "move" and not start <= instant <= end:
            self.moved.emit(_moved((start, end), instant - (start + end) // 2, self._lanes.end_ns))
        self._drag = part, instant, self._lanes.bounds

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        place = event.position().toPoint()
        if self._drag is None:
            part = self._part_at(place)
            self.setCursor(Qt.CursorShape.OpenHandCursor if part == "move" else Qt.CursorShape.SizeHorCursor)
            return
        part, origin, (start, end) = self._drag
        by, least = self._instant_at(place.x()) - origin, round(self._lanes.window_of_time.shortest_s * 1e9)
        if part == "move":
            self.moved.emit(_moved((start, end), by, self._lanes.end_ns))
        elif part == "start":
            self.moved.emit((max(0, min(start + by, end - least)), end))
        else:
            self.moved.emit((start, min(self._lanes.end_ns, max(end + by, start + least))))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._drag = None

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.moved.emit((0, self._lanes.end_ns))

    def wheelEvent(self, event: QWheelEvent) -> None:
        self._lanes.zoom(0.8 ** (event.angleDelta().y() / 120))
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Left and right move the window, up and down zoom."""
        start, end = self._lanes.bounds
        steps = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1, Qt.Key.Key_PageUp: -10, Qt.Key.Key_PageDown: 10}
        key = Qt.Key(event.key())
        if key in steps:
            self.moved.emit(_moved((start, end), steps[key] * (end - start) // 10, self._lanes.end_ns))
        elif key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            self._lanes.zoom(0.8 if key == Qt.Key.Key_Up else 1.25)
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self.draw_again()


def _moved(window: Span, by: int, end_ns: int) -> Span:
    """The window moved, as long as before, within the recording."""
    length = min(window[1] - window[0], end_ns)
    start = min(max(0, window[0] + by), end_ns - length)
    return start, start + length


class Timeline(Part):
    """Traces and overview of one recording, which stay in step."""

    def __init__(self, board: Stored) -> None:
        super().__init__()
        self.lanes = TimelineLanes(board)
        self.overview = Overview(self.lanes)
        self.overview.moved.connect(self._move)
        vbox((self.lanes, 1), self.overview, of=self, margins=0, spacing=2)

    @Slot(object)
    def _move(self, window: Span) -> None:
        self.lanes.show_window(*window)

    def show_recording(self, board: Stored) -> None:
        """Show more of the same recording, which has grown."""
        self.lanes.show_recording(board)
        self.overview.draw_again()
