"""The colours of what is drawn over each other, by its place in the list: of lines, and of the fields beside names."""

from __future__ import annotations

import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPixmap

from . import theme

_LINES = ("blue", "orange", "green", "purple", "vermillion", "sky", "grey")


def colour_of(place: int) -> QColor:
    """The line colour of what is in that place of the list."""
    return QColor(getattr(theme.colours(), _LINES[place % len(_LINES)]))


def pen_of(place: int, width: float) -> object:
    """... and its pen: dotted where the colours are used up."""
    dotted = place // len(_LINES) % 2
    style = Qt.PenStyle.DotLine if dotted else Qt.PenStyle.SolidLine
    return pg.mkPen(colour_of(place), width=width, style=style)


def icon_of(place: int) -> QIcon:
    """A field of that colour."""
    pixmap = QPixmap(12, 12)
    pixmap.fill(QColor(theme.colours().base))  # an edge, so that it can be told from a selected line
    painter = QPainter(pixmap)
    painter.fillRect(1, 1, 10, 10, colour_of(place))
    painter.end()
    icon = QIcon(pixmap)
    icon.addPixmap(pixmap, QIcon.Mode.Selected)  # else a selected line would tint it
    return icon
