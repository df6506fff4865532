"""`ResultsView`: the results of a session as a table; its rows and the current result follow each other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import numpy as np
from PySide6.QtCore import (
    QItemSelectionModel,
    QItemSelectionRange,
    QModelIndex,
    Qt,
    Slot,
)
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import QTableView, QWidget

from ...engine.analysis.quantities import configuration_text
from ...engine.session.plan import SessionPlan
from ...engine.space.result_table import ResultTable
from ..current_result import CurrentResult
from ..widgets import set_up_table
from .results_model import ResultsModel

_MOST_FOLLOWED = 200  # selected rows
_PADDING = 14  # pixels around a cell's text
_CHOOSE = (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space)
_MOVES = {
    Qt.Key.Key_Up: QTableView.CursorAction.MoveUp,
    Qt.Key.Key_Down: QTableView.CursorAction.MoveDown,
    Qt.Key.Key_Left: QTableView.CursorAction.MoveLeft,
    Qt.Key.Key_Right: QTableView.CursorAction.MoveRight,
    Qt.Key.Key_PageUp: QTableView.CursorAction.MovePageUp,
    Qt.Key.Key_PageDown: QTableView.CursorAction.MovePageDown,
    Qt.Key.Key_Home: QTableView.CursorAction.MoveHome,
    Qt.Key.Key_End: QTableView.CursorAction.MoveEnd,
}
_MARKS = Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.ControlModifier


class ResultsView(QTableView):
    """The table as it is seen. Its selected row is the current result's, and the current row is a cursor.

    Focus and arrow keys move the cursor; a click, Enter or Space chooses, and Shift or Ctrl mark.
    """

    def __init__(self, result: CurrentResult, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.results = ResultsModel(self)
        self._result = result
        self.setModel(self.results)
        set_up_table(self, "Results of the session")
        self.horizontalHeader().setHighlightSections(False)  # else Qt asks every row of every column when it paints
        self.results.modelReset.connect(self._columns_changed)
        self.results.about_to_reorder.connect(self._keep_few_selected)
        self.clicked.connect(self._clicked)
        self.selectionModel().selectionChanged.connect(self._rows_chosen)
        result.changed.connect(self._follow)
        result.brushed.connect(self._mark)
        copy = QShortcut(QKeySequence(QKeySequence.StandardKey.Copy), self, context=Qt.ShortcutContext.WidgetShortcut)
        copy.activated.connect(self.copy_selected)
        self._widths_set = False
        self._only_marked = False
        self._choosing_rows = False

    def set_session(self, table: ResultTable | None, plan: SessionPlan | None) -> None:
        self.horizontalHeader().setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        self.results.set_session(table, plan)
        self._fit_columns()

    def restate(self, table: ResultTable, plan: SessionPlan) -> None:
        """Show other figures of the same session: order, selection and marks stay."""
        header = self.horizontalHeader()
        column, order, chosen = header.sortIndicatorSection(), header.sortIndicatorOrder(), self._result.index
        self.set_session(table, plan)
        self.results.set_best(self._result.best)
        self._mark()
        if 0 <= column < self.results.columnCount():
            self.sortByColumn(column, order)
        self._result.select(chosen)
        self._follow(chosen)

    def refresh(self, best: int | None = None) -> None:
        """Show new measurements; the newest stay in sight where the end was in sight."""
        bar = self.verticalScrollBar()
        at_end = bar.value() >= bar.maximum() - 1
        self.results.refresh()
        self.results.set_best(best)
        self._fit_columns()
        if at_end and not self.results.is_sorted:
            self.scrollToBottom()

    @Slot(bool)
    def show_only_marked(self, only: bool) -> None:
        """Show no rows but those that are marked, while some are."""
        self._only_marked = only
        self._mark()

    @Slot()
    def _mark(self) -> None:
        self._choosing_rows = True  # what the table itself does to its selection is not the user's choice
        self.results.set_marked(self._result.rows, only=self._only_marked)
        self._choosing_rows = False
        self.viewport().update()

    def selectAll(self) -> None:
        """Mark every row that is shown; Qt's own way asks for every cell."""
        self._result.brush(self.results.indices_at(np.arange(self.results.rowCount())))

    @Slot()
    def _keep_few_selected(self) -> None:
        """Of very many selected rows the present one: Qt would follow each cell through the new order. Marks stay."""
        chosen = self.selectionModel()
        if sum(each.height() for each in cast(Iterable[QItemSelectionRange], chosen.selection())) > _MOST_FOLLOWED:
            self._choosing_rows = True
            flags = QItemSelectionModel.SelectionFlag
            chosen.select(self.currentIndex(), flags.ClearAndSelect | flags.Rows)
            self._choosing_rows = False

    @Slot()
    def _rows_chosen(self) -> None:
        """Several rows chosen by Shift or Ctrl are marked; a single one is only selected."""
        ranges = list(cast(Iterable[QItemSelectionRange], self.selectionModel().selection()))
        count = sum(each.height() for each in ranges)
        if count > 1 and not self._choosing_rows:
            rows = np.concatenate([np.arange(each.top(), each.bottom() + 1) for each in ranges])
            self._result.brush(self.results.indices_at(rows))

    @Slot()
    def copy_selected(self) -> None:
        """Put the selected configuration on the clipboard, as one line."""
        table = self._result.table
        if table is not None and 0 <= self._result.index < len(table):
            QGuiApplication.clipboard().setText(configuration_text(table.measurement(self._result.index)))

    @Slot(QModelIndex)
    def _clicked(self, at: QModelIndex) -> None:
        if not QGuiApplication.keyboardModifiers() & (_MARKS | Qt.KeyboardModifier.AltModifier):
            self._choose(at)

    def _choose(self, at: QModelIndex) -> None:
        if at.isValid():
            self._result.select(self.results.index_at(at.row()))
            self._follow(self._result.index)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter and Space choose the row of the cursor, which arrows move."""
        key, marks = event.key(), event.modifiers() & _MARKS
        if key in _CHOOSE and not marks:
            self._choose(self.currentIndex())
        elif key in _MOVES and not marks:
            at = self.moveCursor(_MOVES[Qt.Key(key)], Qt.KeyboardModifier.NoModifier)
            self.selectionModel().setCurrentIndex(at, QItemSelectionModel.SelectionFlag.NoUpdate)
        else:
            super().keyPressEvent(event)

    @Slot(int)
    def _follow(self, index: int) -> None:
        row = self.results.row_of(index) if index >= 0 else None
        if row is None:
            self.clearSelection()
        elif self.currentIndex().row() != row or not self.selectionModel().isRowSelected(row):
            at, flags = self.results.index(row, 0), QItemSelectionModel.SelectionFlag
            self.selectionModel().setCurrentIndex(at, flags.ClearAndSelect | flags.Rows)  # whatever keys are held
            self.scrollTo(at)

    @Slot()
    def _columns_changed(self) -> None:
        self._widths_set = False
        self._follow(self._result.index)

    def _fit_columns(self) -> None:
        """Widths once for each set of columns, so that the user's own stay; from words, since asking rows is slow."""
        if not self._widths_set and self.results.rowCount():
            self._widths_set = True
            measure = self.fontMetrics().horizontalAdvance
            for column in range(self.results.columnCount()):
                head = self.results.headerData(column, Qt.Orientation.Horizontal)
                widest = max(measure(text) for text in (head + "  ", *self.results.longest(column)))
                self.setColumnWidth(column, widest + _PADDING)
