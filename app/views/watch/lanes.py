"""Which channels are drawn in which lane of the monitor, and how far each lane's axis reaches.

`LaneChoice`: which lanes are shown, in which order, and on which scale; kept as text.

Where each lane of the monitor lies: headers, plots, the strip of clock events and the time axis, in whole pixels.

`lay_out` puts headers above the plots and clock events below them; `lay_out_low`, for a strip of little height, puts
the headers at the left and leaves the clock events out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from PySide6.QtCore import QRect
from PySide6.QtGui import QFontMetrics

from ...engine.models.fit.voltage import UNIT as VOLTAGE_RATIO
from ...sensors.channel import Channel
from ..plots.figures import round_up

POWER = "power"  # stands for the finest power series that the trace has
# Of the frequency model, where the board reports no voltage: a ratio, never volts.
ESTIMATED_VOLTAGE = Channel("core_voltage_estimated", VOLTAGE_RATIO, "Core voltage, estimated")


@dataclass(frozen=True, slots=True)
class Line:
    """One trace of a lane. A dashed one is a limit, a request or a model, never a measured quantity."""

    channel: str
    label: str
    dashed: bool = False
    colour: str = ""  # of the theme, by name; empty: the channel's own


@dataclass(frozen=True, slots=True)
class Lane:
    """Traces on one axis. `weight` is its share of the height."""

    title: str
    unit: str
    lines: tuple[Line, ...]
    weight: float
    from_zero: bool = True
    least_span: float = 1.0  # the axis never shows less than this, so that noise does not look like a storm
    top: float | None = None  # a fixed upper end


VOLTAGE_LANE = Lane("Core voltage", "mV", (Line("core_voltage_mv", "core"),), 1.0, from_zero=False, least_span=100.0)
ESTIMATED_VOLTAGE_LANE = Lane(
    "Core voltage",
    VOLTAGE_RATIO,
    (Line(ESTIMATED_VOLTAGE.name, "estimated", dashed=True),),
    1.0,
    from_zero=False,
    least_span=0.1,
)
LANES: tuple[Lane, ...] = (
    Lane(
        "Power",
        "W",
        (Line(POWER, "board"), Line("memory_power_w", "memory"), Line("power_limit_w", "limit", dashed=True)),
        2.2,
        least_span=10.0,
    ),
    Lane(
        "Graphics clock",
        "MHz",
        (Line("graphics_clock_mhz", "observed"), Line("requested_graphics_clock_mhz", "requested", dashed=True)),
        1.6,
        least_span=100.0,
    ),
    Lane(
        "Memory clock",
        "MHz",
        (Line("memory_clock_mhz", "observed"), Line("requested_memory_clock_mhz", "requested", dashed=True)),
        0.8,
        least_span=100.0,
    ),
    VOLTAGE_LANE,
    Lane(
        "Temperature",
        "°C",
        (Line("temperature_c", "GPU"), Line("memory_temperature_c", "memory")),
        1.0,
        from_zero=False,
        least_span=10.0,
    ),
    Lane(
        "Utilisation",
        "%",
        (Line("utilisation_percent", "GPU"), Line("memory_utilisation_percent", "memory controller")),
        0.9,
        top=100.0,
    ),
)
_BOARDS = "Power of every board"
_BOARD_COLOURS = ("blue", "green", "purple", "sky", "vermillion", "grey")
_METERS = "Meters beside the board"
SERVICE_LANES: tuple[Lane, ...] = (
    Lane("Service: requests", "1/s", (Line("requests_per_s", "answered", colour="blue"),), 0.8),
    Lane("Service: output tokens", "1/s", (Line("output_tokens_per_s", "tokens", colour="green"),), 0.8),
    Lane(
        "Service: latency, 95 %",
        "s",
        (Line("ttft_p95_s", "first token", colour="purple"), Line("e2e_p95_s", "whole answer", colour="sky")),
        0.8,
        least_span=0.01,
    ),
)
# what is shown until the user chooses
AT_FIRST = frozenset({_BOARDS, _METERS, *(lane.title for lane in (*LANES, *SERVICE_LANES))})
MORE_LANES: tuple[Lane, ...] = (
    Lane("Memory used", "MiB", (Line("memory_used_mib", "used"),), 0.8, least_span=1000.0),
    Lane(
        "PCIe",
        "MB/s",
        (Line("pcie_rx_mb_per_s", "received"), Line("pcie_tx_mb_per_s", "sent")),
        0.8,
        least_span=10.0,
    ),
    Lane("Fan", "%", (Line("fan_percent", "fan"),), 0.6, top=100.0),
    Lane("Video clock", "MHz", (Line("video_clock_mhz", "observed"),), 0.6, least_span=100.0),
)


@dataclass(frozen=True, slots=True)
class ShownLane:
    """A lane as this GPU fills it. `note` says why where it has nothing to draw; `source` where an estimate is from."""

    lane: Lane
    lines: tuple[Line, ...]
    note: str = ""
    source: str = ""


def shown_lanes(
    channels: Iterable[Channel], *, estimate: str = "", lanes: Iterable[Lane] = LANES
) -> tuple[ShownLane, ...]:
    """The lanes as a GPU's channels fill them.

    A board without a voltage sensor shows the estimate instead, where `estimate` says what it is from.
    """
    by_name = {channel.name: channel for channel in channels}
    shown = []
    for lane in lanes:
        lines = tuple(line for line in lane.lines if line.channel == POWER or _available(by_name, line.channel))
        if any(not line.dashed for line in lines):
            shown.append(ShownLane(lane, lines))
        elif lane is VOLTAGE_LANE and estimate:
            source = f"from a {estimate}; V₀ is the voltage below the ridge"
            shown.append(ShownLane(ESTIMATED_VOLTAGE_LANE, ESTIMATED_VOLTAGE_LANE.lines, source=source))
        else:
            hint = " · after a fit of its clocks an estimate is drawn here" if lane is VOLTAGE_LANE else ""
            shown.append(ShownLane(lane, (), f"not available: {_reason(by_name, lane)}{hint}"))
    return tuple(shown)


def boards_lane(own: str, others: Mapping[str, str]) -> ShownLane:
    """The power of the window's own board, named `own`, and of others: their names by the names of their series.

    Those beyond the colours that can be distinguished are left out, and counted.
    """
    coloured = zip(others.items(), _BOARD_COLOURS, strict=False)
    lines = (Line(POWER, own), *(Line(series, name, colour=colour) for (series, name), colour in coloured))
    more = len(others) + 1 - len(lines)
    source = f"and {more} more" if more else ""
    return ShownLane(Lane(_BOARDS, "W", lines, 1.6, least_span=10.0), lines, source=source)


def meters_lane(meters: Mapping[str, str]) -> ShownLane:
    """The powers of the meters beside the board: their labels by the names of their series."""
    coloured = zip(meters.items(), _BOARD_COLOURS, strict=False)
    lines = tuple(Line(series, label, colour=colour) for (series, label), colour in coloured)
    more = len(meters) - len(lines)
    return ShownLane(Lane(_METERS, "W", lines, 1.6, least_span=10.0), lines, source=f"and {more} more" if more else "")


def axis_range(lane: Lane, low: float, high: float, before: tuple[float, float] | None = None) -> tuple[float, float]:
    """The axis for values between low and high (NaN: none known). It grows at once and shrinks only when half empty."""
    if math.isnan(low) or math.isnan(high):
        return before or (0.0, lane.top or lane.least_span)
    if lane.top is not None:
        return 0.0, max(lane.top, high)
    if lane.from_zero:
        top = round_up(max(high * 1.03, lane.least_span))
        wanted = (min(0.0, low), top)
    else:
        room = max(lane.least_span, (high - low) * 1.15)
        step = round_up(room) / 5
        middle = (low + high) / 2
        wanted = (math.floor((middle - room / 2) / step) * step, math.ceil((middle + room / 2) / step) * step)
    if before is None or low < before[0] or high > before[1]:
        return wanted
    return wanted if (wanted[1] - wanted[0]) < 0.6 * (before[1] - before[0]) else before


def _available(known: Mapping[str, Channel], name: str) -> bool:
    return name in known and known[name].available


def _reason(known: Mapping[str, Channel], lane: Lane) -> str:
    channel = known.get(lane.lines[0].channel)
    return (channel.unavailable if channel is not None else None) or "this GPU does not report it"


Range = tuple[float, float]
_MOST = 100  # lanes: the text may have been edited by hand


@dataclass(frozen=True, slots=True)
class LaneChoice:
    """Lanes by their titles. One that `order` does not name comes last; one that was never switched is as at first."""

    order: tuple[str, ...] = ()
    switched: Mapping[str, bool] = field(default_factory=dict)  # shown or hidden by the user
    scales: Mapping[str, Range] = field(default_factory=dict)  # fixed ones, by `scale_name`

    def shows(self, title: str) -> bool:
        """Whether a lane is shown."""
        return self.switched.get(title, title in AT_FIRST)

    def scale(self, lane: Lane) -> Range | None:
        """The ends of a fixed axis; None if it follows the values."""
        return self.scales.get(scale_name(lane))

    def in_order(self, lanes: Sequence[ShownLane]) -> tuple[ShownLane, ...]:
        """Every lane, hidden ones too."""
        place = {title: number for number, title in enumerate(self.order)}
        return tuple(sorted(lanes, key=lambda shown: place.get(shown.lane.title, _MOST)))

    def arrange(self, lanes: Sequence[ShownLane]) -> tuple[ShownLane, ...]:
        """The lanes that are shown, in order."""
        return tuple(shown for shown in self.in_order(lanes) if self.shows(shown.lane.title))

    def switch(self, title: str, shown: bool) -> LaneChoice:
        """Show or hide a lane."""
        return replace(self, switched={**self.switched, title: shown})

    def reorder(self, titles: Sequence[str]) -> LaneChoice:
        """Put the lanes in that order."""
        return replace(self, order=tuple(titles))

    def fix(self, lane: Lane, ends: Range | None) -> LaneChoice:
        """Fix a lane's axis; None: it follows the values again. Ends that are no range change nothing."""
        others = {name: kept for name, kept in self.scales.items() if name != scale_name(lane)}
        if ends is not None and not _is_range(ends):
            return self
        return replace(self, scales={**others, scale_name(lane): ends} if ends is not None else others)

    def text(self) -> str:
        """What is kept."""
        return json.dumps({"order": self.order, "switched": dict(self.switched), "scales": dict(self.scales)})

    @staticmethod
    def of(text: str) -> LaneChoice:
        """The choice that was kept; where the text is none, everything is as at first."""
        try:
            kept: Any = json.loads(text)
            order = [str(title) for title in kept["order"]][:_MOST]
            switched = {str(title): bool(shown) for title, shown in kept["switched"].items()}
            scales = {str(name): (float(low), float(high)) for name, (low, high) in kept["scales"].items()}
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return LaneChoice()
        return LaneChoice(tuple(order), switched, {name: ends for name, ends in scales.items() if _is_range(ends)})


def scale_name(lane: Lane) -> str:
    """The lane of a measured and of an estimated voltage are one, their scales are two."""
    return f"{lane.title}, {lane.unit}"


def _is_range(ends: Range) -> bool:
    return all(math.isfinite(end) and abs(end) < 1e9 for end in ends) and ends[0] < ends[1]


_EVENT_ROWS = 3  # room for so many is always kept, so that the lanes do not jump when a reason appears
_LEAST_PLOT = 18


@dataclass(frozen=True, slots=True)
class LaneBox:
    """One lane: its header line, and its plot (empty if the lane only has a note)."""

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
