"""`HelpWindow`: every shortcut and what the mouse does, made from the list of actions."""

from __future__ import annotations

from html import escape

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QLabel, QVBoxLayout, QWidget

from app import __version__
from app.views.actions import shortcut_table
from app.views.window_actions import ACTIONS, MOUSE_HELP


class HelpWindow(QDialog):
    """Stays beside the main window; nothing waits for it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Keys and mouse")
        self.setModal(False)
        lines = "".join(
            f"<tr><td style='padding:1px 18px 1px 0'><b>{escape(keys)}</b></td><td>{escape(does)}</td></tr>"
            for keys, does in (*shortcut_table(ACTIONS), *MOUSE_HELP)
        )
        text = QLabel(f"<table>{lines}</table><p>Wattridge {escape(__version__)}</p>")
        text.setTextFormat(Qt.TextFormat.RichText)
        text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        layout = QVBoxLayout(self)
        layout.addWidget(text)
