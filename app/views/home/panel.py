"""Home: what this is, what can be done first, and what was done last.

`Facts`: what Home has to find out first, off Qt's thread: sessions, files, boards, and where the example can run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer, Signal, Slot
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QBoxLayout, QToolButton, QWidget

from ...base.errors import WattridgeError
from ...base.formatting import duration
from ...engine.session import events
from ...sensors.gpu import Gpu, GpuInfo
from ...sensors.select import DEFAULT_TWIN, gpu_selectors
from ..shared.context import Context
from ..shared.label import PlainLabel, plain_tip
from ..shared.panel import Panel
from ..shared.settings import Settings
from ..shared.tasks import LatestTask
from ..shared.watched_board import WatchedBoard, is_real
from ..shared.widgets import hbox, vbox
from .session_cards import LastSession, OfferCard, RecentSessions, words

if TYPE_CHECKING:
    from ...engine.store.database import Store
    from ...engine.store.record import SessionRecord

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
    """`gpu` is the board that is shown. Raises WattridgeError where the store cannot be read."""
    selectors = gpu_selectors()
    real = [label.partition(": ")[2] for selector, label in selectors if is_real(selector)]
    return Facts(store.sessions(SESSIONS_SHOWN), Settings().recent[:FILES_SHOWN], real, example_on(gpu, selectors))


def example_on(gpu: Gpu, selectors: list[tuple[str, str]]) -> Example:
    """On a simulated board, and on a real one where CUDA kernels can run; else on the simulated board of that name."""
    if gpu.info.source == "simulated":
        return Example(None)
    if gpu.info.source == "nvml":
        from ...engine.runner.cuda.open import require_cuda  # imported late: few windows need it

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
_EXAMPLES_S = {"simulated:h200": 105.0, "simulated:k20x": 1150.0}
_FEW_S = 10.0  # below that this computer's own work counts
_NARROW_PX, _WIDEST_PX = 620, 1240
_REFRESH_MS = 300  # after an event of the engine: several may come at once


class HomePanel(Panel):
    """Asks for things; the window does them. What it shows is found out off Qt's thread."""

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
        self._finder = LatestTask(self)
        self._finder.done.connect(self._show)
        self._finder.failed.connect(self._not_found)
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
        self._soon = QTimer(self, interval=_REFRESH_MS, singleShot=True)
        self._soon.timeout.connect(self.refresh)
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
