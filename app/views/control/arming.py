"""`Arming`: whether this window may set the board by hand, what that allows, who holds the rights. Off at first.

`ControlSwitch`: shows in the header whether this window may set the board, explains it, and switches it.
"""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtWidgets import QMenu, QPushButton, QToolButton, QWidget, QWidgetAction

from ...engine.session import events
from ..shared import theme
from ..shared.bridge import EngineBridge
from ..shared.label import PlainLabel
from ..shared.watched_boards import WatchedBoard
from ..shared.widgets import vbox

_WIDTH = 400


class ControlSwitch(QToolButton):
    """For the board that is shown, if it can be set. Its menu holds the explanation and the button."""

    def __init__(self, board: WatchedBoard, bridge: EngineBridge, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._arming = Arming(board, bridge, self)
        self.setObjectName("control")
        self.setToolTip("Whether this window may set clocks and the power limit")
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextOnly)
        self.explanation = PlainLabel(wrap=True)
        self.explanation.setFixedWidth(_WIDTH)
        self.button = QPushButton()
        self.button.clicked.connect(self.switch)
        shown = QWidget()
        column = vbox(self.explanation, self.button, of=shown, margins=12)
        column.setAlignment(self.button, Qt.AlignmentFlag.AlignRight)
        menu = QMenu(self)
        action = QWidgetAction(menu)
        action.setDefaultWidget(shown)
        menu.addAction(action)
        self.setMenu(menu)
        self._arming.changed.connect(self._show)
        theme.notifier().changed.connect(self._show)
        self._show()

    def show_board(self, board: WatchedBoard) -> None:
        """Another board is shown."""
        self._arming.show_board(board)

    @property
    def allowed(self) -> bool:
        """Whether control is on."""
        return self._arming.allowed

    @Slot()
    def switch(self) -> None:
        """Request the other state."""
        self.menu().close()
        self._arming.switch()

    @Slot()
    def _show(self) -> None:
        arming = self._arming
        self.setText(arming.state)
        self.explanation.setText(arming.explanation)
        self.button.setText(arming.action)
        self.button.setEnabled(arming.can_switch)
        c = theme.colours()
        ground = f"background: {c.badge}; color: {c.badge_text}; font-weight: 600;" if arming.allowed else ""
        self.setStyleSheet(
            f"#control {{ border: 1px solid {c.border}; border-radius: 3px; padding: 2px 16px 2px 8px; {ground} }}"
        )


SIMULATED = "Simulated: nothing real is set; everything here works as on a real GPU, so that you can try it."
ACTIONS = ("Switch control on", "Switch control off")
_ON_SIMULATED = (
    f"{SIMULATED}\n\nSwitched off, or when the window is closed, the simulated board is as it was before. "
    "Sessions set a simulated board whether this is on or off."
)
_OFF = (
    "This window only looks at {board}: no clock and no power limit can be changed from here.\n\n"
    "Switched on, you and the sessions that you start may set its graphics clock, memory clock and power limit, and "
    "nothing else. A small helper with the rights of root does it, for this board alone; you may be asked for your "
    "password. What was there before is written down first, and returns when the window is closed, crashes or hangs; "
    "a restart of the machine ends every setting by itself. A clock lock that another program has set is the one thing "
    "that NVIDIA's driver does not report: putting back unlocks it.\n\n"
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


class Arming(QObject):
    """The state of the shown board as the engine reports it, not as requested."""

    changed = Signal()

    def __init__(self, board: WatchedBoard, bridge: EngineBridge, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._board, self._bridge = board, bridge
        self._asked: set[str] = set()  # UUIDs of boards of which the engine has not answered yet
        bridge.subscribe(events.ControlChanged, self._control_changed)
        bridge.subscribe(events.EngineFault, self._fault)

    def show_board(self, board: WatchedBoard) -> None:
        """Another board is shown."""
        self._board = board
        self.changed.emit()

    @property
    def allowed(self) -> bool:
        """Whether control is on."""
        return self._board.allowed

    @property
    def _waiting(self) -> bool:
        return self._board.uuid in self._asked

    @property
    def why_forbidden(self) -> str:
        """Why control cannot be switched on; empty if it can."""
        info = self._board.gpu.info
        if info.source == "recorded":
            return "A recording cannot be set"
        if not info.live:
            return ""
        from ...engine.control.client import why_read_only  # imported late: only boards of this machine need it

        return why_read_only(info.uuid)

    @property
    def can_switch(self) -> bool:
        """Whether the other state can be requested now."""
        return not self._waiting and (self.allowed or not self.why_forbidden)

    @property
    def state(self) -> str:
        """In a word or two."""
        if self._waiting:
            return "Control: putting back …" if self.allowed else "Control: asking for the rights …"
        return "Control on" if self.allowed else "Read-only"

    @property
    def action(self) -> str:
        """What `switch` does now."""
        return ACTIONS[self.allowed]

    @property
    def explanation(self) -> str:
        """What the state means, and what the other one would."""
        if self._board.gpu.info.source == "simulated":
            return _ON_SIMULATED
        why = self.why_forbidden
        text = _ON if self.allowed else _FORBIDDEN if why else _OFF
        return text.format(board=self._board.gpu.info.name, holder=self._board.holder, why=why)

    @Slot()
    def switch(self) -> None:
        """Request the other state from the engine."""
        if self.can_switch:
            uuid = self._board.uuid
            self._asked.add(uuid)
            self.changed.emit()
            self._bridge.submit(events.Forbid(uuid) if self.allowed else events.Allow(uuid))

    @Slot(object)
    def _control_changed(self, event: events.ControlChanged) -> None:
        self._asked.discard(event.board)
        self.changed.emit()

    @Slot(object)
    def _fault(self, _fault: events.EngineFault) -> None:
        """An engine that could not even start never answers."""
        self._asked.clear()
        self.changed.emit()
