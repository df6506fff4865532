"""`dress`: ground, axes and grid of a plot in the theme's colours."""

from __future__ import annotations

from collections.abc import Sequence

import pyqtgraph as pg

from . import theme

DENSE = 1.6  # numbers, of as many as pyqtgraph has by itself


def dress(
    plot: pg.PlotWidget | pg.PlotItem, axes: Sequence[str], *, upright: bool = True, density: float = 1.0
) -> None:
    """The grid has a line at each number; unless `upright`, of the axis beside alone.

    Lines at every small tick would take most of a frame.
    """
    colours = theme.colours()
    if isinstance(plot, pg.PlotWidget):
        plot.setBackground(colours.base)
    for name in axes:
        plot.getAxis(name).setPen(colours.border)
        plot.getAxis(name).setTextPen(colours.text)
        plot.getAxis(name).setStyle(maxTickLevel=0)
        plot.getAxis(name).setTickDensity(density)
    plot.showGrid(x=upright, y=True, alpha=0.12)
