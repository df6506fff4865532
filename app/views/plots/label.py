"""A label that shows names from files and devices as they are: never as HTML, never with active characters."""

from __future__ import annotations

import html

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QWidget


class PlainLabel(QLabel):
    """A QLabel of plain text. Qt's own guesses from the text whether it is HTML; `setTextFormat` says so where it is.

    What is put into the HTML of such a label has to be escaped.
    """

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setText(text)


def plain_tip(text: str) -> str:
    """A tool tip that Qt shows as it is, also where it looks like HTML."""
    return f"<qt>{html.escape(text)}</qt>".replace("\n", "<br>") if "<" in text else text


def axis_title(text: str) -> str:
    """A title for pyqtgraph's `setLabel`, which takes HTML."""
    return html.escape(text, quote=False)
