"""Markers of the scatter: shapes in colours that colour-blind users can distinguish, each drawn once, into an atlas.

A style is a small number: shape * COLOURS + colour. Few values get a shape each besides their colour; many get circles
on a scale of even lightness, or the shapes that another column gives them. What is not brushed is dimmed: its shape in
one faint colour.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPixmap, QPolygonF

from ..shared.theme import Colours

COLOURS = 48  # steps of the colour scale
SHAPES = ("circle", "square", "triangle", "diamond", "triangle down", "pentagon", "cross")
FEW = 12  # up to so many different values each has its own marker
DIM = len(SHAPES) * COLOURS  # added to a shape's first style
_RANGES = 4  # of a figure of many values that is shown as shapes
Styles = npt.NDArray[np.uint16]


def colour_scale(colours: Colours) -> list[QColor]:
    """The theme's sequential scale in small steps, low to high."""
    return [QColor(step) for step in _steps(colours.colour_map)]


@functools.lru_cache(maxsize=4)
def _steps(ends: tuple[str, ...]) -> tuple[QColor, ...]:
    scale = pg.ColorMap(np.linspace(0.0, 1.0, len(ends)), [QColor(end) for end in ends])
    return tuple(QColor(*map(int, step)) for step in scale.map(np.linspace(0.0, 1.0, COLOURS), mode="byte"))


