"""A label that shows names from files and devices as they are: never as HTML, never with active characters."""

from __future__ import annotations

import html

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QLabel, QWidget

from . import theme


class PlainLabel(QLabel):
    """A QLabel of plain text. Qt's own guesses from the text whether it is HTML; `setTextFormat` says so where it is.

    What is put into the HTML of such a label has to be escaped. `wrap` breaks long lines, `selectable` lets the text be
    selected by mouse, and `muted` gives it the theme's muted colour.
    """

    def __init__(
        self,
        text: str = "",
        parent: QWidget | None = None,
        *,
        wrap: bool = False,
        selectable: bool = False,
        muted: bool = False,
    ) -> None:
        super().__init__(parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setWordWrap(wrap)
        if selectable:
            self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.setText(text)
        if muted:
            theme.notifier().changed.connect(self._recolour)
            self._recolour()

    @Slot()
    def _recolour(self) -> None:
        self.setStyleSheet(f"color: {theme.colours().muted};")


def plain_tip(text: str) -> str:
    """A tool tip that Qt shows as it is, also where it looks like HTML."""
    return f"<qt>{html.escape(text)}</qt>".replace("\n", "<br>") if "<" in text else text


def axis_title(text: str) -> str:
    """A title for pyqtgraph's `setLabel`, which takes HTML."""
    return html.escape(text, quote=False)
