"""A measurement's own power over time, its clock beneath: the window shaded, the mean and its interval drawn in it.

`OwnTrace`: what the board drew while one configuration was measured, copied out of the trace; free of Qt.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QWidget

from ...base.formatting import duration
from ...engine.analysis.quantities import format_number
from ...engine.results.measurement import Measurement
from ..plots.plot import DENSE, Box, dress, set_up_axes
from ..shared import theme
from ..shared.label import PlainLabel
from ..shared.turns import InParts
from ..shared.widgets import vbox
from .snapshot import Curve

if TYPE_CHECKING:
    from ...sensors.trace.trace import Series, Trace

CLOCK = "graphics_clock_mhz"
_MARGIN_SHARE = 0.4  # of the window, shown before and after it
_MARGIN_S = (0.3, 5.0)  # at least and at most
_POINTS = 2000


@dataclass(frozen=True, slots=True)
class OwnTrace:
    """Times in s, 0 at the start of the measurement's window. An unknown curve is empty."""

    window_s: float
    margin_s: float
    power: Curve
    clock: Curve
    power_channel: str
    mean_w: float  # what was measured; NaN if it was not
    interval_w: tuple[float, float] | None
    complete: bool  # readings reach to the end of the margin


def own_trace(trace: Trace, measurement: Measurement, opened_s: float) -> OwnTrace | str:
    """The stretch of time of a measurement with a margin, or why it cannot be shown.

    `opened_s` is when the trace began, s since the epoch: a measurement of before has stamps of another run.
    """
    if measurement.window_ns is None:
        if measurement.source == "recorded":
            return "Replayed: the recording holds this configuration's figures, not its power over time."
        return "No power trace: the runner reported no time window for this measurement."
    if measurement.timestamp_s < opened_s:
        return "Stored: this was measured before the window was opened, and traces are kept only while it is open."
    start_ns, end_ns = measurement.window_ns
    if not len(trace) or trace.last_ns < start_ns:
        return "The sampler has no readings of this stretch of time yet."
    if trace.first_ns > start_ns:
        return "The trace no longer holds this: it keeps the last 8 hours."
    window_s = (end_ns - start_ns) / 1e9
    margin_s = min(max(_MARGIN_SHARE * window_s, _MARGIN_S[0]), _MARGIN_S[1])
    margin_ns = int(margin_s * 1e9)
    name = trace.power_name
    series = trace.view(start_ns - margin_ns, end_ns + margin_ns, _POINTS, [name, CLOCK])
    power = _from_opening(series[name], margin_s)
    if not np.isfinite(power.value).any():
        return "The board reported no power in this stretch of time."
    return OwnTrace(
        window_s=window_s,
        margin_s=margin_s,
        power=power,
        clock=_from_opening(series[CLOCK], margin_s),
        power_channel=name,
        mean_w=measurement.values.get("power_w", math.nan),
        interval_w=measurement.intervals.get("power_w"),
        complete=trace.last_ns >= end_ns + margin_ns,
    )


def _from_opening(series: Series, margin_s: float) -> Curve:
    return Curve(series.time_s - margin_s, series.value)


_SOURCES = {"power_samples_w": "driver's samples", "power_instant_w": "instant", "power_average_w": "average"}
_AXIS_WIDTH = 52  # pixels: both plots begin at the same place


class OwnTracePlot(QWidget, InParts):
    """Shows one `OwnTrace`, or words if there is none."""

    def __init__(self, parent: QWidget | None = None, *, at_once: bool = True) -> None:
        super().__init__(parent)
        self._shown: OwnTrace | None = None
        self.begin(at_once)

    def make(self) -> Iterator[None]:
        """The plots, and the words that stand in place of them."""
        self.plots = TracePlots(at_once=False)
        yield from self.plots.make_parts()
        self.legend, self.note = PlainLabel(), PlainLabel()
        self.legend.setTextFormat(Qt.TextFormat.RichText)
        self.legend.setWordWrap(True)
        self.note.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.note.setWordWrap(True)
        self.note.setMargin(16)
        self._layout = vbox(self.legend, (self.plots, 1), (self.note, 1), of=self, margins=0, spacing=2)
        theme.notifier().changed.connect(self._recolour)
        self._recolour()
        self.show_trace("")

    def show_trace(self, trace: OwnTrace | str) -> None:
        """Draw a trace; words stand in place of one."""
        self._shown = trace if isinstance(trace, OwnTrace) else None
        self.legend.setVisible(self._shown is not None)
        self.note.setVisible(self._shown is None)
        self.note.setText(trace if isinstance(trace, str) else "")
        if self._shown is not None:
            self.plots.draw(self._shown)
            self._write_legend(self._shown)
        self.plots.setVisible(self._shown is not None)

    def _write_legend(self, trace: OwnTrace) -> None:
        colours = theme.colours()
        entries = [
            (colours.orange, "━━", f"power as reported ({_SOURCES.get(trace.power_channel, trace.power_channel)})")
        ]
        if not math.isnan(trace.mean_w):
            bounds = trace.interval_w
            spread = f" ({format_number(bounds[0])}–{format_number(bounds[1])}, 95\u00a0%)" if bounds else ""
            entries.append((colours.blue, "━━", f"measured mean {format_number(trace.mean_w)} W{spread}"))
        entries.append((colours.grey, "▒", f"measured window, {duration(trace.window_s)}"))
        self.legend.setText(
            " &nbsp; ".join(f"<span style='color:{colour}'>{mark}</span>&nbsp;{text}" for colour, mark, text in entries)
        )

    @Slot()
    def _recolour(self) -> None:
        self.note.setStyleSheet(f"color: {theme.colours().muted};")
        if self._shown is not None:
            self._write_legend(self._shown)