class Coding:
    """How the values of one column are shown: a marker for each of a few values, else a colour on a scale.

    Of a parameter all values are known beforehand: `Coding(values)`. Those of a figure are still being measured:
    `Coding.of_figure(values)` is always a scale, whose ends are round numbers, so that it rarely has to be extended.
    """

    def __init__(self, values: npt.NDArray[np.float64]) -> None:
        finite = values[np.isfinite(values)]
        sample = np.unique(finite[:: max(1, len(finite) // 4096)])  # many different values show in few
        distinct = np.unique(finite) if len(sample) <= FEW else sample
        self.values: tuple[float, ...] = tuple(float(v) for v in distinct) if len(distinct) <= FEW else ()
        self.low = float(finite.min()) if len(finite) else math.nan
        self.high = float(finite.max()) if len(finite) else math.nan

    @classmethod
    def of_figure(cls, values: npt.NDArray[np.float64]) -> Coding:
        """A scale with room for these values and some more."""
        made = cls(values)
        made.values = ()
        made.low, made.high = round_span(made.low, made.high)
        return made

    @property
    def discrete(self) -> bool:
        """A marker for each value."""
        return bool(self.values) or math.isnan(self.low)

    def covers(self, values: npt.NDArray[np.float64]) -> bool:
        """These further values fit in; otherwise a new coding is needed."""
        finite = values[np.isfinite(values)]
        if not len(finite):
            return True
        if self.discrete:
            return bool(np.isin(finite, self.values).all())
        return bool(finite.min() >= self.low and finite.max() <= self.high)

    def styles(self, values: npt.NDArray[np.float64]) -> Styles:
        """The style of each value; an unknown value is a cross in the middle colour."""
        unknown = np.uint16(SHAPES.index("cross") * COLOURS + COLOURS // 2)
        if self.discrete:
            place = np.searchsorted(np.asarray(self.values), values).clip(0, max(0, len(self.values) - 1))
            codes = np.asarray([self.style_of_place(i) for i in range(len(self.values))] or [0], dtype=np.uint16)
            return np.where(np.isfinite(values), codes[place], unknown).astype(np.uint16)
        span = self.high - self.low or 1.0
        with np.errstate(invalid="ignore"):
            colour = np.nan_to_num((values - self.low) / span * (COLOURS - 1)).clip(0, COLOURS - 1)
        return np.where(np.isfinite(values), colour.astype(np.uint16), unknown).astype(np.uint16)

    def style_of_place(self, place: int) -> int:
        """The style of the n-th of a few values: shapes in turn, colours spread over the scale."""
        colour = COLOURS // 2 if len(self.values) < 2 else round(place / (len(self.values) - 1) * (COLOURS - 1))
        return place % (len(SHAPES) - 1) * COLOURS + colour


class ShapeCoding:
    """How the values of a column are shown as shapes: one for each of a few values, else one for each of four ranges.

    `values` are the few; `bounds` the upper ends of the ranges, ascending. One of the two is empty. As with `Coding`,
    a figure that is still being measured has ranges of round numbers.
    """

    def __init__(self, values: npt.NDArray[np.float64]) -> None:
        finite = np.unique(values[np.isfinite(values)])
        few = len(finite) < len(SHAPES)
        self.values: tuple[float, ...] = tuple(float(v) for v in finite) if few else ()
        quarters = np.quantile(finite, np.arange(1, _RANGES + 1) / _RANGES) if not few else finite
        self.bounds: tuple[float, ...] = () if few else tuple(float(v) for v in quarters)
        self.low = -math.inf  # no range lies below it

    @classmethod
    def of_figure(cls, values: npt.NDArray[np.float64]) -> ShapeCoding:
        """Four ranges of the same width with room for these values and some more."""
        scale = Coding.of_figure(values)
        if math.isnan(scale.low):
            return cls(values)
        made = cls(np.empty(0))
        made.bounds = tuple(float(v) for v in np.linspace(scale.low, scale.high, _RANGES + 1)[1:])
        made.low = scale.low
        return made

    def covers(self, values: npt.NDArray[np.float64]) -> bool:
        """These further values fit in; otherwise a new coding is needed."""
        finite = values[np.isfinite(values)]
        if self.bounds:
            return bool(((finite >= self.low) & (finite <= self.bounds[-1])).all())
        return bool(np.isin(finite, self.values).all())

    def shapes(self, values: npt.NDArray[np.float64]) -> Styles:
        """The place in SHAPES of each value; the cross, the last, if it is unknown."""
        marks = np.asarray(self.bounds or self.values or (0.0,))
        place = np.searchsorted(marks, values).clip(0, len(marks) - 1)
        return np.where(np.isfinite(values), place, len(SHAPES) - 1).astype(np.uint16)


def round_span(low: float, high: float) -> tuple[float, float]:
    """The ends of a span, moved outwards to round numbers; both NaN if nothing is known."""
    if math.isnan(low):
        return low, high
    span = (high - low) or abs(high) or 1.0
    step = 10.0 ** math.floor(math.log10(span))
    step *= 0.5 if span / step < 5 else 1.0
    return min(low, math.floor(low / step) * step), max(high, (math.floor(high / step) + 1) * step)


def with_shapes(styles: Styles, shapes: Styles) -> Styles:
    """The same colours with other shapes."""
    return (styles % COLOURS + shapes * COLOURS).astype(np.uint16)


def dimmed(styles: Styles) -> Styles:
    """The same shapes, faint."""
    return (styles // COLOURS % len(SHAPES) * COLOURS + DIM).astype(np.uint16)


def draw_marker(painter: QPainter, shape: str, centre: QPointF, size: float) -> None:
    """One marker with the painter's pen and brush. Shapes cover about the same area."""
    r = size / 2
    if shape == "circle":
        painter.drawEllipse(centre, r, r)
    elif shape == "square":
        painter.drawRect(QRectF(centre.x() - r * 0.86, centre.y() - r * 0.86, r * 1.72, r * 1.72))
    elif shape == "cross":
        pen = painter.pen()
        painter.setPen(QPen(painter.brush().color(), max(1.2, size / 5)))
        for dx, dy in ((r, r), (r, -r)):
            painter.drawLine(centre - QPointF(dx, dy) * 0.8, centre + QPointF(dx, dy) * 0.8)
        painter.setPen(pen)
    else:
        corners = {"triangle": 3, "triangle down": 3, "diamond": 4, "pentagon": 5}[shape]
        turn = math.pi / 2 if shape == "triangle down" else -math.pi / 2
        radius = r * (1.2 if corners == 3 else 1.1)
        points = [
            centre + QPointF(math.cos(angle), math.sin(angle)) * radius
            for angle in (turn + k * math.tau / corners for k in range(corners))
        ]
        painter.drawPolygon(QPolygonF(points))


def dim_colour(colours: Colours) -> QColor:
    """The faint colour of what is not brushed."""
    faint = QColor(colours.muted)
    faint.setAlpha(70)
    return faint


class MarkerAtlas:
    """Markers side by side, a row per shape and one per dimmed shape. Each is drawn when it is first wanted: all of
    them take 4 ms, in the turn of the first picture."""

    def __init__(self, size: float, colours: Colours, ratio: float) -> None:
        """`size` in logical pixels."""
        self._edged = size >= 6
        self._size, self._colours, self._ratio = size, colours, ratio
        self.cell = math.ceil((size * 1.2 + (2.0 if self._edged else 0.5)) * ratio)  # its side, in device pixels
        self.picture = QPixmap(self.cell * COLOURS, self.cell * 2 * len(SHAPES))
        self.picture.fill(Qt.GlobalColor.transparent)
        self._drawn: set[int] = set()

    def draw(self, styles: Styles) -> None:
        """Have the markers of these styles in the picture."""
        missing = set(np.unique(styles).tolist()) - self._drawn
        if not missing:
            return
        scale = colour_scale(self._colours)
        edge = QColor(0, 0, 0, 140) if self._colours.dark else QColor(255, 255, 255, 130)
        painter = QPainter(self.picture)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for style in missing:
            row, column = divmod(style, COLOURS)
            outlined = self._edged and style < DIM
            painter.setPen(QPen(edge, 0.7 * self._ratio) if outlined else QPen(Qt.PenStyle.NoPen))
            painter.setBrush(scale[column] if style < DIM else dim_colour(self._colours))
            centre = QPointF((column + 0.5) * self.cell, (row + 0.5) * self.cell)
            draw_marker(painter, SHAPES[row % len(SHAPES)], centre, self._size * self._ratio)
        painter.end()
        self._drawn |= missing
