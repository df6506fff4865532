"""`Complaint`: what is wrong with a field, right below it."""

from __future__ import annotations

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QWidget

from ..plots import theme
from ..plots.label import PlainLabel


class Complaint(PlainLabel):
    """Hidden while there is nothing to say."""

    def __init__(self, field: QWidget | None = None) -> None:
        super().__init__(wrap=True, selectable=True)
        self._field = field
        theme.notifier().changed.connect(self.recolour)
        self.recolour()
        self.say("")

    def say(self, text: str) -> None:
        """Show what is wrong, or with '' nothing."""
        if text != self.text():
            self.setText(text)
        self.setVisible(bool(text))
        if self._field is not None:
            self._field.setAccessibleDescription(text)

    @Slot()
    def recolour(self) -> None:
        colours = theme.colours()
        self.setStyleSheet(f"background: {colours.warning}; color: {colours.warning_text}; padding: 2px 4px;")
