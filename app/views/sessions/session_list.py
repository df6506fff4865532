"""`SessionsModel`: the stored sessions as a table: searched, sorted, the running one kept up to date."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtGui import QFont

from ...engine.session_state import Progress
from ...engine.store.record import SessionRecord
from ..plots.label import plain_tip
from ..session_words import measured_words
from ..widgets import local_time

AnyIndex = QModelIndex | QPersistentModelIndex
_NO_PARENT = QModelIndex()
FAVOURITE, NAME, TAGS = 0, 1, 4


def _goal_words(record: SessionRecord) -> str:
    goal = record.objective.goal
    return f"{'maximise' if goal.maximise else 'minimise'} {goal.name}"


# title, a text as wide as most, what a cell says, what it is sorted by
_COLUMNS: tuple[tuple[str, str, Callable[[SessionRecord], str], Callable[[SessionRecord], Any]], ...] = (
    ("★", "★ ", lambda r: "★" if r.label.favourite else "☆", lambda r: not r.label.favourite),
    ("Session", "Session 100 · dedispersion", lambda r: f"Session {r.id} · {r.shown_name}", lambda r: r.id),
    ("State", "interrupted", lambda r: r.state.value, lambda r: r.state.value),
    (
        "Measured",
        "12345 of 12345 measured",
        lambda r: measured_words(r.evaluated, r.budget, r.timed),
        lambda r: r.evaluated,
    ),
    ("Tags", "tags, tags", lambda r: ", ".join(r.label.tags), lambda r: r.label.tags),
    ("Board", "NVIDIA A100-PCIE-40GB (recorded)", lambda r: r.board, lambda r: r.gpu),
    ("Strategy", "genetic algorithm", lambda r: r.strategy.replace("_", " "), lambda r: r.strategy),
    ("Objective", "maximise GFLOPS/W", _goal_words, _goal_words),
    ("Began", "2026-01-01 00:00", lambda r: local_time(r.created_s), lambda r: r.created_s),
)
WIDEST = tuple(text for _, text, _, _ in _COLUMNS)


def matches(record: SessionRecord, typed: str) -> bool:
    """Every typed word stands somewhere in the session's words."""
    words = " ".join(
        (
            *(text(record) for _, _, text, _ in _COLUMNS),
            record.title,
            record.label.notes,
            record.origin.get("file", ""),
            "favourite" if record.label.favourite else "",
        )
    ).casefold()
    return all(word in words for word in typed.casefold().split())


class SessionsModel(QAbstractTableModel):
    """Newest first until the user sorts."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._all: tuple[SessionRecord, ...] = ()
        self._shown: list[SessionRecord] = []
        self._typed = ""
        self._sorted: tuple[int, bool] | None = None  # column, descending

    @property
    def total(self) -> int:
        """How many sessions there are, whatever is searched for."""
        return len(self._all)

    def set_records(self, records: Sequence[SessionRecord]) -> None:
        """Show these sessions."""
        self._all = tuple(records)
        self._show()

    def search(self, typed: str) -> None:
        """Only those that match what is typed."""
        self._typed = typed
        self._show()

    def record(self, row: int) -> SessionRecord:
        """The session in a row."""
        return self._shown[row]

    def row_of(self, session: int) -> int | None:
        """The row of a session; None where it is not shown."""
        return next((row for row, record in enumerate(self._shown) if record.id == session), None)

    def show_progress(self, progress: Progress) -> None:
        """Where the running session stands."""
        row = self.row_of(progress.session)
        if row is not None:
            changed = replace(
                self._shown[row], evaluated=progress.evaluated, timed=progress.timed, state=progress.state
            )
            self._shown[row] = changed
            self._all = tuple(changed if record.id == changed.id else record for record in self._all)
            self.dataChanged.emit(self.index(row, 0), self.index(row, len(_COLUMNS) - 1))

    def _show(self) -> None:
        self.beginResetModel()
        self._shown = [record for record in self._all if matches(record, self._typed)]
        if self._sorted is not None:
            column, descending = self._sorted
            self._shown.sort(key=_COLUMNS[column][3], reverse=descending)
        self.endResetModel()

    # --- Qt's side ----------------------------------------------------------------------------------------------------

    def rowCount(self, parent: AnyIndex = _NO_PARENT) -> int:
        return 0 if parent.isValid() else len(self._shown)

    def columnCount(self, parent: AnyIndex = _NO_PARENT) -> int:
        return 0 if parent.isValid() else len(_COLUMNS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation is Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return _COLUMNS[section][0]
        return None

    def data(self, index: AnyIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        record = self._shown[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return _COLUMNS[index.column()][2](record)
        if role == Qt.ItemDataRole.ToolTipRole:
            lines = (record.label.notes, record.reason, record.origin.get("file", ""))
            return plain_tip("\n".join(line for line in lines if line))
        if role == Qt.ItemDataRole.AccessibleTextRole and index.column() == FAVOURITE:
            return "favourite" if record.label.favourite else "no favourite"
        if role == Qt.ItemDataRole.FontRole and index.column() == NAME and record.label.favourite:
            bold = QFont()
            bold.setBold(True)
            return bold
        return None

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        self._sorted = (column, order is Qt.SortOrder.DescendingOrder) if column >= 0 else None
        self._show()
