"""Small markers by the hundred thousand, stamped straight into a picture's memory: thrice as quick as Qt draws them."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from PySide6.QtGui import QColor, QImage, QPainter

from .markers import COLOURS, DIM, SHAPES, Styles, colour_scale, dim_colour, draw_marker
from .theme import Colours

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
            self._stamp_whole(pixels, *(each[kind & whole] for each in (column, row, style)))
            self._stamp_rim(pixels, *(each[kind & inside & ~whole] for each in (column, row, style)))

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
