"""`LaneView`: the monitor's stacked traces as a widget: draws from copies, zooms, pans, marks a span.

What costs (grids, traces, events) is painted into a pixmap, and only when the window has moved by a pixel column; the
values in the headers, the cursor and the span lie over it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from PySide6.QtCore import QEvent, QPoint, QRect, QSize, Qt, Signal, Slot
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QFont,
    QFontMetrics,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPixmap,
    QRegion,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from ...sensors.event_reasons import names as reason_names
from ...sensors.service import service_trace
from ..plots.figures import ago_text, value_text
from ..shared import theme
from ..shared.watched_boards import shown_reading
from .lane_painter import Range, paint_cursor, paint_grids, paint_headers, paint_span, paint_traces, time_marks
from .lanes import (
    ESTIMATED_VOLTAGE,
    LANES,
    MORE_LANES,
    POWER,
    SERVICE_LANES,
    LaneChoice,
    Layout,
    Line,
    ShownLane,
    axis_range,
    boards_lane,
    lay_out,
    lay_out_low,
    meters_lane,
    shown_lanes,
)
from .snapshot import OtherPower, Snapshot, take_snapshot
from .time_window import TimeWindow, WallTime

if TYPE_CHECKING:
    from ...engine.models.fit.voltage import VoltageEstimate
    from ...sensors.gpu import Gpu, GpuInfo
    from ...sensors.meters.sampled import SampledMeter
    from ...sensors.trace.trace import Trace

Span = tuple[int, int]
Overlay = Callable[[QPainter, Layout, Span, theme.Colours], None]  # draws what lies within bounds over the lanes
_CLICK_PX = 4
_KEY_STEP = 0.1  # of what is shown, for a press of an arrow


class LaneView(QWidget):
    """Instants in its signals are ns on the GPU's clock; None if there is none.

    A `low` one has its headers at the left, and no clock events: its lanes are readable in a hundred pixels.
    """

    cursor_moved = Signal(object)  # int | None: the instant under the mouse
    span_changed = Signal(object)  # (start, end) | None
    window_changed = Signal()  # length, or live or held
    menu_asked = Signal(QPoint, str)  # where on the screen, and the title of the lane there
    first_frame = Signal()  # the first traces have been painted

    def __init__(self, gpu: Gpu, trace: Trace, parent: QWidget | None = None, *, low: bool = False) -> None:
        super().__init__(parent)
        self._gpu = gpu
        self._trace = trace
        self._low = low
        self._wall = WallTime(gpu.clock)
        self._estimate: VoltageEstimate | None = None
        self.window_of_time = TimeWindow()
        self._choice = LaneChoice()
        self._boards: dict[str, OtherPower] = {}  # by the names of their series
        self._meters: dict[str, OtherPower] = {}  # the same
        self._service: Trace | None = None  # of what is asked on this board
        self._lanes: tuple[ShownLane, ...] = ()
        self._ranges: dict[str, Range] = {}
        self._snapshot: Snapshot | None = None
        self._key: tuple[object, ...] = ()
        self._plots = QPixmap()
        self._grids = QPixmap()  # what lies under the traces, as `_drawn` says
        self._drawn: tuple[object, ...] = ()
        self._values: dict[str, float] = {}
        self._painted = False
        self._cursor_ns: int | None = None
        self.span: Span | None = None
        self._overlays: list[Overlay] = []
        self._left: WeakKeyDictionary[Trace, tuple[TimeWindow, Span | None]] = WeakKeyDictionary()  # as they were left
        self._drag: tuple[str, QPoint, int] | None = None  # what ("span", "pan"), from where, the instant there
        self.setMouseTracking(True)
        self.setMinimumSize(260, 80 if low else 220)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Traces")
        theme.notifier().changed.connect(self._look_differs)
        self._choose_lanes()

    def sizeHint(self) -> QSize:
        return QSize(820, 620)

    def show_board(self, gpu: Gpu, trace: Trace) -> None:
        """Show another board's trace from the next `refresh` on, as it was left; at first as long a stretch as now."""
        self._left[self._trace] = (self.window_of_time, self.span)
        self._gpu, self._trace = gpu, trace
        self.window_of_time, span = self._left.get(trace, (TimeWindow(self.window_of_time.length_s), None))
        self._wall = WallTime(gpu.clock)
        self._cursor_ns = self._drag = self._snapshot = None
        self._values = {}
        self._ranges.clear()
        self._estimate, self._boards, self._meters, self._service, self._key = None, {}, {}, None, ()
        self._lanes = self._choice.arrange(self.every_lane)
        self.set_span(None)
        self.set_span(span)
        self.window_changed.emit()
        self.update()

    # --- what is shown ------------------------------------------------------------------------------------------------

    @property
    def lanes(self) -> tuple[ShownLane, ...]:
        """The lanes that are shown, as this GPU fills them."""
        return self._lanes

    @property
    def every_lane(self) -> tuple[ShownLane, ...]:
        """The lanes that can be chosen."""
        source = self._estimate.source if self._estimate is not None else ""
        power, *others = shown_lanes(self._gpu.channels, estimate=source, lanes=(*LANES, *MORE_LANES))
        if self._service is not None:
            others[:0] = [ShownLane(lane, lane.lines) for lane in SERVICE_LANES]
        if self._meters:
            others.insert(0, meters_lane({series: meter.name for series, meter in self._meters.items()}))
        if not self._boards:
            return power, *others
        board_name = short_name(self._gpu.info)
        return power, boards_lane(board_name, {series: board.name for series, board in self._boards.items()}), *others

    @property
    def ranges(self) -> dict[str, Range]:
        """The ends of each lane's axis as they were drawn last, by title."""
        return dict(self._ranges)

    @property
    def choice(self) -> LaneChoice:
        """Which lanes are shown, in which order and on which scales."""
        return self._choice

    def set_choice(self, choice: LaneChoice) -> None:
        """Show these lanes."""
        self._choice = choice
        self._ranges.clear()
        self._choose_lanes()

    def set_boards(self, boards: Iterable[tuple[Gpu, Trace]]) -> None:
        """Draw the power of these boards in a lane of their own; those whose clock runs at another speed are left out.

        Another speed is that of a simulated board that runs faster than real time: no instant of it has a place here.
        """
        clock = self._gpu.clock
        self._boards = {
            f"power of {place}": OtherPower(short_name(gpu.info), trace, gpu.clock.now_ns() - clock.now_ns())
            for place, (gpu, trace) in enumerate(boards)
            if gpu.clock.speed == clock.speed
        }
        self._choose_lanes()

    def set_meters(self, meters: Iterable[SampledMeter]) -> None:
        """Draw what the meters beside this board report in a lane of their own, on the board's time axis.

        A meter that lives in real time is left out where the board does not.
        """
        clock = self._gpu.clock
        ahead_ns = time.monotonic_ns() - clock.now_ns()
        self._meters = {
            f"meter {place} {channel.name}": OtherPower(
                channel.label, meter.record.trace, 0 if meter.info.boards_clock else ahead_ns, channel.name
            )
            for place, meter in enumerate(meters)
            for channel in meter.channels
            if meter.info.boards_clock or clock.speed == 1.0
        }
        self._choose_lanes()

    def _look_for_service(self) -> None:
        """Draw the activity of a service on this board, once a session uses one, in lanes of its own."""
        trace = service_trace(self._gpu.info)
        if trace is not self._service:
            self._service = trace
            self._lanes = self._choice.arrange(self.every_lane)
            self._look_differs()

    @property
    def _others(self) -> dict[str, OtherPower]:
        """What is drawn of other traces than the board's own, by the names of their series."""
        service = self._service
        of_service = (
            {} if service is None else {c.name: OtherPower(c.label, service, 0, c.name) for c in service.channels}
        )
        return {**self._boards, **self._meters, **of_service}

    def _choose_lanes(self) -> None:
        self._lanes = self._choice.arrange(self.every_lane)
        if self.isVisible():
            self.redraw()
        else:
            self._look_differs()

    @property
    def snapshot(self) -> Snapshot | None:
        """What the last frame showed."""
        return self._snapshot

    @property
    def origin_ns(self) -> int:
        """The instant the time axis counts from: the window's end, or the moment it was held."""
        held = self.window_of_time.held_at_ns
        return held if held is not None else self._bounds()[1]

    def time_text(self, seconds: float, step: float) -> str:
        """A time on the axis, whose ticks are `step` seconds apart."""
        return ago_text(seconds, step)

    def set_estimate(self, estimate: VoltageEstimate | None) -> None:
        """Draw this estimate where the board reports no voltage."""
        self._estimate = estimate
        self._choose_lanes()

    @property
    def estimates(self) -> bool:
        """Whether an estimated voltage is shown: there is one, and the board reports none."""
        return any(shown.source for shown in self._lanes)

    def present_values(self) -> dict[str, float]:
        """What `values_at` has of the reading that all panels show now."""
        now = shown_reading(self._trace)
        return self._with_others(now.values, {name: other.present_w for name, other in self._others.items()})

    def values_at(self, instant: int) -> dict[str, float]:
        """Every channel's value at an instant, the estimate among them where it is shown."""
        others = {name: other.power_w(instant) for name, other in self._others.items()}
        return self._with_others(self._trace.at(instant), others)

    def _with_others(self, of_board: dict[str, float], others: dict[str, float]) -> dict[str, float]:
        values = {**of_board, **others}
        if self._estimate is not None and self.estimates:
            ratio = self._estimate.ratio(values.get("graphics_clock_mhz", math.nan))
            values[ESTIMATED_VOLTAGE.name] = float(ratio)
        return values

    def add_overlay(self, overlay: Overlay) -> None:
        """Call `overlay` to draw over the lanes at every frame."""
        self._overlays.append(overlay)
        self.update()

    def refresh(self, values: dict[str, float]) -> bool:
        """Take over the newest values and, where the window has moved, the traces; True if the traces were redrawn."""
        redrawn = self._redraw_if_moved()
        shown = values if self._cursor_ns is None else self._values
        if redrawn:
            self._values = shown
            self.update()
        elif shown is not self._values:
            self._values = shown
            layout = self._layout()
            headers = QRegion(layout.events_header)
            for box in layout.lanes:
                headers += box.header
            self.update(headers)
        return redrawn

    @Slot()
    def redraw(self) -> None:
        """Draw everything again at once."""
        self._key = ()
        self._redraw_if_moved()
        self.update()

    @Slot()
    def _look_differs(self) -> None:
        """Draw everything again when it is painted: out of sight that is never, and a layout resizes several times."""
        self._key = ()
        self.update()

    def set_span(self, span: Span | None) -> None:
        """Mark a stretch of time."""
        if span != self.span:
            self.span = span
            self.span_changed.emit(span)
            self.update()

    def hold(self, held: bool) -> None:
        """Stop following the newest reading, or follow again."""
        if held:
            self.window_of_time.hold(self._newest_ns)
        else:
            self.window_of_time.follow()
        self._window_moved()

    def set_length(self, length_s: float) -> None:
        """Show that many seconds."""
        self.window_of_time.set_length(length_s)
        self._ranges.clear()
        self._window_moved()

    def show_span(self) -> None:
        """Zoom to the marked span."""
        if self.span is not None:
            self.window_of_time.show(*self.span, self._newest_ns)
            self._window_moved()

    def zoom(self, factor: float) -> None:
        """Zoom about the mouse, else about the middle."""
        start, end = self._bounds()
        anchor = self._cursor_ns if self._cursor_ns is not None else (start + end) // 2
        self.window_of_time.zoom(factor, anchor)
        self._window_moved()

    # --- painting -----------------------------------------------------------------------------------------------------

    def render_to(self, painter: QPainter, area: QRect, title: str) -> None:
        """The whole picture as it is now, with a title, for an image file."""
        if not self._key:
            self._redraw_if_moved()
        colours, font = theme.colours(), self._font()
        painter.fillRect(area, QColor(colours.window))
        metrics = QFontMetrics(font)
        painter.setFont(font)
        painter.setPen(QColor(colours.text))
        painter.drawText(area.adjusted(10, 4, -10, 0), int(Qt.AlignmentFlag.AlignLeft), title)
        inside = area.adjusted(0, metrics.height() + 8, 0, 0)
        snapshot = self._snapshot
        if snapshot is not None:
            layout = self._layout(inside)
            marks = time_marks(layout, snapshot, font, self.origin_ns, self.time_text)
            paint_grids(painter, layout, self._ranges, marks, colours, font)
            paint_traces(painter, layout, snapshot, self._ranges, colours, font)
            paint_headers(painter, layout, self._value_text, self._events_text(), colours, font)
            self._paint_span(painter, layout)

    def paintEvent(self, event: QPaintEvent) -> None:
        if not self._key:
            self._redraw_if_moved()
        colours, font = theme.colours(), self._font()
        painter = QPainter(self)
        if self._snapshot is None:
            painter.fillRect(self.rect(), QColor(colours.window))
            painter.setPen(QColor(colours.muted))
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, "Waiting for the first reading")
            return
        painter.drawPixmap(0, 0, self._plots)
        layout = self._layout()
        paint_headers(painter, layout, self._value_text, self._events_text(), colours, font)
        self._paint_span(painter, layout)
        if self._cursor_ns is not None:
            paint_cursor(painter, layout, self._x_of(self._cursor_ns, layout), self._cursor_text(), colours, font)
        if not self._painted:
            self._painted = True
            self.first_frame.emit()

    def _redraw_if_moved(self) -> bool:
        self._look_for_service()
        newest = self._newest_ns
        if not newest or self.width() < 50 or self.height() < 50:
            return False
        bounds = self._bounds()
        late = 0 if self.window_of_time.live else min(newest, bounds[1] + 1_000_000_000)  # samples that come late
        key = (
            bounds,
            late,
            self.size(),
            self.devicePixelRatioF(),
            theme.colours(),
            self._lanes,
            self._choice,
            self._estimate,
        )
        if key == self._key:
            return False
        self._key = key
        colours, font = theme.colours(), self._font()
        columns = self._layout().columns
        snapshot = take_snapshot(self._trace, self._lanes, self._estimate, bounds, columns, self._others)
        self._snapshot = snapshot
        for shown in self._lanes:
            self._ranges[shown.lane.title] = self._range_of(shown, snapshot)
        ratio = self.devicePixelRatioF()
        size = self.size() * ratio
        layout = self._layout()
        marks = time_marks(layout, snapshot, font, self.origin_ns, self.time_text)
        drawn = size, ratio, layout, dict(self._ranges), marks, colours, font
        if drawn != self._drawn:  # while the picture only moves, the grids stay
            self._drawn = drawn
            self._grids = _filled(size, ratio, colours)
            painter = QPainter(self._grids)
            paint_grids(painter, layout, self._ranges, marks, colours, font)
            painter.end()
            self._plots = _filled(size, ratio, colours)
        painter = QPainter(self._plots)
        painter.drawPixmap(0, 0, self._grids)
        paint_traces(painter, layout, snapshot, self._ranges, colours, font)
        painter.end()
        return True

    def _range_of(self, shown: ShownLane, snapshot: Snapshot) -> Range:
        fixed = self._choice.scale(shown.lane)
        if fixed is not None:
            return fixed
        extents = [snapshot.curves[line.channel].extent() for line in shown.lines if line.channel in snapshot.curves]
        finite = [extent for extent in extents if not math.isnan(extent[0])]
        low = min((low for low, _ in finite), default=math.nan)
        high = max((high for _, high in finite), default=math.nan)
        return axis_range(shown.lane, low, high, self._ranges.get(shown.lane.title))

    def _paint_span(self, painter: QPainter, layout: Layout) -> None:
        for overlay in self._overlays:
            overlay(painter, layout, self._bounds(), theme.colours())
        if self.span is not None:
            x0, x1 = (self._x_of(instant, layout) for instant in self.span)
            paint_span(painter, layout, x0, x1, theme.colours())

    def _value_text(self, line: Line, unit: str) -> str:
        name = shown_reading(self._trace).power_name if line.channel == POWER else line.channel
        return value_text(name, unit, self._values.get(name, math.nan))

    def _events_text(self) -> str:
        bits = self._values.get("event_reasons", math.nan)
        return "" if math.isnan(bits) else ", ".join(reason_names(int(bits))) or "none"

    def _cursor_text(self) -> str:
        assert self._cursor_ns is not None
        length_s = self.window_of_time.length_s
        text = ago_text((self._cursor_ns - self.origin_ns) / 1e9, 1.0 if length_s > 120 else 0.01)
        wall = self._wall.text(self._cursor_ns)
        return f"{text} · {wall}" if wall else text

    # --- the mouse ----------------------------------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:
        place = event.position().toPoint()
        panning = event.button() in (Qt.MouseButton.MiddleButton, Qt.MouseButton.RightButton)
        panning = panning or bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        self._drag = ("pan" if panning else "span", place, self.instant_at(place.x()))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        place = event.position().toPoint()
        if self._drag is not None:
            what, origin, instant = self._drag
            if abs(place.x() - origin.x()) < _CLICK_PX:
                pass  # so far it is a click
            elif what == "pan":
                self.window_of_time.pan(
                    (instant - self.instant_at(place.x())) / 1e9, self._newest_ns, self._trace.first_ns
                )
                self._window_moved()
            else:
                self._mark(instant, self.instant_at(place.x()))
        self._set_cursor(self.instant_at(place.x()))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        drag, self._drag = self._drag, None
        place = event.position().toPoint()
        if drag is None or abs(place.x() - drag[1].x()) >= _CLICK_PX:
            return
        if drag[0] == "span":
            self.set_span(None)
        elif event.button() == Qt.MouseButton.RightButton:
            self._ask_menu(place)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """By the menu key; the right button moves through time, and is a click only once it is released."""
        if event.reason() == QContextMenuEvent.Reason.Keyboard:
            self._ask_menu(self.rect().center())

    def _ask_menu(self, place: QPoint) -> None:
        at = (box for box in self._layout().lanes if box.header.top() <= place.y() <= box.plot.bottom())
        title = next((box.shown.lane.title for box in at), "")
        self.menu_asked.emit(self.mapToGlobal(place), title)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.hold(False)

    def wheelEvent(self, event: QWheelEvent) -> None:
        steps = (event.angleDelta().y() or event.angleDelta().x()) / 120
        if steps:
            self._cursor_ns = self.instant_at(event.position().toPoint().x())
            self.zoom(0.8**steps)
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Left and right move through time, End follows the newest reading again."""
        steps = {Qt.Key.Key_Left: -_KEY_STEP, Qt.Key.Key_Right: _KEY_STEP}
        step = steps.get(Qt.Key(event.key()))
        if step is not None:
            length_s = self.window_of_time.length_s
            self.window_of_time.pan(step * length_s, self._newest_ns, self._trace.first_ns)
            self._window_moved()
        elif event.key() == Qt.Key.Key_End:
            self.hold(False)
        else:
            super().keyPressEvent(event)

    def leaveEvent(self, event: QEvent) -> None:
        self._set_cursor(None)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._look_differs()

    def changeEvent(self, event: QEvent) -> None:
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.ApplicationFontChange):
            self._look_differs()
        super().changeEvent(event)

    def _mark(self, one: int, other: int) -> None:
        """Mark what lies between two instants and was read."""
        start, end = max(min(one, other), self._trace.first_ns), min(max(one, other), self._newest_ns)
        self.set_span((start, end) if start < end else None)

    def _set_cursor(self, instant: int | None) -> None:
        self._cursor_ns = instant
        if instant is not None:
            self._values = self.values_at(instant)
        self.cursor_moved.emit(instant)
        self.update()

    # --- places and instants ------------------------------------------------------------------------------------------

    def _window_moved(self) -> None:
        self._redraw_if_moved()
        self.update()
        self.window_changed.emit()

    def _font(self) -> QFont:
        return theme.number_font(-0.5)

    def _layout(self, area: QRect | None = None) -> Layout:
        metrics = QFontMetrics(self._font())
        if self._low:
            return lay_out_low(area or self.rect(), self._lanes, metrics)
        rows = len({span.reason for span in self._snapshot.spans}) if self._snapshot is not None else 0
        return lay_out(area or self.rect(), self._lanes, metrics, rows)

    @property
    def _newest_ns(self) -> int:
        """The instant of the reading that all panels show now: the live end of the traces."""
        return shown_reading(self._trace).time_ns

    def _bounds(self) -> Span:
        return self.window_of_time.bounds(self._newest_ns, self._columns())

    def _columns(self) -> int:
        metrics = QFontMetrics(self._font())
        layout = lay_out_low(self.rect(), (), metrics) if self._low else lay_out(self.rect(), (), metrics, 0)
        return layout.columns

    def _x_of(self, instant: int, layout: Layout) -> float:
        start, end = self._bounds()
        return layout.left + (instant - start) / max(1, end - start) * layout.columns

    def instant_at(self, x: int) -> int:
        """The instant shown in a pixel column, the nearest end of the axis beside it."""
        layout = self._layout()
        start, end = self._bounds()
        inside = min(max(x, layout.left), layout.right)
        return start + int((inside - layout.left) / layout.columns * (end - start))


def _filled(size: QSize, ratio: float, colours: theme.Colours) -> QPixmap:
    pixmap = QPixmap(size)
    pixmap.setDevicePixelRatio(ratio)
    pixmap.fill(QColor(colours.window))
    return pixmap


def short_name(info: GpuInfo) -> str:
    """A board's name in a legend: 'H200 #1', 'A100-PCIE-40GB (simulated)'."""
    number = f" #{info.index}" if info.live else ""
    return info.label.removeprefix("NVIDIA ") + number
