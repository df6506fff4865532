"""`PointCloud`: a hundred thousand points in a plot, painted once into a picture that appended points are added to.

The picture is redrawn only when the view moves or the markers change, so that streaming results costs next to nothing.
Where there are thousands, points fade where few of them lie: the denser the crowd, the stronger it is drawn.

`DensityMask`: fades a picture of points where few of them lie, so that many look like many.

Small markers by the hundred thousand, stamped straight into a picture's memory: thrice as quick as Qt draws them.
"""

from __future__ import annotations

import math
from typing import cast

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
import shiboken6
from PySide6.QtCore import QPointF, QRectF, Qt, Slot
from PySide6.QtGui import QColor, QImage, QPainter, QPixmap
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from ..shared.theme import Colours
from .markers import COLOURS, DIM, SHAPES, MarkerAtlas, Styles, colour_scale, dim_colour, draw_marker

_CELL = 6.0  # logical pixels: about as wide as a marker
_FAINTEST = 0.3  # of what stands alone: still seen, as an outlier has to be
_CROWD = 99.0  # percentile of the cells that have points from which on they are drawn at full strength


class DensityMask:
    """Counts points in cells of the picture; the strength of a cell grows with the logarithm of its count."""

    def __init__(self, width: float, height: float) -> None:
        """In logical pixels."""
        self._size = (width, height)
        self.counts = np.zeros((max(1, int(height / _CELL) + 1), max(1, int(width / _CELL) + 1)), dtype=np.int64)

    def add(self, x: Floats, y: Floats) -> None:
        """Count points in logical pixels; each may lie anywhere."""
        rows, columns = self.counts.shape
        with np.errstate(invalid="ignore"):
            column, row = np.floor(x / _CELL), np.floor(y / _CELL)
            inside = (column >= 0) & (column < columns) & (row >= 0) & (row < rows)
        place = row[inside].astype(np.int64) * columns + column[inside].astype(np.int64)
        self.counts += np.bincount(place, minlength=rows * columns).reshape(rows, columns)

    @property
    def strength(self) -> Floats:
        """Of each cell, between the faintest and 1."""
        counts = _widened(_widened(self.counts).T).T  # a marker reaches into the neighbouring cells
        counted = counts[counts > 0]
        if not len(counted):
            return np.ones(counts.shape)
        most = max(2.0, float(np.percentile(counted, _CROWD)))
        share = np.log(np.maximum(counts, 1)) / np.log(most)
        return np.asarray(_FAINTEST + (1 - _FAINTEST) * np.minimum(share, 1.0))

    def fade(self, painter: QPainter) -> None:
        """Fade what was painted so far; the painter's unit is a logical pixel."""
        alpha = np.ascontiguousarray((self.strength * 255).astype(np.uint8))
        rows, columns = alpha.shape
        mask = QImage(alpha.data, columns, rows, columns, QImage.Format.Format_Alpha8)
        painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_DestinationIn)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
        painter.drawImage(QRectF(0.0, 0.0, columns * _CELL, rows * _CELL), mask)


