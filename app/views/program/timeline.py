"""`ProgramTimeline`: ranges and what each stream ran, above power and clock, on one axis of time.

A lane is one row of pixels, stretched to its height: what takes most of a column gives its colour, and the part of the
column in which nothing runs pales it. Names stand where they fit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from PySide6.QtCore import QPoint, QRect, QRectF, Qt, Signal, Slot
from PySide6.QtGui import QColor, QFontMetrics, QImage, QKeyEvent, QMouseEvent, QPainter, QPen

from ...base.formatting import number
from ...sensors.channel import Channel, Reading
from ...sensors.trace.trace import Series, Trace
from ..shared import theme
from ..watch.lane_view import Span
from ..watch.lanes import LANES, Layout, Line, ShownLane
from ..watch.timeline import TimelineLanes, elapsed_text
from .family_colours import FamilyColours
from .slice_lanes import SliceLane

if TYPE_CHECKING:
    from ...engine.profile.attributed import AttributedTrace
    from ...sensors.recorded.header import Mark

Chosen = tuple[SliceLane, int]  # a slice as its lane and its place in it
_POWER: Final = Channel("power_average_w", "W", "Power")
_CLOCK: Final = Channel("graphics_clock_mhz", "MHz", "Graphics clock")
_SHORTEST_S: Final = 1e-6
_REACH_PX, _NAMED_PX, _APART_PX = 3, 34, 4
_FINE_NS: Final = 20_000_000  # in windows below it the axis counts from a whole millisecond
_MOST_SAMPLES: Final = 200_000


class _Samples(Trace):
    """Whose views hold a sample at either side: a window may be shorter than the time between two."""

    def view(self, t0_ns: int, t1_ns: int, max_points: int, names: Sequence[str] | None = None) -> dict[str, Series]:
        if not len(self):
            return super().view(t0_ns, t1_ns, max_points, names)
        beside = max(self._rows.before(t0_ns, False) - 1, 0), min(self._rows.before(t1_ns), len(self) - 1)
        first, last = (int(self._rows.times(at, at + 1)[0]) for at in beside)
        begin, end = min(first, t0_ns), max(last, t1_ns)
        found = super().view(begin, end, max_points, names)
        return {name: Series(each.time_s + (begin - t0_ns) / 1e9, each.value) for name, each in found.items()}


@dataclass(frozen=True, slots=True)
class ProgramRecording:
    """Power and clock of a program as the traces of Watch take them; what they ask of a board's facts is here too."""

    channels: tuple[Channel, ...]
    trace: Trace
    end_ns: int
    marks: Sequence[Mark] = ()
    info: Any = None
    began_s: float = math.nan

    @property
    def facts(self) -> ProgramRecording:
        """Channels, board and beginning."""
        return self

    @classmethod
    def of(cls, attributed: AttributedTrace) -> ProgramRecording:
        """Takes some µs for each sample. Of very many samples some are left out."""
        clocked = bool(np.isfinite(attributed.sample_mhz).any())
        channels = (_POWER, _CLOCK) if clocked else (_POWER,)
        kept = np.flatnonzero(attributed.sample_s >= 0)[:: max(1, len(attributed.sample_s) // _MOST_SAMPLES)]
        begin, end = attributed.trace.span_ns
        span_s = max((end - begin) / 1e9 + 2.0, 1.0)
        trace = _Samples(channels, rate_hz=(len(kept) + 1) / span_s, span_s=span_s)
        values = np.stack((attributed.sample_w, attributed.sample_mhz)[: len(channels)], 1)[kept].tolist()
        for seconds, row in zip(attributed.sample_s[kept].tolist(), values, strict=True):
            trace.append(Reading(round(1e9 * seconds), tuple(row)))
        return cls(channels, trace, max(end - begin, 1000))


class ProgramTimeline(TimelineLanes):
    """Instants are ns after the first slice. A key or a click looks at an instant, and chooses the slice there."""

    slice_chosen = Signal(object)  # (lane, place in it) | None

    def __init__(
        self, attributed: AttributedTrace, board: ProgramRecording, lanes: Sequence[SliceLane], colours: FamilyColours
    ) -> None:
        self._attributed, self._slices, self._colours = attributed, tuple(lanes), colours
        self.chosen: Chosen | None = None
        self._lit: tuple[bool, int] | None = None  # a key that is lit: of ranges or of families
        self._lane = len(lanes) - 1  # that the arrow keys are in
        super().__init__(board, low=True, shortest_s=_SHORTEST_S)  # type: ignore[arg-type]
        self.setAccessibleName("Timeline of the program")
        self.setAccessibleDescription(
            "Left, Right: move; +, -: zoom; Home, End: the ends; Up, Down: lane; Ctrl+Left, Ctrl+Right: slice; "
            "Enter: zoom to it; S: mark what is shown; Escape: choose and mark nothing"
        )
        self.add_overlay(self._paint_chosen)

    @property
    def every_lane(self) -> tuple[ShownLane, ...]:
        """Power, and the clock where it was recorded."""
        return tuple(ShownLane(lane, lane.lines[:1]) for lane in LANES[: len(self._gpu.channels)])

    def light(self, key: int | None, *, ranges: bool = False) -> None:
        """Pale all but one family, or one path of ranges."""
        self._lit = None if key is None else (ranges, key)
        self._look_differs()

    def choose(self, chosen: Chosen | None) -> None:
        """Choose a slice, and move the window to it where it is out of sight."""
        self.chosen = chosen
        if chosen is not None:
            self._lane = self._slices.index(chosen[0])
            begin, end = int(chosen[0].begin[chosen[1]]), int(chosen[0].end[chosen[1]])
            if not begin <= self.place_ns <= end:
                self.go(begin)
        self.slice_chosen.emit(chosen)
        self.update()

    @Slot()
    def show_span(self) -> None:
        """Zoom to what is marked, else to the chosen slice."""
        if self.span is None and self.chosen is not None:
            lane, at = self.chosen
            self.show_window(int(lane.begin[at]), max(int(lane.end[at]), int(lane.begin[at]) + 1000))
        super().show_span()

    def time_text(self, seconds: float, step: float) -> str:
        """As in a recording; in a short window after a whole millisecond, so that the texts are short."""
        if self.origin_ns:
            return f"+{number(1e6 * seconds, 6)} µs"
        return elapsed_text(seconds, max(0, math.ceil(-math.log10(step) - 1e-9)))

    @property
    def origin_ns(self) -> int:
        start, end = self.bounds
        return start // 1_000_000 * 1_000_000 if end - start < _FINE_NS else 0

    def instant_text(self, instant: int) -> str:
        """To the microsecond, or to the nanosecond in a short window."""
        start, end = self.bounds
        return elapsed_text(instant / 1e9, 9 if end - start < _FINE_NS else 6)

    # --- inside -------------------------------------------------------------------------------------------------------

    def _layout(self, area: QRect | None = None) -> Layout:
        """The lanes of slices above the others; they have no curve."""
        own, line = self._lanes, (Line("", ""),)
        slices = tuple(
            ShownLane(replace(LANES[0], title=lane.title, weight=0.4 if lane.ranges else 1.0), line)
            for lane in self._slices
        )
        self._lanes = (*slices, *own)
        try:
            laid = super()._layout(area)
        finally:
            self._lanes = own
        boxes = [
            replace(box, shown=replace(box.shown, lines=(), note=" ")) if place < len(slices) else box
            for place, box in enumerate(laid.lanes)
        ]
        return replace(laid, lanes=tuple(boxes))

    def _redraw_if_moved(self) -> bool:
        redrawn = self.isVisible() and super()._redraw_if_moved()
        if redrawn:
            painter = QPainter(self._plots)
            painter.setFont(self._font())
            for lane, box in zip(self._slices, self._layout().lanes, strict=False):
                self._draw(painter, lane, box.plot)
            painter.end()
        return redrawn

    def _draw(self, painter: QPainter, lane: SliceLane, plot: QRect) -> None:
        (start, end), columns = self.bounds, round(plot.width() * self.devicePixelRatioF())
        per_px = (end - start) / plot.width()
        lit = self._lit[1] if self._lit is not None and self._lit[0] == lane.ranges else None
        row = self._colours.row(*lane.columns(start, end, columns), lit, ranges=lane.ranges)
        apart, inside = lane.wide(start, end, _APART_PX * per_px)
        edges = ((lane.begin[apart] - start) * (columns / (end - start))).astype(np.int64)
        row[edges[(edges > 0) & (edges < columns)]] = QColor(theme.colours().base).rgb()
        painter.drawImage(plot, QImage(row.tobytes(), columns, 1, 4 * columns, QImage.Format.Format_RGB32))
        metrics = QFontMetrics(painter.font())
        if plot.height() < metrics.height() - 2:
            return
        for at in apart[inside >= _NAMED_PX * per_px].tolist():
            left, right = (
                min(max((int(edge[at]) - start) / per_px, 0.0), plot.width()) for edge in (lane.begin, lane.end)
            )
            key = int(lane.key[at])
            painter.setPen(self._colours.ink(key, lit, ranges=lane.ranges))
            text = metrics.elidedText(self._name(lane, key), Qt.TextElideMode.ElideRight, int(right - left - 6))
            room = QRectF(plot.left() + left + 4, plot.top(), right - left - 6, plot.height())
            painter.drawText(room, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)

    def _name(self, lane: SliceLane, key: int) -> str:
        return self._attributed.trace.paths[key][-1] if lane.ranges else self._attributed.families[key].name

    def _paint_chosen(self, painter: QPainter, layout: Layout, _bounds: Span, colours: theme.Colours) -> None:
        if self.chosen is not None:
            lane, at = self.chosen
            box = layout.lanes[self._slices.index(lane)].plot
            ends = (self._x_of(int(edge[at]), layout) for edge in (lane.begin, lane.end))
            left, right = (min(max(x, layout.left - 2.0), layout.right + 2.0) for x in ends)
            painter.setPen(QPen(QColor(colours.text), 2))
            painter.drawRect(QRectF(left, box.top(), max(2.0, right - left), box.height() - 1))

    def _lane_at(self, place: QPoint) -> int | None:
        boxes = self._layout().lanes[: len(self._slices)]
        return next((at for at, box in enumerate(boxes) if box.plot.top() <= place.y() <= box.plot.bottom()), None)

    def _choose_here(self, reach: float) -> None:
        """Choose what is at the place that is looked at, in the lane."""
        lane = self._slices[self._lane]
        at = lane.nearest(self.place_ns, reach)
        self.choose(None if at is None else (lane, at))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        drag, place = self._drag, event.position().toPoint()
        super().mouseReleaseEvent(event)
        if drag is not None and drag[0] == "span" and (place - drag[1]).manhattanLength() < 4:
            start, end = self.bounds
            over = self._lane_at(place)
            self._lane = self._lane if over is None else over
            self._choose_here(_REACH_PX * (end - start) / self._columns()) if over is not None else self.choose(None)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Zoom to the slice there, else show the whole."""
        if self.chosen is not None:
            self.show_span()
        else:
            self.show_whole()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """As the accessible description says."""
        key = Qt.Key(event.key())
        steps = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
        if key in steps and event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            lane, at = self.chosen or (self._slices[self._lane], 0)
            self.choose((lane, min(max(0, at + steps[key]), len(lane.begin) - 1)))
        elif key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            self._lane = min(max(0, self._lane + (1 if key == Qt.Key.Key_Down else -1)), len(self._slices) - 1)
            self._choose_here(math.inf)
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.show_span()
        elif key == Qt.Key.Key_S:
            self.set_span(self.bounds)
        elif key == Qt.Key.Key_Escape and (self.span or self.chosen):
            self.set_span(None)
            self.choose(None)
        else:
            super().keyPressEvent(event)
