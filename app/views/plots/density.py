"""`DensityMask`: fades a picture of points where few of them lie, so that many look like many."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter

Floats = npt.NDArray[np.float64]
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
