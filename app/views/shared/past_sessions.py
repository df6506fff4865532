"""`PastSessions`: the lines of a menu that name stored sessions, read off Qt's thread whenever it is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu

from .tasks import LatestTask

PAST_SHOWN = 15  # sessions that a menu offers


@dataclass(frozen=True, slots=True)
class PastSession:
    """A line of the menu; `session` is the data of its action."""

    session: int
    words: str
    enabled: bool = True


class PastSessions(QObject):
    """A large store takes long to list: until it is, a line of the menu says that it is being read."""

    listed = Signal()  # the lines are there
    failed = Signal(str, str)  # what went wrong, and the remedy

    def __init__(self, menu: QMenu, read: Callable[[], Sequence[PastSession]]) -> None:
        """`read` is called on a thread of its own."""
        super().__init__(menu)
        self._menu, self._read = menu, read
        self._place: QAction | None = None  # the line before which they are inserted
        self._task = LatestTask(self, self._show, self._not_read)

    def add(self) -> None:
        """List them from here on; called while the menu, which is about to be shown, is filled."""
        self._place = QAction("Reading …", self._menu)
        self._place.setEnabled(False)
        self._menu.addAction(self._place)
        self._task.run(lambda _stop: self._read())

    @Slot(object)
    def _show(self, past: Sequence[PastSession]) -> None:
        assert self._place is not None
        for session in past:
            line = QAction(session.words, self._menu)
            line.setData(session.session)
            line.setEnabled(session.enabled)
            self._menu.insertAction(self._place, line)
        self._place.setText("none yet")
        self._place.setVisible(not past)
        self.listed.emit()

    @Slot(str, str)
    def _not_read(self, what: str, remedy: str) -> None:
        assert self._place is not None
        self._place.setText("cannot be read")
        self.failed.emit(what, remedy)
