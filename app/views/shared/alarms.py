"""`Alarms`: checks one board twice a second, and keeps what was raised."""

from __future__ import annotations

from collections import deque
from datetime import datetime
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from ...sensors.trace.alarms import Alarm, AlarmKind, AlarmRules
from .settings import Settings

if TYPE_CHECKING:
    from ...sensors.trace.live_board import LiveBoard

_TICK_MS = 500
_KEPT = 500


class Alarms(QObject):
    """The rules are those of the settings, for every board alike."""

    raised = Signal(str)  # one line that names the board too
    over = Signal(str)  # the line of one that was raised

    def __init__(self, board: LiveBoard, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._board = board
        self._settings = Settings()
        self.raised_so_far: deque[tuple[datetime, Alarm]] = deque(maxlen=_KEPT)  # when, on the wall; oldest first
        self._lines: dict[AlarmKind, str] = {}  # of those that are not over
        self._timer = QTimer(self, interval=_TICK_MS)
        self._timer.timeout.connect(self.check)
        self._timer.start()

    @property
    def rules(self) -> AlarmRules:
        """What raises an alarm."""
        return self._settings.alarms

    @rules.setter
    def rules(self, rules: AlarmRules) -> None:
        self._settings.alarms = rules

    @Slot()
    def check(self) -> None:
        """Look at what was read since the last time."""
        for alarm in self._board.new_alarms(self.rules):
            self.raised_so_far.append((datetime.now().astimezone(), alarm))
            self._lines[alarm.kind] = f"Alarm: {alarm.text} · {self._board.gpu.info.label}"
            self.raised.emit(self._lines[alarm.kind])
        for kind in self._lines.keys() - self._board.active_alarms:
            self.over.emit(self._lines.pop(kind))

    def shutdown(self) -> None:
        """Check no more."""
        self._timer.stop()
