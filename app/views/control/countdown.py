"""`Countdown`: what waits to be confirmed, for how long, and the answer. The engine counts; this only shows."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from PySide6.QtCore import QObject, QTimer, Signal, Slot
from PySide6.QtWidgets import QPushButton

from ...engine.session import events
from ...sensors.gpu import Gpu
from ..threads.bridge import EngineBridge

CONFIRM_S: Final = 10.0


def apply_command(gpu: Gpu, settings: Mapping[str, Any]) -> events.Apply:
    """The command that makes settings by hand, which return unless they are confirmed in time."""
    return events.Apply(gpu.info.uuid, **settings, confirm_s=CONFIRM_S)


class Countdown(QObject):
    """Made with the two buttons of an answer, `keep` and `back`, which can be pressed while something waits."""

    changed = Signal()

    def __init__(self, bridge: EngineBridge, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._bridge = bridge
        self._said = ""
        self._until = 0.0
        self.board = ""  # UUID of the one that waits, or waited last
        self.waits = False
        self.keep, self.back = QPushButton("&Keep"), QPushButton("Put &back now")
        self.keep.setToolTip("These settings stay, also when this window is closed, until they are put back")
        self.back.setToolTip("As it was before these settings")
        self.keep.clicked.connect(self._keep)
        self.back.clicked.connect(self._put_back)
        self._timer = QTimer(self, interval=200)
        self._timer.timeout.connect(self.changed)
        bridge.setting_applied.connect(self._applied)
        bridge.fault.connect(self._fault)
        self._enable(False)

    @property
    def text(self) -> str:
        """What waits, and for how long."""
        return f"{self._said[:1].upper()}{self._said[1:]}. {self.left}"

    @property
    def left(self) -> str:
        """For how long it waits, as a sentence."""
        return f"It returns in {max(0.0, self._until - time.monotonic()):.0f} s unless you keep it."

    @Slot(object)
    def _applied(self, event: events.SettingApplied) -> None:
        if event.confirm_s is None and event.board != self.board:
            return  # another board's
        self.board = event.board
        if event.confirm_s is not None:
            self._until = time.monotonic() + event.confirm_s
            self._said = event.message if event.obeyed else f"Not obeyed: {event.message.removeprefix('not obeyed: ')}"
            self._timer.start()
            self.waits = True
            self._enable(True)
            self.changed.emit()
        else:
            self._end()

    @Slot(object)
    def _fault(self, _fault: events.EngineFault) -> None:
        """Where it follows an answer, the answer failed: nothing waits any more."""
        if self.waits and not self.keep.isEnabled():
            self._end()

    @Slot()
    def _keep(self) -> None:
        self._answer(events.Confirm(self.board))

    @Slot()
    def _put_back(self) -> None:
        self._answer(events.Confirm(self.board, keep=False))

    def _answer(self, command: events.Command) -> None:
        self._enable(False)
        self._bridge.submit(command)

    def _end(self) -> None:
        self._timer.stop()
        self.waits = False
        self._enable(False)
        self.changed.emit()

    def _enable(self, enabled: bool) -> None:
        for button in (self.keep, self.back):
            button.setEnabled(enabled)
