"""`Notifications`: a message of the desktop for what happens while the user looks elsewhere."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Qt, Slot
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QSystemTrayIcon, QWidget

from ...engine.session.events import MeasurementsAdded, SessionChanged
from ...engine.session_state import SessionState
from ...numbers import counted, duration
from ..threads.bridge import EngineBridge

_SHOWN_MS = 10_000


class Notifications(QObject):
    """The icon in the tray appears with the first message, and stays while the window is open: a click opens it."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._tray: QSystemTrayIcon | None = None
        self._otherwise: Callable[[str], None] = lambda _: None
        self._in_passing: Callable[[str], None] = lambda _: None
        self._measuring = -1  # the session that was seen to measure: one that is opened has ended long ago

    def follow(self, bridge: EngineBridge, otherwise: Callable[[str], None], in_passing: Callable[[str], None]) -> None:
        """Announce the end of each session; `otherwise` shows the line where there is no tray.

        Who looks at the window gets it `in_passing`.
        """
        self._otherwise, self._in_passing = otherwise, in_passing
        bridge.measurements_added.connect(self._measured)
        bridge.session_changed.connect(self._session_changed)

    def show_message(self, text: str) -> bool:
        """Show one line unless the window is the active one; False where it was not shown."""
        if self._window.isActiveWindow() or not QSystemTrayIcon.isSystemTrayAvailable():
            return False
        if self._tray is None:
            self._tray = QSystemTrayIcon(QIcon(self._window.windowIcon()), self)
            self._tray.setToolTip("Wattridge")
            self._tray.activated.connect(self.bring_window)
            self._tray.messageClicked.connect(self.bring_window)
            self._tray.show()
        self._tray.showMessage("Wattridge", text, self._window.windowIcon(), _SHOWN_MS)
        return True

    @Slot(object)
    def _measured(self, event: MeasurementsAdded) -> None:
        self._measuring = event.session

    @Slot(object)
    def _session_changed(self, event: SessionChanged) -> None:
        progress = event.progress
        if progress.session != self._measuring or progress.state in (SessionState.RUNNING, SessionState.PAUSED):
            return
        self._measuring = -1
        length = duration(progress.elapsed_s)
        timed = f" and {progress.timed} timed" if progress.timed else ""
        measured = f"{counted(progress.evaluated, 'configuration')}{timed}"
        line = f"Session {progress.session} has ended: {measured} in {length}"
        if self._window.isActiveWindow():
            self._in_passing(line)
        elif not self.show_message(line):
            self._otherwise(line)

    @Slot()
    def bring_window(self) -> None:
        """Show the main window above the others."""
        self._window.setWindowState(self._window.windowState() & ~Qt.WindowState.WindowMinimized)
        self._window.show()
        self._window.raise_()
        self._window.activateWindow()
