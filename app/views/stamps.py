"""Small markers by the hundred thousand, stamped straight into a picture's memory: thrice as quick as Qt draws them."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from PySide6.QtGui import QColor, QImage, QPainter

from app.views.markers import COLOURS, DIM, SHAPES, Styles, colour_scale, dim_colour, draw_marker
from app.views.theme import Colours

Pixels = npt.NDArray[np.uint32]  # shape (height, width), premultiplied ARGB


class Stamps:
    """The pixels that each shape covers at one size, and the colour of each style."""

    def __init__(self, size: float, colours: Colours) -> None:
        """`size` in device pixels."""
        self.reach = math.ceil(size / 2) + 1  # pixels around the middle that a stamp may cover
        self._covered = [_covered(shape, size, self.reach) for shape in SHAPES]
        scale = np.asarray([colour.rgba() for colour in colour_scale(colours)], dtype=np.uint32)
        faint = np.full(COLOURS, _premultiplied(dim_colour(colours), QColor(colours.base)), dtype=np.uint32)
        self._colour = np.concatenate([np.tile(scale, len(SHAPES)), np.tile(faint, len(SHAPES))])

    def stamp(self, pixels: Pixels, x: npt.NDArray[np.float64], y: npt.NDArray[np.float64], style: Styles) -> None:
        """Put markers on the picture, later ones over earlier ones of their kind, dimmed ones below all others.

        `x`, `y` in device pixels; each may lie anywhere.
        """
        height, width = pixels.shape
        flat = pixels.reshape(-1)
        column, row = np.floor(x).astype(np.int64), np.floor(y).astype(np.int64)
        inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
        whole = (
            (column >= self.reach) & (column < width - self.reach) & (row >= self.reach) & (row < height - self.reach)
        )
        for faint in (True, False):
            for shape, offsets in enumerate(self._covered):
                first = shape * COLOURS + (DIM if faint else 0)
                mine = (style >= first) & (style < first + COLOURS)
                if not mine.any():
                    continue
                at = np.flatnonzero(mine & whole)
                place, colour = row[at] * width + column[at], self._colour[style[at]]
                for dy, dx in offsets:
                    flat[place + (dy * width + dx)] = colour
                at = np.flatnonzero(mine & ~whole & inside)
                for dy, dx in offsets if len(at) else ():  # at the rim, where a stamp is cut off
                    there = at[(row[at] + dy >= 0) & (row[at] + dy < height)]
                    there = there[(column[there] + dx >= 0) & (column[there] + dx < width)]
                    flat[(row[there] + dy) * width + column[there] + dx] = self._colour[style[there]]


def _covered(shape: str, size: float, reach: int) -> list[tuple[int, int]]:
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
    return [(y - reach, x - reach) for y in range(side) for x in range(side) if image.pixelColor(x, y).alpha() >= 128]


def _premultiplied(faint: QColor, ground: QColor) -> int:
    """A faint colour over the ground, opaque: stamps that lie on one another do not add up."""
    share = faint.alphaF()
    mixed = (share * f + (1 - share) * g for f, g in zip(faint.getRgb()[:3], ground.getRgb()[:3], strict=True))  # type: ignore[index]
    return QColor(*(round(part) for part in mixed)).rgba()
