"""`ProgressBar`: one that is drawn in its turn, with its words in one line."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QProgressBar

_MARGIN_PX = 12


class ProgressBar(QProgressBar):
    """Qt's own is drawn in the middle of `setValue`, and with it all that waits to be drawn in its window."""

    def setValue(self, value: int) -> None:
        """How far it is; drawn when the event loop comes to it."""
        self.setUpdatesEnabled(False)
        super().setValue(value)
        self.setUpdatesEnabled(True)

    def text(self) -> str:
        """What is written on it: cut where it does not fit, where Qt would begin a second line."""
        room = self.width() - _MARGIN_PX
        return self.fontMetrics().elidedText(super().text(), Qt.TextElideMode.ElideRight, room)
