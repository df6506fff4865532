"""`HeldLabel`: how often the sensors of the shown board are read, and how much its trace holds."""

from __future__ import annotations

from PySide6.QtCore import QTimer, Slot
from PySide6.QtWidgets import QWidget

from ...numbers import duration
from ..plots.label import PlainLabel
from ..watched_boards import WatchedBoards

_TICK_MS = 1000


class HeldLabel(PlainLabel):
    """At the right of the line below the window."""

    def __init__(self, boards: WatchedBoards, parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        self._boards = boards
        boards.board_changed.connect(self._show)
        self._timer = QTimer(self, interval=_TICK_MS)
        self._timer.timeout.connect(self._show)
        self._timer.start()
        self._show()

    @Slot()
    def _show(self, *_: object) -> None:
        board = self._boards.current
        held = duration(max(0, board.trace.last_ns - board.trace.first_ns) / 1e9)
        speed = board.gpu.clock.speed
        pace = "" if speed == 1.0 else f"{speed:g} times as fast as real time · "
        self.setText(f"{pace}{1 / board.sampler.interval_s:.0f} readings/s · {held} kept, 8 h at most ")
