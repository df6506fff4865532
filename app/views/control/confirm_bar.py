"""Settings by hand: the command that makes them, and `ConfirmBar`, which counts down until they return."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from PySide6.QtCore import QTimer, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QSizePolicy, QWidget

from ...engine.session import events
from ...sensors.gpu import Gpu
from ..plots import theme
from ..plots.label import PlainLabel
from ..threads.bridge import EngineBridge

CONFIRM_S: Final = 10.0


def apply_command(gpu: Gpu, settings: Mapping[str, Any]) -> events.Apply:
    """The command that makes settings by hand; those of a real board return unless they are confirmed in time."""
    return events.Apply(gpu.info.uuid, **settings, confirm_s=CONFIRM_S if gpu.info.source == "nvml" else None)


class ConfirmBar(QFrame):
    """Shown while something waits to be confirmed. The engine counts; this only shows how much is left."""

    def __init__(self, bridge: EngineBridge, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._bridge = bridge
        self._said = ""
        self._board = ""  # UUID of the board that waits
        self._until = 0.0
        self.setObjectName("confirm")
        self.text = PlainLabel()
        self.text.setWordWrap(True)
        self.text.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.keep, self.back = QPushButton("&Keep"), QPushButton("Put &back now")
        self.keep.setToolTip("These settings stay, also when this window is closed, until they are put back")
        self.back.setToolTip("As it was before these settings")
        self.keep.clicked.connect(self._keep)
        self.back.clicked.connect(self._put_back)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(10, 4, 6, 4)
        layout.addWidget(self.text, 1)
        layout.addWidget(self.keep)
        layout.addWidget(self.back)
        self._timer = QTimer(self, interval=200)
        self._timer.timeout.connect(self._count)
        bridge.setting_applied.connect(self._applied)
        bridge.fault.connect(self._fault)
        theme.notifier().changed.connect(self._recolour)
        self._recolour()
        self.hide()

    @Slot(object)
    def _applied(self, event: events.SettingApplied) -> None:
        waits = event.confirm_s is not None
        if not waits and event.board != self._board:
            return  # another board's
        self._board = event.board
        if event.confirm_s is not None:
            self._until = time.monotonic() + event.confirm_s
            self._said = event.message if event.obeyed else f"Not obeyed: {event.message.removeprefix('not obeyed: ')}"
            self._count()
            self._timer.start()
        else:
            self._timer.stop()
        for button in (self.keep, self.back):
            button.setEnabled(waits)
        self.setVisible(waits)

    @Slot(object)
    def _fault(self, _fault: events.EngineFault) -> None:
        """Where it follows an answer, the answer failed: nothing waits any more."""
        if not self.keep.isEnabled():
            self._timer.stop()
            self.hide()

    @Slot()
    def _count(self) -> None:
        left_s = max(0.0, self._until - time.monotonic())
        self.text.setText(f"{self._said[:1].upper()}{self._said[1:]}. It returns in {left_s:.0f} s unless you keep it.")

    @Slot()
    def _keep(self) -> None:
        self._answer(events.Confirm(self._board))

    @Slot()
    def _put_back(self) -> None:
        self._answer(events.Confirm(self._board, keep=False))

    def _answer(self, command: events.Command) -> None:
        self.keep.setEnabled(False)
        self.back.setEnabled(False)
        self._bridge.submit(command)

    @Slot()
    def _recolour(self) -> None:
        c = theme.colours()
        self.setStyleSheet(
            f"#confirm {{ background: {c.raised}; border-bottom: 2px solid {c.accent}; }}"
            f"#confirm QLabel {{ color: {c.text}; background: transparent; }}"
        )
