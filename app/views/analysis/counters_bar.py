"""`CountersBar`: of which configurations to take hardware counters, the command for it, and its start."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QComboBox, QWidget

from ...base.errors import WattridgeError
from ...engine.results.state import Purpose
from ...engine.session import events
from ...engine.session.profiling import USUAL_COUNT, Wanted, Which
from ..shared.context import Context
from ..shared.label import PlainLabel
from ..shared.widgets import WholeBox, button, hbox, vbox

_CHOICES: Final = {Which.FRONT: "the front", Which.BEST: "the best", Which.RANDOM: "some at random"}
_MOST: Final = 10_000
_TIP: Final = "Launch each once under the profiler, apart from any measurement; those that have counters are left out"


class CountersBar(QWidget):
    """Profiling runs on the engine's thread, so that no session measures meanwhile; the header has its progress."""

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self.which, self.count = QComboBox(), WholeBox()
        for which, words in _CHOICES.items():
            self.which.addItem(words, which)
        self.which.setAccessibleName("Configurations to profile")
        self.count.setAccessibleName("How many configurations to profile")
        self.count.setRange(1, _MOST)
        self.count.setValue(USUAL_COUNT)
        self.which.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.which.setMinimumContentsLength(6)
        self.start = button("&Profile", _TIP, self.profile)
        self.command = PlainLabel(selectable=True, muted=True, wrap=True)
        self.command.setAccessibleName("The command that does the same")
        self.message = PlainLabel(wrap=True)
        self.message.hide()
        label = PlainLabel("Hard&ware counters of")
        label.setBuddy(self.which)
        vbox(hbox(label, self.which, self.count, self.start, 1), self.command, self.message, of=self, margins=0)
        self.which.currentIndexChanged.connect(self._follow)
        self.count.valueChanged.connect(self._follow)
        context.result.replaced.connect(self._session_replaced)
        context.bridge.activity.changed.connect(self._follow)
        context.bridge.subscribe(events.ProfilingFinished, self._finished)
        self._session_replaced()

    @property
    def wanted(self) -> Wanted:
        """What is chosen."""
        return Wanted(Which(self.which.currentData()), self.count.value())

    @Slot()
    def profile(self) -> None:
        """Ask the engine for it."""
        plan, session = self._context.result.plan, self._context.result.session
        if plan is None or not session or self._why_not():
            return
        self._say("")
        self._context.bridge.submit(events.Profile(session, plan.origin.get("gpu", ""), self.wanted))

    def _why_not(self) -> str:
        """Why nothing can be profiled now; empty where it can."""
        plan, session = self._context.result.plan, self._context.result.session
        if plan is None:
            return "There is no session yet."
        if not session or plan.purpose is Purpose.REPLAY or plan.origin.get("kind") != "specification":
            return "It was read from a file or run by a script: sessions of a specification can be profiled."
        if self._context.bridge.activity.busy:
            return "What runs now is measured undisturbed: profile once it has ended."
        return ""

    @Slot()
    def _session_replaced(self) -> None:
        self._say("")
        self._follow()

    @Slot()
    def _follow(self) -> None:
        """The command and the button as they are now."""
        why_not = self._why_not()
        self.count.setVisible(self.wanted.which is not Which.FRONT)
        self.start.setEnabled(not why_not)
        self.start.setToolTip(why_not or _TIP)
        self.command.setText(self._command() or why_not)

    def _command(self) -> str:
        from ...engine.report.reproduce import counters_command  # imported late: few ask for it

        plan, session = self._context.result.plan, self._context.result.session
        if plan is None or not session:
            return ""
        try:
            return counters_command(plan, session, self.wanted).shell()
        except WattridgeError:  # a word that this system's shells cannot be given
            return ""

    @Slot(object)
    def _finished(self, event: events.ProfilingFinished) -> None:
        if event.session == self._context.result.session:
            self._say(event.words)

    def _say(self, text: str) -> None:
        self.message.setText(text)
        self.message.setVisible(bool(text))
