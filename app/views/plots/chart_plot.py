"""`ChartPlot`: draws a `Chart` in the theme's colours, or words if there is none."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QSizePolicy, QWidget

from ...engine.results.chart import Chart, Series
from ..shared import theme
from ..shared.label import PlainLabel, axis_title
from ..shared.widgets import vbox
from .markers import COLOURS, SHAPES, colour_scale
from .plot import Box, set_up_axes
from .scatter import PointCloud

_BAR_SHARE = 0.8  # of a group's room that is bars
_FEWEST_ROWS = 5.0  # of bars there is room for: fewer are no thicker
_ON_SCALE = {"low": 8, "high": COLOURS - 8}  # colours of clouds: places on the scale
_SHAPES = {"o": SHAPES.index("circle"), "s": SHAPES.index("square")}  # of clouds
_LEAST_PX = 120  # height of the plot
_NAME = 22  # characters of a name beside its bars


class NamedBars(pg.BarGraphItem):  # type: ignore[misc]  # pyqtgraph has no types
    """`values` along x at `places` along y; an unknown value has no bar."""

    def __init__(
        self,
        label: str,
        names: Sequence[str],
        values: npt.ArrayLike,
        places: npt.ArrayLike,
        thick: float,
        colour: QColor,
    ) -> None:
        self.label, self.names = label, tuple(names)
        self.values, self.places = np.asarray(values, dtype=np.float64), np.asarray(places, dtype=np.float64)
        shown = np.nan_to_num(self.values)
        super().__init__(
            x0=np.minimum(shown, 0), width=np.abs(shown), y=self.places, height=thick, brush=colour, pen=pg.mkPen(None)
        )


class ChartPlot(QWidget):
    """The plot, and below it what each colour stands for and the chart's caption."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.chart: Chart | None = None
        self.note = ""
        self.plot = pg.PlotWidget(viewBox=Box(), enableMenu=False)
        set_up_axes(self.plot)
        self.plot.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Ignored)  # else its wish is scrolled
        self.plot.setMinimumHeight(_LEAST_PX)
        self._cloud = PointCloud(self.plot.getViewBox(), theme.colours())  # of series of very many points
        self.plot.getPlotItem().layout.setContentsMargins(2, 6, 12, 2)
        self._said = PlainLabel(wrap=True)
        self._said.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.caption = PlainLabel(wrap=True, selectable=True)
        self.caption.setTextFormat(Qt.TextFormat.RichText)
        vbox((self.plot, 1), (self._said, 1), self.caption, of=self, margins=0)
        theme.notifier().changed.connect(self.redraw)
        self.say("")

    def show_chart(self, chart: Chart) -> None:
        """Draw this."""
        self.chart, self.note = chart, ""
        self.redraw()

    @property
    def cloud(self) -> PointCloud:
        """The points of series too many for markers; empty if there are none."""
        return self._cloud

    def say(self, note: str) -> None:
        """Show a note in place of a plot, such as what to do first."""
        self.chart, self.note = None, note
        self.redraw()

    @Slot()
    def redraw(self) -> None:
        """Draw again in the colours in use."""
        colours, chart = theme.colours(), self.chart
        self.plot.clear()
        self._cloud.set_colours(colours)
        self._cloud.set_points(np.empty(0), np.empty(0), np.empty(0, dtype=np.uint16))
        self.plot.setVisible(chart is not None)
        self.caption.setVisible(chart is not None)
        self._said.setVisible(chart is None)
        self._said.setText(self.note)
        self._said.setStyleSheet(f"color: {colours.muted}; padding: 24px;")
        if chart is None:
            return
        self.plot.setBackground(QColor(colours.base))
        for name, title in (("bottom", chart.x_title), ("left", chart.y_title)):
            axis = self.plot.getAxis(name)
            axis.setPen(QColor(colours.border))
            axis.setTextPen(QColor(colours.text))
            axis.setStyle(maxTickLevel=0)
            axis.setLabel(axis_title(title))
            axis.setTicks(None)
        self.plot.showGrid(x=True, y=not chart.names, alpha=0.12)
        self.plot.setAccessibleName(f"{chart.y_title} over {chart.x_title}. {chart.caption}")
        if chart.names:
            self._draw_bars(chart)
        else:
            self._draw_series(chart)
        self.caption.setText(f"{_key_of(chart)}{html.escape(chart.caption)}")

    def _draw_bars(self, chart: Chart) -> None:
        colours = theme.colours()
        count = len(chart.names)
        thick = _BAR_SHARE / len(chart.series)
        for place, series in enumerate(chart.series):
            middle = np.arange(count)[::-1] + _BAR_SHARE / 2 - (place + 0.5) * thick
            colour = _colour(series.colour)
            self.plot.addItem(NamedBars(series.label, chart.names, series.y, middle, thick * 0.9, colour))
        names = [(count - 1 - place, _short(name)) for place, name in enumerate(chart.bar_labels)]
        self.plot.getAxis("left").setTicks([names])
        low = min(0.0, *(float(np.nan_to_num(s.y).min(initial=0.0)) for s in chart.series), 0.0)
        high = max(0.0, *(float(np.nan_to_num(s.y).max(initial=0.0)) for s in chart.series), 0.0)
        low, high = chart.whole_range or (low, high)
        margin = 0.04 * ((high - low) or 1.0)
        self.plot.setXRange(low - (margin if low < 0 else 0.0), high + margin, padding=0)
        self.plot.setYRange(min(-0.7, count - 0.3 - _FEWEST_ROWS), count - 0.3, padding=0)
        self.plot.setMouseEnabled(x=False, y=count > 12)
        self.plot.addItem(pg.InfiniteLine(0.0, 90, pen=pg.mkPen(QColor(colours.muted), width=1)))

    def _draw_series(self, chart: Chart) -> None:
        colours = theme.colours()
        self.plot.setMouseEnabled(x=True, y=True)
        for series in chart.series:
            colour = _colour(series.colour)
            style = Qt.PenStyle.DashLine if series.dashed else Qt.PenStyle.SolidLine
            if series.colour in _ON_SCALE:
                continue
            self.plot.plot(
                series.x,
                series.y,
                name=series.label,
                pen=pg.mkPen(colour, width=1.5, style=style) if series.line else None,
                symbol=series.symbol if series.points else None,
                symbolSize=7,
                symbolBrush=colour,
                symbolPen=pg.mkPen(QColor(colours.base), width=0.5),
                antialias=len(series.y) < 2000,
            )
        self._draw_clouds([series for series in chart.series if series.colour in _ON_SCALE])
        if chart.ticks:
            self.plot.getAxis("bottom").setTicks([_thinned(chart.ticks)])
        xs = np.concatenate([s.x for s in chart.series])
        ys = np.concatenate([s.y for s in chart.series])
        for values, set_range, whole in (
            (xs, self.plot.setXRange, None),
            (ys, self.plot.setYRange, chart.whole_range),
        ):
            finite = values[np.isfinite(values)]
            if len(finite):
                low, high = whole or (float(finite.min()), float(finite.max()))
                set_range(low, high if high > low else low + (abs(low) or 1.0) * 0.1, padding=0.05)

    def _draw_clouds(self, clouds: list[Series]) -> None:
        """All of them in turns, so that none lies above another as such."""
        if not clouds:
            return
        markers = [_SHAPES[cloud.symbol] * COLOURS + _ON_SCALE[cloud.colour] for cloud in clouds]
        styles = np.repeat(markers, [len(cloud.x) for cloud in clouds]).astype(np.uint16)
        turns = np.argsort(
            np.concatenate([np.arange(len(cloud.x)) / max(1, len(cloud.x)) for cloud in clouds]), kind="stable"
        )
        x, y = np.concatenate([cloud.x for cloud in clouds]), np.concatenate([cloud.y for cloud in clouds])
        self._cloud.set_points(x[turns], y[turns], styles[turns])


def _colour(name: str) -> QColor:
    """A colour of the theme, or one of its scale's ends."""
    colours = theme.colours()
    return colour_scale(colours)[_ON_SCALE[name]] if name in _ON_SCALE else QColor(getattr(colours, name))


def _thinned(ticks: tuple[str, ...], at_most: int = 10) -> list[tuple[float, str]]:
    every = -(-len(ticks) // at_most)
    return [(float(place), _short(text, 12)) for place, text in enumerate(ticks) if place % every == 0]


def _short(text: str, most: int = _NAME) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


_SIGNS = {"o": "●", "s": "■", "t": "▼", "t1": "▲", "d": "◆"}


def _key_of(chart: Chart) -> str:
    """What each colour stands for, where there are several."""
    if len(chart.series) < 2:
        return ""
    parts = []
    for series in chart.series:
        sign = "■" if chart.names else _SIGNS[series.symbol] if series.points else "╌╌" if series.dashed else "━"
        colour = _colour(series.colour).name()
        parts.append(f'<span style="color: {colour}">{sign}</span>&nbsp;{html.escape(series.label)}')
    return " &nbsp; ".join(parts) + "<br>"
