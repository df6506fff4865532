"""The results of a session as a table: a Qt model over `ResultTable`, sorted by argsort, and its view."""

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
    QPersistentModelIndex,
    Qt,
    Signal,
    Slot,
)
from PySide6.QtGui import QBrush, QColor, QGuiApplication, QKeySequence, QPalette, QShortcut
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from app.engine.measurement import Measurement, State, Value
from app.engine.results import ResultTable
from app.engine.session import SessionPlan
from app.views import theme
from app.views.quantities import Quantity, format_number, quantities_of, quantity
from app.views.selection import Selection

Indices = npt.NDArray[np.int64]
AnyIndex = QModelIndex | QPersistentModelIndex
_NO_PARENT = QModelIndex()
_MOST_FOLLOWED = 200  # selected rows
_PADDING = 14  # pixels around a cell's text
_NUMBER, _STATE = 0, 1  # the two columns before the parameters


class ResultsModel(QAbstractTableModel):
    """Rows are measurements, named by their index into the `ResultTable`; nothing is copied out of it."""

    about_to_reorder = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._table: ResultTable | None = None
        self._plan: SessionPlan | None = None
        self._columns: list[tuple[Quantity, bool]] = []  # after the first two; True: a parameter
        self._offered: tuple[str, ...] = ()
        self._order: Indices = np.empty(0, dtype=np.int64)  # view row -> index into the table
        self._taken = 0  # how many of the table's measurements have been taken in
        self._marked: Indices = np.empty(0, dtype=np.int64)
        self._only_marked = False
        self._sorted_by: tuple[int, bool] | None = None  # column, descending
        self._best: int | None = None

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
        """Take in what the table has grown by. Cheap: sorted rows are merged, not sorted anew."""
        if self._table is None:
            return
        length = len(self._table)  # first: columns are filled before the length moves
        if self._offered != self._table.value_names:  # a new figure appeared: rare, at a session's start
            self.beginResetModel()
            self._offered, self._sorted_by = self._table.value_names, None
            self._order = np.sort(self._order)
            self._columns = self._arranged()
            self.endResetModel()
        new = np.arange(self._taken, length) if not self._only_marked else np.empty(0, dtype=np.int64)
        self._taken = length
        if not len(new):
            return
        self.beginInsertRows(_NO_PARENT, len(self._order), len(self._order) + len(new) - 1)
        self._order = np.concatenate([self._order, new])
        self.endInsertRows()
        if self._sorted_by is not None:
            self._reorder()

    def set_marked(self, rows: Indices, *, only: bool) -> None:
        """Tint these measurements (ascending); `only`: show no others."""
        self._marked = rows
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
                at = self.index(row, _NUMBER)
                self.dataChanged.emit(at, at)

    def index_at(self, row: int) -> int:
        """The measurement (index into the table) shown in a row of the view."""
        return int(self._order[row])

    def indices_at(self, rows: Indices) -> Indices:
        """The same of many rows."""
        return self._order[rows]

    def row_of(self, index: int) -> int | None:
        """The row of the view that shows a measurement."""
        found = np.flatnonzero(self._order == index)
        return int(found[0]) if len(found) else None

    def _arranged(self) -> list[tuple[Quantity, bool]]:
        """The columns: what the session works for first, then the parameters, then every other figure."""
        if self._plan is None:
            return []
        goals = dict.fromkeys(g.name for g in (self._plan.objective.goal, *self._plan.objective.front))
        headline = [name for name in goals if name in self._offered]
        others = [name for name in self._offered if name not in goals]
        figures = {name: (quantity(name, units=self._plan.units), False) for name in self._offered}
        parameters = [(described, True) for described in quantities_of(self._plan).values()]
        return [*(figures[n] for n in headline), *parameters, *(figures[n] for n in others)]

    def longest(self, column: int) -> list[str]:
        """Texts as wide as any of a column may be expected to be."""
        if column < 2:
            return ["★ 00000"] if column == _NUMBER else [state.value for state in State]
        described, parameter = self._columns[column - 2]
        if not parameter or self._table is None:
            return ["0.0000"]
        return [value_text(v) for p in self._table.space.parameters if p.name == described.name for v in p.values][:200]

    # --- Qt's side ---------------------------------------------------------------------------------------------------

    def rowCount(self, parent: AnyIndex = _NO_PARENT) -> int:
        return 0 if parent.isValid() else len(self._order)

    def columnCount(self, parent: AnyIndex = _NO_PARENT) -> int:
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
        at = int(self._order[index.row()])
        column = index.column()
        if role == Qt.ItemDataRole.DisplayRole:
            return self._text(at, column)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            side = Qt.AlignmentFlag.AlignLeft if column == _STATE else Qt.AlignmentFlag.AlignRight
            return side | Qt.AlignmentFlag.AlignVCenter
        if role == Qt.ItemDataRole.BackgroundRole:
            return self._tint() if self._is_marked(at) and not self._only_marked else None
        measurement = self._table.measurement(at)
        if role == Qt.ItemDataRole.ForegroundRole and measurement.state is not State.OK:
            return QGuiApplication.palette().brush(QPalette.ColorRole.PlaceholderText)
        if role == Qt.ItemDataRole.ToolTipRole:
            return measurement.error or measurement.message or None
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

    def _is_marked(self, at: int) -> bool:
        place = int(np.searchsorted(self._marked, at))
        return place < len(self._marked) and int(self._marked[place]) == at

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
            return self._table.states()[:length].astype(np.float64)
        described = self._described(column)
        assert described is not None
        return self._table.values(described.name)[:length]

    def _described(self, column: int) -> Quantity | None:
        return self._columns[column - 2][0] if 2 <= column < 2 + len(self._columns) else None

    def _text(self, at: int, column: int) -> str:
        assert self._table is not None
        if column == _NUMBER:
            return f"★ {at + 1}" if at == self._best else str(at + 1)
        measurement = self._table.measurement(at)
        if column == _STATE:
            return measurement.state.value
        described, parameter = self._columns[column - 2]
        if parameter:
            return value_text(measurement.configuration.get(described.name, ""))
        return described.number(measurement.values.get(described.name, float("nan")))


