"""Home: what this is, what can be done first, and what was done last.

`Facts`: what Home has to find out first, off Qt's thread: sessions, files, boards, and where the example can run.

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

from ...base.errors import WattridgeError
from ...base.formatting import duration
from ...engine.results.state import Purpose, SessionState
from ...engine.session import events
from ...engine.store.record import SessionRecord
from ...sensors.gpu import Gpu, GpuInfo
from ...sensors.select import DEFAULT_TWIN, gpu_selectors
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


SESSIONS_SHOWN = 13  # the last one, and those in the grid
FILES_SHOWN = 4
_SIMULATED = " (simulated)"


@dataclass(frozen=True, slots=True)
class Example:
    """Where the example is tuned."""

    selector: str | None  # of the simulated board that is shown first; None: on the board that is shown already
    why: str = ""  # not on the board that is shown


@dataclass(frozen=True, slots=True)
class Facts:
    """Those of one moment."""

    sessions: list[SessionRecord]  # newest first
    files: list[Path]  # opened last, newest first
    real: list[str]  # names of the real boards
    example: Example


def find_facts(store: Store, gpu: Gpu) -> Facts:
    """`gpu` is the board that is shown. Raises WattridgeError if the store cannot be read."""
    selectors = gpu_selectors()
    real = [label.partition(": ")[2] for selector, label in selectors if is_real(selector) or "(asleep)" in label]
    return Facts(store.sessions(SESSIONS_SHOWN), Settings().recent[:FILES_SHOWN], real, example_on(gpu, selectors))


def example_on(gpu: Gpu, selectors: list[tuple[str, str]]) -> Example:
    """On a simulated board, and on a real one where CUDA kernels can run; else on the simulated board of that name."""
    if gpu.info.source == "simulated":
        return Example(None)
    if gpu.info.source == "nvml":
        from ...engine.runner.cuda.language import require_cuda  # imported late: few windows need it

        try:
            require_cuda(gpu)
        except WattridgeError as error:
            why = error.what
        else:
            return Example(None)
    elif gpu.info.source == "amd":
        why = "kernels on AMD boards were not yet tried on a real one"
    else:
        why = "a recording runs no kernels" if gpu.info.source == "recorded" else "it runs no CUDA kernels"
    twins = {label.removesuffix(_SIMULATED): selector for selector, label in selectors if label.endswith(_SIMULATED)}
    return Example(twins.get(gpu.info.name, f"simulated:{DEFAULT_TWIN}"), why)


_WHAT = (
    "Wattridge shows what a GPU draws while it works, and finds the kernel configurations, clocks and power caps at "
    "which it does the most work per joule."
)
_FILES = (
    "A specification to tune; a Kernel Tuner cache, T4 results or a session as CSV to look at; a log of clocks and "
    "power to fit a model to. Or drop it anywhere on this window."
)
# Of the example on the clock of a simulated board, measured: 320 to 430 s, but for those below; right within a half.
_EXAMPLE_S = 360.0
_EXAMPLES_S = {"simulated:h200": 105.0, "simulated:k20x": 1150.0, "simulated:mi210": 200.0}
_FEW_S = 10.0  # below that this computer's own work counts
_NARROW_PX, _WIDEST_PX = 620, 1240
_REFRESH_MS = 300  # after an event of the engine: several may come at once


class HomePanel(Panel):
    """Emits requests that the window carries out. Its contents are loaded off Qt's thread."""

    watch_asked = Signal()
    example_asked = Signal()  # on the board that is shown now
    file_asked = Signal()
    recent_file_asked = Signal(object)  # a Path
    session_asked = Signal(int)  # to be opened
    resume_asked = Signal(int)

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self._facts = Facts([], [], [], Example(None))
        self._waits_for = ""  # the selector of the board that the example is to be tuned on
        self._finder = LatestTask(self, self._show, self._not_found)
        self.watch, self.example = OfferCard("&Watch my GPU"), OfferCard("T&une the example")
        self.file = OfferCard("O&pen a file")
        self.file.say(_FILES)
        self.last = LastSession(context.fronts)
        self.recent = RecentSessions(context.fronts)
        self._recent_title = PlainLabel("Recent sessions")
        self._files = QWidget()
        self._file_row = hbox(of=self._files, margins=0)
        self.files: list[QToolButton] = []
        self._lay_out()
        self._soon = timer(self, self.refresh, _REFRESH_MS, once=True)
        self.watch.clicked.connect(self.watch_asked)
        self.example.clicked.connect(self._tune_example)
        self.file.clicked.connect(self.file_asked)
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
        what = words(_WHAT, size=2.0, wrap=True)
        self._content = QWidget()
        self._content.setMaximumWidth(_WIDEST_PX)
        self._offers = hbox((self.watch, 1), (self.example, 1), (self.file, 1), spacing=12)
        vbox(
            what,
            self.last,
            self._offers,
            self._files,
            self._recent_title,
            self.recent,
            1,
            of=self._content,
            margins=0,
            spacing=14,
        )
        bold = self._recent_title.font()
        bold.setBold(True)
        self._recent_title.setFont(bold)
        hbox(self._content, of=self, margins=18)
        self._content.hide()  # until it is known what was done last: nothing moves under the pointer

    def resizeEvent(self, event: QResizeEvent) -> None:
        """In a narrow dock the cards stand below one another."""
        super().resizeEvent(event)
        narrow = self.width() < _NARROW_PX
        directions = QBoxLayout.Direction
        self._offers.setDirection(directions.TopToBottom if narrow else directions.LeftToRight)

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
        self.last.setVisible(bool(newest))
        self.recent.show_records(others)
        self.recent.setVisible(bool(others))
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
        info = self._context.gpu.info
        self.watch.say(watch_words(info, self._facts.real))
        self.example.say(example_words(info, self._context.boards.example_speed, self._facts.example))
        self._activity_changed()

    # --- the example --------------------------------------------------------------------------------------------------

    @Slot()
    def _tune_example(self) -> None:
        """Where the shown board cannot run it, a simulated one is shown first."""
        selector = self._facts.example.selector
        if selector is None:
            self.example_asked.emit()
        else:
            self._waits_for = selector
            self._context.boards.show(selector)

    @Slot(object)
    def _board_changed(self, board: WatchedBoard) -> None:
        waited, self._waits_for = self._waits_for, ""
        if waited and waited in (board.selector, board.uuid):
            self.example_asked.emit()
        self.refresh_soon()

    @Slot()
    def _board_failed(self, *_: object) -> None:
        self._waits_for = ""

    @Slot()
    def _activity_changed(self) -> None:
        """One session runs at a time."""
        title = self._context.bridge.activity.title
        self.example.setEnabled(not title)
        self.example.setToolTip(plain_tip(f"{title} runs: wait for it, or stop it above") if title else "")


