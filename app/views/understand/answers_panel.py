"""What the session says, in sentences: a list, each line of which opens its figure and marks its measurements there."""

from __future__ import annotations

import threading

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QWidget

from ...base.formatting import counted
from ...engine.analysis.answers import Answer
from ...engine.session import events
from ..shared.context import Context
from ..shared.label import PlainLabel
from ..shared.needs import Needs
from ..shared.panel import Panel
from ..shared.settings import Settings
from ..shared.tasks import LatestTask
from ..shared.widgets import vbox

_NONE = "No session yet: run one, or open one in Library, and what it says stands here."
_RUNS = "The session runs: what it says stands here when it has ended."
_ANSWER = Qt.ItemDataRole.UserRole
_ROOM_PX = 4  # between two sentences


class AnswersPanel(Panel):
    """Of the session that is shown, once it has ended. Usable without a window: `AnswersPanel(context)`."""

    figure_asked = Signal(str)  # the `figure` of an answer
    session_asked = Signal()

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self.list = QListWidget()
        self.list.setResizeMode(QListWidget.ResizeMode.Adjust)  # laid out again at another width
        self.list.setAccessibleName("What the session says: Enter opens the figure of a sentence")
        self.list.setWordWrap(True)
        self.list.setSpacing(_ROOM_PX)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.needs = Needs(_NONE, "Set up a &session", self.session_asked.emit)
        self.state = PlainLabel(wrap=True, muted=True)
        vbox((self.list, 1), (self.needs, 1), self.state, of=self, margins=6)
        self._task = LatestTask(self, self._answered, self._failed)
        self.list.itemClicked.connect(self._open)
        self.list.itemActivated.connect(self._open)
        self.subscribe(events.SessionStarted, self._begun)
        self.subscribe(events.SessionChanged | events.FiguresRestated, self._changed)
        self._begun()
        if not context.bridge.activity.busy:
            self.answer()

    @Slot(object)
    def _begun(self, *_: object) -> None:
        self._task.cancel()
        self.list.clear()
        empty = self._context.result.table is None
        self.needs.setVisible(empty)
        self.list.setVisible(not empty)
        self.state.setText("" if empty else _RUNS)

    @Slot(object)
    def _changed(self, event: events.SessionChanged | events.FiguresRestated) -> None:
        if event.progress.session == self._context.result.session and not event.progress.state.alive:
            self.answer()

    @Slot()
    def answer(self) -> None:
        """Analyse the session that is shown, off Qt's thread."""
        result, store, load = self._context.result, self._context.store, Settings().load
        table, plan = result.table, result.plan
        if table is None or plan is None or not len(table):
            return
        self.state.setText(f"Analysing {counted(len(table), 'measurement')} …")

        def work(_stop: threading.Event) -> list[Answer]:
            from ...engine.analysis.answers import answers, models_of  # imported late: SciPy loads slowly
            from ...engine.analysis.session_analysis import analyse

            analysis = analyse(table, plan.objective, load=load, with_difficulty=False)
            return answers(analysis, plan, models_of(table, plan, store), load)

        self._task.run(work)

    @Slot(object)
    def _answered(self, answers: list[Answer]) -> None:
        self.list.clear()
        for answer in answers:
            below = f"\n\u2003{answer.confidence}" if answer.confidence else ""
            QListWidgetItem(f"{answer.sentence}{below}", self.list).setData(_ANSWER, answer)
        self.list.setCurrentRow(0)
        self.state.setText("A click or Enter opens the figure that shows it.")

    @Slot(str, str)
    def _failed(self, what: str, remedy: str) -> None:
        self.state.setText(f"{what}. {remedy}")

    @Slot(QListWidgetItem)
    def _open(self, item: QListWidgetItem) -> None:
        answer: Answer = item.data(_ANSWER)
        if answer.points:
            self._context.result.brush(answer.points)
        self.figure_asked.emit(answer.figure)