def value_text(value: Value) -> str:
    """A parameter's value as shown: text and whole numbers as they are, other numbers to four digits."""
    return format_number(value) if isinstance(value, float) and not value.is_integer() else str(value)


def configuration_text(measurement: Measurement) -> str:
    """A configuration in one line: 'block_size_x=32, tile=4'."""
    return ", ".join(f"{name}={value_text(value)}" for name, value in measurement.configuration.items())


class ResultsView(QTableView):
    """The table as a person sees it. Its selected row and the shared selection follow each other."""

    def __init__(self, selection: Selection, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.results = ResultsModel(self)
        self._selection = selection
        self.setModel(self.results)
        self.setSortingEnabled(True)
        self.horizontalHeader().setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        self.horizontalHeader().setSortIndicatorClearable(True)
        self.horizontalHeader().setHighlightSections(False)  # else Qt asks every row of every column when it paints
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setAlternatingRowColors(True)
        self.setWordWrap(False)
        self.verticalHeader().hide()
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + 6)
        self.setAccessibleName("Results of the session")
        self.results.modelReset.connect(self._columns_changed)
        self.results.about_to_reorder.connect(self._keep_few_selected)
        self.selectionModel().currentRowChanged.connect(self._row_chosen)
        self.selectionModel().selectionChanged.connect(self._rows_chosen)
        selection.changed.connect(self._follow)
        selection.brushed.connect(self._mark)
        copy = QShortcut(QKeySequence(QKeySequence.StandardKey.Copy), self, context=Qt.ShortcutContext.WidgetShortcut)
        copy.activated.connect(self.copy_selected)
        self._widths_set = False
        self._only_marked = False
        self._choosing_rows = False

    def set_session(self, table: ResultTable | None, plan: SessionPlan | None) -> None:
        self.horizontalHeader().setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        self.results.set_session(table, plan)
        self._fit_columns()

    def refresh(self, best: int | None = None) -> None:
        """Take in new measurements; the newest stay in sight where the end was in sight."""
        bar = self.verticalScrollBar()
        at_end = bar.value() >= bar.maximum() - 1
        self.results.refresh()
        self.results.set_best(best)
        self._fit_columns()
        if at_end and self.results._sorted_by is None:
            self.scrollToBottom()

    @Slot(bool)
    def show_only_marked(self, only: bool) -> None:
        """Show no rows but those that are marked, while some are."""
        self._only_marked = only
        self._mark()

    @Slot()
    def _mark(self) -> None:
        self._choosing_rows = True  # what the table itself does to its selection is not a person's choice
        self.results.set_marked(self._selection.rows, only=self._only_marked)
        self._choosing_rows = False
        self.viewport().update()

    def selectAll(self) -> None:
        """Mark every row that is shown; Qt's own way asks for every cell."""
        self._selection.brush(self.results.indices_at(np.arange(self.results.rowCount())))

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
            self._selection.brush(self.results.indices_at(rows))

    @Slot()
    def copy_selected(self) -> None:
        """Put the selected configuration on the clipboard, as one line."""
        table = self.results._table
        if table is not None and 0 <= self._selection.index < len(table):
            QGuiApplication.clipboard().setText(configuration_text(table.measurement(self._selection.index)))

    @Slot(QModelIndex, QModelIndex)
    def _row_chosen(self, current: QModelIndex, _previous: QModelIndex) -> None:
        if current.isValid():
            self._selection.select(self.results.index_at(current.row()))

    @Slot(int)
    def _follow(self, index: int) -> None:
        row = self.results.row_of(index) if index >= 0 else None
        if row is None:
            self.clearSelection()
        elif self.currentIndex().row() != row or not self.selectionModel().hasSelection():
            at, flags = self.results.index(row, 0), QItemSelectionModel.SelectionFlag
            self.selectionModel().setCurrentIndex(at, flags.ClearAndSelect | flags.Rows)  # whatever keys are held
            self.scrollTo(at)

    @Slot()
    def _columns_changed(self) -> None:
        self._widths_set = False
        self._follow(self._selection.index)

    def _fit_columns(self) -> None:
        """Widths once for each set of columns, so that a person's own stay; from words, since asking rows is slow."""
        if not self._widths_set and self.results.rowCount():
            self._widths_set = True
            measure = self.fontMetrics().horizontalAdvance
            for column in range(self.results.columnCount()):
                head = self.results.headerData(column, Qt.Orientation.Horizontal)
                widest = max(measure(text) for text in (head + "  ", *self.results.longest(column)))
                self.setColumnWidth(column, widest + _PADDING)
