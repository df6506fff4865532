"""What a plot of the analysis shows, free of Qt: bars, curves or a cloud, with titles, units and a sentence or two."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Series:
    """One series of a plot, distinguished by colour (a name of the theme's) and by its marker or place.

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
class Figure:
    """One plot. With `names` it is bars: one group for each name from the top on, one bar of each series in a group.

    `marked` names stand out. With `ticks` the x axis counts places with these labels.
    """

    x_title: str
    y_title: str
    series: tuple[Series, ...]
    caption: str  # what it shows, how it was computed and what it shows, as plain text
    names: tuple[str, ...] = ()
    marked: frozenset[str] = frozenset()
    ticks: tuple[str, ...] = ()
    x_log: bool = False
    whole_range: tuple[float, float] | None = None  # of the values, where it is known beforehand
