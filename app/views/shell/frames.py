"""`Frames`: when windows are painted."""

from __future__ import annotations

from collections import deque

import shiboken6
from PySide6.QtCore import QCoreApplication, QEvent, QObject, Qt, QTimer, Slot
from PySide6.QtWidgets import QWidget

from ..shared.turns import OwnTurn

_PAUSE_MS = 4  # so that what changes in a few turns is painted once


class Frames(QObject):
    """Each window that it follows is painted in a turn of Qt's loop of its own, once everything has its place.

    Left to itself Qt paints all windows in one turn. Every plot, moreover, has what waits to be painted in its window
    painted at once, in the middle of a turn, before the layouts are done: a workspace that came to sight was painted
    three times over.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._waiting: deque[QWidget] = deque()
        self._paints = False
        self._next = QTimer(self, singleShot=True, interval=_PAUSE_MS, timerType=Qt.TimerType.PreciseTimer)
        self._turn = OwnTurn(self, self._paint)
        self._next.timeout.connect(self._turn.start)

    def follow(self, window: QWidget) -> None:
        """A window, or a dock that may become one."""
        window.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Hold back what paints a window until its turn comes."""
        if event.type() != QEvent.Type.UpdateRequest or self._paints or not isinstance(watched, QWidget):
            return False
        if watched not in self._waiting:
            self._waiting.append(watched)
        if not self._next.isActive():
            self._next.start()
        return True

    @Slot()
    def _paint(self) -> None:
        """The window that has waited longest."""
        if not self._waiting:
            return
        window = self._waiting.popleft()
        if self._waiting:
            self._next.start()
        if shiboken6.isValid(window):
            self._paints = True
            QCoreApplication.sendEvent(window, QEvent(QEvent.Type.UpdateRequest))
            self._paints = False
