"""The measurements of the current result as a sortable table, a row for each configuration."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import (
    QAbstractTableModel,
    QItemSelectionModel,
    QItemSelectionRange,
    QModelIndex,
    Qt,
    Signal,
    Slot,
)
from PySide6.QtGui import QBrush, QColor, QGuiApplication, QKeyEvent, QKeySequence, QPalette, QShortcut
from PySide6.QtWidgets import QCheckBox, QTableView, QToolButton, QWidget

from ...base.formatting import count_text
from ...engine.analysis.quantities import Quantity, configuration_text, parameter_text, quantities_of, quantity
from ...engine.results.measurement import Measurement, State
from ...engine.runner.pool.pool import board_name
from ...engine.session import events
from ...engine.space.result_table import BOARD_NUMBER, ResultTable
from ...engine.space.within_limits import broken, broken_in_words
from ...engine.specification.operator_shapes import parameters_had
from ...engine.specification.plan import SessionPlan
from ..shared import theme
from ..shared.context import Context
from ..shared.current_result import CHOOSE, CurrentResult
from ..shared.label import PlainLabel, plain_tip
from ..shared.panel import Panel
from ..shared.record_model import NO_PARENT, AnyIndex
from ..shared.widgets import hbox, set_up_table, vbox

Indices = npt.NDArray[np.int64]
_NUMBER, _STATE = 0, 1  # the two columns before the parameters
_OVER = "over a limit"  # in place of the state of what worked, and breaks a limit
_TIMED = "timed"  # in place of the state of what worked, and was only timed


class ResultsModel(QAbstractTableModel):
    """A Qt model over a session's `ResultTable`, sorted by argsort.

    Rows are measurements, named by their index into the `ResultTable`; nothing is copied out of it.
    """

    about_to_reorder = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._table: ResultTable | None = None
        self._plan: SessionPlan | None = None
        self._columns: list[tuple[Quantity, bool]] = []  # after the first two; True: a parameter
        self._offered: tuple[str, ...] = ()
        self._order: Indices = np.empty(0, dtype=np.int64)  # view row -> index into the table
        self._taken = 0  # how many of the table's measurements are shown
        self._deepened = 0  # of them, those that were measured after they had been timed
        self._marked: Indices = np.empty(0, dtype=np.int64)
        self._only_marked = False
        self._sorted_by: tuple[int, bool] | None = None  # column, descending
        self._best: int | None = None

    @property
    def is_sorted(self) -> bool:
        """By a column, rather than in the order of measurement."""
        return self._sorted_by is not None

    def set_session(self, table: ResultTable | None, plan: SessionPlan | None) -> None:
        """Show another session, or none."""
        self.beginResetModel()
        self._table, self._best, self._sorted_by = table, None, None
        self._plan, self._offered = plan, ()
        self._columns = self._arranged()
        self._order, self._taken = np.empty(0, dtype=np.int64), 0
        self._marked, self._only_marked = np.empty(0, dtype=np.int64), False
        self.endResetModel()
        self.refresh()

    @Slot()
    def refresh(self) -> None:
        """Show new rows and new values. Sorted rows are merged, which is cheap."""
        if self._table is None:
            return
        length = len(self._table)  # first: columns are filled before the length moves
        if self._offered != self._table.figure_names:  # a new figure appeared: rare, at a session's start
            self.beginResetModel()
            self._offered, self._sorted_by = self._table.figure_names, None
            self._order = np.sort(self._order)
            self._columns = self._arranged()
            self.endResetModel()
        new = np.arange(self._taken, length) if not self._only_marked else np.empty(0, dtype=np.int64)
        self._taken = length
        if self._deepened != self._table.deepened:
            self._deepened = self._table.deepened
            if len(self._order):
                self.dataChanged.emit(self.index(0, 0), self.index(len(self._order) - 1, self.columnCount() - 1))
            if self._sorted_by is not None and not len(new):
                self._reorder()
        if not len(new):
            return
        self.beginInsertRows(NO_PARENT, len(self._order), len(self._order) + len(new) - 1)
        self._order = np.concatenate([self._order, new])
        self.endInsertRows()
        if self._sorted_by is not None:
            self._reorder()

    def set_marked(self, rows: Indices, *, only: bool) -> None:
        """Tint these measurements (ascending); `only`: show no others."""
        self.refresh()  # the newest may be among them
        self._marked = rows = rows[rows < self._taken]
        only = only and bool(len(rows))
        if only or self._only_marked:
            self.beginResetModel()
            self._only_marked = only
            self._order = rows.copy() if only else np.arange(self._taken)
            self.endResetModel()
            self._reorder()
        elif len(self._order):
            self.dataChanged.emit(self.index(0, 0), self.index(len(self._order) - 1, self.columnCount() - 1))

    def set_best(self, index: int | None) -> None:
        """Mark the best measurement so far with a star."""
        before, self._best = self._best, index
        for changed in {before, index} - {None}:
            row = self.row_of(int(changed or 0))
            if row is not None:
                position = self.index(row, _NUMBER)
                self.dataChanged.emit(position, position)

    def index_at(self, row: int) -> int:
        """The measurement (index into the table) shown in a row of the view."""
        return int(self._order[row])

    def indices_at(self, rows: Indices) -> Indices:
        """The same of many rows."""
        return self._order[rows]

    def row_of(self, index: int) -> int | None:
        """The row of the view that shows a measurement."""
        indices = np.flatnonzero(self._order == index)
        return int(indices[0]) if len(indices) else None

    def _arranged(self) -> list[tuple[Quantity, bool]]:
        """The columns: what the session works for first, then the parameters, then every other figure."""
        if self._plan is None:
            return []
        goals = dict.fromkeys(g.name for g in (self._plan.objective.goal, *self._plan.objective.front))
        headline = [name for name in goals if name in self._offered]
        others = [name for name in self._offered if name not in goals]
        figures = {name: (quantity(name, units=self._plan.units), False) for name in self._offered}
        parameters = [(described, True) for described in quantities_of(self._plan).values()]
        others.sort(key=lambda name: name != BOARD_NUMBER)  # which board it was comes before what else is known
        return [*(figures[n] for n in headline), *parameters, *(figures[n] for n in others)]

    def longest(self, column: int) -> list[str]:
        """Texts as wide as any of a column may be expected to be."""
        if column < 2:
            limited = self._plan is not None and bool(self._plan.objective.limits)
            states = [_TIMED, *([_OVER] if limited else []), *(state.value for state in State)]
            return ["★ 00000"] if column == _NUMBER else states
        described, parameter = self._columns[column - 2]
        if described.name == BOARD_NUMBER and not parameter:
            return ["GPU-00000000"]
        if not parameter or self._table is None:
            return ["0.0000"]
        parameters = self._table.space.parameters
        return [parameter_text(v) for p in parameters if p.name == described.name for v in p.values][:200]

    # --- Qt's side ---------------------------------------------------------------------------------------------------

    def rowCount(self, parent: AnyIndex = NO_PARENT) -> int:
        return 0 if parent.isValid() else len(self._order)

    def columnCount(self, parent: AnyIndex = NO_PARENT) -> int:
        return 0 if parent.isValid() or self._table is None else 2 + len(self._columns)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation is not Qt.Orientation.Horizontal or role != Qt.ItemDataRole.DisplayRole:
            return None
        if section == _NUMBER:
            return "#"
        if section == _STATE:
            return "State"
        described = self._described(section)
        return described.title if described else None

    def data(self, index: AnyIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if self._table is None or not index.isValid() or index.row() >= len(self._order):
            return None
        row = int(self._order[index.row()])
        column = index.column()
        if role == Qt.ItemDataRole.DisplayRole:
            return self._text(row, column)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            side = Qt.AlignmentFlag.AlignLeft if column == _STATE else Qt.AlignmentFlag.AlignRight
            return side | Qt.AlignmentFlag.AlignVCenter
        if role == Qt.ItemDataRole.BackgroundRole:
            return self._tint() if self._is_marked(row) and not self._only_marked else None
        measurement = self._table.measurement(row)
        if role == Qt.ItemDataRole.ForegroundRole and (measurement.state is not State.OK or self._broken(measurement)):
            return QGuiApplication.palette().brush(QPalette.ColorRole.PlaceholderText)
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tip(measurement.error or self._broken(measurement) or measurement.message) or None
        return None

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by a column; -1 or '#' ascending is the order of measurement. Unknown values come last either way."""
        descending = order is Qt.SortOrder.DescendingOrder
        self._sorted_by = None if column < 0 or (column == _NUMBER and not descending) else (column, descending)
        self._order = np.sort(self._order) if self._sorted_by is None else self._order
        self._reorder()

    def _reorder(self) -> None:
        """Put the rows in order. The stable sort takes what is in order already for nothing."""
        self.about_to_reorder.emit()
        self.layoutAboutToBeChanged.emit()
        before = self.persistentIndexList()
        held = [self.index_at(index.row()) for index in before]
        if self._sorted_by is not None and self._table is not None:
            column, descending = self._sorted_by
            key = self._key(column)[self._order]
            self._order = self._order[np.argsort(-key if descending else key, kind="stable")]
        rows = self._rows_of(held)
        after = [self.index(row, i.column()) for row, i in zip(rows, before, strict=True)]
        self.changePersistentIndexList(before, after)
        self.layoutChanged.emit()

    def _is_marked(self, index: int) -> bool:
        place = int(np.searchsorted(self._marked, index))
        return place < len(self._marked) and int(self._marked[place]) == index

    def _tint(self) -> QBrush:
        colour = QColor(theme.colours().orange)
        colour.setAlpha(60)
        return QBrush(colour)

    def _rows_of(self, held: list[int]) -> list[int]:
        """The rows that show these measurements, -1 where none does; of a hundred thousand at once, too."""
        rows = np.full(self._taken, -1, dtype=np.int64)
        rows[self._order] = np.arange(len(self._order))
        return [int(row) for row in rows[np.asarray(held, dtype=np.int64)]]

    def _key(self, column: int) -> npt.NDArray[np.float64]:
        assert self._table is not None
        length = self._taken
        if column == _NUMBER:
            return np.arange(length, dtype=np.float64)
        if column == _STATE:
            states = self._table.states()[:length].astype(np.float64)
            limits = self._plan.objective.limits if self._plan is not None else ()
            return np.where(broken(self._table, limits)[:length], states + 0.5, states)
        described = self._described(column)
        assert described is not None
        return self._table.values(described.name)[:length]

    def _broken(self, measurement: Measurement) -> str:
        """Which limits of the session it breaks, in words; empty if it failed, or is not measured in full."""
        if self._plan is None or measurement.state is not State.OK or not measurement.final:
            return ""
        return broken_in_words(self._plan.objective.limits, measurement.values)

    def _described(self, column: int) -> Quantity | None:
        return self._columns[column - 2][0] if 2 <= column < 2 + len(self._columns) else None

    def _text(self, index: int, column: int) -> str:
        assert self._table is not None
        if column == _NUMBER:
            return f"★ {index + 1}" if index == self._best else str(index + 1)
        measurement = self._table.measurement(index)
        if column == _STATE:
            if self._broken(measurement):
                return _OVER
            return measurement.state.value if measurement.final else _TIMED
        described, parameter = self._columns[column - 2]
        if parameter:
            return parameter_text(parameters_had(measurement.configuration).get(described.name, ""))
        if described.name == BOARD_NUMBER:
            return board_name(measurement.board)
        return described.number(measurement.values.get(described.name, float("nan")))


