"""`Banner`: what went wrong, with the remedy, over the top of the window. Never a box that has to be answered."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QSizePolicy, QToolButton, QWidget

from app.engine.events import EngineFault
from app.views import theme

_KEPT = 20


class Banner(QFrame):
    """Shows the newest message; closing it shows the one before. A message that is there already only moves up."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._messages: list[tuple[str, str]] = []
        self.setObjectName("banner")
        self._text = QLabel()
        self._text.setWordWrap(True)
        self._text.setTextFormat(Qt.TextFormat.PlainText)
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._text.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._close = QToolButton()
        self._close.setText("Dismiss")
        self._close.setAutoRaise(True)
        self._close.clicked.connect(self.dismiss)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(10, 4, 6, 4)
        layout.addWidget(self._text, 1)
        layout.addWidget(self._close, 0, Qt.AlignmentFlag.AlignTop)
        self._recolour()
        theme.notifier().changed.connect(self._recolour)
        self.hide()

    @property
    def text(self) -> str:
        """What is shown; empty when nothing is."""
        return self._text.text() if self._messages else ""

    @Slot(object)
    def show_fault(self, fault: EngineFault) -> None:
        """Show a fault of the engine or of a view."""
        self.tell(fault.what, fault.remedy)

    def tell(self, what: str, remedy: str = "") -> None:
        """Show one line: what happened, and what to do."""
        if (what, remedy) in self._messages:
            self._messages.remove((what, remedy))
        self._messages = [*self._messages, (what, remedy)][-_KEPT:]
        self._show()

    @Slot()
    def dismiss(self) -> None:
        """Close the newest message."""
        self._messages = self._messages[:-1]
        self._show()

    def _show(self) -> None:
        if self._messages:
            what, remedy = self._messages[-1]
            more = f"  (+{len(self._messages) - 1} more)" if len(self._messages) > 1 else ""
            self._text.setText((f"{what} · {remedy}" if remedy else what) + more)
        self.setVisible(bool(self._messages))

    @Slot()
    def _recolour(self) -> None:
        c = theme.colours()
        self.setStyleSheet(
            f"#banner {{ background: {c.warning}; border-bottom: 1px solid {c.border}; }}"
            f"#banner QLabel, #banner QToolButton {{ color: {c.warning_text}; background: transparent; }}"
        )
