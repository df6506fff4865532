"""`TraceMenu`: the menu of the traces: which are shown, copy and export them, and what else can be done with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, QPoint, Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtWidgets import QMenu, QWidget

from ..file_dialogs import save_file
from .lane_view import LaneView
from .lanes_menu import LanesMenu


class TraceMenu(QObject):
    """Opens at a right click on the traces, or at the menu key. Last in it are the actions of `panel`."""

    said = Signal(str)  # something was copied

    def __init__(
        self,
        panel: QWidget,
        view: LaneView,
        lanes: LanesMenu,
        picture: Callable[[], QImage],
        write_picture: Callable[[Path], None],
        write_readings: Callable[[Path], None],
    ) -> None:
        super().__init__(panel)
        self._panel, self._lanes = panel, lanes
        self._picture, self._write_picture, self._write_readings = picture, write_picture, write_readings
        self.opened: QMenu | None = None  # while it is open
        view.menu_asked.connect(self._open)

    @Slot()
    def copy_picture(self) -> None:
        """Put the traces on the clipboard as they are shown."""
        QGuiApplication.clipboard().setImage(self._picture())
        self.said.emit("Picture copied")

    @Slot()
    def ask_picture(self) -> None:
        """Choose where a picture of the traces goes."""
        save_file(self._panel, "Picture", "traces.png", "PNG (*.png);;SVG (*.svg)", self._write_picture)

    @Slot()
    def ask_readings(self) -> None:
        """Choose where the readings of the marked span go, else of what is shown."""
        save_file(self._panel, "Readings", "readings.csv", "CSV (*.csv);;JSON (*.json)", self._write_readings)

    def fill(self, menu: QMenu) -> None:
        """Append what can be done with the traces."""
        menu.addAction("&Copy picture", self.copy_picture)
        menu.addAction("Export &picture…", self.ask_picture)
        menu.addAction("Export &readings…", self.ask_readings)
        menu.addSeparator()
        menu.addActions(self._panel.actions())  # hold, zoom, the marked span: the window's own

    @Slot(QPoint, str)
    def _open(self, at: QPoint, lane: str) -> None:
        if self.opened is not None:
            self.opened.close()
        menu = self.opened = QMenu(self._panel)
        menu.setAccessibleName("Traces")
        self._lanes.fill(menu, lane)
        menu.addSeparator()
        self.fill(menu)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.destroyed.connect(self._closed)
        menu.popup(at)

    @Slot()
    def _closed(self) -> None:
        self.opened = None
