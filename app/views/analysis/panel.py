"""The analysis of the session: one figure at a time from a list, computed off Qt's thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import islice, zip_longest

from PySide6.QtCore import QSignalBlocker, QTimer, Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QComboBox, QSizePolicy, QWidget

from ...base.formatting import count_text, counted
from ...engine.analysis.charts import CHARTS, Analysed, AnalysisChart
from ...engine.session.events import FiguresRestated, MeasurementsAdded, SessionChanged, SessionStarted
from ...engine.space.result_table import ResultTable
from ...engine.specification.plan import SessionPlan
from ..plots.chart_plot import ChartPlot
from ..shared.context import Context
from ..shared.label import PlainLabel
from ..shared.result_caption import ResultCaption
from ..shared.tasks import LatestTask
from ..shared.turns import InParts
from ..shared.widgets import button, hbox, vbox
from .counters_bar import CountersBar

_EMPTY = "No session yet.\nStart one in Tune, or open one in Library;\nits analysis is then drawn here."
_COUNTERS = "&Hardware counters"
_AGAIN_MS = 2000  # between two analyses of a session that grows


class AnalysisPanel(QWidget, InParts):
    """Follows the running session while it is visible. Usable without a window: `AnalysisPanel(context)`."""

    def __init__(self, context: Context, parent: QWidget | None = None, *, at_once: bool = True) -> None:
        super().__init__(parent)
        self._context = context
        self._table: ResultTable | None = None
        self._plan: SessionPlan | None = None
        self.session: Analysed | None = None  # what was analysed last
        self._analysed = -1  # measurements in it
        self.begin(at_once)

    def make(self) -> Iterator[None]:
        """The plot, the choices, what is drawn."""
        context = self._context
        self.figure = ChartPlot()
        yield
        self.which, self.first, self.second = QComboBox(), QComboBox(), QComboBox()
        for figure in CHARTS:
            self.which.addItem(figure.label, figure.name)
        self.caption = ResultCaption(context.result)
        self.state = PlainLabel(wrap=True)
        self.counters = CountersBar(context)
        self.counters.hide()
        tip = "Take counters of some configurations, apart from measuring"
        self.show_counters = button(_COUNTERS, tip, self._show_counters)
        self._lay_out()
        yield
        self._background = LatestTask(self)
        self._background.done.connect(self._analysis_done)
        self._background.failed.connect(self._analysis_failed)
        self._again = QTimer(self, interval=_AGAIN_MS, singleShot=True)
        self._again.timeout.connect(self.refresh)
        self.which.currentIndexChanged.connect(self._offer)
        self.first.currentIndexChanged.connect(self._draw)
        self.second.currentIndexChanged.connect(self._draw)
        context.bridge.session_started.connect(self._session_started)
        context.bridge.figures_restated.connect(self._session_started)
        context.bridge.measurements_added.connect(self._measurements_added)
        context.bridge.session_changed.connect(self._session_changed)
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
        head = hbox((self.caption, 1), self.show_counters)
        vbox(head, row, self.counters, (self.figure, 1), self.state, of=self, margins=6)
        self.setMinimumSize(360, 240)

    @Slot()
    def _show_counters(self) -> None:
        """Show the bar that takes counters, or hide it again."""
        shown = self.counters.isHidden()
        self.counters.setVisible(shown)
        self.show_counters.setText("&Hide" if shown else _COUNTERS)

    def shutdown(self) -> None:
        """End what runs in the background."""
        self._background.shutdown()

    # --- the session -------------------------------------------------------------------------------------------------

    @Slot(object)
    def _session_started(self, event: SessionStarted | FiguresRestated) -> None:
        self._begin(event.table, event.plan)

    @Slot(object)
    def _measurements_added(self, event: MeasurementsAdded) -> None:
        if event.session == self._context.result.session and self.isVisible() and not self._again.isActive():
            self._again.start()

    @Slot(object)
    def _session_changed(self, _event: SessionChanged) -> None:
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

        def work(_stop: threading.Event) -> Analysed:
            from ...engine.analysis.session_analysis import analyse  # imported late: SciPy loads slowly

            return Analysed(analyse(table, plan.objective), plan)

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
        if self.session is None:
            waiting = "Waiting for the first measurements." if self._table is not None else _EMPTY
            self.figure.say("Analysing …" if self._background.busy else waiting)
            return
        chosen = (choice.currentData() or "" for choice in (self.first, self.second))
        made = self.chosen.draw(self.session, *islice(chosen, len(self.chosen.choices)))
        if isinstance(made, str):
            self.figure.say(made)
        else:
            self.figure.show_chart(made)
