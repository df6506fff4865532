"""`FitSources`: the button that adds fits to the picture, from files and past sessions."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QToolButton, QWidget

from ...engine.tuning_methods.clock_fits import fits_of_file, fits_of_store, newest_fit
from ..context import Context
from ..file_dialogs import open_file
from ..past_sessions import PAST_SHOWN, PastSession, PastSessions
from ..threads.tasks import LatestTask

_FILES = "Sweeps (*.csv *.csv.gz *.json *.json.gz);;All files (*)"


class FitSources(QToolButton):
    """`found` has the fits of what was chosen; `failed` has the fault and the remedy, both empty at a new try."""

    found = Signal(object)  # list[ClockFit]
    failed = Signal(str, str)

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._reader = LatestTask(self)
        self.setText("&Add")
        self.setToolTip("Overlay another board or kernel")
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        menu = QMenu(self)
        self.setMenu(menu)
        self.past = PastSessions(menu, self._past)
        self.past.failed.connect(self.failed)
        menu.aboutToShow.connect(self._fill)
        menu.triggered.connect(self._chosen)
        self._reader.done.connect(self.found)
        self._reader.failed.connect(self.failed)

    def shutdown(self) -> None:
        """End what runs in the background."""
        self._reader.shutdown()
        self.past.shutdown()

    def open_on_file(self) -> None:
        """Add the newest fit of the window's board that was made here."""
        store, gpu = self._context.store, self._context.gpu.info.name
        self._reader.run(lambda _stop: newest_fit(store, gpu))

    def open_menu(self) -> None:
        """Show what can be added, wherever that was asked for."""
        self.menu().popup(self.mapToGlobal(self.rect().bottomLeft()))

    def open(self, path: Path) -> None:
        """Add the fits of clocks and power limits in a CSV or a recording."""
        self.failed.emit("", "")
        self._reader.run(lambda _stop: fits_of_file(path))

    @Slot()
    def choose_file(self) -> None:
        """Let the user choose a file."""
        open_file(self, "Open a sweep of clocks or power limits", _FILES, self.open)

    @Slot()
    def _fill(self) -> None:
        menu = self.menu()
        menu.clear()
        menu.addAction("A &file …").setData("file")
        menu.addSection("Past sessions")
        self.past.add()

    def _past(self) -> list[PastSession]:
        return [
            PastSession(record.id, f"Session {record.id} · {record.shown_name} · {record.gpu}")
            for record in self._context.store.sessions(PAST_SHOWN)
        ]

    @Slot(QAction)
    def _chosen(self, action: QAction) -> None:
        if action.data() == "file":
            self.choose_file()
        elif action.data() is not None:
            self.failed.emit("", "")
            store, session = self._context.store, int(action.data())
            self._reader.run(lambda _stop: fits_of_store(store, session))
