"""`Needs`: in place of a figure that cannot be filled, one line that states what it needs, and a button for it."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from .label import PlainLabel
from .widgets import button, hbox, vbox


class Needs(QWidget):
    """In the middle of the room that it is given."""

    def __init__(self, text: str, label: str, go: Callable[[], object], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.words = PlainLabel(text, wrap=True, muted=True)
        self.words.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.button = button(label, clicked=go)
        vbox(1, self.words, hbox(1, self.button, 1), 1, of=self, margins=12, spacing=8)
