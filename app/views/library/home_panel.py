"""Home: what can be made efficient, and what was done last.

`Facts`: what Home has to find out first, off Qt's thread: sessions, files, boards, and where each aim is tried.

`LastSession`, large, and `RecentSessions`, a grid of small cards: stored sessions with their fronts.

`Card`: a large button with a title and a sentence; reached by Tab and by its mnemonic.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import (
    QColor,
    QEnterEvent,
    QFocusEvent,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QShowEvent,
)
from PySide6.QtWidgets import QAbstractButton, QBoxLayout, QFrame, QGridLayout, QSizePolicy, QToolButton, QWidget

from ...engine.results.state import Purpose, SessionState
from ...engine.session import events
from ...engine.store.record import SessionRecord
from ...sensors.gpu import Gpu, GpuInfo
from ...sensors.select import gpu_selectors
from ..shared import theme
from ..shared.captions import provenance
from ..shared.context import Context
from ..shared.label import PlainLabel, plain_tip
from ..shared.panel import Panel
from ..shared.settings import Settings
from ..shared.tasks import LatestTask
from ..shared.thumbnail import SmallFronts, Thumbnail
from ..shared.turns import timer
from ..shared.watched_boards import WatchedBoard, is_real
from ..shared.widgets import button, hbox, local_time, vbox
from .aims import AIMS, SAVINGS, Aim, Place, places_of, words_of

if TYPE_CHECKING:
    from ...engine.store.database import Store
    from ...engine.store.record import SessionRecord


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


class AimCard(Card):
    """One aim: a press tries it; `own`, which stands beside it, begins with the user's own."""

    def __init__(self, aim: Aim, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.aim = aim
        self.setText(aim.text)
        self.setAccessibleName(aim.text.replace("&", ""))
        self.title, self.sentence = words(size=1.5), words(wrap=True, muted=True)
        self.title.setTextFormat(Qt.TextFormat.RichText)
        self.title.setText(f"<b>{_underlined(aim.text)}</b>")
        self.own = button(aim.own)
        vbox(self.title, self.sentence, of=self, margins=10, spacing=2)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)

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


SESSIONS_SHOWN = 7  # the last one, and those in the grid
FILES_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Facts:
    """Those of one moment."""

    sessions: list[SessionRecord]  # newest first
    files: list[Path]  # opened last, newest first
    real: list[str]  # names of the real boards
    places: dict[str, Place]  # where each example is tried


def find_facts(store: Store, gpu: Gpu) -> Facts:
    """`gpu` is the board that is shown. Raises WattridgeError if the store cannot be read."""
    selectors = gpu_selectors()
    real = [label.partition(": ")[2] for selector, label in selectors if is_real(selector) or "(asleep)" in label]
    return Facts(store.sessions(SESSIONS_SHOWN), Settings().recent[:FILES_SHOWN], real, places_of(gpu, selectors))


_QUESTION = "What do you want to make efficient?"
_WAYS = "Press one to try it on {board}, or begin with your own."
_FILES = (
    "A specification to tune; a Kernel Tuner cache, T4 results or a session as CSV to look at; a log of clocks and "
    "power to fit a model to. Or drop it anywhere on this window."
)
_NARROW_PX, _COLUMN_PX, _WIDEST_PX = 1000, 640, 1320
_REFRESH_MS = 300  # after an event of the engine: several may come at once


