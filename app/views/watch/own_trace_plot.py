"""A measurement's own power over time, its clock beneath: the window shaded, the mean and its interval drawn in it.

`OwnTrace`: what the board drew while one configuration was measured, copied out of the trace; free of Qt.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QComboBox, QWidget

from ...base.formatting import duration
from ...engine.analysis.quantities import format_number
from ...engine.results.measurement import Measurement
from ...sensors.event_reasons import names as reason_names
from ..plots.plot import DENSE, Box, dress, set_up_axes
from ..shared import theme
from ..shared.label import PlainLabel
from ..shared.turns import InParts
from ..shared.widgets import vbox
from .snapshot import Curve

if TYPE_CHECKING:
    from ...engine.results.evidence import Evidence, Floats
    from ...sensors.trace.trace import EventSpan, Series, Trace

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
    reasons: tuple[tuple[str, float, float], ...] = ()  # event reason, from when and to when it was set


_EMPTY = Curve(np.empty(0), np.empty(0, np.float32))
_NOTHING = OwnTrace(0.0, 0.0, _EMPTY, _EMPTY, "", math.nan, None, complete=True)


def sampled_trace(evidence: Evidence, measurement: Measurement) -> OwnTrace:
    """The samples that were kept of a measurement; lines break between windows."""
    starts_s, length_s = evidence.starts_s, float(evidence.ends_s[-1])

    def curve(times_s: Floats, values: Floats) -> Curve:
        places = np.searchsorted(times_s, starts_s[1:])
        return Curve(np.insert(times_s, places, starts_s[1:]), np.insert(values, places, np.nan).astype(np.float32))

    read_s, bits, window = evidence.read_s, evidence.event_reasons, evidence.window_at(evidence.read_s)
    since_s = np.maximum(starts_s[window], np.concatenate(([0.0], read_s[:-1]))[: len(window)])
    first = np.flatnonzero((np.diff(bits, prepend=-1) != 0) | (np.diff(window, prepend=-1) != 0))
    last = np.append(first, len(bits))[1:] - 1
    spans = zip(bits[first].tolist(), since_s[first].tolist(), read_s[last].tolist(), strict=True)
    return replace(
        _NOTHING,
        window_s=length_s,
        power=curve(evidence.times_s, evidence.power_w),
        clock=curve(evidence.read_s, evidence.clock_mhz),
        mean_w=measurement.values.get("power_w", math.nan),
        interval_w=measurement.intervals.get("power_w"),
        reasons=tuple((name, start, end) for bits, start, end in spans for name in reason_names(bits)),
    )


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
        return "The trace no longer holds this: it keeps the last 24 hours."
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
        reasons=tuple(_since(start_ns, span) for span in trace.event_spans(start_ns - margin_ns, end_ns + margin_ns)),
    )


def _since(start_ns: int, span: EventSpan) -> tuple[str, float, float]:
    return reason_names(int(span.reason))[0], (span.start_ns - start_ns) / 1e9, (span.end_ns - start_ns) / 1e9


def _from_opening(series: Series, margin_s: float) -> Curve:
    return Curve(series.time_s - margin_s, series.value)


_SOURCES = {"power_samples_w": "driver's samples", "power_instant_w": "instant", "power_average_w": "average"}
_AXIS_WIDTH = 52  # pixels: both plots begin at the same place


class OwnTracePlot(QWidget, InParts):
    """Shows one `OwnTrace`, or words if there is none; another one can be laid over it."""

    over_chosen = Signal()  # `over` is another

    def __init__(self, parent: QWidget | None = None, *, at_once: bool = True) -> None:
        super().__init__(parent)
        self._shown: OwnTrace | None = None
        self._other: OwnTrace | str | None = None  # laid over it, or why that is not there
        self._offered: Sequence[tuple[str, int]] = ()
        self.begin(at_once)

    def make(self) -> Iterator[None]:
        """The plots, and the words that stand in place of them."""
        self.others = QComboBox()
        self.others.setAccessibleName("Measurement to lay over this one")
        self.others.setToolTip("Lay the samples of another measurement over these: the best, or one that is pinned")
        self.others.activated.connect(self.over_chosen)
        self.plots = TracePlots(at_once=False)
        yield from self.plots.make_parts()
        self.legend, self.note = PlainLabel(), PlainLabel()
        self.legend.setTextFormat(Qt.TextFormat.RichText)
        self.legend.setWordWrap(True)
        self.note.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.note.setWordWrap(True)
        self.note.setMargin(16)
        parts = (self.others, self.legend, (self.plots, 1), (self.note, 1))
        self._layout = vbox(*parts, of=self, margins=0, spacing=2)
        theme.notifier().changed.connect(self._recolour)
        self._recolour()
        self.show_trace("")

    @property
    def over(self) -> int | None:
        """The measurement to be laid over, by its index; None for none."""
        return self.others.currentData()  # type: ignore[no-any-return]

    def offer(self, others: Sequence[tuple[str, int]]) -> None:
        """Offer measurements to be laid over, by name and index; the chosen one stays where it is among them."""
        if others != self._offered:  # else it may be open
            self._offered, over = others, self.over
            self.others.clear()
            for name, index in (("Nothing laid over", None), *others):
                self.others.addItem(name, index)
            self.others.setCurrentIndex(max(0, self.others.findData(over)))
        self.others.setVisible(bool(others))

    def show_trace(self, trace: OwnTrace | str, other: OwnTrace | str | None = None) -> None:
        """Draw a trace, and another one over it; words stand in place of one."""
        self._shown, self._other = trace if isinstance(trace, OwnTrace) else None, other
        self.legend.setVisible(self._shown is not None)
        self.note.setVisible(self._shown is None)
        self.note.setText(trace if isinstance(trace, str) else "")
        if self._shown is not None:
            self.plots.draw(self._shown, other if isinstance(other, OwnTrace) else None)
            self._write_legend(self._shown)
        self.plots.setVisible(self._shown is not None)

    def _write_legend(self, trace: OwnTrace) -> None:
        colours = theme.colours()
        reported = _SOURCES.get(trace.power_channel, trace.power_channel) or "samples kept with it"
        entries = [(colours.orange, "━━", f"power as reported ({reported})")]
        if self._other is not None:
            words = self._other if isinstance(self._other, str) else f"mean {format_number(self._other.mean_w)} W"
            entries.append((colours.purple, "━━", f"{self.others.currentText()}, {words}"))
        if not math.isnan(trace.mean_w):
            bounds = trace.interval_w
            spread = f" ({format_number(bounds[0])}–{format_number(bounds[1])}, 95\u00a0%)" if bounds else ""
            entries.append((colours.blue, "━━", f"measured mean {format_number(trace.mean_w)} W{spread}"))
        entries.append((colours.grey, "▒", f"measured window, {duration(trace.window_s)}"))
        for name in dict.fromkeys(name for name, _, _ in trace.reasons):
            seconds = sum(end - start for reason, start, end in trace.reasons if reason == name)
            entries.append((colours.vermillion, "▬", f"{name}, {duration(seconds)}"))
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
        self._other: OwnTrace | None = None
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
        self.other_power, self.other_clock, self.reasons = (pg.PlotCurveItem() for _ in range(3))
        for item in (self.interval, self.other_power, self.power, self.mean, self.reasons):
            self.power_plot.addItem(item)
        self.clock_plot.addItem(self.other_clock)
        self.clock_plot.addItem(self.clock)
        theme.notifier().changed.connect(self._recolour)
        self._recolour()

    def draw(self, trace: OwnTrace, other: OwnTrace | None = None) -> None:
        """Draw another trace, and one over it."""
        self._shown, self._other = trace, other
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
        over = other or _NOTHING
        self.other_power.setData(over.power.time_s, over.power.value, connect="finite")
        self.other_clock.setData(over.clock.time_s, over.clock.value, connect="finite")
        self.power_plot.setXRange(-trace.margin_s, max(trace.window_s, over.window_s) + trace.margin_s, padding=0.0)
        low_w, high_w = _range_of(trace.power, [trace.mean_w, *(trace.interval_w or ()), *over.power.extent()])
        self.power_plot.setYRange(low_w, high_w, padding=0.0)
        ends_s = [at for _, *span in trace.reasons for at in span]
        self.reasons.setData(ends_s, np.full(len(ends_s), low_w + 0.02 * (high_w - low_w)), connect="pairs")
        has_clock = bool(np.isfinite(trace.clock.value).any())
        self.clock_plot.setVisible(has_clock)
        lowest = self.clock_plot if has_clock else self.power_plot
        for plot in (self.power_plot, self.clock_plot):
            plot.getAxis("bottom").setStyle(showValues=plot is lowest)
            plot.showLabel("bottom", plot is lowest)
        if has_clock:
            self.clock_plot.setYRange(*_range_of(trace.clock, list(over.clock.extent())), padding=0.0)

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
        for item in (self.other_power, self.other_clock):
            item.setPen(pg.mkPen(colours.purple, width=1))
        self.reasons.setPen(pg.mkPen(colours.vermillion, width=4))
        self.mean.setPen(pg.mkPen(colours.blue, width=2))
        for edge in (self.low, self.high):
            edge.setPen(pg.mkPen(None))
        band = QColor(colours.blue)
        band.setAlpha(70)
        self.interval.setBrush(band)
        if self._shown is not None:
            self.draw(self._shown, self._other)


def _range_of(curve: Curve, others: list[float]) -> tuple[float, float]:
    """Lowest and highest of what is drawn, with room around it: at least 1 % of the value, so noise stays small."""
    values = [value for value in (*curve.extent(), *others) if math.isfinite(value)]
    low, high = min(values), max(values)
    room = max(0.08 * (high - low), 0.01 * abs(high), 0.5)
    return max(0.0, low - room), high + room
