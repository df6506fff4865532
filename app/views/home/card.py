"""`Card`: a large button with a title and a sentence; reached by Tab and by its mnemonic."""

from __future__ import annotations

import html

from PySide6.QtCore import QRectF, Qt, Slot
from PySide6.QtGui import QColor, QEnterEvent, QFocusEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget

from ..plots import theme
from ..plots.label import PlainLabel
from ..widgets import vbox


class Card(QAbstractButton):
    """Its ground and edge; who makes one lays out what stands on it, of `words` that let clicks through."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        theme.notifier().changed.connect(self.update)

    def paintEvent(self, event: QPaintEvent) -> None:
        c = theme.colours()
        lit = self.isEnabled() and (self.underMouse() or self.hasFocus())
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(QColor(c.raised if self.isDown() else c.base))
        width = 2.0 if lit else 1.0
        painter.setPen(QPen(QColor(c.accent if lit else c.border), width))
        edge = width / 2
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(edge, edge, -edge, -edge), 6, 6)

    def enterEvent(self, event: QEnterEvent) -> None:
        super().enterEvent(event)
        self.update()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.update()


class OfferCard(Card):
    """What can be done: `text` with its mnemonic, and what happens then."""

    def __init__(self, text: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)

        self.setText(text)
        self.setAccessibleName(text.replace("&", ""))
        self.title, self.sentence = words(size=2.0), words(wrap=True, muted=True)
        self.title.setTextFormat(Qt.TextFormat.RichText)
        self.title.setText(f"<b>{_underlined(text)}</b>")
        vbox(self.title, (self.sentence, 1), of=self, margins=14, spacing=6)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)

    @Slot(str)
    def say(self, sentence: str) -> None:
        """What happens when it is pressed."""
        self.sentence.setText(sentence)
        self.setAccessibleDescription(sentence)


def words(text: str = "", *, size: float = 0.0, wrap: bool = False, muted: bool = False) -> PlainLabel:
    """A label on a card, `size` points larger than usual; a click on it is one on the card."""
    made = PlainLabel(text, wrap=wrap, muted=muted)
    made.setFont(theme.number_font(size))
    made.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
    if wrap:
        made.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
    return made


def _underlined(text: str) -> str:
    """HTML of a text with its mnemonic underlined."""
    before, _, after = text.partition("&")
    return f"{html.escape(before)}<u>{html.escape(after[:1])}</u>{html.escape(after[1:])}"
