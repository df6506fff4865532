"""Frequency models drawn: points, P(f) with its band, energy on a second axis, ridge, range and optimum.

What is drawn how in the plots of the model's panel, in the plots' colours and shapes.

The clocks of a frequency model, explained in a line each: from the curve's minimum to the recommendation.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QWidget

from ...engine.models.clock_fits import ClockFit
from ...engine.models.fit.clock_limits import how_settable
from ...engine.models.fit.frequency import FrequencyFit
from ..shared import theme
from ..shared.turns import InParts
from .overlay_list import colour_of
from .plot import Box, PlotNote, dress

Floats = npt.NDArray[np.float64]

_CURVE_POINTS = 400
_BAND = 55  # opacity of 255
_HIGHEST_ENERGY = 2.0  # that is in sight: at the lowest clocks it is many times the least


class ModelPlot(pg.PlotWidget, InParts):  # type: ignore[misc]  # pyqtgraph has no types
    """Shows one `FrequencyFit` in full and others as lines behind it, or words if there is none."""

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
        self.relative_view = Box()
        self.relative_view.setMouseEnabled(x=False, y=False)
        self.scene().addItem(self.relative_view)
        self.getAxis("right").linkToView(self.relative_view)
        self.relative_view.setXLink(self.getViewBox())
        self.energy_curve = pg.PlotCurveItem(antialias=True)
        self.energy_points = pg.ScatterPlotItem(symbol="d", size=8)
        for item in (self.energy_curve, self.energy_points):
            self.relative_view.addItem(item)
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
            along = clocks_along(fit)
            self.power_curve.setData(along, fit.power(along))
            self.energy_curve.setData(along, fit.energy(along))
            band = fit.band_w if len(fit.band_mhz) else np.empty((2, 0))
            for edge, values in zip(self.band_edges, band, strict=True):
                edge.setData(fit.band_mhz, values)
        self.energy_points.setData(*(_measured_energy(fit) if fit is not None and drawn else (along, along)))
        self.recolour()
        self.fit_range()

    def _draw_behind(self) -> None:
        for view, item in self.behind:
            view.removeItem(item)
        self.behind = []
        for place, fit in self._others:
            colour = colour_of(place)
            points = pg.ScatterPlotItem(fit.clock_mhz, fit.power_w, symbol="o", size=6, pen=None, brush=colour)
            self._put_behind(self.getViewBox(), points)
            if fit.identifiable:
                along = clocks_along(fit)
                line = pg.PlotCurveItem(along, fit.power(along), pen=pg.mkPen(colour, width=1.5), antialias=True)
                self._put_behind(self.getViewBox(), line)
                pen = pg.mkPen(colour, width=1.5, style=Qt.PenStyle.DashLine)
                self._put_behind(
                    self.relative_view, pg.PlotCurveItem(along, fit.energy(along), pen=pen, antialias=True)
                )

    def _put_behind(self, view: pg.ViewBox, item: pg.GraphicsObject) -> None:
        item.setZValue(-1)
        view.addItem(item)
        self.behind.append((view, item))

    def fit_range(self) -> None:
        """Bring what is drawn to sight."""
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
        tops = [float(fit.energy(clocks_along(fit)).max()) for fit in fits if fit.identifiable]
        if tops:
            span = min(max(tops), _HIGHEST_ENERGY) - 1.0 or 0.1
            self.relative_view.setYRange(1.0 - 0.15 * span, 1.0 + 1.1 * span, padding=0.0)

    @staticmethod
    def _put(line: pg.InfiniteLine, clock_mhz: float | None) -> None:
        line.setVisible(clock_mhz is not None)
        if clock_mhz is not None:
            line.setValue(clock_mhz)

    @Slot()
    def _follow_size(self) -> None:
        self.relative_view.setGeometry(self.getViewBox().sceneBoundingRect())
        self.relative_view.linkedViewChanged(self.getViewBox(), self.relative_view.XAxis)

    def dress_parts(self) -> None:
        """What a subclass adds; not in `recolour`: PySide calls an overridden slot of what is gone."""

    @Slot()
    def recolour(self) -> None:
        """Take over the theme's colours."""
        colours = theme.colours()
        dress(self, ("bottom", "left", "right"))
        own = None if self._place is None else colour_of(self._place)
        points, line, energy = (own or QColor(name) for name in (colours.orange, colours.blue, colours.green))
        axis = colours.text if own is not None else colours.green
        self.getAxis("right").setTextPen(axis)
        least = "Energy per work" if self._fit is None else self._fit.minimised.capitalize()
        self.setLabel("right", f"{least} (lowest of the model = 1)", color=axis)
        self.used_points.setBrush(points)
        self.used_points.setPen(colours.base)
        self.unused_points.setPen(pg.mkPen(colours.grey, width=2))
        self.power_curve.setPen(pg.mkPen(line, width=2))
        self.energy_curve.setPen(pg.mkPen(energy, width=2, style=Qt.PenStyle.DashLine))
        self.energy_points.setBrush(None)
        self.energy_points.setPen(pg.mkPen(energy, width=1.5))
        self._band.setBrush(faint(line, _BAND))
        green = QColor(colours.green)
        self.range_region.setBrush(faint(green, 30))
        self._interval.setBrush(faint(QColor(colours.vermillion), 34))
        for region, colour in ((self.range_region, green), (self._interval, QColor(colours.vermillion))):
            for edge in region.lines:
                edge.setPen(pg.mkPen(colour, width=1, style=Qt.PenStyle.DotLine))
        for mark, name in ((self.ridge_line, colours.purple), (self.recommended_line, colours.vermillion)):
            dress_mark(mark, QColor(name))
        self._draw_behind()
        self.dress_parts()
        self._show_axes()  # an axis that gets a title comes to sight


