"""Frequency models drawn: points, P(f) with its band, energy on a second axis, ridge, range and optimum."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QWidget

from ...engine.models.frequency import FrequencyFit
from ..in_parts import InParts
from ..plots import theme
from ..plots.box import Box
from ..plots.dress import dress
from ..plots.note import PlotNote
from ..plots.overlay_list import colour_of

Floats = npt.NDArray[np.float64]

_CURVE_POINTS = 400
_BAND = 55  # opacity of 255
_HIGHEST_ENERGY = 2.0  # that is in sight: at the lowest clocks it is many times the least


class ModelPlot(pg.PlotWidget, InParts):  # type: ignore[misc]  # pyqtgraph has no types
    """Shows one `FrequencyFit` in full and others as lines behind it, or words where there is none."""

    def __init__(self, parent: QWidget | None = None, *, at_once: bool = True) -> None:
        super().__init__(parent, viewBox=Box(), enableMenu=False)
        self._fit: FrequencyFit | None = None
        self._place: int | None = None
        self._others: list[tuple[int, FrequencyFit]] = []
        self.behind: list[tuple[pg.ViewBox, pg.GraphicsObject]] = []
        self._ways: QWidget | None = None
        self.begin(at_once)

    def make(self) -> Iterator[None]:
        """Axes, what lies across the plot, curves and points, energy, words and colours."""
        self.hideButtons()
        self.setLabel("bottom", "Graphics clock, observed (MHz)")
        self.setLabel("left", "Power (W)")
        for axis in ("bottom", "left", "right"):
            self.getAxis(axis).enableAutoSIPrefix(False)
        yield
        self.range_region = pg.LinearRegionItem(movable=False)
        self._interval = pg.LinearRegionItem(movable=False)
        self.ridge_line = pg.InfiniteLine(
            angle=90, label="ridge {value:.0f} MHz", labelOpts={"position": 0.06, "movable": False}
        )
        self.recommended_line = pg.InfiniteLine(
            angle=90, label="recommended {value:.0f} MHz", labelOpts={"position": 0.94, "movable": False}
        )
        marks = (self.range_region, self._interval, self.ridge_line, self.recommended_line)
        for z, item in enumerate(marks):
            item.setZValue(z)
            self.addItem(item, ignoreBounds=True)
        yield
        self.band_edges = pg.PlotCurveItem(pen=None), pg.PlotCurveItem(pen=None)
        self._band = pg.FillBetweenItem(*self.band_edges)
        self.power_curve = pg.PlotCurveItem(antialias=True)
        self.used_points = pg.ScatterPlotItem(symbol="o", size=9)
        self.unused_points = pg.ScatterPlotItem(symbol="x", size=9)
        drawn = (*self.band_edges, self._band, self.power_curve, self.used_points, self.unused_points)
        for z, item in enumerate(drawn, start=len(marks)):
            item.setZValue(z)
            self.addItem(item)
        yield
        self._energy_view = Box()
        self._energy_view.setMouseEnabled(x=False, y=False)
        self.scene().addItem(self._energy_view)
        self.getAxis("right").linkToView(self._energy_view)
        self._energy_view.setXLink(self.getViewBox())
        self.energy_curve = pg.PlotCurveItem(antialias=True)
        self.energy_points = pg.ScatterPlotItem(symbol="d", size=8)
        for item in (self.energy_curve, self.energy_points):
            self._energy_view.addItem(item)
        yield
        self._note = PlotNote(self)
        self.getViewBox().sigResized.connect(self._follow_size)
        theme.notifier().changed.connect(self.recolour)
        self.show_fit(None)

    @property
    def note(self) -> str:
        """What stands in place of the plot; empty while it is drawn."""
        return self._note.text()

    def say(self, note: str) -> None:
        """Words in place of a model."""
        self._note.setText(note)
        self._show_axes()

    def offer(self, ways: QWidget | None) -> None:
        """The ways to a first model in place of one; None: there is one."""
        if self._ways is not None:
            self._ways.setVisible(ways is not None)
        elif ways is not None:
            self._ways = ways
            self.layout().addWidget(ways)
        self._show_axes()

    def _show_axes(self) -> None:
        drawn = not self._note.text() and (self._ways is None or self._ways.isHidden())
        for axis in ("bottom", "left", "right"):
            self.getAxis(axis).setVisible(drawn)

    def show_fit(
        self, fit: FrequencyFit | None, place: int | None = None, others: Sequence[tuple[int, FrequencyFit]] = ()
    ) -> None:
        """Draw a fit; one that is not identifiable gives its points only.

        `others` are drawn as points and lines behind it, each in the colour of its place; it then has that of its own.
        """
        self._fit, self._place, self._others = fit, place if others else None, list(others)
        drawn = fit is not None and fit.identifiable
        for item in (self.power_curve, self.energy_curve, self._band):
            item.setVisible(drawn)
        self._put(self.ridge_line, fit.ridge_mhz if fit is not None and fit.ridge_bracketed else None)
        self._put(self.recommended_line, fit.recommended_clock_mhz if fit is not None else None)
        bracketed = fit is not None and fit.optimum_bracketed
        for region, bounds in (
            (self.range_region, fit.range_mhz if fit is not None else None),
            (self._interval, fit.optimum_interval_mhz if fit is not None and bracketed else None),
        ):
            region.setVisible(bounds is not None)
            if bounds is not None:
                region.setRegion(bounds)
        clocks, power = (fit.clock_mhz, fit.power_w) if fit is not None else (np.empty(0), np.empty(0))
        used = fit.used if fit is not None else np.empty(0, dtype=np.bool_)
        self.used_points.setData(clocks[used], power[used])
        self.unused_points.setData(clocks[~used], power[~used])
        along = np.empty(0)
        if fit is not None and drawn:
            along = _along(fit)
            self.power_curve.setData(along, fit.power(along))
            self.energy_curve.setData(along, fit.energy(along))
            band = fit.band_w if len(fit.band_mhz) else np.empty((2, 0))
            for edge, values in zip(self.band_edges, band, strict=True):
                edge.setData(fit.band_mhz, values)
        self.energy_points.setData(*(_measured_energy(fit) if fit is not None and drawn else (along, along)))
        self.recolour()
        self._fit_range()

    def _draw_behind(self) -> None:
        for view, item in self.behind:
            view.removeItem(item)
        self.behind = []
        for place, fit in self._others:
            colour = colour_of(place)
            points = pg.ScatterPlotItem(fit.clock_mhz, fit.power_w, symbol="o", size=6, pen=None, brush=colour)
            self._put_behind(self.getViewBox(), points)
            if fit.identifiable:
                along = _along(fit)
                line = pg.PlotCurveItem(along, fit.power(along), pen=pg.mkPen(colour, width=1.5), antialias=True)
                self._put_behind(self.getViewBox(), line)
                pen = pg.mkPen(colour, width=1.5, style=Qt.PenStyle.DashLine)
                self._put_behind(self._energy_view, pg.PlotCurveItem(along, fit.energy(along), pen=pen, antialias=True))

    def _put_behind(self, view: pg.ViewBox, item: pg.GraphicsObject) -> None:
        item.setZValue(-1)
        view.addItem(item)
        self.behind.append((view, item))

    def _fit_range(self) -> None:
        fits = [fit for fit in (self._fit, *(fit for _, fit in self._others)) if fit is not None and len(fit.clock_mhz)]
        if not fits:
            return
        low = min(float(np.nanmin(fit.clock_mhz)) for fit in fits)
        high = max(float(np.nanmax(fit.clock_mhz)) for fit in fits)
        for fit in fits[:1]:
            if fit.range_mhz is not None:
                low, high = min(low, fit.range_mhz[0]), max(high, fit.range_mhz[1])
        self.setXRange(low, high, padding=0.04)
        self.setYRange(0.0, max(float(np.nanmax(fit.power_w)) for fit in fits) * 1.12, padding=0.0)
        tops = [float(fit.energy(_along(fit)).max()) for fit in fits if fit.identifiable]
        if tops:
            span = min(max(tops), _HIGHEST_ENERGY) - 1.0 or 0.1
            self._energy_view.setYRange(1.0 - 0.15 * span, 1.0 + 1.1 * span, padding=0.0)

    @staticmethod
    def _put(line: pg.InfiniteLine, clock_mhz: float | None) -> None:
        line.setVisible(clock_mhz is not None)
        if clock_mhz is not None:
            line.setValue(clock_mhz)

    @Slot()
    def _follow_size(self) -> None:
        self._energy_view.setGeometry(self.getViewBox().sceneBoundingRect())
        self._energy_view.linkedViewChanged(self.getViewBox(), self._energy_view.XAxis)

    @Slot()
    def recolour(self) -> None:
        """Take over the theme's colours."""
        colours = theme.colours()
        dress(self, ("bottom", "left", "right"))
        own = None if self._place is None else colour_of(self._place)
        points, line, energy = (own or QColor(name) for name in (colours.orange, colours.blue, colours.green))
        axis = colours.text if own is not None else colours.green
        self.getAxis("right").setTextPen(axis)
        self.setLabel("right", "Energy per work (lowest of the model = 1)", color=axis)
        self.used_points.setBrush(points)
        self.used_points.setPen(colours.base)
        self.unused_points.setPen(pg.mkPen(colours.grey, width=2))
        self.power_curve.setPen(pg.mkPen(line, width=2))
        self.energy_curve.setPen(pg.mkPen(energy, width=2, style=Qt.PenStyle.DashLine))
        self.energy_points.setBrush(None)
        self.energy_points.setPen(pg.mkPen(energy, width=1.5))
        self._band.setBrush(_faint(line, _BAND))
        green = QColor(colours.green)
        self.range_region.setBrush(_faint(green, 30))
        self._interval.setBrush(_faint(QColor(colours.vermillion), 34))
        for region, colour in ((self.range_region, green), (self._interval, QColor(colours.vermillion))):
            for edge in region.lines:
                edge.setPen(pg.mkPen(colour, width=1, style=Qt.PenStyle.DotLine))
        for mark, name in ((self.ridge_line, colours.purple), (self.recommended_line, colours.vermillion)):
            dress_mark(mark, QColor(name))
        self._draw_behind()
        self._show_axes()  # an axis that gets a title comes to sight


def dress_mark(mark: pg.InfiniteLine, colour: QColor) -> None:
    """A line across the plot with its words on a ground that lets them be read."""
    mark.setPen(pg.mkPen(colour, width=1.5, style=Qt.PenStyle.DashDotLine))
    mark.label.setColor(colour)
    mark.label.fill = pg.mkBrush(_faint(QColor(theme.colours().base), 215))


def _faint(colour: QColor, opacity: int) -> QColor:
    faint = QColor(colour)
    faint.setAlpha(opacity)
    return faint


def _along(fit: FrequencyFit) -> Floats:
    return np.linspace(float(np.nanmin(fit.clock_mhz)), float(np.nanmax(fit.clock_mhz)), _CURVE_POINTS)


def _measured_energy(fit: FrequencyFit) -> tuple[Floats, Floats]:
    """Measured energy per work at the points that were fitted, in the unit of the model's; where speed is known."""
    if not len(fit.rate):
        return np.empty(0), np.empty(0)
    clock, energy = fit.clock_mhz[fit.used], fit.power_w[fit.used] / fit.rate[fit.used]
    return clock, energy * float(np.median(fit.energy(clock) / energy))
