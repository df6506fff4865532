"""A plot taken out of the window: its figures as columns or CSV, its picture as PNG or SVG.

`PlotMenus`: a right click, or the menu key, on any plot: copy it, save it as PNG, SVG, or its figures as CSV.
"""

from __future__ import annotations

import csv
import html
import io
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
import shiboken6
from PySide6.QtCore import QBuffer, QEvent, QIODevice, QObject, QPoint, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QAction, QColor, QContextMenuEvent, QFontMetrics, QGuiApplication, QImage, QPainter
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QApplication, QGraphicsView, QMenu, QWidget

from ...base.errors import WattridgeError
from ...base.formatting import counted
from ...base.text import one_line, text_cell
from ..shared import theme
from ..shared.tasks import TaskQueue
from ..shared.widgets import save_file
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
        data = _data(item)
        if data is None or not item.isVisible():
            continue
        x, y = (np.asarray(values, dtype=np.float64) for values in data)
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


_KINDS = {"png": "PNG (*.png)", "svg": "SVG (*.svg)", "csv": "CSV (*.csv)"}


class PlotMenus(QObject):
    """One for a window. `provenance()` says what the figures are of, where a view has no such line of its own."""

    said = Signal(str)  # something was copied or written
    failed = Signal(str, str)

    def __init__(self, window: QWidget, provenance: Callable[[], str]) -> None:
        super().__init__(window)
        self._window = window
        self._provenance = provenance
        self._titles: dict[pg.GraphicsView, str] = {}
        self._own: dict[pg.GraphicsView, Callable[[], str]] = {}  # of views that show something else
        self._tasks = TaskQueue(self, self.failed)
        self.menu: QMenu | None = None  # the one that was opened last
        self.more: Sequence[QAction] = ()  # of the window: what they do is of the view that was clicked

    def adopt(self, root: QWidget, title: str, provenance: Callable[[], str] | None = None) -> None:
        """Give every plot below `root` its menu; those that have one already keep it."""
        for view in root.findChildren(pg.GraphicsView):
            if view not in self._titles:
                self._titles[view] = title
                if provenance is not None:
                    self._own[view] = provenance
                view.destroyed.connect(lambda *_, view=view: self._forget(view))
                view.scene().sigMouseClicked.connect(lambda event, view=view: self._clicked(view, event))
                view.installEventFilter(self)
                view.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # so that the menu key finds it
                if not view.accessibleName():
                    view.setAccessibleName(f"Plot of {title}")
            for plot in plots_of(view):
                if plot.menuEnabled():
                    plot.setMenuEnabled(False)  # pyqtgraph's own: transforms, axes by number

    def _forget(self, view: pg.GraphicsView) -> None:
        self._titles.pop(view, None)
        self._own.pop(view, None)

    def title_of(self, view: pg.GraphicsView) -> str | None:
        """The title of a plot that has its menu; None of another."""
        return self._titles.get(view)

    def menu_of(self, view: pg.GraphicsView) -> QMenu:
        """The menu of a plot."""
        menu = QMenu(self._window)
        menu.addAction("&Copy picture", lambda: self.copy_picture(view))
        menu.addAction("Copy &figures", lambda: self.copy_figures(view))
        menu.addSeparator()
        menu.addAction("Save as &PNG…", lambda: self._ask(view, "png"))
        menu.addAction("Save as &SVG…", lambda: self._ask(view, "svg"))
        menu.addAction("Save figures as CS&V…", lambda: self._ask(view, "csv"))
        if self.more and self._window.isAncestorOf(view):
            menu.addSeparator()
            menu.addActions(list(self.more))
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        return menu

    # --- what the menu does -------------------------------------------------------------------------------------------

    def copy_picture(self, view: pg.GraphicsView) -> None:
        """Put the plot on the clipboard."""
        QGuiApplication.clipboard().setImage(image_of(view, self._caption(view)))
        self.said.emit("Picture copied")

    def copy_figures(self, view: pg.GraphicsView) -> None:
        """Put what is shown on the clipboard as CSV."""
        curves = curves_of(view)
        QGuiApplication.clipboard().setText(as_csv(curves, [self._caption(view)]))
        self.said.emit(f"{counted(sum(len(curve.x) for curve in curves), 'point')} copied")

    def write(self, view: pg.GraphicsView, path: Path) -> None:
        """Write the plot in the format that its suffix names; reports by `said` or `failed`."""
        caption, kind = self._caption(view), path.suffix.lower().lstrip(".")
        if kind == "csv":
            curves = curves_of(view)
            self._tasks.run(lambda: _write(path, as_csv(curves, [caption]).encode()), self._written)
        elif kind in ("png", "svg"):
            data = png_of(view, caption) if kind == "png" else svg_of(view, caption)
            self._tasks.run(lambda: _write(path, data), self._written)
        else:
            self.failed.emit(f"{path}: the format is unknown", "a name that ends in .png, .svg or .csv")

    def _written(self, path: Path) -> None:
        self.said.emit(f"Written: {path}")

    def _ask(self, view: pg.GraphicsView, kind: str) -> None:
        name = f"{self._titles[view].lower().replace(' ', '-')}.{kind}"
        save_file(self._window, "Save", name, _KINDS[kind], lambda path: self.write(view, path), suffix=kind)

    def _caption(self, view: pg.GraphicsView) -> str:
        provenance = self._own.get(view, self._provenance)()
        return f"{self._titles[view]} · {provenance}" if provenance else self._titles[view]

    # --- how it is asked for ------------------------------------------------------------------------------------------

    def _clicked(self, view: pg.GraphicsView, event: object) -> None:
        if event.button() == Qt.MouseButton.RightButton:  # type: ignore[attr-defined]
            self._show(view, event.screenPos().toPoint())  # type: ignore[attr-defined]

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """The menu key; a right press may be the begin of a drag, and is waited for."""
        keyed = isinstance(event, QContextMenuEvent) and event.reason() == QContextMenuEvent.Reason.Keyboard
        if keyed and isinstance(watched, pg.GraphicsView):
            self._show(watched, watched.mapToGlobal(QPoint(watched.width() // 2, watched.height() // 2)))
        return keyed

    def _show(self, view: pg.GraphicsView, position: QPoint) -> None:
        if self.menu is not None and shiboken6.isValid(self.menu):
            self.menu.close()
        self.menu = self.menu_of(view)
        self.menu.popup(position)


def _write(path: Path, data: bytes) -> Path:
    part = path.with_name(path.name + ".part")
    try:
        part.write_bytes(data)
        os.replace(part, path)
    except OSError as error:
        raise WattridgeError(error.strerror or str(error), str(path), "choose another folder") from error
    finally:
        part.unlink(missing_ok=True)
    return path
