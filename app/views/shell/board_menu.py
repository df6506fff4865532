"""`BoardMenu`: every board that can be shown, the one that is with a tick."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, Slot
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QMenu

from ..watched_boards import WatchedBoards


class BoardMenu(QObject):
    """Fills a menu, from which the board that the window shows is chosen."""

    def __init__(self, menu: QMenu, boards: WatchedBoards, offered: Sequence[tuple[str, str]]) -> None:
        """`offered`: selector and label of each."""
        super().__init__(menu)
        self._boards = boards
        self._group = QActionGroup(self)
        for selector, label in offered:
            action = menu.addAction(label)
            action.setData(selector)
            action.setCheckable(True)
            self._group.addAction(action)
        self._group.triggered.connect(self._chosen)
        boards.board_changed.connect(self._tick)
        boards.failed.connect(self._tick)
        self._tick()

    @Slot(QAction)
    def _chosen(self, action: QAction) -> None:
        self._boards.show(str(action.data()))

    @Slot()
    def _tick(self, *_: object) -> None:
        shown = self._boards.current
        for action in self._group.actions():
            action.setChecked(action.data() in (shown.uuid, shown.selector))
