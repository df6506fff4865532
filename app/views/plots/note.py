"""`PlotNote`: words in place of a plot that has nothing to show."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QVBoxLayout, QWidget

from . import theme
from .label import PlainLabel


class PlotNote(PlainLabel):
    """Lies over the whole plot and lets the mouse through; hidden while its text is empty."""

    def __init__(self, plot: QWidget) -> None:
        super().__init__()
        layout = QVBoxLayout(plot)
        layout.setSizeConstraint(QVBoxLayout.SizeConstraint.SetNoConstraint)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self)
        self.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.setWordWrap(True)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        theme.notifier().changed.connect(self._restyle)
        self._restyle()
        self.hide()

    def setText(self, text: str) -> None:
        super().setText(text)
        self.setVisible(bool(text))

    @Slot()
    def _restyle(self) -> None:
        self.setStyleSheet(f"background: transparent; color: {theme.colours().muted}; padding: 24px;")
