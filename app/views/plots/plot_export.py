"""A plot taken out of the window: its figures as columns or CSV, its picture as PNG or SVG."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import QBuffer, QIODevice, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QImage, QPainter
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QApplication, QGraphicsView

from ...plain_text import one_line
from ...spreadsheet import text_cell
from . import theme
from .chart_plot import NamedBars
from .scatter import PointCloud

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Curve:
    """One curve, row of bars or cloud of points: only what lies within the axes' range."""

    name: str
    x_title: str
    y_title: str
    x: Floats
    y: Floats


def curves_of(view: pg.GraphicsView) -> list[Curve]:
    """Everything drawn in the plots of a view, from the top one down."""
    return [curve for plot in plots_of(view) for curve in _curves(plot)]


def plots_of(view: pg.GraphicsView) -> list[pg.PlotItem]:
    """The plots in a view, in the order in which they were made."""
    return [item for item in reversed(view.scene().items()) if isinstance(item, pg.PlotItem)]


def as_csv(curves: list[Curve], remarks: list[str]) -> str:
    """CSV with one line per point: curve, x and y; `remarks` stand above it as comments."""
    out = io.StringIO()
    out.writelines(f"# {one_line(line)}\n" for line in remarks)
    write = csv.writer(out, lineterminator="\n")
    alike = {(curve.x_title, curve.y_title) for curve in curves}
    if len(alike) == 1:
        x_title, y_title = next(iter(alike))
        write.writerow(["curve", text_cell(x_title or "x"), text_cell(y_title or "y")])
    else:
        write.writerow(["curve", "x", "y"])
    for curve in curves:
        name = curve.name if len(alike) == 1 else f"{curve.name} ({curve.y_title} over {curve.x_title})"
        for x, y in zip(curve.x.tolist(), curve.y.tolist(), strict=True):
            write.writerow([text_cell(name), f"{x:.10g}", f"{y:.10g}"])
    return out.getvalue()


def _curves(plot: pg.PlotItem) -> Iterator[Curve]:
    bottom, left = plot.getAxis("bottom"), plot.getAxis("left")
    titles = _title(bottom), _title(left)
    (x_low, x_high), (y_low, y_high) = plot.vb.viewRange()
    number = 0
    for item in [*plot.items, *plot.vb.childItems()]:
        if isinstance(item, NamedBars):
            for name, value, place in zip(item.names, item.values, item.places, strict=True):
                yield Curve(f"{item.label}: {name}", *titles, np.asarray([value]), np.asarray([place]))
            continue
        found = _data(item)
        if found is None or not item.isVisible():
            continue
        x, y = (np.asarray(values, dtype=np.float64) for values in found)
        inside = (x >= x_low) & (x <= x_high) & (y >= y_low) & (y <= y_high)
        if not inside.any():
            continue
        number += 1
        name = str(item.name() or "") if hasattr(item, "name") and callable(item.name) else ""
        kind = "points" if isinstance(item, PointCloud | pg.ScatterPlotItem) else "curve"
        yield Curve(name or f"{kind} {number}", *titles, _shown(bottom, x[inside]), _shown(left, y[inside]))


def _data(item: Any) -> tuple[Any, Any] | None:
    """The coordinates of an item that draws data, as they are drawn; None for anything else and for what is empty."""
    if isinstance(item, PointCloud):
        x, y = item.points()
    elif isinstance(item, pg.BarGraphItem):
        centre, height, base = (item.opts.get(name) for name in ("x", "height", "y0"))
        if centre is None or height is None:
            return None
        x = np.asarray(centre, dtype=np.float64)
        y = np.broadcast_to(np.asarray(height, dtype=np.float64) + (0.0 if base is None else np.asarray(base)), x.shape)
    elif isinstance(item, pg.PlotDataItem | pg.PlotCurveItem | pg.ScatterPlotItem):
        x, y = item.getData()
    else:
        return None
    return None if x is None or y is None or not len(x) else (x, y)


def _shown(axis: pg.AxisItem, values: Floats) -> Floats:
    """Coordinates in the units of the axis labels."""
    shown = getattr(axis, "shown", None)
    if shown is not None:
        return np.asarray(shown(values), dtype=np.float64)
    linear = np.power(10.0, values) if axis.logMode else values
    return np.asarray(linear * axis.scale, dtype=np.float64)


def _title(axis: pg.AxisItem) -> str:
    units = f" ({axis.labelUnits})" if axis.labelUnits else ""
    text = html.unescape(re.sub(r"<[^>]*>", " ", str(axis.labelText or "")))
    return " ".join(text.split()) + units


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
