"""Paints the monitor's lanes, independently of widgets: the same strokes go to the window, a PNG and an SVG."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import shiboken6
from PySide6.QtCore import QLineF, QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter, QPen, QPolygonF

from ...base.formatting import round_ticks
from ...sensors.event_reasons import NAMES, EventReason
from ..plots.figures import ago_text, signed, time_ticks
from ..shared.theme import Colours
from .lanes import LaneBox, Layout, Line
from .snapshot import Curve, Snapshot

Range = tuple[float, float]
_ALIGN = Qt.AlignmentFlag


Marks = tuple[tuple[str, float], ...]  # words and places of the ticks of the time axis


def time_marks(
    layout: Layout, snapshot: Snapshot, font: QFont, origin_ns: int, time_text: Callable[[float, float], str] = ago_text
) -> Marks:
    """The ticks of the time axis, which counts from `origin_ns`.

    `time_text` is given a time on the axis and the step between two of its ticks, in s.
    """
    length_s = max(1e-9, (snapshot.end_ns - snapshot.start_ns) / 1e9)
    shift_s = (snapshot.start_ns - origin_ns) / 1e9
    widest = QFontMetrics(font).horizontalAdvance("−8:88:88") + 24
    step, marks = time_ticks(shift_s, shift_s + length_s, layout.columns // widest)
    return tuple(
        (time_text(mark, step), round(layout.left + (mark - shift_s) / length_s * layout.columns, 1)) for mark in marks
    )


def paint_grids(
    painter: QPainter, layout: Layout, ranges: Mapping[str, Range], marks: Marks, colours: Colours, font: QFont
) -> None:
    """Grids and the time axis: what stays from frame to frame. `ranges` by lane title."""
    painter.setFont(font)
    metrics, marks_x = QFontMetrics(font), [x for _, x in marks]
    for box in layout.lanes:
        if box.shown.lines:
            _paint_grid(painter, box, ranges[box.shown.lane.title], marks_x, colours, metrics)
    if not layout.events.isEmpty():
        painter.fillRect(layout.events, QColor(colours.base))
        painter.setPen(QPen(QColor(colours.grid), 1))
        for x in marks_x:
            painter.drawLine(QLineF(round(x), layout.events.top(), round(x), layout.events.bottom()))
    _paint_time_axis(painter, layout, marks, colours, metrics)


def paint_traces(
    painter: QPainter,
    layout: Layout,
    snapshot: Snapshot,
    ranges: Mapping[str, Range],
    colours: Colours,
    font: QFont,
) -> None:
    """Traces and clock events, over the grids."""
    painter.setFont(font)
    length_s = max(1e-9, (snapshot.end_ns - snapshot.start_ns) / 1e9)
    for box in layout.lanes:
        for line in box.shown.lines:
            curve = snapshot.curves.get(line.channel)
            if curve is not None:
                _paint_curve(painter, box.plot, ranges[box.shown.lane.title], curve, length_s, line, colours)
    if not layout.events.isEmpty():
        _paint_events(painter, layout, snapshot, colours, QFontMetrics(font))


def paint_headers(
    painter: QPainter, layout: Layout, value_of: Callable[[Line, str], str], events: str, colours: Colours, font: QFont
) -> None:
    """Each lane's title and, for each of its traces, a swatch, its name and `value_of(line, unit)`; or its note."""
    bold = QFont(font)
    bold.setWeight(QFont.Weight.DemiBold)
    if layout.low:
        for box in layout.lanes:
            _paint_header_beside(painter, box, value_of, colours, font, bold)
        return
    for box in layout.lanes:
        x = _words(painter, box.header, 0, box.shown.lane.title, colours.text, bold)
        if box.shown.note:
            _words(painter, box.header, x + 12, box.shown.note, colours.muted, font)
            continue
        for line in box.shown.lines:
            text = value_of(line, box.shown.lane.unit)
            needed = 16 + QFontMetrics(font).horizontalAdvance(line.label + "  ") + 26
            if x + needed + QFontMetrics(bold).horizontalAdvance(text) > box.header.width():
                break  # no room: the read-out beside has it
            x = _swatch(painter, box.header, x + 14, line, colours)
            x = _words(painter, box.header, x + 5, line.label, colours.muted, font)
            x = _words(painter, box.header, x + 6, text, colours.text, bold)
        if box.shown.source:
            _words(painter, box.header, x + 12, box.shown.source, colours.muted, font)
    x = _words(painter, layout.events_header, 0, "Clock events", colours.text, bold)
    _words(painter, layout.events_header, x + 14, events, colours.muted, font)


def paint_span(painter: QPainter, layout: Layout, x0: float, x1: float, colours: Colours) -> None:
    """A chosen stretch of time, over all lanes."""
    left, right = sorted((max(x0, layout.left), min(x1, layout.right)))
    if right <= layout.left or left >= layout.right:
        return
    band = QRectF(left, layout.span.top(), right - left, layout.span.height())
    fill = QColor(colours.accent)
    fill.setAlpha(36)
    painter.fillRect(band, fill)
    painter.setPen(QPen(QColor(colours.accent), 1))
    painter.drawLine(QLineF(band.topLeft(), band.bottomLeft()))
    painter.drawLine(QLineF(band.topRight(), band.bottomRight()))


