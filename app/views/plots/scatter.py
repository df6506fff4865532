"""`PointCloud`: a hundred thousand points in a plot, painted once into a picture that appended points are added to.

The picture is redrawn only when the view moves or the markers change, so that streaming results costs next to nothing.
Where there are thousands, points fade where few of them lie: the denser the crowd, the stronger it is drawn.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
import shiboken6
from PySide6.QtCore import QPointF, QRectF, Qt, Slot
from PySide6.QtGui import QImage, QPainter, QPixmap
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from .density import DensityMask
from .markers import COLOURS, DIM, MarkerAtlas, Styles
from .stamps import Stamps
from .theme import Colours

Floats = npt.NDArray[np.float64]
_SIZES = ((300, 11.0), (3_000, 9.0), (30_000, 7.0), (60_000, 5.0))  # up to so many points, this wide; above, small
_SMALL = 4.0
_STAMPED = 5.0  # markers up to that size are stamped
_STRIDES = (7919, 7907)  # primes
CROWD = 1_000  # from so many points in sight on they fade by density


class PointCloud(QGraphicsItem):
    """Points in data coordinates, painted in those of the `ViewBox`, whose child it is."""

    def __init__(self, view: pg.ViewBox, colours: Colours) -> None:
        super().__init__(view)
        self.view = view
        self._count = 0
        self._x = np.empty(1024)
        self._y = np.empty(1024)
        self._style: Styles = np.empty(1024, dtype=np.uint16)
        self._picture: QPixmap | QImage | None = None
        self._pixels_of_picture = np.empty((0, 0), dtype=np.uint32)  # of a picture that is stamped
        self._painted = 0  # how many of the points the picture holds
        self._density: DensityMask | None = None  # of the points in the picture
        self._atlas: MarkerAtlas | None = None
        self._stamps: Stamps | None = None
        self._markers_key: tuple[float, Colours, float] | None = None  # what atlas or stamps were made for
        self._dims = False  # some are dimmed: the others stand out already
        self._colours = colours
        self.setZValue(-5)  # below the front, which lies among the view's children at 0
        self.setFlag(QGraphicsItem.GraphicsItemFlag.ItemClipsToShape)
        view.sigTransformChanged.connect(self._view_moved)

    def __len__(self) -> int:
        return self._count

    def points(self) -> tuple[Floats, Floats]:
        """Copies of the coordinates of all points, of shape (n,)."""
        return self._x[: self._count].copy(), self._y[: self._count].copy()

    @property
    def styles(self) -> Styles:
        """A copy of the styles of all points, of shape (n,)."""
        return self._style[: self._count].copy()

    def set_points(self, x: Floats, y: Floats, style: Styles) -> None:
        """Replace all points; arrays of shape (n,), finite."""
        self._count = 0
        self.invalidate()
        self.append(x, y, style)

    def append(self, x: Floats, y: Floats, style: Styles) -> None:
        """Add points on top of those that are there."""
        start, end = self._count, self._count + len(x)
        if end > len(self._x):
            capacity = max(end, 2 * len(self._x))
            self._x, self._y = np.resize(self._x, capacity), np.resize(self._y, capacity)
            self._style = np.resize(self._style, capacity)
        self._x[start:end], self._y[start:end], self._style[start:end] = x, y, style
        self._dims = bool((style >= DIM).any()) or (start > 0 and self._dims)
        if self.marker_size(start) != self.marker_size(end):
            self._picture = None
        self._count = end
        self.update()

    def set_styles(self, style: Styles) -> None:
        """Draw the same points otherwise; shape (n,)."""
        self._style[: self._count] = style
        self._dims = bool((style >= DIM).any())
        self.invalidate()

    def set_colours(self, colours: Colours) -> None:
        self._colours = colours
        self.invalidate()

    def invalidate(self) -> None:
        """Paint everything again at the next frame."""
        self._picture = None
        self.update()

    @property
    def faded(self) -> bool:
        """The crowd is drawn by its density."""
        return self._count >= CROWD and not self._dims

    def marker_size(self, count: int | None = None) -> float:
        """The width of a marker in logical pixels: the more points, the smaller."""
        n = self._count if count is None else count
        return next((size for limit, size in _SIZES if n <= limit), _SMALL)

    def nearest(self, at: QPointF, reach: float = 14.0) -> int | None:
        """The point nearest to a place in the view's own pixels, None where none is within `reach` pixels."""
        if not self._count:
            return None
        px, py = self.pixels()
        with np.errstate(invalid="ignore"):
            distance = (px - at.x()) ** 2 + (py - at.y()) ** 2
        # Of points in one place, the one on top is meant: the last.
        found = self._count - 1 - int(np.argmin(distance[::-1]))
        return found if distance[found] <= reach * reach else None

    def pixels(self, start: int = 0) -> tuple[Floats, Floats]:
        """Points from `start` on in the view's own logical pixels."""
        return self.in_pixels(self._x[start : self._count], self._y[start : self._count])

    def in_pixels(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Data coordinates in the view's own logical pixels."""
        (x0, x1), (y0, y1) = self.view.viewRange()
        width, height = self.view.width(), self.view.height()
        return (x - x0) * (width / ((x1 - x0) or 1.0)), (y1 - y) * (height / ((y1 - y0) or 1.0))

    @Slot()
    def _view_moved(self, *_: object) -> None:
        self.prepareGeometryChange()
        self.invalidate()

    def boundingRect(self) -> QRectF:
        return QRectF(0.0, 0.0, self.view.width(), self.view.height())

    def within(self, box: QRectF) -> npt.NDArray[np.int64]:
        """The points in a rectangle of the view's own pixels, ascending."""
        px, py = self.pixels()
        inside = (px >= box.left()) & (px <= box.right()) & (py >= box.top()) & (py <= box.bottom())
        return np.flatnonzero(inside)

    def paint(self, painter: QPainter, _option: QStyleOptionGraphicsItem, _widget: QWidget | None = None) -> None:
        ratio = _ratio_of(painter)
        many = self.marker_size() <= _STAMPED
        picture = self._picture
        if picture is None or picture.devicePixelRatio() != ratio or isinstance(picture, QImage) != many:
            picture = self._picture = self._blank(ratio, many)
            self._painted = 0
            self._density = DensityMask(self.view.width(), self.view.height())
        if self._painted < self._count:
            assert self._density is not None
            self._density.add(*self.pixels(self._painted))
            if isinstance(picture, QImage):
                self._stamp_onto(self._painted, ratio)
            else:
                self._paint_onto(picture, self._painted, ratio)
            self._painted = self._count
        crowded = self.faded and self._density is not None and self._density.counts.sum() >= CROWD
        shown = self._faded(picture) if crowded else picture
        if isinstance(shown, QImage):
            painter.drawImage(QPointF(0, 0), shown)
        else:
            painter.drawPixmap(QPointF(0, 0), shown)

    def _faded(self, picture: QPixmap | QImage) -> QPixmap | QImage:
        """A copy of the picture that shows how dense the points are."""
        assert self._density is not None
        copy = picture.copy()
        fading = QPainter(copy)
        self._density.fade(fading)
        fading.end()
        return copy

    def _blank(self, ratio: float, many: bool) -> QPixmap | QImage:
        width = max(1, round(self.view.width() * ratio))
        height = max(1, round(self.view.height() * ratio))
        picture: QPixmap | QImage
        if many:
            self._pixels_of_picture = pixels = np.zeros((height, width), dtype=np.uint32)
            picture = QImage(pixels.data, width, height, 4 * width, QImage.Format.Format_ARGB32_Premultiplied)
        else:
            picture = QPixmap(width, height)
            picture.fill(Qt.GlobalColor.transparent)
        picture.setDevicePixelRatio(ratio)
        return picture

    def _forget_other_markers(self, ratio: float) -> tuple[float, Colours, float]:
        """The size, colours and screen of the markers, for which there may be an atlas or stamps already."""
        key = (self.marker_size(), self._colours, ratio)
        if key != self._markers_key:
            self._atlas, self._stamps, self._markers_key = None, None, key
        return key

    def _stamp_onto(self, start: int, ratio: float) -> None:
        """Add the points from `start` on to the picture's memory."""
        size, colours, _ = self._forget_other_markers(ratio)
        if self._stamps is None:
            self._stamps = Stamps(size * ratio, colours)
        px, py = self.pixels(start)
        order = self._order(start)
        style = self._style[start : self._count][order]
        self._stamps.stamp(self._pixels_of_picture, px[order] * ratio, py[order] * ratio, style)

    def _order(self, start: int) -> npt.NDArray[np.int64]:
        """The order in which points from `start` on are drawn: thousands at once in turns, so that those measured last,
        often all of the highest clock, do not hide the others."""
        count = self._count - start
        order = np.arange(count)
        return order if count < CROWD else order * next(n for n in _STRIDES if count % n) % count

    def _paint_onto(self, picture: QPixmap, start: int, ratio: float) -> None:
        """Add the points from `start` on to the picture, in one call; dimmed ones lie below."""
        key = self._forget_other_markers(ratio)
        if self._atlas is None:
            self._atlas = MarkerAtlas(*key)
        cell = self._atlas.cell
        px, py = self.pixels(start)
        order = self._order(start)
        px, py = px[order], py[order]
        inside = (px > -cell) & (px < self.view.width() + cell) & (py > -cell) & (py < self.view.height() + cell)
        style = self._style[start : self._count][order]
        shown = np.flatnonzero(inside)
        shown = shown[np.argsort(style[shown] < DIM, kind="stable")]
        style = style[shown]
        if not len(style):
            return
        self._atlas.draw(style)
        # Qt takes a C array of fragments, ten doubles each: x, y, source left, top, width, height, scale x and y,
        # turn, opacity.
        fragments = np.empty((len(style), 10))
        fragments[:, 0], fragments[:, 1] = px[shown], py[shown]
        fragments[:, 2], fragments[:, 3] = style % COLOURS * cell, style // COLOURS * cell
        fragments[:, 4:6], fragments[:, 6:8], fragments[:, 8], fragments[:, 9] = cell, 1 / ratio, 0.0, 1.0
        first = shiboken6.wrapInstance(fragments.ctypes.data, QPainter.PixmapFragment)
        painter = QPainter(picture)
        if ratio != 1.0:
            painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        painter.drawPixmapFragments(cast(QPainter.PixmapFragment, first), len(fragments), self._atlas.picture)
        painter.end()


def _ratio_of(painter: QPainter) -> float:
    """Device pixels per logical one. Not by way of `painter.device()`.

    Shiboken takes what that returns for the painter's own, and with the painter everything below the widget is taken
    for deleted: actions and menus elsewhere in the window cannot be used any more.
    """
    return round(painter.deviceTransform().m11(), 3)
