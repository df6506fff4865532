"""The voltage over the clock, estimated from power and as measured [Schoonhoven2024, figure 6.8]."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QWidget

from ...engine.models.fit.frequency import FrequencyFit
from ..plots.model_plot import dress_mark
from ..plots.overlay_list import colour_of
from ..plots.plot import Box, dress
from ..shared import theme

Floats = npt.NDArray[np.float64]

_CURVE_POINTS = 400


class VoltagePlot(pg.PlotWidget):  # type: ignore[misc]  # pyqtgraph has no types
    """The fitted curve is relative to the voltage below the ridge; measured points lie on it, in mV on the right."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, viewBox=Box(), enableMenu=False)
        self._fits: list[tuple[int, FrequencyFit]] = []
        self._focus: FrequencyFit | None = None
        self.hideButtons()
        self.setLabel("bottom", "Graphics clock, observed (MHz)")
        self.setLabel("left", "Voltage over that below the ridge")
        for axis in ("bottom", "left", "right"):
            self.getAxis(axis).enableAutoSIPrefix(False)
        theme.follow(self.redraw)

    def show_fits(self, fits: Sequence[tuple[int, FrequencyFit]], focus: FrequencyFit | None) -> None:
        """Draw the fits, each with its place; the ridges are those of the one in focus."""
        self._fits, self._focus = list(fits), focus
        self.redraw()

    @Slot()
    def redraw(self) -> None:
        """As it was, in the theme's colours."""
        colours = theme.colours()
        self.clear()
        dress(self, ("bottom", "left", "right"))
        self.showAxis("right", False)
        top = 1.05
        for place, fit in self._fits:
            if not fit.identifiable or not fit.ridge_bracketed:
                continue  # without a ridge there is nothing the voltage could be relative to
            alone = len(self._fits) == 1
            colour = QColor(colours.blue) if alone else colour_of(place)
            finite = fit.used & np.isfinite(fit.voltage_mv) if len(fit.voltage_mv) else np.zeros(0, dtype=np.bool_)
            along = np.linspace(float(fit.clock_mhz.min()), float(fit.clock_mhz.max()), _CURVE_POINTS)
            voltage = fit.relative_voltage(along)
            self.addItem(pg.PlotCurveItem(along, voltage, pen=pg.mkPen(colour, width=2), antialias=True))
            top = max(top, float(voltage.max()))
            if finite.any():
                clock, measured = fit.clock_mhz[finite], fit.voltage_mv[finite]
                level = _level(fit, clock, measured)
                brush = QColor(colours.orange) if alone else colour
                points = pg.ScatterPlotItem(clock, measured / level, symbol="o", size=8, pen=None, brush=brush)
                self.addItem(points)
                top = max(top, float((measured / level).max()))
                if fit is self._focus:
                    self._show_millivolts(level)
        self._mark_ridges()
        self.setYRange(0.98, top + 0.04, padding=0.0)
        if self._fits:
            clocks = np.concatenate([fit.clock_mhz for _, fit in self._fits])
            self.setXRange(float(clocks.min()), float(clocks.max()), padding=0.04)

    def _show_millivolts(self, level_mv: float) -> None:
        self.showAxis("right")
        self.setLabel("right", "Measured voltage (mV)")
        self.getAxis("right").setScale(level_mv)

    def _mark_ridges(self) -> None:
        fit, colours = self._focus, theme.colours()
        if fit is None:
            return
        marks = []
        if fit.ridge_bracketed and fit.ridge_mhz not in (None, fit.voltage_ridge_mhz):
            marks.append((fit.ridge_mhz, "ridge by power {value:.0f} MHz", colours.purple, 0.94))
        if fit.voltage_ridge_mhz is not None:
            marks.append((fit.voltage_ridge_mhz, "ridge by voltage {value:.0f} MHz", colours.vermillion, 0.82))
        for clock, words, colour, height in marks:
            line = pg.InfiniteLine(clock, angle=90, label=words, labelOpts={"position": height, "movable": False})
            dress_mark(line, QColor(colour))
            line.setZValue(-1)
            self.addItem(line, ignoreBounds=True)
        if fit.voltage_ridge_interval_mhz is not None:
            ground = QColor(colours.vermillion)
            ground.setAlpha(30)
            region = pg.LinearRegionItem(
                fit.voltage_ridge_interval_mhz, movable=False, brush=ground, pen=pg.mkPen(None, style=Qt.PenStyle.NoPen)
            )
            region.setZValue(-2)
            self.addItem(region, ignoreBounds=True)


def _level(fit: FrequencyFit, clock_mhz: Floats, measured_mv: Floats) -> float:
    """The measured voltage below the ridge, mV; if none was measured there, the one that suits the curve best."""
    ridge = fit.voltage_ridge_mhz or fit.ridge_mhz or 0.0
    below = measured_mv[clock_mhz < ridge]
    if len(below):
        return float(np.median(below))
    relative = fit.relative_voltage(clock_mhz)
    return float(measured_mv @ relative / (relative @ relative))