def paint_cursor(painter: QPainter, layout: Layout, x: float, text: str, colours: Colours, font: QFont) -> None:
    """The line under the mouse and its time."""
    painter.setPen(QPen(QColor(colours.muted), 1))
    painter.drawLine(QLineF(x, layout.span.top(), x, layout.axis.top()))
    metrics = QFontMetrics(font)
    width = metrics.horizontalAdvance(text) + 10
    left = min(max(x - width / 2, layout.axis.left()), layout.axis.right() - width)
    chip = QRectF(left, layout.axis.top() + 1, width, metrics.height() + 2)
    painter.fillRect(chip, QColor(colours.accent))
    painter.setPen(QColor(colours.accent_text))
    painter.setFont(font)
    painter.drawText(chip, _ALIGN.AlignCenter, text)


def _paint_header_beside(
    painter: QPainter, box: LaneBox, value_of: Callable[[Line, str], str], colours: Colours, font: QFont, bold: QFont
) -> None:
    """The title, and below it, or beside it if there is no room, a row for each trace as far as they fit."""
    line = QFontMetrics(font).height()
    row = QRect(box.header.left(), box.header.top(), box.header.width(), line)
    x = _words(painter, row, 0, box.shown.lane.title, colours.text, bold)
    if box.shown.note:
        _words(painter, row, x + 12, box.shown.note, colours.muted, font)
        return
    values = [(item, value_of(item, box.shown.lane.unit)) for item in box.shown.lines]
    if box.header.height() < 2 * line:
        if QFontMetrics(font).horizontalAdvance(values[0][1]) <= row.width() - x - 8:  # part of a figure is a wrong one
            _words(painter, row, x + 8, values[0][1], colours.text, font)
        return
    for each, value in values[: box.header.height() // line - 1]:
        row.translate(0, line)
        x = _swatch(painter, row, 0, each, colours)
        x = _words(painter, row, x + 5, value, colours.text, bold)
        _words(painter, row, x + 6, each.label, colours.muted, font)


# --- details ----------------------------------------------------------------------------------------------------------


def _paint_grid(
    painter: QPainter, box: LaneBox, axis: Range, marks_x: Sequence[float], colours: Colours, metrics: QFontMetrics
) -> None:
    plot = box.plot
    painter.fillRect(plot, QColor(colours.base))
    painter.setPen(QPen(QColor(colours.grid), 1))
    for x in marks_x:
        painter.drawLine(QLineF(round(x), plot.top(), round(x), plot.bottom()))
    least = 2 if plot.height() >= 2 * metrics.height() else 1  # two figures would lie over one another
    at_most = max(least, min(6, plot.height() // (metrics.height() + 8)))
    for tick in round_ticks(*axis, at_most):
        y = round(_y(tick, plot, axis))
        painter.setPen(QPen(QColor(colours.grid), 1))
        painter.drawLine(plot.left(), y, plot.right(), y)
        painter.setPen(QColor(colours.muted))
        place = min(max(y - metrics.height() // 2, plot.top() - 4), plot.bottom() - metrics.height() + 5)
        label = QRect(0, place, plot.left() - 5, metrics.height())
        painter.drawText(label, _ALIGN.AlignRight | _ALIGN.AlignVCenter, _tick_text(tick, axis))


def _tick_text(tick: float, axis: Range) -> str:
    span = axis[1] - axis[0]
    return signed(tick, 0 if span >= 4 else 2 if span < 0.5 else 1)


def _y(value: float, plot: QRect, axis: Range) -> float:
    return plot.bottom() - (value - axis[0]) / (axis[1] - axis[0]) * (plot.height() - 1)


def _paint_curve(
    painter: QPainter, plot: QRect, axis: Range, curve: Curve, length_s: float, line: Line, colours: Colours
) -> None:
    """A line of width one without antialiasing: a hundred times cheaper than a smooth one, and crisp."""
    x = plot.left() + curve.time_s * (plot.width() / length_s)
    y = plot.bottom() - (curve.value - axis[0]) * ((plot.height() - 1) / (axis[1] - axis[0]))
    pen = QPen(_colour(line, colours), 1)
    if line.dashed:
        pen.setStyle(Qt.PenStyle.CustomDashLine)
        pen.setDashPattern([5, 4])
    painter.save()
    painter.setClipRect(plot)
    painter.setPen(pen)
    for start, stop in known_runs(y):
        if stop - start == 1:  # such as the latency of a service that answered once; a single pixel is not seen
            painter.fillRect(QRectF(float(x[start]) - 1.5, float(y[start]) - 1.5, 3, 3), pen.color())
        else:
            painter.drawPolyline(polygon(*_without_level_points(x[start:stop], y[start:stop])))
    painter.restore()


def _without_level_points(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Without the points in the middle of a level stretch: most limits and clocks are two points, and dash evenly."""
    turns = np.diff(y) != 0
    needed = np.ones(len(y), np.bool_)
    needed[1:-1] = turns[1:] | turns[:-1]
    return x[needed], y[needed]


def known_runs(y: np.ndarray) -> list[tuple[int, int]]:
    """[start, stop) of the stretches without NaN."""
    finite = ~np.isnan(y)
    if finite.all():
        return [(0, len(y))] if len(y) else []
    edges = np.diff(np.concatenate(([0], finite.astype(np.int8), [0])))
    return list(zip(np.flatnonzero(edges == 1).tolist(), np.flatnonzero(edges == -1).tolist(), strict=True))


def polygon(x: np.ndarray, y: np.ndarray) -> QPolygonF:
    """The points as Qt's polygon, written straight into its memory."""
    polygon = QPolygonF()
    polygon.resize(len(x))
    memory = shiboken6.VoidPtr(polygon.data(), len(x) * 16, True)  # type: ignore[arg-type, call-arg]
    points = np.frombuffer(memory, dtype=np.float64).reshape(-1, 2)  # type: ignore[call-overload]
    points[:, 0] = x
    points[:, 1] = y
    return polygon


def _paint_events(
    painter: QPainter, layout: Layout, snapshot: Snapshot, colours: Colours, metrics: QFontMetrics
) -> None:
    area = layout.events
    per_ns = layout.columns / max(1, snapshot.end_ns - snapshot.start_ns)
    by_reason: dict[EventReason, list[tuple[float, float]]] = {}
    for span in snapshot.spans:
        x0 = layout.left + max(0.0, (span.start_ns - snapshot.start_ns) * per_ns)
        x1 = min(float(layout.right), layout.left + (span.end_ns - snapshot.start_ns) * per_ns)
        by_reason.setdefault(span.reason, []).append((x0, max(1.0, x1 - x0)))
    for row, (reason, bars) in enumerate(by_reason.items()):
        top = area.top() + row * layout.event_row
        colour = QColor(colours.of_reason(reason))
        fill = QColor(colour)
        fill.setAlpha(110 if colours.dark else 90)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(fill)
        painter.drawRects([QRectF(x, top + 2, width, layout.event_row - 3) for x, width in bars])
        painter.setBrush(colour)
        painter.drawRects([QRectF(x, top + 2, width, 2) for x, width in bars])
        painter.setBrush(Qt.BrushStyle.NoBrush)
        first = bars[0][0]
        name = _reason_name(reason)
        width = metrics.horizontalAdvance(name)
        x = max(layout.left + 4, min(first + 4, layout.right - width - 4))
        painter.setPen(QColor(colours.text))
        painter.drawText(QPointF(x, top + (layout.event_row + metrics.ascent() - metrics.descent()) / 2 + 1), name)


def _reason_name(reason: EventReason) -> str:
    return NAMES.get(reason, f"reason 0x{int(reason):x}")


def _paint_time_axis(
    painter: QPainter,
    layout: Layout,
    texts: Sequence[tuple[str, float]],
    colours: Colours,
    metrics: QFontMetrics,
) -> None:
    painter.setPen(QColor(colours.muted))
    for text, x in texts:
        width = metrics.horizontalAdvance(text)
        least = layout.left if layout.low else layout.axis.left() + 1  # beside it, the lowest lane's figures
        left = min(max(x - width / 2, least), layout.axis.right() - width - 1)
        painter.drawText(QPointF(left, layout.axis.top() + 2 + metrics.ascent()), text)


def _colour(line: Line, colours: Colours) -> QColor:
    return QColor(getattr(colours, line.colour) if line.colour else colours.of_channel(line.channel))


def _swatch(painter: QPainter, header: QRect, x: int, line: Line, colours: Colours) -> int:
    pen = QPen(_colour(line, colours), 2 if line.dashed else 4)
    pen.setCapStyle(Qt.PenCapStyle.FlatCap)
    if line.dashed:
        pen.setDashPattern([2, 1.2])
    painter.setPen(pen)
    middle = header.center().y() + 1
    painter.drawLine(header.left() + x, middle, header.left() + x + 12, middle)
    return x + 12


def _words(painter: QPainter, header: QRect, x: int, text: str, colour: str, font: QFont) -> int:
    """Write within the header from x on, cut with an ellipsis at its end; the x after the text."""
    metrics = QFontMetrics(font)
    room = header.width() - x
    if room < 8:
        return x
    cut = metrics.elidedText(text, Qt.TextElideMode.ElideRight, room)
    painter.setFont(font)
    painter.setPen(QColor(colour))
    painter.drawText(QPointF(header.left() + x, header.top() + 1 + metrics.ascent()), cut)
    return x + metrics.horizontalAdvance(cut)
