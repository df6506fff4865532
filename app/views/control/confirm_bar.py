"""`ConfirmBar`: the countdowns across the window, wherever settings were applied from, whichever board is shown."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QFrame, QPushButton, QSizePolicy, QWidget

from ..shared import theme
from ..shared.countdown import BACK, BACK_TIP, KEEP, KEEP_TIP
from ..shared.label import PlainLabel
from ..shared.watched_boards import WatchedBoard, WatchedBoards
from ..shared.widgets import hbox, vbox


class ConfirmLine(QWidget):
    """What waits on one board, which it names, and the answer to it."""

    def __init__(self, board: WatchedBoard) -> None:
        super().__init__()
        self.board = board
        self.text = PlainLabel(wrap=True)
        self.text.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.keep, self.back = answer_buttons()
        self.keep.clicked.connect(board.countdown.keep)
        self.back.clicked.connect(board.countdown.put_back)
        hbox((self.text, 1), self.keep, self.back, of=self).setContentsMargins(10, 4, 6, 4)
        self.hide()

    def show_as(self, name: str, elsewhere: bool) -> None:
        """Be there while something waits, unless the same countdown is in sight elsewhere."""
        countdown = self.board.countdown
        if countdown.waits:
            self.text.setText(f"{name} · {countdown.text}")
        for button in (self.keep, self.back):
            button.setEnabled(countdown.can_answer)
        self.setVisible(countdown.waits and not elsewhere)


class ConfirmBar(QFrame):
    """A line for each board on which something waits to be confirmed."""

    def __init__(
        self,
        boards: WatchedBoards,
        elsewhere: Callable[[WatchedBoard], bool] = lambda _: False,
        parent: QWidget | None = None,
    ) -> None:
        """`elsewhere` says whether the countdown of a board is in sight already."""
        super().__init__(parent)
        self._boards, self._elsewhere = boards, elsewhere
        self.lines: dict[str, ConfirmLine] = {}  # by the boards' UUIDs
        self.setObjectName("confirm")
        self._column = vbox(of=self, margins=0, spacing=0)
        self.hide()
        boards.added.connect(self._put)
        boards.removed.connect(self._remove)
        boards.board_changed.connect(self._show)
        for board in boards.all:
            self._put(board)
        theme.style(
            self,
            "#confirm {{ background: {c.raised}; border-bottom: 2px solid {c.accent}; }}",
            "#confirm QLabel {{ color: {c.text}; background: transparent; }}",
        )

    @Slot(object)
    def _put(self, board: WatchedBoard) -> None:
        line = self.lines[board.uuid] = ConfirmLine(board)
        self._column.addWidget(line)
        board.countdown.changed.connect(self._show)
        self._show()

    @Slot(object)
    def _remove(self, board: WatchedBoard) -> None:
        line = self.lines.pop(board.uuid)
        line.hide()
        line.deleteLater()
        self._show()

    @Slot()
    def _show(self, *_: object) -> None:
        for line in self.lines.values():
            line.show_as(self._boards.name_of(line.board), self._elsewhere(line.board))
        self.setVisible(any(not line.isHidden() for line in self.lines.values()))


def answer_buttons() -> tuple[QPushButton, QPushButton]:
    """To keep what waits, and to put it back."""
    keep, back = QPushButton(KEEP), QPushButton(BACK)
    keep.setToolTip(KEEP_TIP)
    back.setToolTip(BACK_TIP)
    return keep, back
