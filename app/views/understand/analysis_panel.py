"""The analysis of the session: one figure at a time from a list, computed off Qt's thread.

`CountersBar`: of which configurations to take hardware counters, the command for it, and its start.
"""

from __future__ import annotations

import threading
from itertools import islice, zip_longest
from typing import Final

from PySide6.QtCore import QSignalBlocker, Signal, Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QComboBox, QSizePolicy, QWidget

from ...base.errors import WattridgeError
from ...base.formatting import count_text, counted
from ...engine.analysis.charts import CHARTS, Analysed, AnalysisChart
from ...engine.results.state import Purpose
from ...engine.session import events
from ...engine.session.profiling import USUAL_COUNT, Wanted, Which
from ...engine.space.result_table import ResultTable
from ...engine.specification.plan import SessionPlan
from ..plots.chart_plot import ChartPlot
from ..shared.context import Context
from ..shared.label import PlainLabel
from ..shared.needs import Needs
from ..shared.panel import Panel
from ..shared.settings import Settings
from ..shared.tasks import LatestTask
from ..shared.turns import timer
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
        for which, text in _CHOICES.items():
            self.which.addItem(text, which)
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
        """Why nothing can be profiled now; empty if it can."""
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


_EMPTY = "No session yet: run one, or open one in Library, and its analysis is drawn here."
_COUNTERS = "&Hardware counters"
_AGAIN_MS = 2000  # between two analyses of a session that grows


class AnalysisPanel(Panel):
    """Follows the running session while it is visible. Usable without a window: `AnalysisPanel(context)`."""

    session_asked = Signal()

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self._table: ResultTable | None = None
        self._plan: SessionPlan | None = None
        self.session: Analysed | None = None  # what was analysed last
        self._analysed = -1  # measurements in it
        self.figure = ChartPlot()
        self.which, self.first, self.second = QComboBox(), QComboBox(), QComboBox()
        for figure in CHARTS:
            self.which.addItem(figure.label, figure.name)
        self.needs = Needs(_EMPTY, "Set up a &session", self.session_asked.emit)
        self.state = PlainLabel(wrap=True)
        self.counters = CountersBar(context)
        self.counters.hide()
        tip = "Take counters of some configurations, apart from measuring"
        self.show_counters = button(_COUNTERS, tip, self._show_counters)
        self._lay_out()
        self._background = LatestTask(self, self._analysis_done, self._analysis_failed)
        self._again = timer(self, self.refresh, _AGAIN_MS, once=True)
        self.which.currentIndexChanged.connect(self._offer)
        self.first.currentIndexChanged.connect(self._draw)
        self.second.currentIndexChanged.connect(self._draw)
        self.subscribe(events.SessionStarted | events.FiguresRestated, self._session_started)
        self.subscribe(events.MeasurementsAdded, self._measurements_added)
        self.subscribe(events.SessionChanged, self._session_changed)
        self._begin(context.result.table, context.result.plan)

    def _lay_out(self) -> None:
        label = PlainLabel("F&igure")
        label.setBuddy(self.which)
        for choice, name, length in (
            (self.which, "Figure of the analysis", 16),
            (self.first, "What the figure is of", 8),
            (self.second, "Of which parameter", 8),
        ):
            choice.setAccessibleName(name)
            choice.setToolTip(name)
            choice.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
            choice.setMinimumContentsLength(length)
            choice.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        row = hbox(label, self.which, self.first, self.second)
        row.addWidget(self.show_counters)
        vbox(row, self.counters, (self.figure, 1), (self.needs, 1), self.state, of=self, margins=6)
        self.setMinimumSize(360, 240)

    @Slot()
    def _show_counters(self) -> None:
        """Show the bar that takes counters, or hide it again."""
        shown = self.counters.isHidden()
        self.counters.setVisible(shown)
        self.show_counters.setText("&Hide" if shown else _COUNTERS)

    # --- the session -------------------------------------------------------------------------------------------------

    @Slot(object)
    def _session_started(self, event: events.SessionStarted | events.FiguresRestated) -> None:
        self._begin(event.table, event.plan)

    @Slot(object)
    def _measurements_added(self, event: events.MeasurementsAdded) -> None:
        if event.session == self._context.result.session and self.isVisible() and not self._again.isActive():
            self._again.start()

    @Slot(object)
    def _session_changed(self, _event: events.SessionChanged) -> None:
        if self.isVisible():
            self.refresh()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.refresh()

    def _begin(self, table: ResultTable | None, plan: SessionPlan | None) -> None:
        self._table, self._plan, self.session, self._analysed = table, plan, None, -1
        self.state.setText("")
        self._offer()
        if self.isVisible():
            self.refresh()

    @Slot()
    def refresh(self) -> None:
        """Analyse what was measured, where that has grown; one analysis at a time."""
        table, plan = self._table, self._plan
        if table is None or plan is None or len(table) == self._analysed or not len(table):
            return
        if self._background.busy and self.session is not None:
            self._again.start()
            return
        self._analysed = len(table)
        self.state.setText(f"Analysing {counted(len(table), 'measurement')} …")

        load = Settings().load

        def work(_stop: threading.Event) -> Analysed:
            from ...engine.analysis.session_analysis import analyse  # imported late: SciPy loads slowly

            return Analysed(analyse(table, plan.objective, load=load), plan)

        self._background.run(work)
        if self.session is None:
            self._draw()

    @Slot(object)
    def _analysis_done(self, session: Analysed) -> None:
        if session.analysis.table is not self._table:
            return
        self.session = session
        timed = int(session.analysis.table.timed()[: self._analysed].sum())
        more = f" and {count_text(timed)} only timed" if timed else ""
        words = f"{counted(self._analysed - timed, 'measurement')}{more} of {session.plan.title}"
        mixed = self._plan.mixed_kernels if self._plan is not None else ""
        self.state.setText("; ".join(filter(None, (words, mixed))))
        self._offer()
        if self._table is not None and len(self._table) != self._analysed:
            self._again.start()

    @Slot(str, str)
    def _analysis_failed(self, what: str, remedy: str) -> None:
        self.state.setText(f"{what}. {remedy}")

    # --- what is shown -----------------------------------------------------------------------------------------------

    @property
    def chosen(self) -> AnalysisChart:
        """The figure of the list that is shown."""
        return CHARTS[self.which.currentIndex()]

    def show_figure(self, name: str) -> None:
        """Choose a figure of the list."""
        self.which.setCurrentIndex(self.which.findData(name))

    @Slot()
    def _offer(self) -> None:
        """Offer what the figure can be of, keeping what is chosen, and draw it."""
        for choice, offer in zip_longest((self.first, self.second), self.chosen.choices):
            offered = offer(self.session) if offer is not None and self.session is not None else []
            kept = choice.currentData()
            with QSignalBlocker(choice):
                choice.clear()
                for data, text in offered:
                    choice.addItem(text, data)
                choice.setCurrentIndex(max(0, choice.findData(kept)) if offered else -1)
            choice.setVisible(bool(offered))
        self._draw()

    @Slot()
    def _draw(self) -> None:
        self.needs.setVisible(self._table is None)
        self.figure.setVisible(self._table is not None)
        if self.session is None:
            self.figure.say("Analysing …" if self._background.busy else "Waiting for the first measurements.")
            return
        chosen = (choice.currentData() or "" for choice in (self.first, self.second))
        made = self.chosen.draw(self.session, *islice(chosen, len(self.chosen.choices)))
        if isinstance(made, str):
            self.figure.say(made)
        else:
            self.figure.show_chart(made)