def _widened(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The largest of each row and its neighbours."""
    padded = np.pad(counts, ((1, 1), (0, 0)))
    return np.maximum(np.maximum(padded[:-2], padded[1:-1]), padded[2:])


Places = npt.NDArray[np.int64]
Pixels = npt.NDArray[np.uint32]  # shape (height, width), premultiplied ARGB


class Stamps:
    """The pixels that each shape covers at one size, and the colour of each style."""

    def __init__(self, size: float, colours: Colours) -> None:
        """`size` in device pixels."""
        self.reach = math.ceil(size / 2) + 1  # pixels around the middle that a stamp may cover
        drawn = [_covered(shape, size, self.reach) for shape in SHAPES]
        outside_in = sorted(set().union(*drawn), key=lambda pixel: (-(pixel[0] ** 2 + pixel[1] ** 2), pixel))
        self._offsets = [(dy, dx, np.asarray([(dy, dx) in pixels for pixels in drawn])) for dy, dx in outside_in]
        scale = np.asarray([colour.rgba() for colour in colour_scale(colours)], dtype=np.uint32)
        faint = np.full(COLOURS, _premultiplied(dim_colour(colours), QColor(colours.base)), dtype=np.uint32)
        self._colour = np.concatenate([np.tile(scale, len(SHAPES)), np.tile(faint, len(SHAPES))])

    def stamp(self, pixels: Pixels, x: npt.NDArray[np.float64], y: npt.NDArray[np.float64], style: Styles) -> None:
        """Put markers on the picture, dimmed ones below all others. The middle of each lies above the rims of all, so
        that no shape hides the others as such.

        `x`, `y` in device pixels; each may lie anywhere.
        """
        height, width = pixels.shape
        column, row = np.floor(x).astype(np.int64), np.floor(y).astype(np.int64)
        reach = self.reach
        whole = (column >= reach) & (column < width - reach) & (row >= reach) & (row < height - reach)
        inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
        for kind in (style >= DIM, style < DIM):
            self._stamp_whole(pixels, *(item[kind & whole] for item in (column, row, style)))
            self._stamp_rim(pixels, *(item[kind & inside & ~whole] for item in (column, row, style)))

    def _stamp_whole(self, pixels: Pixels, column: Places, row: Places, style: Styles) -> None:
        """Markers that no edge of the picture cuts off."""
        if not len(style):
            return
        flat, width = pixels.reshape(-1), pixels.shape[1]
        place, colour, shape = row * width + column, self._colour[style], style // COLOURS % len(SHAPES)
        present = np.bincount(shape, minlength=len(SHAPES)) > 0
        for dy, dx, covers in self._offsets:
            step = dy * width + dx
            if covers[present].all():
                flat[place + step] = colour
            elif covers[present].any():  # the others paint their middle, which is theirs in any case
                flat[place + (covers * step)[shape]] = colour

    def _stamp_rim(self, pixels: Pixels, column: Places, row: Places, style: Styles) -> None:
        """Markers at the edge: what of them lies in the picture."""
        height, width = pixels.shape
        shape = style // COLOURS % len(SHAPES)
        for dy, dx, covers in self._offsets if len(style) else ():
            y, x = row + dy, column + dx
            some = covers[shape] & (x >= 0) & (x < width) & (y >= 0) & (y < height)
            pixels[y[some], x[some]] = self._colour[style[some]]


def _covered(shape: str, size: float, reach: int) -> set[tuple[int, int]]:
    """(dy, dx) of the pixels that a marker covers by half or more."""
    side = 2 * reach + 1
    image = QImage(side, side, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(0)
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QColor(0, 0, 0, 0))
    painter.setBrush(QColor(0, 0, 0))
    draw_marker(painter, shape, image.rect().toRectF().center(), size)
    painter.end()
    return {(y - reach, x - reach) for y in range(side) for x in range(side) if image.pixelColor(x, y).alpha() >= 128}


def _premultiplied(faint: QColor, ground: QColor) -> int:
    """A faint colour over the ground, opaque: stamps that lie on one another do not add up."""
    share = faint.alphaF()
    mixed = (share * f + (1 - share) * g for f, g in zip(faint.getRgb()[:3], ground.getRgb()[:3], strict=True))  # type: ignore[index]
    return QColor(*(round(part) for part in mixed)).rgba()


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

    def nearest(self, position: QPointF, reach: float = 14.0) -> int | None:
        """The point nearest to a place in the view's own pixels, None if none is within `reach` pixels."""
        if not self._count:
            return None
        px, py = self.pixels()
        with np.errstate(invalid="ignore"):
            distance = (px - position.x()) ** 2 + (py - position.y()) ** 2
        # Of points in one place, the one on top is meant: the last.
        index = self._count - 1 - int(np.argmin(distance[::-1]))
        return index if distance[index] <= reach * reach else None

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
