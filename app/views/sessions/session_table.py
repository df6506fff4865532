"""`SessionTable`: the list of stored sessions, its spare width given to names and tags."""

from __future__ import annotations

from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QTableView, QWidget

from ..widgets import set_up_table
from .session_list import NAME, TAGS, WIDEST, SessionsModel

_PADDING = 14
_SHARES = {NAME: 0.6, TAGS: 0.4}  # of the width that the columns leave: only these hold what users write


class SessionTable(QTableView):
    """A column that was moved by hand keeps its width."""

    def __init__(self, model: SessionsModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setModel(model)
        set_up_table(self, "Stored sessions")
        measure = self.fontMetrics().horizontalAdvance
        self._least = [measure(text) + _PADDING for text in WIDEST]
        for column, width in enumerate(self._least):
            self.setColumnWidth(column, width)
        self._given = {column: self._least[column] for column in _SHARES}

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        others = sum(self.columnWidth(column) for column in range(len(self._least)) if column not in _SHARES)
        spare = max(0, self.viewport().width() - others - sum(self._least[column] for column in _SHARES))
        for column, share in _SHARES.items():
            if self.columnWidth(column) == self._given[column]:
                self._given[column] = self._least[column] + int(share * spare)
                self.setColumnWidth(column, self._given[column])
