"""`SessionsModel`: the stored sessions as a table: searched, sorted, the running one kept up to date.

`SessionTable`: the list of stored sessions, its spare width given to names and tags.

`LabelForm`: the user's own name, tags and notes of a stored session.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt, Signal, Slot
from PySide6.QtGui import QFocusEvent, QFont, QResizeEvent
from PySide6.QtWidgets import QFormLayout, QLineEdit, QPlainTextEdit, QTableView, QWidget

from ...engine.results.state import Progress
from ...engine.store.record import Label, SessionRecord
from ..shared.captions import measured_words
from ..shared.label import plain_tip
from ..shared.widgets import local_time, set_up_table

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


class LabelForm(QWidget):
    """Emits `written(session, label)` when a field is left or Return is pressed, and something has changed."""

    written = Signal(int, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._record: SessionRecord | None = None
        self.name, self.tags, self.notes = QLineEdit(), QLineEdit(), _Notes()
        self.tags.setPlaceholderText("comma-separated")
        self.notes.setFixedHeight(3 * self.notes.fontMetrics().lineSpacing() + 12)
        form = QFormLayout(self)
        form.setContentsMargins(0, 0, 0, 0)
        form.setVerticalSpacing(4)
        form.addRow("Na&me", self.name)
        form.addRow("Ta&gs", self.tags)
        form.addRow("Not&es", self.notes)
        for line in (self.name, self.tags):
            line.editingFinished.connect(self.write)
        self.notes.left.connect(self.write)
        self.show_record(None)

    def show_record(self, record: SessionRecord | None) -> None:
        """Another session; what was typed for the one before is written first."""
        same = record is not None and self._record is not None and record.id == self._record.id
        if same and self.is_typed_in():
            self._record = record  # only its progress changed: what is being typed stays
            return
        self.write()
        self._record = record
        self.setEnabled(record is not None)
        label = record.label if record is not None else Label()
        self.name.setText(label.name)
        self.name.setPlaceholderText(record.title if record is not None else "")
        self.tags.setText(", ".join(label.tags))
        self.notes.setPlainText(label.notes)

    def is_typed_in(self) -> bool:
        """One of the fields has the focus."""
        return any(field.hasFocus() for field in (self.name, self.tags, self.notes))

    @Slot()
    def write(self) -> None:
        """Emit what is typed, if it differs from what is stored."""
        if self._record is None:
            return
        tags = tuple(dict.fromkeys(tag.strip() for tag in self.tags.text().split(",") if tag.strip()))
        label = replace(
            self._record.label, name=self.name.text().strip(), tags=tags, notes=self.notes.toPlainText().strip()
        )
        if label != self._record.label:
            self._record = replace(self._record, label=label)
            self.written.emit(self._record.id, label)


class _Notes(QPlainTextEdit):
    """Tab leaves it, as it leaves every other field."""

    left = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setTabChangesFocus(True)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.left.emit()
