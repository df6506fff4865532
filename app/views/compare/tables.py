"""A listing of a result as a table of the window."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableWidget, QTableWidgetItem, QWidget

from ...engine.description import Listing
from ..plots.figures import MINUS
from ..plots.label import plain_tip
from ..plots.quantities import format_number

_WIDEST = 220  # pixels of a column of words


class ListingTable(QTableWidget):
    """The rows of a listing, numbers to the right. Read-only."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(name)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setAlternatingRowColors(True)
        self.setWordWrap(False)
        self.verticalHeader().hide()
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Interactive)

    def show_listing(self, listing: Listing) -> None:
        """Fill the table."""
        self.clear()
        self.setColumnCount(len(listing.header))
        self.setRowCount(len(listing.rows))
        self.setHorizontalHeaderLabels(list(listing.header))
        for at, row in enumerate(listing.rows):
            for column, cell in enumerate(row):
                words = isinstance(cell, str) and cell[:1] not in ("+", "-")
                text = cell if isinstance(cell, str) else "" if cell is None else format_number(cell)
                item = QTableWidgetItem(text if words else text.replace("-", MINUS))
                item.setToolTip(plain_tip(text))
                if not words:
                    item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
                self.setItem(at, column, item)
        self.resizeColumnsToContents()
        self.resizeRowsToContents()
        for column in range(len(listing.header)):
            self.setColumnWidth(column, min(self.columnWidth(column), _WIDEST))