class HomePanel(Panel):
    """Emits requests that the window carries out. Its contents are loaded off Qt's thread."""

    example_asked = Signal(object)  # Path of a specification to be run on the board that is shown now
    action_asked = Signal(str)  # the name of an action of the window
    recent_file_asked = Signal(object)  # a Path
    session_asked = Signal(int)  # to be opened
    resume_asked = Signal(int)

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self._facts = Facts([], [], [], {})
        self._waits_for: tuple[str, Path] | None = None  # the board that an example is to be tried on, and the example
        self._finder = LatestTask(self, self._show, self._not_found)
        self.aims = {aim.example: AimCard(aim) for aim in AIMS}
        self.savings = AimCard(SAVINGS)
        self.savings.say(f"{SAVINGS.what}.")
        self.watch, self.open = button("&Watch a board"), button("Open a f&ile …", _FILES)
        self.library = button("All sessions", "Every stored session, in the Library")
        self.last = LastSession(context.fronts)
        self.recent = RecentSessions(context.fronts)
        self._ways, self._watched = (PlainLabel(wrap=True, muted=True) for _ in range(2))
        self._files = QWidget()
        self._file_row = hbox(of=self._files, margins=0)
        self.files: list[QToolButton] = []
        self._lay_out()
        self._soon = timer(self, self.refresh, _REFRESH_MS, once=True)
        asking = [(card.own, card.aim.action) for card in self.aims.values()]
        asking += [(self.watch, "go_traces"), (self.open, "open"), (self.library, "go_sessions")]
        for pressed, action in asking:
            pressed.clicked.connect(lambda _=False, action=action: self.action_asked.emit(action))
        for card in self.aims.values():
            card.clicked.connect(lambda _=False, aim=card.aim: self.try_it(aim))
        self.savings.clicked.connect(lambda: self.action_asked.emit(SAVINGS.action))
        self.last.chosen.connect(self.session_asked)
        self.last.resume_asked.connect(self.resume_asked)
        self.recent.chosen.connect(self.session_asked)
        bridge, boards = context.bridge, context.boards
        self.subscribe(events.SessionStarted | events.SessionChanged, self.refresh_soon)
        self.subscribe(events.SessionChanged, self.refresh_soon, roofline=True)
        bridge.activity.changed.connect(self._activity_changed)
        boards.board_changed.connect(self._board_changed)
        boards.speed_changed.connect(self._say)
        boards.failed.connect(self._board_failed)
        self._say()
        self.refresh()

    def _lay_out(self) -> None:
        widest = max(card.own.sizeHint().width() for card in self.aims.values())
        rows = [hbox((card, 1), card.own, margins=0, spacing=12) for card in self.aims.values()]
        for card in self.aims.values():
            card.own.setMinimumWidth(widest)
        question = words(_QUESTION, size=6.0, wrap=True)
        self._recent_title = words("Recent sessions", size=1.0)
        self._past, aims = QWidget(), QWidget()
        head = hbox(self._recent_title, 1, self.library, margins=0)
        vbox(self.last, head, self.recent, 1, of=self._past, margins=0, spacing=12)
        vbox(
            question,
            self._ways,
            *rows,
            self.savings,
            hbox(self.watch, self.open, 1, margins=0),
            self._watched,
            self._files,
            1,
            of=aims,
            margins=0,
            spacing=8,
        )
        self._content = QWidget()
        self._columns = hbox((aims, 11), (self._past, 12), of=self._content, margins=0, spacing=28)
        hbox(1, (self._content, 100), 1, of=self, margins=18)
        self._content.hide()  # until it is known what was done last: nothing moves under the pointer

    def resizeEvent(self, event: QResizeEvent) -> None:
        """In a narrow window what was done last stands below."""
        super().resizeEvent(event)
        directions = QBoxLayout.Direction
        narrow = self.width() < _NARROW_PX
        self._columns.setDirection(directions.TopToBottom if narrow else directions.LeftToRight)

    def shutdown(self) -> None:
        super().shutdown()
        self._context.fronts.shutdown()

    # --- what is shown ------------------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Something is being found out, or is about to be."""
        return self._finder.busy or self._soon.isActive()

    @Slot()
    def refresh(self) -> None:
        """Find out again what there is."""
        store, gpu = self._context.store, self._context.gpu
        self._finder.run(lambda _stop: find_facts(store, gpu))

    @Slot()
    def refresh_soon(self, *_: object) -> None:
        """After the engine or the list of sessions has changed something."""
        self._soon.start()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self._finder.busy:  # as it is while the panel is new
            self._soon.start()

    @Slot(object)
    def _show(self, facts: Facts) -> None:
        self._facts = facts
        newest, others = facts.sessions[:1], facts.sessions[1:]
        for record in newest:
            self.last.show_record(record, self._context.gpu.info.name)
        self._past.setVisible(bool(newest))
        self._content.setMaximumWidth(_WIDEST_PX if newest else _COLUMN_PX)
        self.recent.show_records(others)
        self._recent_title.setVisible(bool(others))
        self._show_files(facts.files)
        self._say()
        self._content.show()

    @Slot(str, str)
    def _not_found(self, what: str, remedy: str) -> None:
        self._content.show()
        self._context.bridge.report(what, remedy)

    def _show_files(self, files: Sequence[Path]) -> None:
        if [button.text() for button in self.files] == [path.name for path in files]:
            return
        while (item := self._file_row.takeAt(0)) is not None:
            gone = item.widget()
            if gone is not None:
                gone.deleteLater()
        self.files = []
        self._file_row.addWidget(PlainLabel("Opened last:", muted=True))
        for path in files:
            button = QToolButton()
            button.setText(path.name)
            button.setToolTip(plain_tip(str(path)))
            button.setAccessibleName(f"Open {path.name}")
            button.clicked.connect(lambda _=False, path=path: self.recent_file_asked.emit(path))
            self._file_row.addWidget(button)
            self.files.append(button)
        self._file_row.addStretch(1)
        self._files.setVisible(bool(files))

    @Slot()
    def _say(self, *_: object) -> None:
        """What happens when a card is pressed."""
        places, speed = self._facts.places, self._context.boards.example_speed
        for card in self.aims.values():
            card.say(words_of(card.aim, places, speed))
        board = f"the simulated {places[AIMS[0].example][1]}" if places else "a simulated board"
        self._ways.setText(_WAYS.format(board=board))
        self._watched.setText(watch_words(self._context.gpu.info, self._facts.real))
        self._activity_changed()

    # --- tries --------------------------------------------------------------------------------------------------------

    def try_it(self, aim: Aim) -> None:
        """Run its example on a simulated board, which is shown first; or open the profile that comes along."""
        if not aim.example:
            self.recent_file_asked.emit(aim.path)
            return
        boards = self._context.boards
        selector, _ = self._facts.places.get(aim.example, ("", ""))
        if self._context.pool.open:
            self._context.pool.leave()  # its boards are real
        if boards.find(selector) is boards.current:
            self.example_asked.emit(aim.path)
        elif selector:
            self._waits_for = selector, aim.path
            boards.show(selector)

    @Slot(object)
    def _board_changed(self, board: WatchedBoard) -> None:
        waited, self._waits_for = self._waits_for, None
        if waited is not None and waited[0] in (board.selector, board.uuid):
            self.example_asked.emit(waited[1])
        self.refresh_soon()

    @Slot()
    def _board_failed(self, *_: object) -> None:
        self._waits_for = None

    @Slot()
    def _activity_changed(self) -> None:
        """One session runs at a time."""
        title = self._context.bridge.activity.title
        for card in self.aims.values():
            card.setEnabled(not title)
            card.setToolTip(plain_tip(f"{title} runs: wait for it, or stop it above") if title else "")


def watch_words(info: GpuInfo, real: Sequence[str]) -> str:
    """What is watched: the board that is there, or that none is and a simulated one is shown."""
    shown = f"the {info.source} {info.name}"
    if info.live:
        others = f" and {len(real) - 1} more" if len(real) > 1 else ""
        return f"{info.name}{others}: power, clocks, voltage and temperature, live."
    if info.source == "recorded":
        return f"Shown now is {shown}."
    if real:
        return f"{real[0]} is there; shown now is {shown}. Choose a board under Boards."
    return f"No NVIDIA GPU answers here: {shown} is shown in its place, live."
