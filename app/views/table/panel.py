"""The results of the current result: every configuration a row of a sortable table.

`MarkedBar`: how many measurements are marked, above the table; there only while some are.
"""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import Slot
from PySide6.QtWidgets import QCheckBox, QToolButton, QWidget

from ...base.formatting import count_text
from ...engine.session import events
from ..shared.context import Context
from ..shared.current_result import CurrentResult
from ..shared.label import PlainLabel
from ..shared.panel import Panel
from ..shared.result_caption import ResultCaption
from ..shared.widgets import hbox, vbox
from .results_table import ResultsView


class MarkedBar(QWidget):
    """`only` asks for a table of just these."""

    def __init__(self, result: CurrentResult, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._result = result
        self.count = PlainLabel()
        self.only = QCheckBox("O&nly these")
        self.only.setToolTip("Show no other rows in the table")
        self.unmark = QToolButton()
        self.unmark.setText("Unmark")
        self.unmark.setAutoRaise(True)
        hbox(self.count, self.only, 1, self.unmark, of=self, margins=0)
        self.unmark.clicked.connect(self._unmark)
        result.brushed.connect(self._follow)
        self._follow()

    @Slot()
    def _follow(self) -> None:
        marked = len(self._result.rows)
        self.count.setText(f"{count_text(marked)} marked")
        self.setVisible(bool(marked))

    @Slot()
    def _unmark(self) -> None:
        self._result.brush(np.empty(0, dtype=np.int64))


class TablePanel(Panel):
    """Shows new measurements as they come while it is in sight, and the rest when it comes into sight."""

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self.caption = ResultCaption(context.result)
        self.results = ResultsView(context.result)
        self.marked = MarkedBar(context.result)
        policy = self.marked.sizePolicy()
        policy.setRetainSizeWhenHidden(True)  # no row moves when rows are marked
        self.marked.setSizePolicy(policy)
        vbox(self.caption, (self.results, 1), self.marked, of=self, margins=6)
        self.marked.only.toggled.connect(self.results.show_only_marked)
        self.subscribe(events.SessionStarted, self._session_started)
        self.subscribe(events.FiguresRestated, self._figures_restated)
        self.subscribe(events.MeasurementsAdded, self._measurements_added)
        self.subscribe(events.SessionChanged, self._session_changed)
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
