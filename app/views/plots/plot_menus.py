"""`PlotMenus`: a right click, or the menu key, on any plot: copy it, save it as PNG, SVG, or its figures as CSV."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pyqtgraph as pg
import shiboken6
from PySide6.QtCore import QEvent, QObject, QPoint, Qt, Signal
from PySide6.QtGui import QAction, QContextMenuEvent, QGuiApplication
from PySide6.QtWidgets import QMenu, QWidget

from ...errors import WattridgeError
from ...numbers import counted
from ..file_dialogs import save_file
from ..threads.tasks import TaskQueue
from .plot_export import as_csv, curves_of, image_of, plots_of, png_of, svg_of

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
        self._tasks = TaskQueue(self)
        self._tasks.failed.connect(self.failed)
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

    def shutdown(self) -> None:
        """Wait for the files that are being written."""
        self._tasks.shutdown()

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

    def _show(self, view: pg.GraphicsView, at: QPoint) -> None:
        if self.menu is not None and shiboken6.isValid(self.menu):
            self.menu.close()
        self.menu = self.menu_of(view)
        self.menu.popup(at)


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
