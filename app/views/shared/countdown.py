"""`Countdown`: what waits to be confirmed on one board, for how long, and the answer. The engine counts."""

from __future__ import annotations

import time
from typing import Final

from PySide6.QtCore import QObject, Signal, Slot

from ...engine.results.settings import BoardSettings
from ...engine.session import events
from ...sensors.gpu import Gpu
from .turns import timer

CONFIRM_S: Final = 10.0
KEEP, BACK = "&Keep", "Put &back now"  # on the buttons of an answer
KEEP_TIP = "These settings stay, also when this window is closed, until they are put back"
BACK_TIP = "As it was before these settings"


def apply_command(gpu: Gpu, settings: BoardSettings) -> events.Apply:
    """The command that makes settings by hand, which return unless they are confirmed in time."""
    return events.Apply(gpu.info.uuid, settings, confirm_s=CONFIRM_S)


class Countdown(QObject):
    """`WatchedBoards` hands it what the engine reports of the board, and the engine what it answers."""

    changed = Signal()
    answered = Signal(object)  # events.Confirm

    def __init__(self, board: str) -> None:
        """`board`: its UUID."""
        super().__init__()
        self._board = board
        self._said = ""
        self._until = 0.0
        self.waits = False
        self.can_answer = False  # it waits, and was not answered yet
        self._timer = timer(self, self.changed, 200)

    @property
    def text(self) -> str:
        """What waits, and for how long."""
        return f"{self._said[:1].upper()}{self._said[1:]}. {self.left}"

    @property
    def left(self) -> str:
        """For how long it waits, as a sentence."""
        return f"It returns in {max(0.0, self._until - time.monotonic()):.0f} s unless you keep it."

    @Slot()
    def keep(self) -> None:
        """What waits stays."""
        self._answer(events.Confirm(self._board))

    @Slot()
    def put_back(self) -> None:
        """What waits is put back at once."""
        self._answer(events.Confirm(self._board, keep=False))

    def applied(self, event: events.SettingApplied) -> None:
        """The engine has set this board, or put it back."""
        if event.confirm_s is None:
            self.end()
            return
        self._until = time.monotonic() + event.confirm_s
        self._said = event.message if event.obeyed else f"Not obeyed: {event.message.removeprefix('not obeyed: ')}"
        self._timer.start()
        self.waits = self.can_answer = True
        self.changed.emit()

    def fault(self) -> None:
        """Where it follows an answer, the answer failed: nothing waits any more."""
        if self.waits and not self.can_answer:
            self.end()

    def end(self) -> None:
        """Nothing waits any more."""
        self._timer.stop()
        self.waits = self.can_answer = False
        self.changed.emit()

    def _answer(self, command: events.Confirm) -> None:
        if self.can_answer:
            self.can_answer = False
            self.changed.emit()
            self.answered.emit(command)
