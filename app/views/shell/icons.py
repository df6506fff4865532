"""The icons of the workspaces and of the docks' buttons, drawn in the colour of the text."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPen, QPixmap, QPolygonF

_SIDE = 24.0  # of the square that the strokes below are in
_SCALE = 3  # pixels per unit: sharp on a screen with a scale of 2, and at 22 pixels
# Polylines; a circle is (x, y, radius).
_STROKES: dict[str, tuple[list[tuple[float, ...]], ...]] = {
    "home": (
        [(3, 12), (12, 4), (21, 12)],
        [(6, 10), (6, 20), (18, 20), (18, 10)],
        [(10, 20), (10, 14), (14, 14), (14, 20)],
    ),
    "watch": ([(2, 13), (7, 13), (10, 5), (14, 20), (17, 11), (22, 11)],),
    "tune": (
        [(4, 20), (4, 4)],
        [(4, 20), (21, 20)],
        [(8, 15, 1.4)],
        [(11, 10, 1.4)],
        [(15.5, 7.5, 1.4)],
        [(20, 6.5, 1.4)],
        [(15, 14.5, 1.4)],
    ),
    "understand": (
        [(3, 20), (21, 20)],
        [(6, 20), (6, 13)],
        [(11, 20), (11, 8)],
        [(16, 20), (16, 11)],
        [(20, 20), (20, 5)],
    ),
    "control": (
        [(5, 4), (5, 20)],
        [(12, 4), (12, 20)],
        [(19, 4), (19, 20)],
        [(5, 15, 2.2)],
        [(12, 8, 2.2)],
        [(19, 13, 2.2)],
    ),
    "library": (
        [(4, 5), (4, 20)],
        [(8.5, 5), (8.5, 20)],
        [(13, 5), (13, 20)],
        [(16, 6), (20.5, 20)],
        [(2, 20.5), (22, 20.5)],
    ),
    "float": ([(8, 4), (20, 4), (20, 16), (8, 16), (8, 4)], [(4, 9), (4, 20), (15, 20)]),
    "close": ([(5, 5), (19, 19)], [(19, 5), (5, 19)]),
}


def icon_of(name: str, colour: str) -> QIcon:
    """The icon of a workspace or a button."""
    pixmap = QPixmap(round(_SIDE * _SCALE), round(_SIDE * _SCALE))
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.scale(_SCALE, _SCALE)
    pen = QPen(QColor(colour), 1.8)
    pen.setCapStyle(Qt.PenCapStyle.RoundCap)
    pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
    painter.setPen(pen)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for stroke in _STROKES[name]:
        if len(stroke[0]) == 3:
            x, y, radius = stroke[0]
            painter.setBrush(QColor(colour))
            painter.drawEllipse(QRectF(x - radius, y - radius, 2 * radius, 2 * radius))
            painter.setBrush(Qt.BrushStyle.NoBrush)
        else:
            painter.drawPolyline(QPolygonF([QPointF(*point) for point in stroke]))
    painter.end()
    return QIcon(pixmap)
