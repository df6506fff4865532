"""`LabelLayout`: puts the labels of a scatter where no point lies, and hides one for which there is no such place.

`ReferenceMarks`: the vendor's library and the roofline's floor in the scatter, marked, named and hovered as no
configuration is.
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import QObject, QPointF, QRectF, QSizeF, Slot
from PySide6.QtGui import QColor

from ...engine.analysis.quantities import Quantity, quantity
from ...engine.session.references import Kind, Reference
from ..plots.colour_key import KeyMark
from ..plots.scatter import PointCloud
from ..shared import theme
from .points import FrontPoints

_SIZE = 17.0  # of a mark, pixels
_REACH = 300.0  # between a mark and its name
_NEAR = 11.0  # pixels within which the pointer means a mark
_USUAL = ("time_s", "energy_j", "power_w")
_LINE = 58  # characters of a line of the note
_SYMBOLS = {Kind.LIBRARY: "h", Kind.FLOOR: "crosshair"}  # pyqtgraph's
_COLOURS = {Kind.LIBRARY: "blue", Kind.FLOOR: "purple"}  # of the theme


class ReferenceMarks(QObject):
    """Draws into a plot."""

    def __init__(self, plot: pg.PlotWidget, cloud: PointCloud) -> None:
        super().__init__(plot)
        self._plot = plot
        self._cloud = cloud
        self._points: FrontPoints | None = None
        self._shown = True
        self.references: tuple[Reference, ...] = ()
        self.marks = pg.ScatterPlotItem(pxMode=True)
        self.marks.setZValue(16)
        plot.addItem(self.marks, ignoreBounds=True)
        self.labels: list[pg.TextItem] = []

    def set_references(self, references: Sequence[Reference]) -> None:
        """Other ones, or none."""
        for label in self.labels:
            self._plot.removeItem(label)
        self.references = tuple(references)
        self.labels = [pg.TextItem(reference.label) for reference in references]
        for label in self.labels:
            label.setZValue(21)
            self._plot.addItem(label, ignoreBounds=True)
        self.draw()

    def show_points(self, points: FrontPoints | None) -> None:
        """Draw beside other points, over their axes."""
        self._points = points
        self.draw()

    def set_shown(self, shown: bool) -> None:
        """Show or hide them."""
        self._shown = shown
        self.draw()

    def places(self) -> list[tuple[int, float, float]]:
        """(which, x, y) in the plot of those that are shown and have both figures."""
        if self._points is None or not self._shown:
            return []
        results = []
        for which, reference in enumerate(self.references):
            figures = (np.array([reference.values.get(goal.name, np.nan)]) for goal in self._points.goals)
            x, y = (float(values[0]) for values in self._points.placed(*figures))
            if np.isfinite([x, y]).all():
                results.append((which, x, y))
        return results

    @property
    def key(self) -> list[KeyMark]:
        """What the key says of those in the plot."""
        references = (self.references[which] for which, _, _ in self.places())
        return [KeyMark(_SYMBOLS[match.kind], _COLOURS[match.kind], match.label) for match in references]

    def at(self, place: QPointF) -> int | None:
        """Which one lies at a place in the view's own pixels."""
        for which, x, y in self.places():
            px, py = self._cloud.in_pixels(np.array([x]), np.array([y]))
            if np.hypot(px[0] - place.x(), py[0] - place.y()) <= _NEAR:
                return which
        return None

    def draw(self) -> None:
        """Draw again, in the colours in use."""
        colours = theme.colours()
        ground = QColor(colours.base)
        ground.setAlpha(215)
        spots = []
        for which, x, y in self.places():
            kind = self.references[which].kind
            pen = pg.mkPen(getattr(colours, _COLOURS[kind]), width=2)
            spots.append({"pos": (x, y), "symbol": _SYMBOLS[kind], "size": _SIZE, "pen": pen, "brush": ground})
        self.marks.setData(spots)
        for label, reference in zip(self.labels, self.references, strict=True):
            label.setText(reference.label, QColor(getattr(colours, _COLOURS[reference.kind])))
            label.fill = pg.mkBrush(ground)
            label.hide()

    def wishes(self) -> Iterator[Wish]:
        """The names, for the layout of the labels."""
        for which, x, y in self.places():
            yield Wish(self.labels[which], [x], [y], _REACH, leader=True)


