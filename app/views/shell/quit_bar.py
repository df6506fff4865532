"""`QuitBar`: asks, in the window, whether what runs is to be ended with it."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QFrame, QSizePolicy, QWidget

from ..plots import theme
from ..plots.label import PlainLabel
from ..threads.activity import Activity
from ..widgets import button, hbox


class QuitBar(QFrame):
    """Shown when the window is closed while something runs. `confirmed` follows once that has ended, if it is to."""

    confirmed = Signal()

    def __init__(self, activity: Activity, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._activity = activity
        self._quitting = False
        self.setObjectName("quit")
        self.text = PlainLabel(wrap=True)
        self.text.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.keep = button("&Keep running", "The window stays open", self._keep)
        self.end = button("&Stop and quit", "What was measured stays, and a session can be resumed later", self._end)
        row = hbox((self.text, 1), self.keep, self.end, of=self)
        row.setContentsMargins(10, 4, 6, 4)
        activity.changed.connect(self._follow)
        theme.notifier().changed.connect(self._recolour)
        self._recolour()
        self.hide()

    def ask(self) -> bool:
        """Ask, where something runs; whether there is an answer to wait for.

        Asked again while what runs is being stopped, the window need not wait any longer.
        """
        if not self._activity.busy or self._quitting:
            return False
        self.text.setText(f"{self._activity.title} is still running. Stop it and quit?")
        for each in (self.keep, self.end):
            each.setEnabled(True)
        self.show()
        self.keep.setFocus()
        return True

    @Slot()
    def _keep(self) -> None:
        self.hide()

    @Slot()
    def _end(self) -> None:
        self._quitting = True
        self.text.setText(f"{self._activity.title} is being stopped. Close the window again to quit without waiting.")
        for each in (self.keep, self.end):
            each.setEnabled(False)
        self._activity.stop()
        self._follow()

    @Slot()
    def _follow(self) -> None:
        if not self._activity.busy and not self.isHidden():
            self.hide()
            if self._quitting:
                self.confirmed.emit()

    @Slot()
    def _recolour(self) -> None:
        c = theme.colours()
        self.setStyleSheet(
            f"#quit {{ background: {c.warning}; border-bottom: 1px solid {c.border}; }}"
            f"#quit QLabel {{ color: {c.warning_text}; background: transparent; }}"
        )
