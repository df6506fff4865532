"""`ProgressBar`: one that is drawn in its turn."""

from __future__ import annotations

from PySide6.QtWidgets import QProgressBar


class ProgressBar(QProgressBar):
    """Qt's own is drawn in the middle of `setValue`, and with it all that waits to be drawn in its window."""

    def setValue(self, value: int) -> None:
        """How far it is; drawn when the event loop comes to it."""
        self.setUpdatesEnabled(False)
        super().setValue(value)
        self.setUpdatesEnabled(True)
