"""`ConfirmBar`: the countdown across the window, wherever settings were applied from."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QSizePolicy, QWidget

from ..plots import theme
from ..plots.label import PlainLabel
from ..threads.bridge import EngineBridge
from .countdown import Countdown


class ConfirmBar(QFrame):
    """Shown while something waits to be confirmed, unless the same countdown is in sight elsewhere."""

    def __init__(
        self, bridge: EngineBridge, elsewhere: Callable[[], bool] = lambda: False, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._elsewhere = elsewhere
        self._countdown = Countdown(bridge, self)
        self.keep, self.back = self._countdown.keep, self._countdown.back
        self.setObjectName("confirm")
        self.text = PlainLabel(wrap=True)
        self.text.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(10, 4, 6, 4)
        layout.addWidget(self.text, 1)
        layout.addWidget(self.keep)
        layout.addWidget(self.back)
        self._countdown.changed.connect(self._show)
        theme.notifier().changed.connect(self._recolour)
        self._recolour()
        self.hide()

    @Slot()
    def _show(self) -> None:
        if self._countdown.waits:
            self.text.setText(self._countdown.text)
        self.setVisible(self._countdown.waits and not self._elsewhere())

    @Slot()
    def _recolour(self) -> None:
        c = theme.colours()
        self.setStyleSheet(
            f"#confirm {{ background: {c.raised}; border-bottom: 2px solid {c.accent}; }}"
            f"#confirm QLabel {{ color: {c.text}; background: transparent; }}"
        )
