"""Axes of plots: `LogAxis` carries round numbers over logarithms, `FigureAxis` a quantity in its shown unit.

`Box`: the inside of every plot. While it has no size, its transform stays one that can be inverted.

`set_up_axes`: labels of a plot's axes, in fixed units.

`dress`: ground, axes and grid of a plot in the theme's colours.

`PlotNote`: words in place of a plot that has nothing to show.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QVBoxLayout, QWidget

from ...base.formatting import round_ticks
from ...engine.analysis.quantities import Quantity, format_number
from ..shared import theme
from ..shared.label import PlainLabel, axis_title

_LABEL_PX = {"left": 22.0, "bottom": 52.0}  # room of a mark
_FEW = 3  # round numbers of the kind 1, 2, 5 that are enough


def log_ticks(low: float, high: float, at_most: int, base: int = 10) -> list[float]:
    """Round values within [low, high], both above zero: 1-2-5 or decades, or powers of two; a part of a decade has
    marks of equal distance."""
    if not 0 < low < high < math.inf or at_most < 1:
        return []
    steps = (1.0, 2.0, 5.0) if base == 10 else (1.0,)
    first, last = math.floor(math.log(low, base)), math.ceil(math.log(high, base))
    every = [step * float(base) ** k for k in range(first, last + 1) for step in steps]
    inside = [value for value in every if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]
    if len(inside) < _FEW:
        return [value for value in round_ticks(low, high, at_most) if value > 0]
    if len(inside) <= at_most:
        return inside
    powers = [value for value in inside if abs(math.log(value, base) - round(math.log(value, base))) < 1e-9]
    apart = math.ceil(len(powers) / at_most)
    return [value for value in powers if round(math.log(value, base)) % apart == 0]


class LogAxis(pg.AxisItem):  # type: ignore[misc]  # pyqtgraph has no types
    """Data are log10 of the values; marks show value / `factor`."""

    def __init__(self, orientation: str, *, base: int = 10, factor: float = 1.0) -> None:
        super().__init__(orientation)
        self._base, self._factor = base, factor
        self.enableAutoSIPrefix(False)

    def shown(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Coordinates in the units of the tick labels."""
        return np.power(10.0, values) / self._factor

    def tickValues(self, minVal: float, maxVal: float, size: float) -> list[tuple[float, list[float]]]:
        """pyqtgraph's hook: one level of marks."""
        if not (math.isfinite(minVal) and math.isfinite(maxVal)) or max(abs(minVal), abs(maxVal)) > 100:
            return []
        at_most = max(2, int(size / _LABEL_PX.get(self.orientation, 30.0)))
        ticks = log_ticks(10**minVal / self._factor, 10**maxVal / self._factor, at_most, self._base)
        return [(1.0, [math.log10(tick * self._factor) for tick in ticks])]

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        """pyqtgraph's hook: the marks' numbers."""
        return [format_number(float(f"{10**value / self._factor:.6g}")) for value in values]


class FigureAxis(pg.AxisItem):  # type: ignore[misc]  # pyqtgraph has no types
    """Data are stored values, or their log10 after `show_quantity(..., log=True)`."""

    def __init__(self, orientation: str) -> None:
        super().__init__(orientation)
        self._marks: LogAxis | None = None  # ticks of a logarithmic axis

    def show_quantity(self, described: Quantity, *, log: bool) -> None:
        """Carry this quantity's label, unit and marks."""
        self._marks = LogAxis(self.orientation, factor=1 / described.factor) if log else None
        self.setScale(1.0 if log else described.factor)
        self.setLabel(axis_title(described.title), siPrefixEnableRanges=())
        self.enableAutoSIPrefix(False)

    def shown(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Coordinates in the units of the tick labels."""
        return self._marks.shown(values) if self._marks is not None else values * self.scale

    def tickValues(self, minVal: float, maxVal: float, size: float) -> list[tuple[float, list[float]]]:
        """pyqtgraph's hook."""
        return (
            self._marks.tickValues(minVal, maxVal, size)
            if self._marks is not None
            else super().tickValues(minVal, maxVal, size)
        )

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        """pyqtgraph's hook."""
        return (
            self._marks.tickStrings(values, scale, spacing)
            if self._marks is not None
            else super().tickStrings(values, scale, spacing)
        )


class Box(pg.ViewBox):  # type: ignore[misc]  # pyqtgraph has no types
    """A `ViewBox` that is not scaled to nothing before it is laid out, or when a splitter closes it.

    Labels and lines invert the transform whenever it changes. For a singular one pyqtgraph 0.14 forms a pseudo-inverse
    and sets the shape of an array, which NumPy 2.5 deprecates.
    """

    def __init__(self, *, enableMenu: bool = False) -> None:
        super().__init__(enableMenu=enableMenu)

    def updateMatrix(self, changed: Any = None) -> None:
        """pyqtgraph's hook."""
        if not self.rect().isEmpty():
            super().updateMatrix(changed)


def set_up_axes(plot: pg.PlotWidget | pg.PlotItem, bottom: str = "", left: str = "") -> None:
    """Label the axes, whose numbers stay in the units of the labels; pyqtgraph's button goes."""
    plot.hideButtons()
    for name, label in (("bottom", bottom), ("left", left)):
        if label:
            plot.setLabel(name, label)
        plot.getAxis(name).enableAutoSIPrefix(False)


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


class PlotNote(PlainLabel):
    """Lies over the whole plot and lets the mouse through; hidden while its text is empty."""

    def __init__(self, plot: QWidget) -> None:
        super().__init__()
        layout = QVBoxLayout(plot)
        layout.setSizeConstraint(QVBoxLayout.SizeConstraint.SetNoConstraint)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self)
        self.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.setWordWrap(True)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        theme.notifier().changed.connect(self._restyle)
        self._restyle()
        self.hide()

    def setText(self, text: str) -> None:
        super().setText(text)
        self.setVisible(bool(text))

    @Slot()
    def _restyle(self) -> None:
        self.setStyleSheet(f"background: transparent; color: {theme.colours().muted}; padding: 24px;")
