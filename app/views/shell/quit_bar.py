"""`QuitBar`: asks, in the window, whether what runs is to be ended with it, and what waits to be forgotten."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QFrame, QSizePolicy, QWidget

from ..queue.queue_model import named
from ..shared import theme
from ..shared.bridge import EngineBridge
from ..shared.label import PlainLabel
from ..shared.widgets import button, hbox


class QuitBar(QFrame):
    """Shown when the window is closed while something runs or waits.

    `confirmed` follows once nothing runs, if it is to be closed. The queue is not kept: what waits in it is named.
    """

    confirmed = Signal()

    def __init__(self, bridge: EngineBridge, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._activity, self._queue = bridge.activity, bridge.queue
        self._quitting = False
        self.setObjectName("quit")
        self.text = PlainLabel(wrap=True)
        self.text.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.keep = button("&Keep running", "The window stays open", self._keep)
        self.end = button("&Stop and quit", "What was measured stays, and a session can be resumed later", self._end)
        row = hbox((self.text, 1), self.keep, self.end, of=self)
        row.setContentsMargins(10, 4, 6, 4)
        self._activity.changed.connect(self._follow)
        bridge.queue_changed.connect(self._follow)
        theme.style(
            self,
            "#quit {{ background: {c.warning}; border-bottom: 1px solid {c.border}; }}",
            "#quit QLabel {{ color: {c.warning_text}; background: transparent; }}",
        )
        self.hide()

    def ask(self) -> bool:
        """Ask, where something runs or waits; whether there is an answer to wait for.

        Asked again while what runs is being stopped, the window need not wait any longer.
        """
        if self._quitting or not (self._activity.busy or self._queue.waiting):
            return False
        self._say()
        for each in (self.keep, self.end):
            each.setEnabled(True)
        self.show()
        self.keep.setFocus()
        return True

    def _say(self) -> None:
        waiting = named(self._queue) if self._queue.waiting else ""
        if self._activity.busy:
            forgotten = f", and forget {waiting}" if waiting else ""
            self.text.setText(f"{self._activity.title} is still running. Stop it{forgotten} and quit?")
        else:
            self.text.setText(f"The queue is not kept. Forget {waiting} and quit?")
        self.keep.setText("&Keep running" if self._activity.busy else "&Keep open")
        self.end.setText("&Stop and quit" if self._activity.busy else "&Forget and quit")

    @Slot()
    def _keep(self) -> None:
        self.hide()

    @Slot()
    def _end(self) -> None:
        self._quitting = True
        self._queue.pause()  # nothing follows what is stopped
        self.text.setText(f"{self._activity.title} is being stopped. Close the window again to quit without waiting.")
        for each in (self.keep, self.end):
            each.setEnabled(False)
        self._activity.stop()
        self._follow()

    @Slot()
    def _follow(self) -> None:
        if self.isHidden():
            return
        if self._quitting:
            if not self._activity.busy:
                self.hide()
                self.confirmed.emit()
        elif self._activity.busy or self._queue.waiting:
            self._say()
        else:
            self.hide()
