"""`FigureAxis`: an axis of the scatter, linear or logarithmic, in the unit that people see."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg

from .label import axis_title
from .log_axis import LogAxis
from .quantities import Quantity


class FigureAxis(pg.AxisItem):  # type: ignore[misc]  # pyqtgraph has no types
    """Data are stored values, or their log10 where `show_quantity` was told so."""

    def __init__(self, orientation: str) -> None:
        super().__init__(orientation)
        self._marks: LogAxis | None = None  # which says where a logarithmic axis carries marks

    def show_quantity(self, described: Quantity, *, log: bool) -> None:
        """Carry this quantity's label, unit and marks."""
        self._marks = LogAxis(self.orientation, factor=1 / described.factor) if log else None
        self.setScale(1.0 if log else described.factor)
        self.setLabel(axis_title(described.title), siPrefixEnableRanges=())
        self.enableAutoSIPrefix(False)

    def shown(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Coordinates as the marks tell them."""
        return self._marks.shown(values) if self._marks is not None else values * self.scale

    def tickValues(self, minVal: float, maxVal: float, size: float) -> list[tuple[float, list[float]]]:
        """pyqtgraph's hook."""
        if self._marks is not None:
            return self._marks.tickValues(minVal, maxVal, size)
        ticks: list[tuple[float, list[float]]] = super().tickValues(minVal, maxVal, size)
        return ticks

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        """pyqtgraph's hook."""
        if self._marks is not None:
            return self._marks.tickStrings(values, scale, spacing)
        numbers: list[str] = super().tickStrings(values, scale, spacing)
        return numbers
