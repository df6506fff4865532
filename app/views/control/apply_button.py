"""`ApplyButton`: sets clocks and the power limit on the shown board, or states why that is impossible."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QPushButton, QWidget

from ...engine.results.settings import in_words
from ..shared.context import Context
from ..shared.countdown import CONFIRM_S, apply_command
from ..shared.label import plain_tip
from ..shared.watched_boards import WatchedBoard
from .arming import Arming


class ApplyButton(QPushButton):
    """Of use while there are settings, and the board that is shown is of the kind they are for and may be set.

    Boards of one kind differ: where the settings were found on another one, `whose` says so.
    """

    changed = Signal()  # `why_not` or `whose` may be another

    def __init__(self, context: Context, text: str = "&Apply", parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self._context = context
        self._settings: Mapping[str, float] = {}
        self._board, self._simulated, self._uuid = "", False, ""  # what they were found on
        self._no_offer = "There is nothing to apply"
        self.why_not = ""  # in a sentence without its stop; '' while it can be pressed
        self.whose = ""  # in a sentence without its stop, while it can be pressed; '' where they are the board's own
        self._arming = Arming(context.boards.current, context.bridge, self)
        self._arming.changed.connect(self._look)
        context.boards.board_changed.connect(self._board_changed)
        context.boards.added.connect(self._look)
        context.boards.removed.connect(self._look)
        context.bridge.activity.changed.connect(self._look)
        self.clicked.connect(self._apply)
        self._look()

    def offer(self, settings: Mapping[str, float], board: str, *, simulated: bool, uuid: str = "") -> None:
        """Offer settings that were found on a board of that name; `uuid` or selector where it is known which one."""
        self._settings, self._board, self._simulated, self._no_offer = settings, board, simulated, ""
        self._uuid = uuid
        self._look()

    def withdraw(self, why: str) -> None:
        """Offer nothing, for a reason."""
        self._settings, self._no_offer = {}, why
        self._look()

    @Slot()
    def _look(self, *_: object) -> None:
        self.why_not = self._why_not()
        self.whose = "" if self.why_not else self._whose()
        self.setEnabled(not self.why_not)
        name = self._context.gpu.info.name if not self.why_not else ""
        does = f"Set {in_words(self._settings)} on {name}; it returns after {CONFIRM_S:.0f} s unless you keep it"
        does += f". {self.whose}" if self.whose else ""
        self.setToolTip(plain_tip(self.why_not or does))
        self.setAccessibleDescription(self.why_not or does)
        self.changed.emit()

    def _why_not(self) -> str:
        if self._no_offer:
            return self._no_offer
        shown = self._context.gpu.info
        if shown.source == "recorded":
            return "A recording is shown, and cannot be set: show the board at the top of the window"
        if (shown.name, shown.source == "simulated") != (self._board, self._simulated):
            measured, here = _named(self._board, self._simulated), _named(shown.name, shown.source == "simulated")
            return f"Measured on {measured}, but {here} is shown: show the former at the top of the window"
        if self._arming.why_forbidden:
            return f"Read-only: {self._arming.why_forbidden}"
        if not self._arming.allowed:
            return "This window is read-only: switch control on at the top of the window"
        runs = self._context.bridge.activity.plan
        return f"A session is running on {runs.gpu}: nothing else is set until it ends" if runs is not None else ""

    def _whose(self) -> str:
        """Which board they were found on, where that may not be the one that is shown."""
        boards, shown = self._context.boards, self._context.boards.current
        found = boards.find(self._uuid) if self._uuid else None
        if found is shown:
            return ""
        if self._uuid:
            other = boards.name_of(found) if found is not None else f"another {self._board}"
            return f"Measured on {other}, and set on {boards.name_of(shown)}: boards of one model differ"
        alike = sum(board.gpu.info.name == self._board for board in boards.all) > 1
        return f"Found on {self._board}, not known on which of them: boards of one model differ" if alike else ""

    @Slot()
    def _apply(self) -> None:
        self._context.bridge.submit(apply_command(self._context.gpu, self._settings))

    @Slot(object)
    def _board_changed(self, board: WatchedBoard) -> None:
        self._arming.show_board(board)


def _named(board: str, simulated: bool) -> str:
    name = board or "a board without a name"
    return f"{name} (simulated)" if simulated and "simulated" not in name.lower() else name
