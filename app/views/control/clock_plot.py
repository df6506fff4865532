"""`ClockPlot`: power, speed and energy over the clock, the board's point now, and two lines to drag."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QColor, QFocusEvent, QKeyEvent
from PySide6.QtWidgets import QWidget

from ...engine.models.fit.frequency import FrequencyFit
from ..plots.model_plot import ModelPlot, clocks_along, dress_mark, faint, legend
from ..shared import theme
from ..shared.label import axis_title

CLOCK, LIMIT = "graphics_clock_mhz", "power_limit_w"  # settings
_ROOM = 1.1  # over the highest value
_PAGE = 10  # steps of the Page keys
_STEPS = {
    Qt.Key.Key_Left: (CLOCK, -1),
    Qt.Key.Key_Right: (CLOCK, 1),
    Qt.Key.Key_PageDown: (CLOCK, -_PAGE),
    Qt.Key.Key_PageUp: (CLOCK, _PAGE),
    Qt.Key.Key_Down: (LIMIT, -1),
    Qt.Key.Key_Up: (LIMIT, 1),
}
_KEYS = "Left and right move the clock by one supported step, Page Up and Page Down by ten; up and down move the limit"


class ClockPlot(ModelPlot):
    """Only sends what is dragged; the lines stand where `show_setting` puts them."""

    dragged, stepped = Signal(str, float), Signal(str, int)  # the setting; where to, or by how many steps of its field

    def __init__(self, parent: QWidget | None = None, *, at_once: bool = True) -> None:
        self._clocks_mhz: tuple[float, float] = (0.0, 1.0)  # that can be set
        self._limits_w: tuple[float, float] | None = None
        super().__init__(parent, at_once=at_once)

    def make(self) -> Iterator[None]:
        """The model's parts, then those of control."""
        self.speed_curve, self.speed_points = pg.PlotCurveItem(antialias=True), pg.ScatterPlotItem(symbol="t1", size=8)
        self.now = pg.ScatterPlotItem(symbol="star", size=18)
        self.now_words = pg.TextItem(anchor=(0.5, 1.3))
        self.limit_now = pg.InfiniteLine(angle=0)
        self.bounds = [pg.InfiniteLine(angle=0), pg.InfiniteLine(angle=0)]  # of what the limit can be set to
        words = {"position": 0.02, "movable": False, "anchors": [(0, 1), (0, 1)]}
        self.limit_line = pg.InfiniteLine(angle=0, movable=True, label="limit", labelOpts=words)
        words = {"position": 0.06, "movable": False}
        self.clock_line = pg.InfiniteLine(angle=90, movable=True, label="clock", labelOpts=words)
        yield from super().make()
        yield
        self.setLabel("bottom", "Graphics clock (MHz)")
        self.setMouseEnabled(x=False, y=False)  # what is dragged is a line, never the picture
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Power, speed and energy over the graphics clock")
        self.setToolTip(f"Drag a line; nothing is set before Apply. {_KEYS}")
        for item in (self.speed_curve, self.speed_points):
            self.relative_view.addItem(item)
        for line, cursor, marker in (
            (self.clock_line, Qt.CursorShape.SizeHorCursor, "<|>"),
            (self.limit_line, Qt.CursorShape.SizeVerCursor, "<|>"),
        ):
            line.setCursor(cursor)
            line.addMarker(marker, position=0.5, size=12)
        for z, item in enumerate(
            (*self.bounds, self.limit_now, self.now, self.now_words, self.limit_line, self.clock_line), start=20
        ):
            item.setZValue(z)
            self.addItem(item, ignoreBounds=True)
        self.limit_line.sigDragged.connect(lambda line: self.dragged.emit(LIMIT, line.value()))
        self.clock_line.sigDragged.connect(lambda line: self.dragged.emit(CLOCK, line.value()))
        self.recolour()

    def show_board(self, clocks_mhz: tuple[float, float], limits_w: tuple[float, float] | None) -> None:
        """What the board can be set to; None: no limit."""
        self._clocks_mhz, self._limits_w = clocks_mhz, limits_w
        self.clock_line.setBounds(clocks_mhz)
        for line, at in zip(self.bounds, limits_w or (0.0, 0.0), strict=True):
            line.setVisible(limits_w is not None)
            line.setValue(at)
        self.limit_line.setVisible(limits_w is not None)
        self.limit_now.hide()
        self.now.clear()
        self.now_words.setText("")
        if limits_w is not None:
            self.limit_line.setBounds(limits_w)
        self.fit_range()

    def show_setting(self, clock_mhz: float, limit_w: float, *, clock: bool, limit: bool) -> None:
        """Where the lines stand; `clock` and `limit` state which are chosen, the other stays faint."""
        self.clock_line.setValue(clock_mhz)
        self.limit_line.setValue(limit_w)
        self.clock_line.label.setFormat("clock {value:.0f} MHz" if clock else "clock")
        self.limit_line.label.setFormat("limit {value:.0f} W" if limit else "limit")
        colours = theme.colours()
        for line, chosen, colour in (
            (self.clock_line, clock, colours.accent),
            (self.limit_line, limit, colours.vermillion),
        ):
            dress_mark(line, QColor(colour if chosen else colours.muted))
            style = Qt.PenStyle.SolidLine if chosen else Qt.PenStyle.DashLine
            line.setPen(pg.mkPen(colour if chosen else colours.muted, width=2, style=style))
            line.setHoverPen(pg.mkPen(colour, width=4))
        self.setAccessibleDescription(f"Clock {clock_mhz:.0f} MHz, limit {limit_w:.0f} W. {_KEYS}")

    def show_now(self, clock_mhz: float, power_w: float, limit_w: float) -> None:
        """Where the board is; what it does not report is NaN."""
        known = math.isfinite(clock_mhz) and math.isfinite(power_w)
        self.now.setData([clock_mhz] if known else [], [power_w] if known else [])
        self.now_words.setText(f"now {power_w:.0f} W" if known else "", theme.colours().text)
        if known:
            low, high = self._clocks_mhz
            self.now_words.setAnchor((min(1.0, max(0.0, (clock_mhz - low) / (high - low or 1.0))), 1.4))
            self.now_words.setPos(clock_mhz, power_w)
        self.limit_now.setVisible(math.isfinite(limit_w))
        if math.isfinite(limit_w):
            self.limit_now.setValue(limit_w)

    def show_model(self, fit: FrequencyFit | None) -> None:
        """Draw a fit, or none."""
        self.show_fit(fit)
        self.range_region.hide()
        self.ridge_line.hide()
        speed, points = np.empty((2, 0)), np.empty((2, 0))
        if fit is not None and fit.identifiable:
            clocks = fit.clock_mhz[fit.used]
            along = np.linspace(clocks.min(), clocks.max(), 200)  # nothing is predicted beyond
            self.power_curve.setData(along, fit.power(along))
            self.energy_curve.setData(along, fit.energy(along))
            if len(fit.rate):
                rates = fit.rate[fit.used]
                speed = np.stack([along, fit.speed(along)])
                points = np.stack([clocks, rates / rates[clocks.argmax()]])
        self.speed_curve.setData(*speed)
        self.speed_points.setData(*points)

    def fit_range(self) -> None:
        """All clocks and limits that can be set, whatever was measured of them."""
        fit = self._fit
        high = [self._limits_w[1] if self._limits_w else 0.0]
        high += [float(np.nanmax(fit.power_w))] if fit is not None and len(fit.power_w) else []
        self.setXRange(*self._clocks_mhz, padding=0.03)
        self.setYRange(0.0, max(*high, 1.0) * _ROOM, padding=0.0)
        top = float(fit.energy(clocks_along(fit)).max()) if fit is not None and fit.identifiable else 1.0
        self.relative_view.setYRange(0.0, min(top, 2.0) * _ROOM, padding=0.0)

    def dress_parts(self) -> None:
        """What this plot adds, in the theme's colours."""
        colours = theme.colours()
        purple = QColor(colours.purple)
        self.setLabel("right", axis_title("Energy (least = 1), speed (top clock = 1)"), color=colours.text)
        self.getAxis("right").setTextPen(colours.text)
        self.speed_curve.setPen(pg.mkPen(purple, width=2, style=Qt.PenStyle.DotLine))
        self.speed_points.setBrush(None)
        self.speed_points.setPen(pg.mkPen(purple, width=1.5))
        self.now.setBrush(colours.text)
        self.now.setPen(colours.base)
        self.limit_now.setPen(pg.mkPen(colours.vermillion, width=1))
        for line in self.bounds:
            line.setPen(pg.mkPen(faint(QColor(colours.vermillion), 120), width=1, style=Qt.PenStyle.DotLine))
        self._show_focus()
        self._show_axes()

    def _show_axes(self) -> None:
        """They stand also where there is no model: the board's point moves between them."""
        self.getAxis("right").setVisible(self._fit is not None and self._fit.identifiable)

    def _show_focus(self) -> None:
        colours = theme.colours()
        focus = self.hasFocus()
        self.getViewBox().setBorder(pg.mkPen(colours.accent if focus else colours.border, width=3 if focus else 1))

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._show_focus()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._show_focus()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move the lines."""
        if event.key() in _STEPS:
            self.stepped.emit(*_STEPS[Qt.Key(event.key())])
        else:
            super().keyPressEvent(event)


def clock_legend(fit: FrequencyFit | None) -> str:
    """Of what is drawn."""
    colours = theme.colours()
    entries = [(colours.text, "★", "the board now")]
    if fit is not None:
        entries.append((colours.orange, "●", f"measured{' (simulated)' if fit.simulated else ''}"))
    if fit is not None and not fit.used.all():
        entries.append((colours.grey, "✖", "left out of the fit"))
    if fit is not None and fit.identifiable:
        entries += [(colours.blue, "━━", "power, 95 % band"), (colours.green, "╍╍", "energy per work")]
        entries += [(colours.purple, "┈┈", "speed")] if len(fit.rate) else []
    return legend([*entries, (colours.vermillion, "┈┈", "limits that can be set")])