_MOST_FOLLOWED = 200  # selected rows
_PADDING = 14  # pixels around a cell's text
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
    """The results of a session as a table. Its selected row is the current result's; the current row is a cursor.

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
        """Select every shown row, faster than Qt, which queries every cell."""
        self._result.brush(self.results.indices_at(np.arange(self.results.rowCount())))

    @Slot()
    def _keep_few_selected(self) -> None:
        """Of very many selected rows the present one: Qt would follow each cell through the new order. Marks stay."""
        chosen = self.selectionModel()
        if sum(item.height() for item in cast(Iterable[QItemSelectionRange], chosen.selection())) > _MOST_FOLLOWED:
            self._choosing_rows = True
            flags = QItemSelectionModel.SelectionFlag
            chosen.select(self.currentIndex(), flags.ClearAndSelect | flags.Rows)
            self._choosing_rows = False

    @Slot()
    def _rows_chosen(self) -> None:
        """Several rows chosen by Shift or Ctrl are marked; a single one is only selected."""
        ranges = list(cast(Iterable[QItemSelectionRange], self.selectionModel().selection()))
        count = sum(item.height() for item in ranges)
        if count > 1 and not self._choosing_rows:
            rows = np.concatenate([np.arange(item.top(), item.bottom() + 1) for item in ranges])
            self._result.brush(self.results.indices_at(rows))

    @Slot()
    def copy_selected(self) -> None:
        """Put the selected configuration on the clipboard, as one line."""
        table = self._result.table
        if table is not None and 0 <= self._result.index < len(table):
            QGuiApplication.clipboard().setText(configuration_text(table.measurement(self._result.index)))

    @Slot(QModelIndex)
    def _clicked(self, index: QModelIndex) -> None:
        if not QGuiApplication.keyboardModifiers() & (_MARKS | Qt.KeyboardModifier.AltModifier):
            self._choose(index)

    def _choose(self, index: QModelIndex) -> None:
        if index.isValid():
            self._result.select(self.results.index_at(index.row()))
            self._follow(self._result.index)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter and Space choose the row of the cursor, which arrows move."""
        key, marks = event.key(), event.modifiers() & _MARKS
        if key in CHOOSE and not marks:
            self._choose(self.currentIndex())
        elif key in _MOVES and not marks:
            index = self.moveCursor(_MOVES[Qt.Key(key)], Qt.KeyboardModifier.NoModifier)
            self.selectionModel().setCurrentIndex(index, QItemSelectionModel.SelectionFlag.NoUpdate)
        else:
            super().keyPressEvent(event)

    def keyboardSearch(self, typed: str) -> None:
        """What is typed moves the cursor alone, to the row that begins like that: Qt selects it as well."""
        self._choosing_rows = True
        super().keyboardSearch(typed)
        chosen = self.results.row_of(self._result.index) if self._result.index >= 0 else None
        flags = QItemSelectionModel.SelectionFlag
        self.clearSelection()
        if chosen is not None:
            self.selectionModel().select(self.results.index(chosen, 0), flags.Select | flags.Rows)
        self._choosing_rows = False

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


class MarkedBar(QWidget):
    """How many measurements are marked, above the table while some are; `only` asks for a table of just these."""

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
        self.results = ResultsView(context.result)
        self.marked = MarkedBar(context.result)
        policy = self.marked.sizePolicy()
        policy.setRetainSizeWhenHidden(True)  # no row moves when rows are marked
        self.marked.setSizePolicy(policy)
        vbox((self.results, 1), self.marked, of=self, margins=6)
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