def reference_html(reference: Reference, first: Iterable[str] = ()) -> str:
    """A reference as a card: the figures named `first`, such as those on the axes, then time, energy and power."""
    rows = []
    for name in dict.fromkeys((*first, *_USUAL)):
        if name in reference.values:
            described = quantity(name)
            rows.append((described.title, _with_interval(described, reference, name)))
    cells = "".join(
        f"<tr><td>{html.escape(title)}&nbsp;&nbsp;</td><td align='right'><b>{html.escape(value)}</b></td></tr>"
        for title, value in rows
    )
    note = "<br>".join(html.escape(line) for line in textwrap.wrap(reference.note, _LINE))
    return f"<b>{html.escape(reference.label)}</b><table cellspacing='0' cellpadding='0'>{cells}</table>{note}"


def _with_interval(described: Quantity, reference: Reference, name: str) -> str:
    ends = reference.intervals.get(name)
    shown = f" ({described.number(ends[0])} … {described.number(ends[1])})" if ends else ""
    return described.number(reference.values[name]) + shown


Floats = npt.NDArray[np.float64]
_CELL = 4.0  # logical pixels
_LEADER_FROM = 26.0  # pixels between a label and what it names from which on a line joins them
_APART = 9.0  # pixels between a label and the middle of what it names: its marker


@dataclass(frozen=True, slots=True)
class Wish:
    """A label, and the places in data coordinates that it may stand beside, the best first.

    It may stand up to `reach` pixels away; `leader` joins it to its place where it stands far from it.
    """

    label: pg.TextItem
    x: Sequence[float] | Floats
    y: Sequence[float] | Floats
    reach: float
    leader: bool = False


class FreePlaces:
    """Which boxes of a picture hold no point, in the picture's own pixels."""

    def __init__(self, width: float, height: float, x: Floats, y: Floats, margin: float) -> None:
        """Points at `x`, `y`, from each of which a box stays `margin` pixels away."""
        self._edge = int(np.ceil(margin / _CELL))
        self._shape = (max(1, int(height / _CELL)), max(1, int(width / _CELL)))
        rows, columns = self._shape
        rim = self._edge  # cells around the picture, in which nothing is
        self._sums = self._whole = np.zeros((rows + 2 * rim + 1, columns + 2 * rim + 1), dtype=np.int32)
        self._taken = self._whole[rim + 1 : rim + 1 + rows, rim + 1 : rim + 1 + columns]
        with np.errstate(invalid="ignore"):
            column, row = np.floor(x / _CELL), np.floor(y / _CELL)
            inside = (column >= 0) & (column < columns) & (row >= 0) & (row < rows)
        place = row[inside].astype(np.int64) * columns + column[inside].astype(np.int64)
        self._taken += np.bincount(place, minlength=rows * columns).reshape(self._shape).astype(np.int32)
        self._sum_up()

    def take(self, box: QRectF) -> None:
        """Nothing else is to lie there."""
        left, top = max(0, int(box.left() / _CELL)), max(0, int(box.top() / _CELL))
        self._taken[top : int(box.bottom() / _CELL) + 1, left : int(box.right() / _CELL) + 1] += 1
        self._sum_up()

    def _sum_up(self) -> None:
        """How much is taken above and left of each cell."""
        self._sums = self._whole.cumsum(axis=0, dtype=np.int32).cumsum(axis=1, dtype=np.int32)

    def nearest(self, size: QSizeF, position: QPointF, reach: float) -> QRectF | None:
        """The free box of that size that is nearest to a place, None if none is within `reach` pixels."""
        rows, columns = self._shape
        high, wide = int(np.ceil(size.height() / _CELL)), int(np.ceil(size.width() / _CELL))
        if high > rows or wide > columns:
            return None
        top = _within(position.y(), reach, size.height(), rows - high)
        left = _within(position.x(), reach, size.width(), columns - wide)
        if not len(top) or not len(left):
            return None
        s, north, west = self._sums, int(top[0]), int(left[0])
        south, east = north + high + 2 * self._edge, west + wide + 2 * self._edge
        up, down = s[north : north + len(top)], s[south : south + len(top)]
        beside, beyond = slice(west, west + len(left)), slice(east, east + len(left))
        free = down[:, beyond] - up[:, beyond] - down[:, beside] + up[:, beside] == 0
        if not free.any():
            return None
        dx = _gap(position.x(), left * _CELL, size.width())
        dy = _gap(position.y(), top * _CELL, size.height())
        distance = np.hypot(dy[:, None], dx[None, :])
        middle = np.abs(
            left * _CELL + size.width() / 2 - position.x()
        )  # of equally near ones, the one centred on the place
        cost = np.where(free & (distance >= _APART), distance + 1e-3 * middle[None, :], np.inf)
        best = int(cost.argmin())
        row, column = divmod(best, len(left))
        if not distance[row, column] <= reach or np.isinf(cost[row, column]):
            return None
        return QRectF(float(left[column] * _CELL), float(top[row] * _CELL), size.width(), size.height())


