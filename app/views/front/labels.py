"""`LabelLayout`: puts the labels of a scatter where no point lies, and hides one for which there is no such place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import QObject, QPointF, QRectF, QSizeF, Slot
from PySide6.QtGui import QColor

from ..plots.scatter import PointCloud
from ..shared import theme

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

    def nearest(self, size: QSizeF, at: QPointF, reach: float) -> QRectF | None:
        """The free box of that size that is nearest to a place, None where none is within `reach` pixels."""
        rows, columns = self._shape
        high, wide = int(np.ceil(size.height() / _CELL)), int(np.ceil(size.width() / _CELL))
        if high > rows or wide > columns:
            return None
        top = _within(at.y(), reach, size.height(), rows - high)
        left = _within(at.x(), reach, size.width(), columns - wide)
        if not len(top) or not len(left):
            return None
        s, north, west = self._sums, int(top[0]), int(left[0])
        south, east = north + high + 2 * self._edge, west + wide + 2 * self._edge
        up, down = s[north : north + len(top)], s[south : south + len(top)]
        beside, beyond = slice(west, west + len(left)), slice(east, east + len(left))
        free = down[:, beyond] - up[:, beyond] - down[:, beside] + up[:, beside] == 0
        if not free.any():
            return None
        dx = _gap(at.x(), left * _CELL, size.width())
        dy = _gap(at.y(), top * _CELL, size.height())
        distance = np.hypot(dy[:, None], dx[None, :])
        middle = np.abs(left * _CELL + size.width() / 2 - at.x())  # of equally near ones, the one centred on the place
        cost = np.where(free & (distance >= _APART), distance + 1e-3 * middle[None, :], np.inf)
        best = int(cost.argmin())
        row, column = divmod(best, len(left))
        if not distance[row, column] <= reach or np.isinf(cost[row, column]):
            return None
        return QRectF(float(left[column] * _CELL), float(top[row] * _CELL), size.width(), size.height())


class LabelLayout(QObject):
    """Asks its `sources` for wishes, the most important first, and grants them just before the plot is painted."""

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
        self._leaders.setData(*(np.asarray([at[axis] for at in leaders], dtype=np.float64) for axis in (0, 1)))

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