class TracePlots(pg.GraphicsLayoutWidget, InParts):  # type: ignore[misc]  # pyqtgraph has no types
    """Power above, the clock beneath where it is known."""

    def __init__(self, *, at_once: bool = True) -> None:
        super().__init__()
        self._shown: OwnTrace | None = None
        self.setMinimumHeight(120)
        self.begin(at_once)

    def make(self) -> Iterator[None]:
        """Each plot, then what is drawn in them."""
        self.power_plot = self.addPlot(row=0, col=0, viewBox=Box(), enableMenu=False)
        yield
        self.clock_plot = self.addPlot(row=1, col=0, viewBox=Box(), enableMenu=False)
        yield
        self.clock_plot.setXLink(self.power_plot)
        self.ci.layout.setRowStretchFactor(0, 5)
        self.ci.layout.setRowStretchFactor(1, 3)
        self.ci.layout.setContentsMargins(2, 4, 8, 2)
        self.windows = []
        for plot in (self.power_plot, self.clock_plot):
            set_up_axes(plot)
            plot.getAxis("left").setWidth(_AXIS_WIDTH)
            window = pg.LinearRegionItem(movable=False)
            window.setZValue(-10)
            plot.addItem(window, ignoreBounds=True)
            self.windows.append(window)
        yield
        self.power_plot.getAxis("bottom").setStyle(showValues=False)
        self.power, self.clock = pg.PlotCurveItem(), pg.PlotCurveItem()
        self.mean = pg.PlotCurveItem()
        self.low, self.high = pg.PlotCurveItem(), pg.PlotCurveItem()
        self.interval = pg.FillBetweenItem(self.low, self.high)
        for item in (self.interval, self.power, self.mean):
            self.power_plot.addItem(item)
        self.clock_plot.addItem(self.clock)
        theme.notifier().changed.connect(self._recolour)
        self._recolour()

    def draw(self, trace: OwnTrace) -> None:
        """Draw another trace."""
        self._shown = trace
        for window in self.windows:
            window.setRegion((0.0, trace.window_s))
        self.power.setData(trace.power.time_s, trace.power.value, connect="finite")
        self.clock.setData(trace.clock.time_s, trace.clock.value, connect="finite")
        ends = np.array([0.0, trace.window_s])
        finite = not math.isnan(trace.mean_w)
        self.mean.setVisible(finite)
        self.mean.setData(ends, np.full(2, trace.mean_w if finite else 0.0))
        self.interval.setVisible(trace.interval_w is not None)
        for curve, bound in zip((self.low, self.high), trace.interval_w or (0.0, 0.0), strict=True):
            curve.setData(ends, np.full(2, bound))
        self.power_plot.setXRange(-trace.margin_s, trace.window_s + trace.margin_s, padding=0.0)
        self.power_plot.setYRange(*_range_of(trace.power, [trace.mean_w, *(trace.interval_w or ())]), padding=0.0)
        has_clock = bool(np.isfinite(trace.clock.value).any())
        self.clock_plot.setVisible(has_clock)
        lowest = self.clock_plot if has_clock else self.power_plot
        for plot in (self.power_plot, self.clock_plot):
            plot.getAxis("bottom").setStyle(showValues=plot is lowest)
            plot.showLabel("bottom", plot is lowest)
        if has_clock:
            self.clock_plot.setYRange(*_range_of(trace.clock, []), padding=0.0)

    @Slot()
    def _recolour(self) -> None:
        colours = theme.colours()
        self.setBackground(QColor(colours.base))
        for plot in (self.power_plot, self.clock_plot):
            dress(plot, ("left", "bottom"), density=DENSE)
        self.power_plot.setLabel("left", "Power (W)", color=colours.text)
        self.clock_plot.setLabel("left", "Clock (MHz)", color=colours.text)
        for plot in (self.power_plot, self.clock_plot):
            plot.setLabel("bottom", "Time since the window began (s)", color=colours.text)
        shade = QColor(colours.grey)
        shade.setAlpha(46)
        for window in self.windows:
            window.setBrush(shade)
            for edge in window.lines:
                edge.setPen(pg.mkPen(colours.grey, width=1, style=Qt.PenStyle.DotLine))
        self.power.setPen(pg.mkPen(colours.orange, width=1))
        self.clock.setPen(pg.mkPen(colours.green, width=1))
        self.mean.setPen(pg.mkPen(colours.blue, width=2))
        for edge in (self.low, self.high):
            edge.setPen(pg.mkPen(None))
        band = QColor(colours.blue)
        band.setAlpha(70)
        self.interval.setBrush(band)
        if self._shown is not None:
            self.draw(self._shown)


def _range_of(curve: Curve, others: list[float]) -> tuple[float, float]:
    """Lowest and highest of what is drawn, with room around it: at least 1 % of the value, so noise stays small."""
    values = [value for value in (*curve.extent(), *others) if math.isfinite(value)]
    low, high = min(values), max(values)
    room = max(0.08 * (high - low), 0.01 * abs(high), 0.5)
    return max(0.0, low - room), high + room
