"""A chart described once, as bars, curves or a cloud: the report renders it as SVG and the window with pyqtgraph."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Series:
    """One series of a chart, distinguished by colour (a name of the theme's) and by its marker or place.

    A cloud, which may be of very many points, is 'low' or 'high': one of the ends of the theme's scale.
    """

    label: str
    colour: str
    y: Floats
    x: Floats = field(default_factory=lambda: np.empty(0))
    line: bool = True
    points: bool = False
    dashed: bool = False
    symbol: str = "o"


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart. With `names` it is bars: one group for each name from the top on, one bar of each series in a group.

    `marked` names stand out. With `ticks` the x axis counts places with these labels. `x_log` asks for a logarithmic
    axis where the reader cannot zoom.
    """

    x_title: str
    y_title: str
    series: tuple[Series, ...]
    caption: str  # what it shows and how it was computed, as plain text
    names: tuple[str, ...] = ()
    marked: frozenset[str] = frozenset()
    ticks: tuple[str, ...] = ()
    x_log: bool = False
    whole_range: tuple[float, float] | None = None  # of the values, where it is known beforehand

    @property
    def bar_labels(self) -> list[str]:
        """The names beside the bars."""
        return [f"◆ {name}" if name in self.marked else name for name in self.names]
