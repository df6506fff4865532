"""`Rail`: the workspaces at the left edge of the window; the one in sight is marked by weight and a bar too."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtWidgets import QButtonGroup, QFrame, QSizePolicy, QToolButton, QWidget

from ..plots import theme
from ..widgets import vbox
from .icons import icon_of
from .panels import WorkspaceSpec

_ICON = QSize(22, 22)


class Rail(QFrame):
    """Tab reaches the marked one, the arrows move among them."""

    chosen = Signal(str)

    def __init__(self, specs: Sequence[WorkspaceSpec], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("rail")
        self.setAccessibleName("Workspaces")
        self.buttons: dict[str, QToolButton] = {}
        self._group = QButtonGroup(self)
        for spec in specs:
            button = self.buttons[spec.name] = QToolButton()
            button.setText(spec.title)
            button.setAccessibleName(f"{spec.title} workspace")
            button.setToolTip(f"{spec.tip} ({spec.shortcut})")
            button.setCheckable(True)
            button.setAutoRaise(True)
            button.setIconSize(_ICON)
            small = button.font()
            small.setPointSizeF(small.pointSizeF() - 0.5)
            button.setFont(small)
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextUnderIcon)
            button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            button.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
            self._group.addButton(button)
        self._group.buttonClicked.connect(self._clicked)
        vbox(*self.buttons.values(), 1, of=self, margins=0, spacing=0)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)
        theme.notifier().changed.connect(self._recolour)
        self._recolour()

    def mark(self, name: str) -> None:
        """That workspace is in sight."""
        self.buttons[name].setChecked(True)

    @Slot(QToolButton)
    def _clicked(self, button: QToolButton) -> None:
        self.chosen.emit(next(name for name, each in self.buttons.items() if each is button))

    @Slot()
    def _recolour(self) -> None:
        c = theme.colours()
        self.setStyleSheet(
            f"#rail {{ background: {c.raised}; border-right: 1px solid {c.border}; }}"
            f"#rail QToolButton {{ color: {c.text}; border: none; border-left: 3px solid transparent;"
            " padding: 7px 3px; }"
            f"#rail QToolButton:hover {{ background: {c.window}; }}"
            f"#rail QToolButton:checked {{ background: {c.window}; border-left: 3px solid {c.accent};"
            " font-weight: 600; }"
            f"#rail QToolButton:focus {{ border-right: 2px solid {c.accent}; }}"
        )
        for name, button in self.buttons.items():
            button.setIcon(icon_of(name, c.text))
        width = max(button.fontMetrics().horizontalAdvance(button.text()) for button in self.buttons.values())
        self.setFixedWidth(round(1.12 * width) + 11)  # of the bold one too: nothing moves with the mark
