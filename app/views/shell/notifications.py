"""`Notifications`: a message of the desktop for what happens while the user looks elsewhere.

`BoardNews`: notices of what the boards report by themselves: lost sensors, alarms, recordings; shown or not.
"""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtGui import QAction, QIcon
from PySide6.QtWidgets import QSystemTrayIcon, QWidget

from ...base.formatting import counted, duration
from ...engine.results.state import SessionState
from ...engine.session import events
from ...sensors.trace.sampler import SensorEvent
from ..shared.bridge import EngineBridge
from ..shared.tasks import LatestTask
from ..shared.watched_boards import WatchedBoard
from .loading import known_of
from .notices import Notices
from .services import Services

_SHOWN_MS = 10_000


class Notifications(QObject):
    """The icon in the tray appears with the first message, and stays while the window is open: a click opens it."""

    def __init__(self, window: QWidget, notices: Notices) -> None:
        super().__init__(window)
        self._window, self._notices = window, notices
        self._tray: QSystemTrayIcon | None = None
        self._measuring = -1  # the session that was seen to measure: one that is opened has ended long ago

    def follow(self, bridge: EngineBridge) -> None:
        """Announce the end of each session."""
        bridge.subscribe(events.MeasurementsAdded, self._measured)
        bridge.subscribe(events.SessionChanged, self._session_changed)

    @Slot(str)
    def show_message(self, text: str) -> None:
        """Show one line unless the window is the active one."""
        if self._window.isActiveWindow() or not QSystemTrayIcon.isSystemTrayAvailable():
            return
        if self._tray is None:
            self._tray = QSystemTrayIcon(QIcon(self._window.windowIcon()), self)
            self._tray.setToolTip("Wattridge")
            self._tray.activated.connect(self.bring_window)
            self._tray.messageClicked.connect(self.bring_window)
            self._tray.show()
        self._tray.showMessage("Wattridge", text, self._window.windowIcon(), _SHOWN_MS)

    @Slot(object)
    def _measured(self, event: events.MeasurementsAdded) -> None:
        self._measuring = event.session

    @Slot(object)
    def _session_changed(self, event: events.SessionChanged) -> None:
        progress = event.progress
        if progress.session != self._measuring or progress.state in (SessionState.RUNNING, SessionState.PAUSED):
            return
        self._measuring = -1
        length = duration(progress.elapsed_s)
        timed = f" and {progress.timed} timed" if progress.timed else ""
        measured = f"{counted(progress.evaluated, 'configuration')}{timed}"
        line = f"Session {progress.session} has ended: {measured} in {length}"
        self._notices.inform(line)
        self.show_message(line)

    @Slot()
    def bring_window(self) -> None:
        """Show the main window above the others."""
        self._window.setWindowState(self._window.windowState() & ~Qt.WindowState.WindowMinimized)
        self._window.show()
        self._window.raise_()
        self._window.activateWindow()


class BoardNews(QObject):
    """Each ends with its cause."""

    alarmed = Signal()
    known = Signal(object)  # Known, of a board that is shown from now on

    def __init__(
        self, services: Services, notices: Notices, notifications: Notifications, actions: Mapping[str, QAction]
    ) -> None:
        super().__init__()
        boards = services.boards
        self._services, self._boards, self._notices = services, boards, notices
        self._notifications, self._actions = notifications, actions
        self._failing: dict[tuple[WatchedBoard, str], str] = {}  # what of a board is not reported -> the message
        self._asking = LatestTask(self, self.known, services.bridge.report)
        boards.sensor_event.connect(self._sensor_event)
        boards.added.connect(self._listen_to)
        boards.removed.connect(self._board_removed)
        boards.board_changed.connect(self._board_changed)
        boards.failed.connect(notices.fail)
        services.meters.failed.connect(notices.fail)
        for board in boards.all:
            self._listen_to(board)

    @Slot(object)
    def _listen_to(self, board: WatchedBoard) -> None:
        board.recorder.saved.connect(self._notices.written)
        board.recorder.failed.connect(self._notices.fail)
        board.recorder.changed.connect(self._recorder_changed)
        board.alarms.raised.connect(self._alarm_raised)
        board.alarms.over.connect(self._notices.inform)  # who was away sees it all the same

    @Slot(object)
    def _board_removed(self, board: WatchedBoard) -> None:
        for of_board, what in list(self._failing):
            if of_board is board:
                self._notices.end(self._failing.pop((board, what)))

    @Slot(object, object)
    def _sensor_event(self, board: WatchedBoard, event: SensorEvent) -> None:
        shown = board is self._boards.current
        message = event.message if shown else f"{board.gpu.info.label}: {event.message}"
        self._notices.end(self._failing.pop((board, event.what), ""))
        if event.kind in ("lost", "failed"):
            self._failing[board, event.what] = message
            self._notices.warn(message)
        else:
            self._notices.inform(message)

    @Slot(str)
    def _alarm_raised(self, line: str) -> None:
        self._notices.warn(line)
        self._notifications.show_message(line)
        self.alarmed.emit()

    @Slot(object)
    def _board_changed(self, board: WatchedBoard) -> None:
        self._recorder_changed()
        services = self._services
        self._asking.run(lambda _stop: known_of(services.store, board))

    @Slot()
    def _recorder_changed(self) -> None:
        recorder = self._boards.current.recorder
        self._actions["record"].setEnabled(not recorder.busy)
        self._actions["record"].setChecked(recorder.recording)
        self._actions["record_to"].setEnabled(not recorder.busy and not recorder.recording)
