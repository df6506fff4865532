"""`RecordModel`: a Qt table of records, one a row, below fixed titles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

AnyIndex = QModelIndex | QPersistentModelIndex
NO_PARENT = QModelIndex()


class RecordModel(QAbstractTableModel):
    """Subclasses implement `data`, and notify Qt of what they change in `_records`."""

    def __init__(self, titles: Sequence[str], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._titles = tuple(titles)
        self._records: Sequence[Any] = ()

    def rowCount(self, parent: AnyIndex = NO_PARENT) -> int:
        return 0 if parent.isValid() else len(self._records)

    def columnCount(self, parent: AnyIndex = NO_PARENT) -> int:
        return 0 if parent.isValid() else len(self._titles)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation is Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return self._titles[section]
        return None

    def _replace(self, records: Sequence[Any]) -> None:
        """Show other records in place of all."""
        self.beginResetModel()
        self._records = records
        self.endResetModel()

    def _rows_changed(self, first: int, last: int) -> None:
        """Have the cells of these rows drawn again."""
        self.dataChanged.emit(self.index(first, 0), self.index(last, len(self._titles) - 1))
