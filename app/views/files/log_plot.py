"""`LogPlot`: the powers of a recording over time, with the span that is looked at."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QColor

from ...sensors.channel import CHANNELS, POWER_SAMPLES
from ...sensors.recorded.recording import Recording
from ..plots import theme
from ..plots.box import Box

Floats = npt.NDArray[np.float64]

_POWERS = ("power_instant_w", "power_average_w", "memory_power_w")
_BLOCKS = 1500  # of which the least and the largest value are drawn
_GAP_STEPS = 5.0


class LogPlot(pg.PlotWidget):  # type: ignore[misc]  # pyqtgraph has no types
    """Draws at most a few thousand points, whatever the recording holds and however far the user zooms."""

    span_changed = Signal(float, float)  # s, by the user's hand

    def __init__(self) -> None:
        super().__init__(viewBox=Box(enableMenu=True))
        self._series: dict[str, tuple[Floats, Floats]] = {}
        self._curves: dict[str, pg.PlotDataItem] = {}
        self.setMinimumHeight(120)
        self.setLabel("left", "Power (W)")
        self.setLabel("bottom", "Time (s)")
        self.getAxis("left").enableAutoSIPrefix(False)
        self.getAxis("bottom").enableAutoSIPrefix(False)
        self.setAccessibleName("Power over time")
        self.region = pg.LinearRegionItem()
        self.region.setZValue(10)
        self.region.sigRegionChangeFinished.connect(self._moved)
        self.plotItem.sigXRangeChanged.connect(self._draw)
        theme.notifier().changed.connect(self._recolour)
        self._recolour()

    def show_recording(self, recording: Recording) -> None:
        """Draw a recording; the span is the whole of it."""
        for curve in self._curves.values():
            self.removeItem(curve)
        self._series, self._curves = _powers_of(recording), {}
        for name in self._series:
            self._curves[name] = self.plot([], [], connect="finite")
        self._recolour()
        end_s = float(recording.time_ns[-1] - recording.time_ns[0]) / 1e9
        self.show_span(0.0, end_s)
        if self.region.scene() is None:
            self.addItem(self.region, ignoreBounds=True)
        self.region.setBounds((0.0, end_s))
        self.setXRange(0.0, end_s, padding=0.01)
        self._draw()
        self.enableAutoRange(axis="y")

    def show_span(self, start_s: float, end_s: float) -> None:
        """Move the span, which is not reported."""
        self.region.blockSignals(True)
        self.region.setRegion((start_s, end_s))
        self.region.blockSignals(False)

    @property
    def legend(self) -> str:
        """What its lines are, as rich text."""
        labels = (POWER_SAMPLES.label if n == POWER_SAMPLES.name else CHANNELS[n].label for n in self._series)
        named = zip(_lines(), labels, strict=False)
        return " &nbsp; ".join(f"<span style='color:{colour}'>━━</span>&nbsp;{label}" for colour, label in named)

    @Slot()
    def _moved(self) -> None:
        self.span_changed.emit(*self.region.getRegion())

    @Slot()
    def _draw(self, *_: object) -> None:
        low, high = self.plotItem.viewRange()[0]
        for name, (times_s, values) in self._series.items():
            self._curves[name].setData(*thinned(times_s, values, low, high))

    @Slot()
    def _recolour(self) -> None:
        colours = theme.colours()
        self.setBackground(colours.base)
        for curve, colour in zip(self._curves.values(), _lines(), strict=False):
            curve.setPen(pg.mkPen(colour, width=1))
        for side in ("left", "bottom"):
            self.getAxis(side).setPen(colours.border)
            self.getAxis(side).setTextPen(colours.text)
        ground = QColor(colours.accent)
        ground.setAlpha(40)
        self.region.setBrush(ground)
        for line in self.region.lines:
            line.setPen(pg.mkPen(colours.accent, width=1, style=Qt.PenStyle.DashLine))


def thinned(times_s: Floats, values: Floats, low: float, high: float) -> tuple[Floats, Floats]:
    """The part between two times as points to draw: blocks become their least and their largest value, NaN in gaps."""
    first = max(int(np.searchsorted(times_s, low, "left")) - 1, 0)
    last = min(int(np.searchsorted(times_s, high, "right")) + 1, len(times_s))
    times_s, values = times_s[first:last], values[first:last]
    if len(values) < 2:
        return times_s.copy(), values.copy()
    usual_s = float(np.median(np.diff(times_s[:: 1 + len(times_s) // 10_000]))) if len(times_s) > 2 else np.inf
    if len(values) > 4 * _BLOCKS:
        edges = np.linspace(0, len(values), _BLOCKS, endpoint=False).astype(np.int64)
        both = np.stack((np.minimum.reduceat(values, edges), np.maximum.reduceat(values, edges)), axis=1)
        values, times_s = both.ravel(), np.repeat(times_s[edges], 2)
        usual_s = float(np.median(np.diff(times_s[::2])))
    gaps = np.flatnonzero(np.diff(times_s) > _GAP_STEPS * usual_s)
    middles = (times_s[gaps] + times_s[gaps + 1]) / 2
    return np.insert(times_s, gaps + 1, middles), np.insert(values, gaps + 1, np.nan)


def _lines() -> tuple[str, ...]:
    """The colours of the powers, in their order."""
    colours = theme.colours()
    return colours.orange, colours.blue, colours.green, colours.purple


def _powers_of(recording: Recording) -> dict[str, tuple[Floats, Floats]]:
    origin_ns = int(recording.time_ns[0])
    found: dict[str, tuple[Floats, Floats]] = {}
    if len(recording.sample_ns) > 1:
        found[POWER_SAMPLES.name] = ((recording.sample_ns - origin_ns) / 1e9, recording.sample_w)
    times_s = (recording.time_ns - origin_ns) / 1e9
    for at, described in enumerate(recording.channels):
        values = recording.values[:, at]
        known = np.isfinite(values) if described.name in _POWERS else np.zeros(0, np.bool_)
        if known.any():
            found[described.name] = (times_s[known], values[known])
    return found
