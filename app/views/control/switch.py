"""`ControlSwitch`: shows in the header whether this window may set the board, explains it, and switches it."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QMenu, QPushButton, QToolButton, QWidget, QWidgetAction

from ..shared import theme
from ..shared.bridge import EngineBridge
from ..shared.label import PlainLabel
from ..shared.watched_board import WatchedBoard
from ..shared.widgets import vbox
from .arming import Arming

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
        """Ask for the other state."""
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
