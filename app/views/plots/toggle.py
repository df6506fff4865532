"""`Toggle`: a small button that stays pressed; `look_pressed` lets any button look it in light and dark."""

from __future__ import annotations

from PySide6.QtCore import QObject, Slot
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QAbstractButton, QToolButton, QWidget

from . import theme


class Toggle(QToolButton):
    """In the accent's colours while pressed."""

    def __init__(self, text: str, name: str, tip: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setText(text)
        self.setAccessibleName(name)
        self.setToolTip(tip)
        self.setCheckable(True)
        look_pressed(self)


def look_pressed(button: QAbstractButton) -> None:
    """Give a button the accent's colours while it is pressed: the style's own shade is hardly seen."""
    _Pressed(button)


class _Pressed(QObject):
    """Lives as long as its button."""

    def __init__(self, button: QAbstractButton) -> None:
        super().__init__(button)
        self._button = button
        button.toggled.connect(self._recolour)
        theme.notifier().changed.connect(self._recolour)
        self._recolour()

    @Slot()
    def _recolour(self) -> None:
        palette, c = QPalette(), theme.colours()
        if self._button.isChecked():
            # the style lightens it: too much for white words
            palette.setColor(QPalette.ColorRole.Button, QColor(c.accent).darker(100 if c.dark else 115))
            palette.setColor(QPalette.ColorRole.ButtonText, QColor(c.accent_text))
        self._button.setPalette(palette)
