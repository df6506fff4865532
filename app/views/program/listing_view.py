"""`ListingView`: the tables of a description, one at a time, searched and sorted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QItemSelectionModel, QSignalBlocker, Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QComboBox, QLineEdit, QTableView, QWidget

from ...base.formatting import number
from ...engine.results.description import Cell, Listing
from ..shared.label import plain_tip
from ..shared.record_model import AnyIndex, RecordModel
from ..shared.widgets import hbox, set_up_table, vbox

_NAME_CHARACTERS = 34  # of the first column, at least
_LOOKED_AT = 12  # rows, for the widths of the columns


class ListingModel(RecordModel):
    """Rows are records: (place in the listing, cells)."""

    def __init__(self, listing: Listing) -> None:
        super().__init__(listing.header)
        self._all = list(enumerate(listing.rows))
        self._typed, self._sorted = "", (-1, False)
        self.search("")

    def place(self, row: int) -> int:
        """The place of a row in the listing."""
        return int(self._records[row][0])

    def search(self, typed: str) -> None:
        """Show those in which all typed words stand."""
        self._typed = typed.casefold()
        words = self._typed.split()
        shown = [each for each in self._all if all(word in " ".join(map(_text, each[1])).casefold() for word in words)]
        column, descending = self._sorted
        if column >= 0:
            shown.sort(key=lambda each: _order(each[1][column]), reverse=descending)
        self._replace(shown)

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        self._sorted = column, order is Qt.SortOrder.DescendingOrder
        self.search(self._typed)

    def data(self, index: AnyIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        cell: Cell = self._records[index.row()][1][index.column()]
        if role == Qt.ItemDataRole.DisplayRole:
            return _text(cell)
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tip(_text(cell))
        if role == Qt.ItemDataRole.TextAlignmentRole and index.column():
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        return None


class ListingView(QWidget):
    """Below a search and the choice of the table."""

    chosen = Signal(int, int)  # which listing, and the place of the row in it

    def __init__(self, name: str) -> None:
        super().__init__()
        self.search, self.which, self.table = QLineEdit(), QComboBox(), QTableView()
        self.search.setPlaceholderText("Search …")
        self.search.setAccessibleName(f"Search {name}")
        self.search.setClearButtonEnabled(True)
        self.which.setAccessibleName(f"Table of {name}")
        self.which.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self._models: list[ListingModel] = []
        set_up_table(self.table, name)
        self.table.horizontalHeader().setResizeContentsPrecision(_LOOKED_AT)
        vbox(hbox((self.search, 1), self.which, margins=0), (self.table, 1), of=self, margins=0)
        self.search.textChanged.connect(lambda typed: self._models[self.which.currentIndex()].search(typed))
        self.which.currentIndexChanged.connect(self._show)

    def show_listings(self, listings: Sequence[Listing]) -> None:
        """Show these, the first one at first."""
        self._models = [ListingModel(listing) for listing in listings]
        with QSignalBlocker(self.which):
            self.which.clear()
            self.which.addItems([listing.title for listing in listings])
        self._show()

    def select(self, which: int, place: int) -> None:
        """Select a row, and leave the search where it hides it."""
        self.which.setCurrentIndex(which)
        model, flags = self._models[which], QItemSelectionModel.SelectionFlag
        for typed in (self.search.text(), ""):
            self.search.setText(typed)
            row = next((row for row in range(model.rowCount()) if model.place(row) == place), None)
            if row is not None:
                index = model.index(row, 0)
                self.table.selectionModel().setCurrentIndex(index, flags.ClearAndSelect | flags.Rows)
                return

    @Slot()
    def _show(self, *_: object) -> None:
        self.table.setModel(self._models[self.which.currentIndex()])
        self._models[self.which.currentIndex()].search(self.search.text())
        self.table.resizeColumnsToContents()
        self._fit()
        self.table.selectionModel().selectionChanged.connect(self._selected)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Names have what the other columns leave, and room for some characters."""
        head, least = self.table.horizontalHeader(), _NAME_CHARACTERS * self.table.fontMetrics().averageCharWidth()
        others = head.length() - self.table.columnWidth(0)
        self.table.setColumnWidth(0, max(least, self.table.viewport().width() - others))

    @Slot()
    def _selected(self, *_: object) -> None:
        which = self.which.currentIndex()
        for index in self.table.selectionModel().selectedRows()[:1]:
            self.chosen.emit(which, self._models[which].place(index.row()))


def _text(cell: Cell) -> str:
    return cell if isinstance(cell, str) else number(cell)


def _order(cell: Cell) -> tuple[bool, float, str]:
    """Numbers, and texts that begin with one, by it; then words; what is not known comes first."""
    if isinstance(cell, str):
        head = cell.split("–")[0].split(" ")[0]
        try:
            return True, float(head), ""
        except ValueError:
            return True, math.inf, cell
    return cell is not None, cell if cell is not None and math.isfinite(cell) else -math.inf, ""
