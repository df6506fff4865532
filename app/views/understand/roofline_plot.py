"""The roofline, archline and powerline over intensity: measured points, fitted lines, balances, the power limit.

What stands beside points and lines on the roofline's plots: balances, the power limit, the margins.

Where the measured points of a sweep stand on the three plots, and each of them in words; free of Qt.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QWidget

from ...base.formatting import number
from ...engine.models.roofline.describe_sweeps import describe_sweep
from ...engine.models.roofline.energy_roofline import FIXED
from ...engine.models.roofline.points import PlacedKernel, Sweep
from ...engine.results.description import label_as_html
from ..plots.markers import COLOURS, SHAPES, Coding, colour_scale
from ..plots.overlay_list import colour_of, pen_of
from ..plots.plot import Box, LogAxis, PlotNote
from ..shared import theme
from ..shared.turns import InParts

Floats = npt.NDArray[np.float64]
STRIP = 0.16  # half the width of the margins where flop and copy kernels stand, decades


def places_of(sweep: Sweep, index: int, low: float, high: float) -> tuple[Floats, Floats]:
    """log10 of intensity and of speed, work per energy or power (`index` 0 to 2); margins for what has no intensity."""
    points = sweep.points
    with np.errstate(divide="ignore", invalid="ignore"):
        x = np.log10(sweep.intensity())
        y = np.log10((points.flops, points.flops / points.power_w, points.power_w)[index])
    kinds = np.array(points.kind)
    return np.where(kinds == "flop", right_margin(high), np.where(kinds == "copy", left_margin(low), x)), y


def point_words(sweep: Sweep, index: int) -> str:
    """One measured point in words."""
    points, intensity = sweep.points, float(sweep.intensity()[index])
    lines = [sweep.label, f"{points.kind[index]} kernel"]
    if math.isfinite(intensity) and intensity > 0:
        lines[1] += f", {number(intensity)} flop/B"
    if points.flops[index] > 0:
        speed = points.flops[index]
        lines.append(f"{number(speed / 1e12)} TFLOP/s, {number(speed / points.power_w[index] / 1e9)} GFLOP/J")
    if points.bytes_per_s[index] > 0:
        lines.append(f"{number(points.bytes_per_s[index] / 1e9)} GB/s")
    error = points.power_error_w[index]
    spread = f" ± {error:.2g}" if math.isfinite(error) else ""
    clock = points.clock_mhz[index]
    lines.append(f"{points.power_w[index]:.1f}{spread} W" + (f" at {clock:.0f} MHz" if math.isfinite(clock) else ""))
    if math.isfinite(points.threads[index]):
        lines.append(f"{points.threads[index]:.0f} threads per multiprocessor")
    over_clocks = sweep.fit is not None and sweep.fit.over_clocks
    if not points.full()[index]:
        lines.append("fewer threads than the most: not fitted")
    elif points.limited[index]:
        lines.append("held by a limit" + (": fitted with its clock" if over_clocks else ": not fitted"))
    elif not points.at_peak()[index]:
        lines.append("below the peak clock" + ("" if over_clocks else ": not fitted"))
    return "\n".join(lines)


def measured_values(kernel: PlacedKernel) -> tuple[float | None, float | None, float | None]:
    """Speed (flop/s), work per energy (flop/J) and power (W) of a kernel as measured."""
    speed = kernel.work_flop / kernel.time_s if kernel.time_s else None
    return speed, kernel.work_flop / kernel.energy_j if kernel.energy_j else None, kernel.power_w


def left_margin(low: float) -> float:
    """log10 of the intensity at which kernels without work stand."""
    return math.log10(low) - 1.3 * STRIP


def right_margin(high: float) -> float:
    """... and those without traffic."""
    return math.log10(high) + 1.3 * STRIP


_BALANCES = (
    ("B_τ", "muted", 0.1),
    ("B_ε", "purple", 0.27),
    ("Effective B_ε", "green", 0.44),
)  # colour, height of label
_TIP_COPY = "Copy kernel: traffic and no work, so it has no place on the axis of intensity"
_TIP_FLOP = "Flop kernel: work and no traffic, so it has no place on the axis of intensity"


def draw_margins(plots: Sequence[pg.PlotItem], kinds: AbstractSet[str], low: float, high: float) -> None:
    """Strips beside the intensities from `low` to `high` for the kernels that have none."""
    colours = theme.colours()
    margins = (("copy", left_margin(low), _TIP_COPY, (2,)), ("flop", right_margin(high), _TIP_FLOP, (0, 1, 2)))
    for kind, centre, tip, places in margins:
        if kind not in kinds:
            continue
        for place in places:
            ground = QColor(colours.muted)
            ground.setAlpha(26)
            span = (centre - STRIP, centre + STRIP)
            strip = pg.LinearRegionItem(span, movable=False, brush=ground, pen=pg.mkPen(None))
            strip.setZValue(-10)
            strip.setToolTip(tip)
            plots[place].addItem(strip, ignoreBounds=True)
        edge, anchor = (centre - STRIP, (0, 0)) if kind == "copy" else (centre + STRIP, (1, 0))  # inside the plot
        label = pg.InfiniteLine(
            pos=edge,
            angle=90,
            pen=pg.mkPen(None),
            label=kind,
            labelOpts={"position": 0.98, "color": colours.muted, "anchors": [anchor, anchor]},
        )
        label.setToolTip(tip)
        plots[2].addItem(label, ignoreBounds=True)


def draw_marks(plots: Sequence[pg.PlotItem], focus: Sweep) -> None:
    """Its balances in all three plots, named in the first; its power limit in the third."""
    colours = theme.colours()
    ground = QColor(colours.base)
    ground.setAlpha(215)
    figures = {figure.label: figure for figure in describe_sweep(focus).figures}
    for name, colour, height in _BALANCES:
        figure, ink = figures[name], getattr(colours, colour)
        if focus.model is None or not isinstance(figure.value, float) or not 0 < figure.value < math.inf:
            continue
        pen = pg.mkPen(QColor(ink), width=1.2, style=Qt.PenStyle.DashDotLine)
        for plot in plots:
            line = pg.InfiniteLine(pos=math.log10(figure.value), angle=90, pen=pen)
            line.setZValue(12 if plot is plots[0] else -1)  # its label stands before the points
            line.setToolTip(f"{figure.meaning} ({figure.text})")
            plot.addItem(line, ignoreBounds=True)
            if plot is plots[0]:
                text = pg.InfLineLabel(line, "", position=height, fill=ground, anchors=[(0, 0.5), (1, 0.5)])
                text.setHtml(f"<span style='color:{ink}'>{label_as_html(name)} {figure.cell}</span>")
    if focus.limit_w is not None:
        pen = pg.mkPen(QColor(colours.vermillion), width=1.4, style=Qt.PenStyle.DashLine)
        limit = pg.InfiniteLine(
            pos=math.log10(focus.limit_w),
            angle=0,
            pen=pen,
            label=f"held at {focus.limit_w:.0f} W" if focus.limit_seen else f"power limit {focus.limit_w:.0f} W",
            labelOpts={"position": 0.16, "color": colours.vermillion, "fill": ground, "anchors": [(0, 1), (0, 0)]},
        )
        limit.setToolTip(
            "The median power of the points at which a limit acted: the file does not hold the limit itself"
            if focus.limit_seen
            else "The board's power limit by its data sheet"
            if focus.published is not None
            else "The board's power limit, as it was set when this was shown"
        )
        plots[2].addItem(limit, ignoreBounds=True)


_SYMBOLS = {"circle": "o", "square": "s", "triangle": "t1", "diamond": "d", "triangle down": "t", "pentagon": "p"}
_SYMBOLS["cross"] = "x"
_CURVE_POINTS = 400
_AXIS_PX = 62
# title, unit, factor, what it is
_PLOTS = (
    ("Speed", "TFLOP/s", 1e12, "Roofline: min(peak, intensity × bandwidth)"),
    ("Efficiency", "GFLOP/J", 1e9, "Archline: work per joule, from the three energies that were fitted"),
    ("Power", "W", 1.0, "Powerline: the board's mean power, from the three energies that were fitted"),
)


class RooflinePlot(pg.GraphicsLayoutWidget, InParts):  # type: ignore[misc]  # pyqtgraph has no types
    """Three plots over one axis. The sweep in focus has its points coloured by occupancy and its balances marked."""

    def __init__(self, parent: QWidget | None = None, *, at_once: bool = True) -> None:
        super().__init__(parent)
        self._shown: Sequence[tuple[int, Sweep]] = ()
        self._focus: Sweep | None = None
        self._kernel: PlacedKernel | None = None
        self.coding: Coding | None = None
        self.plots: list[pg.PlotItem] = []
        self.scatters: list[pg.ScatterPlotItem] = []
        self.ci.layout.setContentsMargins(4, 4, 10, 2)
        self.ci.layout.setSpacing(2)
        self.begin(at_once)

    def make(self) -> Iterator[None]:
        """One plot below the other, then what belongs to all."""
        for row, (title, unit, factor, tip) in enumerate(_PLOTS):
            axes = {"left": LogAxis("left", factor=factor), "bottom": LogAxis("bottom", base=2)}
            plot = self.addPlot(row=row, col=0, axisItems=axes, viewBox=Box(), enableMenu=False)
            plot.hideButtons()
            plot.setLabel("left", f"{title}<br>({unit})")
            axes["left"].setWidth(_AXIS_PX)
            axes["left"].setToolTip(tip)
            axes["bottom"].setStyle(showValues=row == 2)
            if row:
                plot.setXLink(self.plots[0])
            self.plots.append(plot)
            yield
        self.plots[2].setLabel("bottom", "Intensity (flop/B)")
        self.plots[2].getAxis("bottom").setToolTip(
            "Work per traffic of a kernel. Kernels with only one of the two stand in the margins; "
            "the baseline has neither and is in the table"
        )
        self._note = PlotNote(self)
        self.setMinimumHeight(180)
        self.scene().sigMouseClicked.connect(self._clicked)
        theme.follow(self.redraw)

    @property
    def note(self) -> str:
        """What stands in place of the plot; empty while it is drawn."""
        return self._note.text()

    def say(self, note: str) -> None:
        """Words in place of the plots."""
        self._note.setText(note)
        for plot in self.plots:
            plot.setVisible(not note)

    def show_sweeps(
        self, shown: Sequence[tuple[int, Sweep]], focus: Sweep | None, kernel: PlacedKernel | None = None
    ) -> None:
        """Draw sweeps, each with its place (it gives the colour); the last drawn is the one in focus."""
        self._shown = sorted(shown, key=lambda each: each[1] is focus)
        self._focus, self._kernel = focus, kernel
        threads = [sweep.points.threads for _, sweep in self._shown]
        self.coding = Coding(np.concatenate(threads)) if threads else None
        self.redraw()

    # --- drawing -----------------------------------------------------------------------------------------------------

    @Slot()
    def redraw(self) -> None:
        """Draw everything in the theme's colours."""
        colours = theme.colours()
        self.setBackground(QColor(colours.base))
        self.scatters = []
        for plot in self.plots:
            plot.clear()
            for name in ("bottom", "left"):
                plot.getAxis(name).setPen(QColor(colours.border))
                plot.getAxis(name).setTextPen(QColor(colours.text))
            plot.showGrid(x=True, y=True, alpha=0.12)
        if not self._shown:
            return
        low, high = self._intensities()
        draw_margins(self.plots, {kind for _, sweep in self._shown for kind in sweep.points.kind}, low, high)
        for place, sweep in self._shown:
            self._draw_lines(place, sweep, low, high)
        if self._focus is not None:
            draw_marks(self.plots, self._focus)
        for index in range(3):
            self._draw_points(index, low, high)
        self._draw_kernel()
        self._set_ranges(low, high)

    def _intensities(self) -> tuple[float, float]:
        """Lowest and highest intensity in sight, flop/B."""
        finite = np.concatenate([sweep.intensity() for _, sweep in self._shown])
        finite = finite[np.isfinite(finite) & (finite > 0)]
        if self._kernel is not None:
            finite = np.append(finite, self._kernel.intensity)
        if not len(finite):
            return 0.25, 128.0
        return float(finite.min()) / 1.3, float(finite.max()) * 1.3

    def _draw_lines(self, place: int, sweep: Sweep, low: float, high: float) -> None:
        model = sweep.model
        if model is None:
            return
        along = np.geomspace(low, high, _CURVE_POINTS)
        lines = (model.roofline(along), model.archline(along), model.powerline(along))
        pen = pg.mkPen(pen_of(place, 2.0 if sweep is self._focus else 1.4))
        if sweep.published is not None:
            again = pen.style() == Qt.PenStyle.DotLine  # the colours are used up
            pen.setStyle(Qt.PenStyle.DashDotDotLine if again else Qt.PenStyle.DashDotLine)
        for plot, line in zip(self.plots, lines, strict=True):
            plot.addItem(pg.PlotCurveItem(np.log10(along), np.log10(line), pen=pen, antialias=True))
        if sweep.limit_w is None or not (lines[2] > sweep.limit_w).any():
            return
        dashed = pg.mkPen(colour_of(place), width=2.0, style=Qt.PenStyle.DashLine)
        beyond = lines[2] > sweep.limit_w
        for plot, line in zip(self.plots, model.capped(along, sweep.limit_w), strict=True):
            capped = np.where(beyond & (line > 0), line, np.nan)
            curve = pg.PlotCurveItem(np.log10(along), np.log10(capped), pen=dashed, connect="finite", antialias=True)
            how = "at least" if model.law == FIXED else "at the clock at which power meets it"
            curve.setToolTip(f"What the board reaches under its power limit, {how}")
            plot.addItem(curve)

    def _draw_points(self, position: int, low: float, high: float) -> None:
        """Every point of one of the three plots, the errors behind them."""
        colours = theme.colours()
        assert self.coding is not None
        scale, spots = colour_scale(colours), []
        hollow, edge = pg.mkBrush(QColor(colours.base)), pg.mkPen(QColor(colours.muted), width=0.8)
        inks: dict[str, tuple[object, object]] = {}  # shared pens and brushes: a marker of each is painted only once
        for order, (place, sweep) in enumerate(self._shown):
            points = sweep.points
            x, y = places_of(sweep, position, low, high)
            seen = np.isfinite(x) & np.isfinite(y)
            focused, throttled = sweep is self._focus, ~points.at_peak()
            styles = self.coding.styles(points.threads)
            self._draw_errors(position, sweep, x, y, seen)
            for index in np.flatnonzero(seen):
                finite = math.isfinite(points.threads[index])
                colour = scale[int(styles[index]) % COLOURS] if focused and finite else colour_of(place)
                if colour.name() not in inks:
                    inks[colour.name()] = pg.mkBrush(colour), pg.mkPen(colour, width=1.3)
                brush, pen = inks[colour.name()]
                spots.append(
                    {
                        "pos": (x[index], y[index]),
                        "symbol": _SYMBOLS[SHAPES[int(styles[index]) // COLOURS]] if finite else "o",
                        "size": 9 if focused else 7,
                        "brush": hollow if throttled[index] else brush,
                        "pen": pen if throttled[index] else edge,
                        "data": (order, int(index)),
                    }
                )
        scatter = pg.ScatterPlotItem(spots=spots, hoverable=True, tip=self._tip, hoverPen=pg.mkPen(colours.text))
        self.scatters.append(scatter)
        self.plots[position].addItem(scatter)

    def _draw_errors(self, index: int, sweep: Sweep, x: Floats, y: Floats, seen: npt.NDArray[np.bool_]) -> None:
        """95 % intervals, of power and of what is divided by it."""
        share = sweep.points.power_error_w / sweep.points.power_w
        some = seen & (share > 0) & (share < 1)
        if index == 0 or not some.any():
            return
        more, less = np.log10(1 + share[some]), -np.log10(1 - share[some])
        top, bottom = (more, less) if index == 2 else (less, more)
        pen = pg.mkPen(QColor(theme.colours().muted), width=1)
        self.plots[index].addItem(
            pg.ErrorBarItem(x=x[some], y=y[some], top=top, bottom=bottom, beam=0.012, pen=pen), ignoreBounds=True
        )

    def _draw_kernel(self) -> None:
        """A star where a kernel is expected on each board's lines, a cross where it was measured."""
        kernel, colours = self._kernel, theme.colours()
        if kernel is None:
            return
        x = math.log10(kernel.intensity)
        for index, plot in enumerate(self.plots):
            spots = []
            for place, sweep in self._shown:
                if (expected := sweep.predict(kernel)) is not None:
                    time_s, energy_j, power_w = expected
                    value = (kernel.work_flop / time_s, kernel.work_flop / energy_j, power_w)[index]
                    look = {"symbol": "star", "size": 17, "brush": colour_of(place), "pen": pg.mkPen(colours.text)}
                    spots.append({"pos": (x, math.log10(value)), **look})
            measured = measured_values(kernel)[index]
            if measured is not None and measured > 0:
                look = {"symbol": "x", "size": 13, "brush": QColor(colours.text), "pen": pg.mkPen(colours.base)}
                spots.append({"pos": (x, math.log10(measured)), **look})
            plot.addItem(pg.ScatterPlotItem(spots=spots))

    def _set_ranges(self, low: float, high: float) -> None:
        self.plots[0].setXRange(left_margin(low) - STRIP, right_margin(high) + STRIP, padding=0.01)
        for index, plot in enumerate(self.plots):
            ends: list[float] = []
            for item in plot.items:
                if isinstance(item, (pg.PlotCurveItem, pg.ScatterPlotItem)):
                    y = np.asarray(item.getData()[1], dtype=np.float64)
                    ends += [float(np.nanmin(y)), float(np.nanmax(y))] if np.isfinite(y).any() else []
            if index == 2 and self._focus is not None and self._focus.limit_w is not None:
                ends.append(math.log10(self._focus.limit_w))
            if ends:
                margin = 0.06 * (max(ends) - min(ends)) + 0.02
                plot.setYRange(min(ends) - margin, max(ends) + margin, padding=0.0)

    # --- words -------------------------------------------------------------------------------------------------------

    def _tip(self, x: float, y: float, data: tuple[int, int]) -> str:
        number, index = data
        return point_words(self._shown[number][1], index)

    @Slot(object)
    def _clicked(self, event: object) -> None:
        """A double click shows everything again."""
        if event.double():  # type: ignore[attr-defined]
            self.redraw()