def dress_mark(mark: pg.InfiniteLine, colour: QColor) -> None:
    """A line across the plot with its words on a ground that lets them be read."""
    mark.setPen(pg.mkPen(colour, width=1.5, style=Qt.PenStyle.DashDotLine))
    mark.label.setColor(colour)
    mark.label.fill = pg.mkBrush(faint(QColor(theme.colours().base), 215))


def faint(colour: QColor, opacity: int) -> QColor:
    faint = QColor(colour)
    faint.setAlpha(opacity)
    return faint


def clocks_along(fit: FrequencyFit) -> Floats:
    return np.linspace(float(np.nanmin(fit.clock_mhz)), float(np.nanmax(fit.clock_mhz)), _CURVE_POINTS)


def _measured_energy(fit: FrequencyFit) -> tuple[Floats, Floats]:
    """Measured energy per work at the points that were fitted, in the unit of the model's; where speed is known."""
    if not len(fit.rate):
        return np.empty(0), np.empty(0)
    clock, energy = fit.clock_mhz[fit.used], fit.power_w[fit.used] / fit.rate[fit.used]
    return clock, energy * float(np.median(fit.energy(clock) / energy))


def power_legend(fit: FrequencyFit, *, alone: bool = True) -> str:
    """Of power and energy; `alone`: no other fit is drawn behind it."""
    colours = theme.colours()
    measured = "measured on a simulated board" if fit.simulated else "measured"
    points, line, energy = (colours.orange, colours.blue, colours.green) if alone else (colours.text,) * 3
    entries = [(points, "●", measured)] if fit.used.any() else []
    if not fit.used.all():
        entries.append((colours.grey, "✖", "left out of the fit"))
    if fit.identifiable:
        entries += [(line, "━━", "model P(f) and its 95 % band"), (energy, "╍╍", f"{fit.minimised} (right axis)")]
    if fit.identifiable and len(fit.rate):
        entries.append((energy, "◇", "the same as measured"))
    if fit.optimum_bracketed:
        entries.append((colours.vermillion, "░░", "optimum, 95 %"))
    if fit.range_mhz is not None:
        entries.append((colours.green, "░░", "±10 % of it"))
    return legend(entries)


def voltage_legend(fit: FrequencyFit | None) -> str:
    """Of the voltage, or why none is drawn."""
    colours = theme.colours()
    if fit is None or not fit.ridge_bracketed:
        return "The voltage curve follows from power only where the ridge is bracketed."
    entries = [(colours.blue, "━━", "voltage estimated from power, 1 below the ridge")]
    if len(fit.voltage_mv) and np.isfinite(fit.voltage_mv).any():
        entries.append((colours.orange, "●", "measured by the board, scaled to it (mV on the right)"))
    else:
        entries.append((colours.muted, "○", "this board, or this file, reports no voltage"))
    return legend(entries)


