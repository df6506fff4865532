"""Where each lane of the monitor lies: headers, plots, the strip of clock events and the time axis, in whole pixels.

`lay_out` puts headers above the plots and clock events below them; `lay_out_low`, for a strip of little height, puts
the headers at the left and leaves the clock events out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRect
from PySide6.QtGui import QFontMetrics

from .lanes import ShownLane

_EVENT_ROWS = 3  # room for so many is always kept, so that the lanes do not jump when a reason appears
_LEAST_PLOT = 18


@dataclass(frozen=True, slots=True)
class LaneBox:
    """One lane: its header line, and its plot (empty where the lane only has a note)."""

    shown: ShownLane
    header: QRect
    plot: QRect


@dataclass(frozen=True, slots=True)
class Layout:
    """The whole picture. `left` and `right` bound every plot: one shared time axis."""

    left: int
    right: int
    lanes: tuple[LaneBox, ...]
    events_header: QRect  # empty, as `events` is, where they are left out
    events: QRect
    event_row: int  # height of one row
    axis: QRect
    low: bool = False  # the headers stand at the left of the plots

    @property
    def columns(self) -> int:
        """Pixel columns of a plot."""
        return max(1, self.right - self.left)

    @property
    def span(self) -> QRect:
        """From the first lane's top to the time axis."""
        top = self.lanes[0].header.top() if self.lanes else self.axis.top()
        return QRect(self.left, top, self.columns, self.axis.top() - top)


def lay_out(area: QRect, shown: Sequence[ShownLane], metrics: QFontMetrics, event_rows: int) -> Layout:
    """Share the area out: headers and axis take a line of text each, plots the rest by weight."""
    line = metrics.height() + 2
    left = area.left() + metrics.horizontalAdvance("8888") + 10
    right = area.right() - 8
    row = line - 1
    rows = max(_EVENT_ROWS, event_rows)
    axis = QRect(area.left(), area.bottom() - line - 2, area.width(), line + 2)
    events = QRect(left, axis.top() - rows * row - 3, right - left, rows * row)
    events_header = QRect(left, events.top() - line, right - left, line)
    drawn = [lane for lane in shown if lane.lines]
    gap = 5
    free = events_header.top() - area.top() - len(shown) * (line + gap) - gap
    per_weight = max(0.0, free / max(1e-9, sum(lane.lane.weight for lane in drawn)))
    boxes = []
    top = area.top() + 2
    for lane in shown:
        header = QRect(left, top, right - left, line)
        height = max(_LEAST_PLOT, int(lane.lane.weight * per_weight)) if lane.lines else 0
        boxes.append(LaneBox(lane, header, QRect(left, header.bottom() + 1, right - left, height)))
        top += line + height + gap
    return Layout(left, right, tuple(boxes), events_header, events, row, axis)


def lay_out_low(area: QRect, shown: Sequence[ShownLane], metrics: QFontMetrics) -> Layout:
    """As `lay_out`, the headers at the left: a lane of a line of text is still readable."""
    line = metrics.height()
    beside = metrics.horizontalAdvance("Graphics clock 8888 MHz") + 12
    left = area.left() + beside + metrics.horizontalAdvance("8888") + 10
    right = area.right() - 8
    axis = QRect(area.left(), area.bottom() - line - 2, area.width(), line + 2)
    gap = 3
    notes = sum(not lane.lines for lane in shown)
    free = axis.top() - area.top() - len(shown) * gap - notes * line - gap
    drawn = [lane for lane in shown if lane.lines]
    per_weight = max(0.0, free / max(1e-9, sum(lane.lane.weight for lane in drawn)))
    heights = {lane: max(_LEAST_PLOT, int(lane.lane.weight * per_weight)) for lane in drawn}
    if sum(heights.values()) > free:  # those of a service came too
        heights = dict.fromkeys(drawn, max(line - 2, int(free / len(drawn))))
    boxes = []
    top = area.top() + gap
    for lane in shown:
        height = heights.get(lane, 0)
        width = beside if lane.lines else right - area.left()  # the reason why there is nothing takes all of it
        header = QRect(area.left() + 8, top, width - 8, max(height, line))
        boxes.append(LaneBox(lane, header, QRect(left, top, right - left, height)))
        top += max(height, line) + gap
    return Layout(left, right, tuple(boxes), QRect(), QRect(), 0, axis, low=True)
