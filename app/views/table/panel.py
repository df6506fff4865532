"""The results of the current result: every configuration a row of a sortable table."""

from __future__ import annotations

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QWidget

from ...engine.session import events
from ..context import Context
from ..result_caption import ResultCaption
from ..widgets import vbox
from .marked_bar import MarkedBar
from .results_table import ResultsView


class TablePanel(QWidget):
    """Shows new measurements as they come while it is in sight, and the rest when it comes into sight."""

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.caption = ResultCaption(context.result)
        self.results = ResultsView(context.result)
        self.marked = MarkedBar(context.result)
        policy = self.marked.sizePolicy()
        policy.setRetainSizeWhenHidden(True)  # no row moves when rows are marked
        self.marked.setSizePolicy(policy)
        vbox(self.caption, (self.results, 1), self.marked, of=self, margins=6)
        self.marked.only.toggled.connect(self.results.show_only_marked)
        bridge = context.bridge
        bridge.session_started.connect(self._session_started)
        bridge.figures_restated.connect(self._figures_restated)
        bridge.measurements_added.connect(self._measurements_added)
        bridge.session_changed.connect(self._session_changed)
        if context.result.table is not None:
            self.results.set_session(context.result.table, context.result.plan)

    @Slot(object)
    def _session_started(self, event: events.SessionStarted) -> None:
        self.results.set_session(event.table, event.plan)

    @Slot(object)
    def _figures_restated(self, event: events.FiguresRestated) -> None:
        self.results.restate(event.table, event.plan)

    @Slot(object)
    def _measurements_added(self, event: events.MeasurementsAdded) -> None:
        if self.isVisible():
            self.results.refresh(event.progress.best_index)

    @Slot(object)
    def _session_changed(self, event: events.SessionChanged) -> None:
        self.results.refresh(event.progress.best_index)
