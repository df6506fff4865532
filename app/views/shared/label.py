"""A label that shows names from files and devices as they are: never as HTML, never with active characters."""

from __future__ import annotations

import html

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

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
            theme.style(self, "color: {c.muted};")


class ElidedLabel(PlainLabel):
    """One line, cut where it does not fit and whole in the tool tip; as wide as there is room, whatever it says."""

    def __init__(
        self,
        text: str = "",
        parent: QWidget | None = None,
        *,
        cut: Qt.TextElideMode = Qt.TextElideMode.ElideMiddle,
        muted: bool = False,
    ) -> None:
        super().__init__("", parent, muted=muted)
        self._cut = cut
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setText(text)

    def setText(self, text: str, more: str = "") -> None:
        """`more` is for the tool tip alone."""
        super().setText(text)
        self.setToolTip(plain_tip(f"{text}\n\n{more}".rstrip()))

    def minimumSizeHint(self) -> QSize:
        return QSize(1, super().minimumSizeHint().height())

    def paintEvent(self, _event: QPaintEvent) -> None:
        room = self.contentsRect()
        shown = self.fontMetrics().elidedText(self.text(), self._cut, room.width())
        painter, role = QPainter(self), self.foregroundRole()
        self.style().drawItemText(painter, room, self.alignment(), self.palette(), self.isEnabled(), shown, role)


def plain_tip(text: str) -> str:
    """A tool tip that Qt shows as it is, also where it looks like HTML."""
    return f"<qt>{html.escape(text)}</qt>".replace("\n", "<br>") if "<" in text else text


def axis_title(text: str) -> str:
    """A title for pyqtgraph's `setLabel`, which takes HTML."""
    return html.escape(text, quote=False)
