"""What the shown board draws while nothing works on it: looked at on demand, with what a year of it costs."""

from __future__ import annotations

import shlex
import threading
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QCheckBox, QLineEdit, QTextBrowser, QWidget

from ...base.errors import InputError
from ..plots.descriptions import rich_text
from ..shared.context import Context
from ..shared.label import PlainLabel, plain_tip
from ..shared.panel import Panel
from ..shared.tasks import LatestTask
from ..shared.widgets import button, hbox, vbox

if TYPE_CHECKING:
    from ...engine.analysis.idle import IdleProgram, IdleStudy
    from ...engine.analysis.tradeoff import Load

_EMPTY = (
    "How much does this board draw while nothing works on it?\n"
    "Look takes about 15 seconds for each condition. Nothing is set on a real board."
)
_LOADS_S = 30.0


class IdlePanel(Panel):
    """Looks off Qt's thread. Usable without a window: `IdlePanel(context)`."""

    seconds, settle_s = 10.0, 5.0  # of each look, on the board's clock

    _looked = Signal(str, int)  # at what, and in which look of ours

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self._looks = 0  # that were begun
        self._seen: list[str] = []  # what the one that is under way has looked at
        self.study: IdleStudy | None = None
        self.contexts = QCheckBox("Also with a CUDA &context")
        self.contexts.setToolTip("A process opens one and launches nothing, with and without CUDA_DISABLE_PERF_BOOST=1")
        self.contexts.setChecked(True)
        self.program = QLineEdit()
        self.program.setPlaceholderText("a command that loads a model and waits, run by Look")
        self.program.setAccessibleName("Program that loads a model")
        self.look = button("&Look", "Measure the idle board now", self.start)
        self.end = button("&Stop", "End the look and what it started", self.stop)
        self.note = PlainLabel(wrap=True)
        self.found = QTextBrowser()
        self.found.setAccessibleName("What the idle board draws")
        vbox(
            hbox(self.look, self.end, self.contexts, 1),
            hbox(PlainLabel("With"), self.program),
            (self.note, 1),
            (self.found, 3),
            of=self,
        )
        self._looked.connect(self._note_look)
        self._task = LatestTask(self, self._show, self._failed)
        context.boards.board_changed.connect(self._board_changed)
        context.bridge.activity.changed.connect(self._set_buttons)
        self._idle(_EMPTY)

    def start(self) -> None:
        """Look at the shown board now."""
        from ...engine.analysis.idle import study_idle
        from ...engine.control.guard import DeviceGuard

        try:
            program = self._program()
        except InputError as error:
            self._context.bridge.report(error.what, error.remedy)
            return
        gpu, contexts = self._context.gpu, self.contexts.isChecked()
        simulated = gpu.info.source == "simulated"  # which has nothing to protect
        seconds, settle_s = self.seconds, self.settle_s
        self._looks += 1
        number = self._looks

        def job(stop: threading.Event) -> IdleStudy:
            return study_idle(
                gpu,
                DeviceGuard(gpu),
                seconds=seconds,
                settle_s=settle_s,
                contexts=contexts,
                program=program,
                memory_clocks=simulated,
                stop=stop,
                progress=lambda words: self._looked.emit(words, number),
            )

        self._seen.clear()
        self._task.run(job)
        self._idle("Looking …")

    def stop(self) -> None:
        """End the look that is under way, and what it started."""
        self._task.cancel()
        self._idle("Stopped.")

    def _program(self) -> IdleProgram | None:
        from ...engine.analysis.idle import IdleProgram

        try:
            words = shlex.split(self.program.text())
        except ValueError as error:
            raise InputError(f"not a command line: {error}", "Idle", "close every quote") from None
        return IdleProgram(words, loads_s=_LOADS_S) if words else None

    def _load(self) -> Load:
        """A year of nothing but idling."""
        from ...engine.analysis.tradeoff import HOURS_PER_YEAR, Load

        return Load(hours_per_year=HOURS_PER_YEAR)

    def _idle(self, note: str) -> None:
        """What is said: in the middle if nothing is found, else above it."""
        nothing = self.study is None
        self.found.setVisible(not nothing)
        self.note.setVisible(nothing or bool(note))
        self.note.setAlignment(Qt.AlignmentFlag.AlignCenter if nothing else Qt.AlignmentFlag.AlignLeft)
        self.note.setText(note)
        self._set_buttons()

    @Slot()
    def _set_buttons(self) -> None:
        runs = self._context.bridge.activity.title
        self.look.setEnabled(not self._task.busy and not runs)
        self.look.setToolTip(
            plain_tip(f"{runs} is under way: the board is not idle") if runs else "Measure the idle board now"
        )
        self.end.setEnabled(self._task.busy)

    @Slot(str, int)
    def _note_look(self, words: str, number: int) -> None:
        if number == self._looks and self._task.busy:
            self._seen.append(words)
            self.note.setText("Looking …\nDone: " + "; ".join(self._seen))

    @Slot(object)
    def _show(self, study: IdleStudy) -> None:
        from ...engine.analysis.idle import describe_idle

        self.study = study
        self._idle("")
        self.found.setHtml(rich_text([describe_idle(study, self._load())]))

    @Slot(str, str)
    def _failed(self, what: str, remedy: str) -> None:
        self._idle("")
        self._context.bridge.report(what, remedy)

    @Slot(object)
    def _board_changed(self, _board: object) -> None:
        """What was found belongs to the board before."""
        self._task.cancel()
        self.study = None
        self.found.clear()
        self._idle(_EMPTY)
