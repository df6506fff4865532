"""`ControlSwitch`: whether this window may set the board, what that allows, who holds the rights. Off at first."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QMenu, QPushButton, QToolButton, QVBoxLayout, QWidget, QWidgetAction

from ...engine.control.rights import why_read_only
from ...engine.session import events
from ..plots import theme
from ..plots.label import PlainLabel
from ..threads.bridge import EngineBridge
from ..watched_board import WatchedBoard

_WIDTH = 400
_OFF = (
    "This window only looks at {board}: no clock and no power limit can be changed from here.\n\n"
    "Switched on, you and the sessions that you start may set its graphics clock, memory clock and power limit, and "
    "nothing else. A small helper with the rights of root does it, for this board alone; you may be asked for your "
    "password. What was there before is written down first, and returns when the window is closed, crashes or hangs, "
    "and after a power cut at the next start. A clock lock that another program has set is the one thing that no "
    "driver reports: putting back unlocks it.\n\n"
    "It is off again at every start."
)
_FORBIDDEN = (
    "This window only looks at {board}: no clock and no power limit can be changed from here.\n\n"
    "{why}. As long as that holds, control cannot be switched on."
)
_ON = (
    "Settings of {board} may be changed from this window.\n\n"
    "The rights are held by the helper, process {holder}, for this board alone. Switched off, or when the window is "
    "closed, it puts back what was there before and ends."
)


class ControlSwitch(QToolButton):
    """In the toolbar while a real board is shown. It shows what the engine says, never what was asked for."""

    def __init__(self, board: WatchedBoard, bridge: EngineBridge, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._board = board
        self._bridge = bridge
        self._asked: set[str] = set()  # UUIDs of boards of which the engine has not answered yet
        self.setObjectName("control")
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextOnly)
        self.explanation = PlainLabel()
        self.explanation.setWordWrap(True)
        self.explanation.setFixedWidth(_WIDTH)
        self.button = QPushButton()
        self.button.clicked.connect(self.switch)
        shown = QWidget()
        column = QVBoxLayout(shown)
        column.setContentsMargins(12, 10, 12, 10)
        column.addWidget(self.explanation)
        column.addWidget(self.button, 0, Qt.AlignmentFlag.AlignRight)
        menu = QMenu(self)
        action = QWidgetAction(menu)
        action.setDefaultWidget(shown)
        menu.addAction(action)
        self.setMenu(menu)
        bridge.control_changed.connect(self._changed)
        bridge.fault.connect(self._fault)
        theme.notifier().changed.connect(self._show)
        self._show()

    def show_board(self, board: WatchedBoard) -> None:
        """Another board is shown."""
        self._board = board
        self._show()

    @property
    def allowed(self) -> bool:
        """Whether settings of the shown board may be made."""
        return self._board.allowed

    @property
    def _waiting(self) -> bool:
        return self._board.uuid in self._asked

    @Slot()
    def switch(self) -> None:
        """Ask the engine for the other state."""
        if self._waiting:
            return
        uuid = self._board.uuid
        self._asked.add(uuid)
        self._show()
        self.menu().close()
        self._bridge.submit(events.Forbid(uuid) if self.allowed else events.Allow(uuid))

    @Slot(object)
    def _changed(self, event: events.ControlChanged) -> None:
        self._asked.discard(event.board)
        self._show()

    @Slot(object)
    def _fault(self, _fault: events.EngineFault) -> None:
        """An engine that could not even start never answers."""
        self._asked.clear()
        self._show()

    @Slot()
    def _show(self) -> None:
        if self._waiting:
            self.setText("Control: putting back …" if self.allowed else "Control: asking for the rights …")
        else:
            self.setText("Control on" if self.allowed else "Read-only")
        why = why_read_only(self._board.uuid)
        text = _ON if self.allowed else _FORBIDDEN if why else _OFF
        self.explanation.setText(text.format(board=self._board.gpu.info.name, holder=self._board.holder, why=why))
        self.setToolTip("Whether this window may set clocks and the power limit")
        self.button.setText("Switch control off" if self.allowed else "Switch control on")
        self.button.setEnabled(not self._waiting and (self.allowed or not why))
        c = theme.colours()
        ground = f"background: {c.badge}; color: {c.badge_text}; font-weight: 600;" if self.allowed else ""
        self.setStyleSheet(
            f"#control {{ border: 1px solid {c.border}; border-radius: 3px; padding: 2px 16px 2px 8px; {ground} }}"
        )
