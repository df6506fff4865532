"""A plot as a picture to take away: PNG at twice its size, or SVG; the line below says what it is of."""

from __future__ import annotations

from PySide6.QtCore import QBuffer, QIODevice, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QImage, QPainter
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QApplication, QGraphicsView

from . import theme

_MARGIN = 6


def image_of(view: QGraphicsView, caption: str) -> QImage:
    """The plot at twice its size on the screen."""
    size = _size(view)
    image = QImage(size * 2, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(2.0)
    painter = QPainter(image)
    _paint(painter, view, caption, size)
    painter.end()
    return image


def png_of(view: QGraphicsView, caption: str) -> bytes:
    """The plot as a PNG file."""
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image_of(view, caption).save(buffer, "PNG")  # type: ignore[call-overload]  # the stubs want bytes, the call refuses them
    return bytes(buffer.data().data())


def svg_of(view: QGraphicsView, caption: str) -> bytes:
    """The plot as an SVG file: curves and words stay curves and words."""
    size, buffer = _size(view), QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    generator = QSvgGenerator()
    generator.setOutputDevice(buffer)
    generator.setSize(size)
    generator.setViewBox(QRect(0, 0, size.width(), size.height()))
    generator.setTitle(caption)
    painter = QPainter(generator)
    _paint(painter, view, caption, size)
    painter.end()
    return bytes(buffer.data().data())


def _size(view: QGraphicsView) -> QSize:
    return QSize(view.width(), view.height() + _line_height())


def _line_height() -> int:
    return QFontMetrics(QApplication.font()).height() + 2 * _MARGIN


def _paint(painter: QPainter, view: QGraphicsView, caption: str, size: QSize) -> None:
    c = theme.colours()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.fillRect(QRect(0, 0, size.width(), size.height()), QColor(c.base))
    view.render(painter, QRectF(0, 0, view.width(), view.height()), view.viewport().rect())
    painter.setFont(QApplication.font())
    painter.setPen(QColor(c.muted))
    line = QRect(_MARGIN, view.height(), size.width() - 2 * _MARGIN, _line_height())
    text = QFontMetrics(painter.font()).elidedText(caption, Qt.TextElideMode.ElideRight, line.width())
    painter.drawText(line, int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter), text)