class LabelLayout(QObject):
    """Collects label requests from its `sources`, the most important first, and places them just before painting."""

    def __init__(self, plot: pg.PlotWidget, cloud: PointCloud) -> None:
        super().__init__(plot)
        self._plot, self._cloud = plot, cloud
        self.sources: list[Callable[[], Iterable[Wish]]] = []
        self.lines: Callable[[], tuple[Floats, Floats]] | None = None  # a curve that labels keep clear of
        self._stale = True
        self._leaders = pg.PlotCurveItem(connect="pairs")
        self._leaders.setZValue(14)
        plot.addItem(self._leaders, ignoreBounds=True)
        view = plot.getViewBox()
        view.sigRangeChanged.connect(self.changed)
        view.sigResized.connect(self.changed)
        plot.scene().sigPrepareForPaint.connect(self.place)

    @Slot()
    def changed(self, *_: object) -> None:
        """Points, labels or what is in sight are others: find new places at the next frame."""
        self._stale = True
        self._plot.viewport().update()

    @Slot()
    def place(self) -> None:
        """Find the places of all labels now, where anything has changed."""
        if not self._stale:
            return
        self._stale = False
        wishes = [wish for source in self.sources for wish in source()]
        leaders: list[tuple[float, float]] = []
        if wishes:
            free = self._free_places()
            for wish in wishes:
                leaders += self._grant(wish, free)
        self._leaders.setPen(pg.mkPen(QColor(theme.colours().muted), width=1))
        self._leaders.setData(*(np.asarray([leader[axis] for leader in leaders], dtype=np.float64) for axis in (0, 1)))

    def _free_places(self) -> FreePlaces:
        x, y = self._cloud.pixels()
        view = self._plot.getViewBox()
        if self.lines is not None:
            line = self.lines()
            if len(line[0]) > 1:
                places = np.linspace(0, len(line[0]) - 1, 40 * len(line[0]))
                along = [np.interp(places, np.arange(len(line[0])), values) for values in line]
                px, py = self._cloud.in_pixels(along[0], along[1])
                x, y = np.concatenate([x, px]), np.concatenate([y, py])
        return FreePlaces(view.width(), view.height(), x, y, self._cloud.marker_size() / 2 + 1)

    def _grant(self, wish: Wish, free: FreePlaces) -> list[tuple[float, float]]:
        """The ends of the line that joins the label to its place, none where it needs no line or stays hidden."""
        view, label = self._plot.getViewBox(), wish.label
        size = label.boundingRect().size()
        px, py = self._cloud.in_pixels(np.asarray(wish.x, dtype=np.float64), np.asarray(wish.y, dtype=np.float64))
        for x, y in zip(px.tolist(), py.tolist(), strict=True):
            if not (-1 <= x <= view.width() + 1 and -1 <= y <= view.height() + 1):
                continue
            box = free.nearest(size, QPointF(x, y), wish.reach)
            if box is None:
                continue
            free.take(box)
            if tuple(label.anchor) != (0, 0):
                label.setAnchor((0, 0))
            label.setPos(*self._data_of(box.left(), box.top()))
            label.show()
            near_x, near_y = min(max(x, box.left()), box.right()), min(max(y, box.top()), box.bottom())
            far = np.hypot(near_x - x, near_y - y) > _LEADER_FROM
            return [self._data_of(near_x, near_y), self._data_of(x, y)] if wish.leader and far else []
        label.hide()
        return []

    def _data_of(self, x: float, y: float) -> tuple[float, float]:
        view = self._plot.getViewBox()
        (x0, x1), (y0, y1) = view.viewRange()
        return x0 + x / max(1.0, view.width()) * (x1 - x0), y1 - y / max(1.0, view.height()) * (y1 - y0)


def _within(at: float, reach: float, size: float, last: int) -> npt.NDArray[np.int64]:
    """The cells at which an interval of that size may begin, from 0 to `last`, to lie within reach of a place."""
    first = max(0, int((at - reach - size) / _CELL))
    return np.arange(first, min(last, int((at + reach) / _CELL)) + 1)


def _gap(at: float, start: npt.NDArray[np.floating], size: float) -> Floats:
    """How far a place lies outside intervals that begin at `start`."""
    return np.asarray(np.maximum(0.0, np.maximum(start - at, at - (start + size))))