def caps_legend(shown: ClockFit) -> str:
    """Of the power limits, or how to measure them."""
    colours = theme.colours()
    if shown.caps is None:
        return "No power limits were measured: tick 'Power limits too' beside 'Fit a clock sweep'."
    entries = [(colours.vermillion, "●", "under a power limit"), (colours.muted, "┈┈", "power equal to the limit")]
    if shown.caps.without_effect_from_w is not None:
        entries.insert(1, (colours.vermillion, "○", "without effect: the load cannot reach it"))
    if shown.comparison is not None:
        entries.append((colours.blue, "○", "with a locked clock"))
    return legend(entries)


def legend(entries: Sequence[tuple[str, str, str]]) -> str:
    """Colour, mark and words of each, as HTML."""
    return " &nbsp; ".join(
        f"<span style='color:{colour}'>{mark}</span>&nbsp;{text.replace(' ', '&nbsp;')}"
        for colour, mark, text in entries
    )


_UNKNOWN = "not known"


@dataclass(frozen=True, slots=True)
class Line:
    """One figure of the model, and what it means in a sentence."""

    name: str
    value: str
    meaning: str


def explained(fit: FrequencyFit) -> Iterator[Line]:
    """The five figures from which a clock is chosen."""
    yield _minimum(fit)
    yield _ridge(fit)
    yield from _optimum(fit)
    yield _recommendation(fit)


def explained_as_html(fit: FrequencyFit) -> str:
    """The same as a table."""
    muted = theme.colours().muted
    rows = "".join(
        f"<tr><td><b>{line.name}</b>&nbsp;&nbsp;</td>"
        f"<td align='right'>{line.value.replace(' ', '&nbsp;')}&nbsp;&nbsp;</td>"
        f"<td style='color:{muted}'>{html.escape(line.meaning)}</td></tr>"
        for line in explained(fit)
    )
    return f"<table cellspacing='0' cellpadding='0'>{rows}</table>"


def _minimum(fit: FrequencyFit) -> Line:
    name = "Curve minimum"
    if not fit.identifiable:
        return Line(name, _UNKNOWN, "the points do not determine the curve")
    sampled = fit.clock_mhz[fit.used]
    clocks = np.linspace(float(sampled.min()), float(sampled.max()), 401)
    index = int(fit.energy(clocks).argmin())
    edge = ", at an end of the measured clocks: the minimum may lie beyond" if index in (0, len(clocks) - 1) else ""
    return Line(name, _mhz(float(clocks[index])), f"where the fitted curve of {fit.minimised} is lowest{edge}")


def _ridge(fit: FrequencyFit) -> Line:
    name = "Ridge"
    if fit.ridge_mhz is None:
        return Line(name, _UNKNOWN, "above it the voltage rises with the clock; the points do not determine it")
    if not fit.ridge_bracketed:
        return Line(name, "not bracketed", f"above it the voltage rises; it lies at or beyond {_mhz(fit.ridge_mhz)}")
    return Line(
        name, _mhz(fit.ridge_mhz), "above it the voltage rises with the clock, and power rises faster than speed"
    )


def _optimum(fit: FrequencyFit) -> Iterator[Line]:
    if fit.optimum_mhz is None:
        yield Line("Optimum", _UNKNOWN, f"the clock of least {fit.minimised}; the points do not determine it")
        yield Line("Interval", _UNKNOWN, "where the optimum lies with 95 % probability")
    elif not fit.optimum_bracketed or fit.optimum_interval_mhz is None:
        beyond = f"the clock of least {fit.minimised} lies at or beyond {_mhz(fit.optimum_mhz)}: measure beyond it"
        yield Line("Optimum", "not bracketed", beyond)
        yield Line("Interval", _UNKNOWN, "where the optimum lies with 95 % probability; it needs clocks on both sides")
    else:
        low, high = fit.optimum_interval_mhz
        every = f"the clock of least {fit.minimised}, over all curves that explain the points, not the best one alone"
        yield Line("Optimum", _mhz(fit.optimum_mhz), every)
        yield Line("Interval", f"{low:.0f}–{high:.0f} MHz", "where the optimum lies with 95 % probability")


def _recommendation(fit: FrequencyFit) -> Line:
    name = "Recommendation"
    if fit.recommended_clock_mhz is None:
        return Line(name, "none", f"the points do not say which clock has the least {fit.minimised}")
    loss = "" if fit.expected_loss is None else f", {100 * fit.expected_loss:.2g} % above the unknown best"
    meaning = f"{how_settable(fit.recommended_clock_mhz)}; the least {fit.minimised} to expect{loss}"
    return Line(name, _mhz(fit.recommended_clock_mhz), meaning)


def _mhz(clock_mhz: float) -> str:
    return f"{clock_mhz:.0f} MHz"
