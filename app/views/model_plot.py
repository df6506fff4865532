"""The frequency model drawn: measured points, P(f), the estimated energy on a second axis, the ridge, the range."""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QColor, QResizeEvent
from PySide6.QtWidgets import QLabel, QWidget

from app.engine.models.frequency import FrequencyFit
from app.views import theme

_CURVE_POINTS = 400


class ModelPlot(pg.PlotWidget):  # type: ignore[misc]  # pyqtgraph has no types
    """Shows one `FrequencyFit`, or words where there is none."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, enableMenu=False)
        self._fit: FrequencyFit | None = None
        self.hideButtons()
        self.setLabel("bottom", "Graphics clock, observed (MHz)")
        self.setLabel("left", "Power (W)")
        for axis in ("bottom", "left", "right"):
            self.getAxis(axis).enableAutoSIPrefix(False)
        self._range = pg.LinearRegionItem(movable=False)
        self._used = pg.ScatterPlotItem(symbol="o", size=9)
        self._unused = pg.ScatterPlotItem(symbol="x", size=9)
        self._power = pg.PlotCurveItem(antialias=True)
        self._ridge = pg.InfiniteLine(
            angle=90, label="ridge {value:.0f} MHz", labelOpts={"position": 0.06, "movable": False}
        )
        self._best = pg.InfiniteLine(
            angle=90, label="recommended {value:.0f} MHz", labelOpts={"position": 0.94, "movable": False}
        )
        for z, item in enumerate((self._range, self._ridge, self._best, self._power, self._used, self._unused)):
            item.setZValue(z)
            self.addItem(item, ignoreBounds=item in (self._range, self._ridge, self._best))
        self._energy_view = pg.ViewBox(enableMenu=False)
        self._energy_view.setMouseEnabled(x=False, y=False)
        self.scene().addItem(self._energy_view)
        self.getAxis("right").linkToView(self._energy_view)
        self._energy_view.setXLink(self.getViewBox())
        self._energy = pg.PlotCurveItem(antialias=True)
        self._energy_view.addItem(self._energy)
        self._note = QLabel(self)
        self._note.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._note.setWordWrap(True)
        self._note.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.getViewBox().sigResized.connect(self._follow_size)
        theme.notifier().changed.connect(self.recolour)
        self.recolour()
        self.show_fit(None)

    def say(self, note: str) -> None:
        """Words in place of a model."""
        self._note.setText(note)
        self._note.setVisible(bool(note))
        for axis in ("bottom", "left", "right"):
            self.getAxis(axis).setVisible(not note)

    def show_fit(self, fit: FrequencyFit | None) -> None:
        """Draw a fit; one that is not identifiable gives its points only."""
        self._fit = fit
        drawn = fit is not None and fit.identifiable
        for item in (self._power, self._energy):
            item.setVisible(drawn)
        self._place(self._ridge, fit.ridge_mhz if fit is not None and fit.ridge_bracketed else None)
        self._place(self._best, fit.recommended_clock_mhz if fit is not None else None)
        bounds = fit.range_mhz if fit is not None else None
        self._range.setVisible(bounds is not None)
        if bounds is not None:
            self._range.setRegion(bounds)
        clocks, power = (fit.clock_mhz, fit.power_w) if fit is not None else (np.empty(0), np.empty(0))
        used = fit.used if fit is not None else np.empty(0, dtype=np.bool_)
        self._used.setData(clocks[used], power[used])
        self._unused.setData(clocks[~used], power[~used])
        if fit is not None and drawn:
            low, high = float(np.nanmin(clocks)), float(np.nanmax(clocks))
            along = np.linspace(low, high, _CURVE_POINTS)
            self._power.setData(along, fit.power(along))
            self._energy.setData(along, fit.energy(along))
        self._fit_range()

    def _fit_range(self) -> None:
        fit = self._fit
        if fit is None or not len(fit.clock_mhz):
            return
        low, high = float(np.nanmin(fit.clock_mhz)), float(np.nanmax(fit.clock_mhz))
        if fit.range_mhz is not None:
            low, high = min(low, fit.range_mhz[0]), max(high, fit.range_mhz[1])
        self.setXRange(low, high, padding=0.04)
        self.setYRange(0.0, float(np.nanmax(fit.power_w)) * 1.12, padding=0.0)
        if fit.identifiable:
            _, energy = self._energy.getData()
            span = float(np.nanmax(energy)) - 1.0 or 0.1
            self._energy_view.setYRange(1.0 - 0.15 * span, 1.0 + 1.1 * span, padding=0.0)

    @staticmethod
    def _place(line: pg.InfiniteLine, clock_mhz: float | None) -> None:
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
        self.setBackground(colours.base)
        for name in ("bottom", "left", "right"):
            self.getAxis(name).setPen(colours.border)
            self.getAxis(name).setTextPen(colours.text)
            self.getAxis(name).setStyle(maxTickLevel=0)
        self.getAxis("right").setTextPen(colours.green)
        self.setLabel("right", "Energy (model)", color=colours.green)
        self.showGrid(x=True, y=True, alpha=0.12)
        self._used.setBrush(colours.orange)
        self._used.setPen(colours.base)
        self._unused.setPen(pg.mkPen(colours.grey, width=2))
        self._power.setPen(pg.mkPen(colours.blue, width=2))
        self._energy.setPen(pg.mkPen(colours.green, width=2, style=Qt.PenStyle.DashLine))
        band = QColor(colours.green)
        band.setAlpha(36)
        self._range.setBrush(band)
        for edge in self._range.lines:
            edge.setPen(pg.mkPen(colours.green, width=1, style=Qt.PenStyle.DotLine))
        for line, colour in ((self._ridge, colours.purple), (self._best, colours.vermillion)):
            line.setPen(pg.mkPen(colour, width=1.5, style=Qt.PenStyle.DashDotLine))
            line.label.setColor(colour)
            ground = QColor(colours.base)
            ground.setAlpha(215)
            line.label.fill = pg.mkBrush(ground)
        self._note.setStyleSheet(f"background: transparent; color: {colours.muted}; padding: 24px;")

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if hasattr(self, "_note"):
            self._note.setGeometry(self.rect())
