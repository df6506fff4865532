"""Power limits drawn: their effect on power and speed, beside locked clocks [Schoonhoven2024, figures 6.6, 6.7]."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QWidget

from ...engine.models.clock_fits import ClockFit
from ..plots.overlay_list import colour_of
from ..plots.plot import Box, dress
from ..shared import theme

_ABOVE = 1.12  # room over the highest point


class CapsPlot(pg.GraphicsLayoutWidget):  # type: ignore[misc]  # pyqtgraph has no types
    """Left: power over the limit, and speed beneath it. Right: energy over speed, by limits and by locked clocks."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._fits: list[tuple[int, ClockFit]] = []
        self._over_limit, self.over_speed = (
            self.addPlot(0, 0, viewBox=Box(), enableMenu=False),
            self.addPlot(0, 1, rowspan=2, viewBox=Box(), enableMenu=False),
        )
        self._speed = self.addPlot(1, 0, viewBox=Box(), enableMenu=False)
        self._speed.setXLink(self._over_limit)
        for plot, bottom, left in (
            (self._over_limit, "", "Power drawn (W)"),
            (self._speed, "Power limit (W)", "Speed (% of full)"),
            (self.over_speed, "Speed (% of full)", "Energy per work (% of that at full speed)"),
        ):
            plot.setMenuEnabled(False)
            plot.hideButtons()
            if bottom:
                plot.setLabel("bottom", bottom)
            plot.setLabel("left", left)
            for axis in ("bottom", "left"):
                plot.getAxis(axis).enableAutoSIPrefix(False)
        theme.notifier().changed.connect(self.redraw)
        self.redraw()

    def show_fits(self, fits: Sequence[tuple[int, ClockFit]]) -> None:
        """Draw those that know power limits."""
        self._fits = [(place, each) for place, each in fits if each.caps is not None]
        self.redraw()

    @Slot()
    def redraw(self) -> None:
        """As it was, in the theme's colours."""
        colours = theme.colours()
        self.setBackground(colours.base)
        for plot in (self._over_limit, self._speed, self.over_speed):
            plot.clear()
            dress(plot, ("bottom", "left"))
        for place, each in self._fits:
            alone = len(self._fits) == 1
            limits = QColor(colours.vermillion) if alone else colour_of(place)
            locked = QColor(colours.blue) if alone else colour_of(place)
            self._draw_limits(each, limits)
            self._draw_clocks(each, locked)
        self._fit_range()

    def _draw_limits(self, each: ClockFit, colour: QColor) -> None:
        caps = each.caps
        assert caps is not None
        plot = self._over_limit
        along = np.linspace(float(caps.limit_w.min()), float(caps.limit_w.max()), 200)
        kept = pg.mkPen(theme.colours().muted, width=1, style=Qt.PenStyle.DotLine)
        plot.addItem(pg.PlotCurveItem(along, along, pen=kept))
        plot.addItem(pg.PlotCurveItem(along, caps.power(along), pen=pg.mkPen(colour, width=2), antialias=True))
        plot.addItem(pg.ScatterPlotItem(caps.limit_w, caps.power_w, symbol="o", size=8, pen=None, brush=colour))
        speed = 100 * caps.rate / caps.rate[-1]
        modelled = 100 * caps.speed(along)
        self._speed.addItem(pg.PlotCurveItem(along, modelled, pen=pg.mkPen(colour, width=2), antialias=True))
        self._speed.addItem(pg.ScatterPlotItem(caps.limit_w, speed, symbol="o", size=8, pen=None, brush=colour))
        line = pg.PlotCurveItem(speed, 100 * caps.energy, pen=pg.mkPen(colour, width=1.5), antialias=True)
        points = pg.ScatterPlotItem(speed, 100 * caps.energy, symbol="s", size=8, pen=None, brush=colour)
        for item in (line, points):
            self.over_speed.addItem(item)

    def _draw_clocks(self, each: ClockFit, colour: QColor) -> None:
        fit, caps = each.fit, each.caps
        if fit is None or caps is None or not len(fit.rate):
            return
        full_speed, full_energy = float(caps.rate[-1]), float(caps.power_w[-1] / caps.rate[-1])
        speed, energy = 100 * fit.rate / full_speed, 100 * fit.power_w / fit.rate / full_energy
        order = np.argsort(fit.clock_mhz)
        pen = pg.mkPen(colour, width=1.5, style=Qt.PenStyle.DashLine)
        self.over_speed.addItem(pg.PlotCurveItem(speed[order], energy[order], pen=pen, antialias=True))
        brush = QColor(theme.colours().base)
        self.over_speed.addItem(
            pg.ScatterPlotItem(speed, energy, symbol="o", size=8, pen=pg.mkPen(colour, width=1.5), brush=brush)
        )

    def _fit_range(self) -> None:
        caps = [each.caps for _, each in self._fits if each.caps is not None]
        if not caps:
            return
        lowest = min(float(each.limit_w.min()) for each in caps)
        highest = max(float(each.limit_w.max()) for each in caps)
        self._over_limit.setXRange(lowest, highest, padding=0.05)
        top = max(float(each.power_w.max()) for each in caps)
        self._over_limit.setYRange(0.0, max(top, highest) * _ABOVE, padding=0.0)
        slowest = min(float((each.rate / each.rate[-1]).min()) for each in caps)
        self._speed.setYRange(100 * slowest - 3.0, 103.0, padding=0.0)
        self.over_speed.enableAutoRange()
