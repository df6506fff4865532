"""`SpeedChoice`: how fast a board that is not real runs; gone while a real one is shown."""

from __future__ import annotations

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QComboBox, QWidget

from ..plots.label import PlainLabel
from ..watched_boards import SPEEDS, WatchedBoards, speed_words
from ..widgets import hbox

_TIP = "How fast simulated boards and recordings run. Times and joules are those of their own clocks at any speed."


class SpeedChoice(QWidget):
    """Also changes the speed while a session runs."""

    def __init__(self, boards: WatchedBoards, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._boards = boards
        self.choice = QComboBox()
        self.choice.setToolTip(_TIP)
        self.label = PlainLabel("Spee&d of the board")
        self.label.setBuddy(self.choice)
        hbox(self.label, self.choice, 1, of=self, margins=0)
        self.choice.activated.connect(self._chosen)
        for signal in (boards.speed_changed, boards.board_changed):
            signal.connect(self._show)
        self._show()

    @Slot(int)
    def _chosen(self, at: int) -> None:
        self._boards.set_speed(self.choice.itemData(at))

    @Slot()
    def _show(self, *_: object) -> None:
        """The speeds on offer, and the one of the command line where it is none of them."""
        board = self._boards.current
        self.setVisible(not board.real)
        self.label.setText(f"Spee&d of the {board.gpu.info.source} board" if not board.real else "")
        self.choice.clear()
        for speed, words in sorted({self._boards.speed: speed_words(self._boards.speed), **SPEEDS}.items()):
            self.choice.addItem(words, speed)
        self.choice.setCurrentIndex(self.choice.findData(self._boards.speed))
