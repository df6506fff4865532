"""`BoardNews`: what the boards report by themselves: lost sensors, alarms, recordings; whichever of them is shown."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QAction

from ...sensors.sampler import SensorEvent
from ..threads.tasks import LatestTask
from ..watched_board import WatchedBoard
from .banner import Banner
from .loading import known_of
from .notifications import Notifications
from .services import Services


class BoardNews(QObject):
    """What is worth a line goes to the banner or, as `said`, below the window."""

    said = Signal(str)
    written = Signal(str)  # the file of a recording
    alarmed = Signal()
    known = Signal(object)  # Known, of a board that is shown from now on

    def __init__(
        self, services: Services, banner: Banner, notifications: Notifications, actions: Mapping[str, QAction]
    ) -> None:
        super().__init__()
        boards = services.boards
        self._services, self._boards, self._banner = services, boards, banner
        self._notifications, self._actions = notifications, actions
        self._failing: dict[tuple[WatchedBoard, str], str] = {}  # what of a board is not reported -> the message
        self._asking = LatestTask(self)
        self._asking.done.connect(self.known)
        self._asking.failed.connect(services.bridge.report)
        boards.sensor_event.connect(self._sensor_event)
        boards.added.connect(self._listen_to)
        boards.removed.connect(self._board_removed)
        boards.board_changed.connect(self._board_changed)
        boards.failed.connect(banner.show_message)
        services.meters.failed.connect(banner.show_message)
        for board in boards.all:
            self._listen_to(board)

    def shutdown(self) -> None:
        """Wait for what is being asked."""
        self._asking.shutdown()

    @Slot(object)
    def _listen_to(self, board: WatchedBoard) -> None:
        board.recorder.saved.connect(self.written)
        board.recorder.failed.connect(self._banner.show_message)
        board.recorder.changed.connect(self._recorder_changed)
        board.alarms.raised.connect(self._alarm_raised)
        board.alarms.over.connect(self._banner.inform)

    @Slot(object)
    def _board_removed(self, board: WatchedBoard) -> None:
        for of_board, what in list(self._failing):
            if of_board is board:
                self._banner.withdraw(self._failing.pop((board, what)))

    @Slot(object, object)
    def _sensor_event(self, board: WatchedBoard, event: SensorEvent) -> None:
        shown = board is self._boards.current
        message = event.message if shown else f"{board.gpu.info.label}: {event.message}"
        self._banner.withdraw(self._failing.pop((board, event.what), ""))
        if event.kind in ("lost", "failed"):
            self._failing[board, event.what] = message
            self._banner.show_message(message)
        else:
            self.said.emit(message)

    @Slot(str)
    def _alarm_raised(self, line: str) -> None:
        self._banner.show_message(line)
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
