"""`LastSession`, large, and `RecentSessions`, a grid of small cards: stored sessions with their fronts.

`Card`: a large button with a title and a sentence; reached by Tab and by its mnemonic.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from datetime import datetime

from PySide6.QtCore import QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QColor, QEnterEvent, QFocusEvent, QKeyEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QAbstractButton, QFrame, QGridLayout, QSizePolicy, QWidget

from ...engine.results.state import Purpose, SessionState
from ...engine.store.record import SessionRecord
from ..shared import theme
from ..shared.captions import provenance
from ..shared.label import PlainLabel, plain_tip
from ..shared.thumbnail import SmallFronts, Thumbnail
from ..shared.widgets import button, hbox, local_time, vbox


class Card(QAbstractButton):
    """Its ground and edge; who makes one lays out what stands on it, of `words` that let clicks through."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)

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

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Return presses it too, as an entry of a list."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.click()
        else:
            super().keyPressEvent(event)

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


_CARD_PX, _GAP_PX = 196, 10
_MARGIN_PX = 9
_LARGE_PX = QSize(248, 148)


class RecentSessions(QWidget):
    """Newest first, as many beside one another as there is room for. Arrows and Tab go from card to card."""

    chosen = Signal(int)  # a session

    def __init__(self, fronts: SmallFronts, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._fronts = fronts
        self._columns = 0
        self.cards: list[SessionCard] = []
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(_GAP_PX)
        self.setMinimumWidth(_CARD_PX)

    def show_records(self, records: Sequence[SessionRecord]) -> None:
        """Show these sessions. A card that is there already is used again, so that the focus stays where it is."""
        while len(self.cards) > len(records):
            card = self.cards.pop()
            self._grid.removeWidget(card)
            card.deleteLater()
        while len(self.cards) < len(records):
            card = SessionCard(self._fronts, self)
            card.pressed_session.connect(self.chosen)
            self.cards.append(card)
        for card, record in zip(self.cards, records, strict=True):
            card.show_record(record)
        self._place()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._fitting() != self._columns:
            self._place()

    def _fitting(self) -> int:
        return max(1, (self.width() + _GAP_PX) // (_CARD_PX + _GAP_PX))

    def _place(self) -> None:
        self._columns = self._fitting()
        for place, card in enumerate(self.cards):
            self._grid.addWidget(card, place // self._columns, place % self._columns)
        for column in range(self._grid.columnCount()):
            self._grid.setColumnStretch(column, int(column == self._columns))  # empty: the cards stay at the left
        self._grid.setColumnStretch(self._columns, 1)


class SessionCard(Card):
    """Kernel, board, when, where its figures come from, the best of them, and the front."""

    pressed_session = Signal(int)

    def __init__(self, fronts: SmallFronts, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._fronts = fronts
        self._record: SessionRecord | None = None
        self.front = Thumbnail(fronts)
        self.front.setFixedHeight(100)
        self.name, self.best = words(), words()
        self.board, self.when, self.source = (words(muted=True) for _ in range(3))
        bold = self.name.font()
        bold.setBold(True)
        self.name.setFont(bold)
        vbox(
            self.front, self.name, self.best, self.board, self.when, self.source, of=self, margins=_MARGIN_PX, spacing=3
        )
        self.setFixedWidth(_CARD_PX)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        fronts.made.connect(self._made)
        self.clicked.connect(self._press)

    @property
    def session(self) -> int:
        """The session that it shows."""
        return self._record.id if self._record is not None else 0

    def show_record(self, record: SessionRecord) -> None:
        """Show another session, or what has become of this one."""
        self._record = record
        self.front.show_record(record)
        self._fill()

    @Slot(int)
    def _made(self, session: int) -> None:
        if session == self.session:
            self._fill()

    def _fill(self) -> None:
        record = self._record
        assert record is not None
        lines = (
            (self.name, record.shown_name),
            (self.best, best_text(self._fronts, record)),
            (self.board, record.gpu),
            (self.when, when_text(record.created_s)),
            (self.source, _source_text(record)),
        )
        room = _CARD_PX - 2 * _MARGIN_PX
        for label, text in lines:
            label.setText(label.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, room))
        self.setAccessibleName(f"Session {record.id}: " + ", ".join(text for _, text in lines))
        self.setToolTip(plain_tip("\n".join([f"Session {record.id}", *(text for _, text in lines)])))

    @Slot()
    def _press(self) -> None:
        self.pressed_session.emit(self.session)


class LastSession(QFrame):
    """'Continue where you were': the newest session, to be opened, or resumed where it ended too early."""

    chosen = Signal(int)
    resume_asked = Signal(int)

    def __init__(self, fronts: SmallFronts, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._fronts = fronts
        self._record: SessionRecord | None = None
        self.setFrameShape(QFrame.Shape.StyledPanel)
        self.setAccessibleName("Continue where you were")
        self.front = Thumbnail(fronts)
        self.front.setMinimumSize(_LARGE_PX / 2)
        self.front.setMaximumSize(_LARGE_PX)
        heading = PlainLabel("Continue where you were", muted=True)
        self.name, self.best = words(size=3.0), words(size=1.0)
        self.facts, self.state = words(wrap=True, muted=True), words(wrap=True)
        bold = self.name.font()
        bold.setBold(True)
        self.name.setFont(bold)
        self.name.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.open = button("Open the &result", "Show it in every view; nothing is measured", self._open)
        self.resume = button("&Continue measuring", "Resume it where it ended", self._resume)
        buttons = hbox(self.open, self.resume, 1)
        facts_and_buttons = vbox(heading, self.name, self.best, self.facts, self.state, 1, buttons, spacing=4)
        hbox((self.front, 1), (facts_and_buttons, 2), of=self, margins=14, spacing=16)
        fronts.made.connect(self._made)

    @property
    def session(self) -> int:
        """The session that it shows; 0: none."""
        return self._record.id if self._record is not None else 0

    def show_record(self, record: SessionRecord, board: str) -> None:
        """Show this session; `board` is the name of the board in the window."""
        self._record = record
        self.front.show_record(record)
        self.name.setText(record.shown_name)
        self.name.setToolTip(plain_tip(record.shown_name))
        self.facts.setText(f"Session {record.id} · {record.gpu} · {provenance(record)} · {when_text(record.created_s)}")
        alive = record.state.alive
        early = record.state in (SessionState.INTERRUPTED, SessionState.STOPPED, SessionState.FAILED)
        here = record.purpose is Purpose.REPLAY or (record.purpose is Purpose.TUNING and record.gpu == board)
        timed = f", {record.timed} timed" if record.timed else ""
        count = f"{record.evaluated} of {record.budget} configurations measured{timed}"
        self.state.setText(f"{record.state.value.capitalize()}: {count}" if early or alive else count)
        self.resume.setVisible(early)
        self.resume.setEnabled(here)
        elsewhere = f"It was measured on {record.gpu}: show that board to continue"
        self.resume.setToolTip("Resume it where it ended" if here else plain_tip(elsewhere))
        self.open.setDefault(not early)
        self._made(record.id)

    @Slot(int)
    def _made(self, session: int) -> None:
        if self._record is not None and session == self._record.id:
            self.best.setText(best_text(self._fronts, self._record))

    @Slot()
    def _open(self) -> None:
        self.chosen.emit(self.session)

    @Slot()
    def _resume(self) -> None:
        self.resume_asked.emit(self.session)


def best_text(fronts: SmallFronts, record: SessionRecord) -> str:
    """The best figure of the objective, once it is read."""
    small = fronts.known(record)
    if small is None:
        return " "
    return f"best {small.best}" if small.best else "nothing measured yet"


def _source_text(record: SessionRecord) -> str:
    """Where the figures come from, and how the session ended where that was too early."""
    whole = record.state in (SessionState.DONE, SessionState.RUNNING)
    return provenance(record) if whole else f"{record.state.value}, {provenance(record)}"


def when_text(seconds: float) -> str:
    """'today, 14:05', else the date."""
    text = local_time(seconds)
    return f"today, {text[-5:]}" if text.startswith(datetime.now().astimezone().strftime("%Y-%m-%d")) else text