def watch_words(info: GpuInfo, real: Sequence[str]) -> str:
    """What is watched: the board that is there, or that none is and a simulated one is shown."""
    shown = f"the {info.source} {info.name}"
    if info.live:
        others = f" and {len(real) - 1} more" if len(real) > 1 else ""
        return f"{info.name}{others}: power, clocks, voltage and temperature, live."
    if real:
        return f"{real[0]} is there; shown now is {shown}. Choose a board under Boards."
    return f"No NVIDIA GPU answers here: {shown} is shown in its place, live."


def example_words(info: GpuInfo, speed: float, example: Example) -> str:
    """What is tuned, where, and how long that takes."""
    what = "A matrix product with 250 of its configurations"
    if example.selector is not None:
        twin = example.selector.removeprefix("simulated:").upper()
        return f"{what}, on the simulated {twin}: {example.why}. Nothing is run on {info.label}."
    if info.live:
        return f"{what}, compiled and measured on {info.name} itself; while it is read-only, clocks stay as they are."
    taken_s = _EXAMPLES_S.get(info.uuid.partition("#")[0], _EXAMPLE_S) / speed
    about = "some seconds" if taken_s < _FEW_S else f"about {duration(round(taken_s)).replace('.0 s', ' s')}"
    return f"{what}, on the simulated {info.name}: {about}."
