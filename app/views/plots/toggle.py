"""`Toggle`: a small button that stays pressed, and looks it in light and dark."""

from __future__ import annotations

from PySide6.QtCore import Slot
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QToolButton, QWidget

from . import theme


class Toggle(QToolButton):
    """In the accent's colours while pressed: the style alone shades it, which is hardly seen on a dark ground."""

    def __init__(self, text: str, name: str, tip: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setText(text)
        self.setAccessibleName(name)
        self.setToolTip(tip)
        self.setCheckable(True)
        self.toggled.connect(self._recolour)
        theme.notifier().changed.connect(self._recolour)
        self._recolour()

    @Slot()
    def _recolour(self) -> None:
        palette, c = QPalette(), theme.colours()
        if self.isChecked():
            palette.setColor(QPalette.ColorRole.Button, QColor(c.accent))
            palette.setColor(QPalette.ColorRole.ButtonText, QColor(c.accent_text))
        self.setPalette(palette)
