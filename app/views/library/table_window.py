"""`TableWindow`: which columns of another tool's table are parameters or figures, guessed and then chosen."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtWidgets import QComboBox, QDialog, QHeaderView, QTableWidget, QTableWidgetItem, QWidget

from ...base.errors import InputError
from ...base.formatting import counted, number
from ...engine.formats.any_table import Table, TableColumns, guess, read_cells, recording_of
from ...engine.formats.recording import Recording
from ...engine.results import pareto
from ...engine.space.search_space import MIXED_KERNELS
from ..shared.label import PlainLabel
from ..shared.panel import Ending
from ..shared.tasks import LatestTask
from ..shared.widgets import button, hbox, vbox

_ROLES = ("not used", "parameter", "figure")
_NOT_USED, _PARAMETER, _FIGURE = range(3)
_SHOWN = 3  # values of a column
_EXPLAINED = (
    "Parameters are what was chosen, figures what was measured. Names may be changed: times, energies and powers whose"
    " name ends in a unit (time_ms, energy_wh) are understood."
)


class _Opened(NamedTuple):
    table: Table
    guessed: TableColumns | None
    unclear: str


class TableWindow(QDialog, Ending):
    """Stays beside the main window. The table is read, and its front counted, off Qt's thread."""

    accepted_columns = Signal(object, object)  # Path, TableColumns: keep it as a session
    fit_asked = Signal(object)  # Path, for the frequency model

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Table of measurements")
        self.resize(760, 520)
        self._path = Path()
        self._table: Table | None = None
        self._read = LatestTask(self, self._show, self._failed)
        self._check = LatestTask(self, self._checked, self._failed)
        self.named, self.message = PlainLabel(), PlainLabel(wrap=True)
        self.columns = QTableWidget(0, 4)
        self.columns.setHorizontalHeaderLabels(["column", "is a", "called", "values"])
        self.columns.setAccessibleName("Columns of the table")
        self.columns.verticalHeader().hide()
        self.columns.setTabKeyNavigation(False)
        head = self.columns.horizontalHeader()
        head.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        head.setSectionResizeMode(3, QHeaderView.ResizeMode.Stretch)
        self.keep = button("&Keep as a session", "Show its front, choices and analysis", self.accept_columns)
        self.keep.setDefault(True)
        self.fit = button("&Frequency model", "Fit its clocks and powers instead", self._ask_fit)
        vbox(
            self.named,
            PlainLabel(_EXPLAINED, wrap=True),
            (self.columns, 1),
            self.message,
            hbox(1, self.fit, self.keep),
            of=self,
        )
        self.keep.setEnabled(False)
        self.columns.itemChanged.connect(self._changed)

    def open(self, path: Path) -> None:  # type: ignore[override]
        """Read a table, or a folder of points, and guess its columns."""
        self._path, self._table = path, None
        self.setWindowTitle(f"Table of measurements – {path.name}")
        self.named.setText(path.name)
        self.message.setText(f"Reading {path.name} …")
        self.keep.setEnabled(False)
        self.columns.setRowCount(0)
        self._read.run(lambda _stop: _opened(path))

    @property
    def chosen(self) -> TableColumns:
        """The columns as they are set."""
        by_role: dict[int, dict[str, str]] = {_NOT_USED: {}, _PARAMETER: {}, _FIGURE: {}}
        for row in range(self.columns.rowCount()):
            role = self.role_box(row).currentIndex()
            column, name = self.columns.item(row, 0), self.columns.item(row, 2)
            if column is not None and name is not None:
                by_role[role][name.text().strip()] = column.text()
        return TableColumns(by_role[_PARAMETER], by_role[_FIGURE])

    def role_box(self, row: int) -> QComboBox:
        """What chooses the role of a column."""
        box = self.columns.cellWidget(row, 1)
        assert isinstance(box, QComboBox)
        return box

    @Slot()
    def accept_columns(self) -> None:
        """Keep the table as a session with these columns."""
        if self._table is not None:
            self.accepted_columns.emit(self._path, self.chosen)
            self.close()

    @Slot(object)
    def _show(self, opened: _Opened) -> None:
        self._table = opened.table
        guessed = opened.guessed or TableColumns({}, {})
        names = {column: (_PARAMETER, name) for name, column in (guessed.parameters or {}).items()}
        names |= {column: (_FIGURE, name) for name, column in (guessed.figures or {}).items()}
        with QSignalBlocker(self.columns):
            self.columns.setRowCount(len(opened.table.columns))
            for row, (column, cells) in enumerate(opened.table.columns.items()):
                role, name = names.get(column, (_NOT_USED, column))
                box = QComboBox()
                box.addItems(_ROLES)
                box.setAccessibleName(f"Role of {column}")
                if not opened.table.is_numeric(column):
                    box.model().item(_FIGURE).setEnabled(False)  # type: ignore[attr-defined]
                box.setCurrentIndex(role)
                box.currentIndexChanged.connect(self._changed)
                distinct = list(dict.fromkeys(cell for cell in cells if cell is not None))
                shown = ", ".join(number(c) if isinstance(c, float) else str(c)[:30] for c in distinct[:_SHOWN])
                more = f", … ({counted(len(distinct), 'value')})" if len(distinct) > _SHOWN else ""
                for at, text in ((0, column), (2, name), (3, shown + more)):
                    item = QTableWidgetItem(text)
                    if at != 2:
                        item.setFlags(item.flags() & ~Qt.ItemFlag.ItemIsEditable)
                    self.columns.setItem(row, at, item)
                self.columns.setCellWidget(row, 1, box)
        if opened.unclear:
            self.message.setText(opened.unclear)
        else:
            self._changed()

    @Slot()
    def _changed(self, *_: object) -> None:
        table, chosen = self._table, self.chosen
        self.keep.setEnabled(False)
        if table is None:
            return
        if not chosen.parameters or not chosen.figures:
            self.message.setText("Choose at least one parameter and one figure.")
            return
        self._check.run(lambda _stop: _words_of(recording_of(table, chosen), len(table)))

    @Slot(object)
    def _checked(self, words: str) -> None:
        self.message.setText(words)
        self.keep.setEnabled(True)

    @Slot(str, str)
    def _failed(self, what: str, remedy: str) -> None:
        self.message.setText(f"{what} ({remedy})" if remedy else what)
        self.keep.setEnabled(False)

    @Slot()
    def _ask_fit(self) -> None:
        self.fit_asked.emit(self._path)
        self.close()


def _opened(path: Path) -> _Opened:
    table = read_cells(path)
    try:
        return _Opened(table, guess(table), "")
    except InputError as error:
        return _Opened(table, None, f"{error.what}: choose them here.")


def _words_of(recording: Recording, rows: int) -> str:
    """How many configurations there are, how many of them are on the front, and what to know of the table."""
    lines = [_front_words(recording, rows), *(note for note in recording.notes if note.startswith(MIXED_KERNELS))]
    return "\n".join(lines)


def _front_words(recording: Recording, rows: int) -> str:
    words = f"{counted(rows, 'row')}, {counted(len(recording), 'configuration')}"
    goals = recording.objective.front
    if not goals:
        return f"{words}; the goal is {recording.objective.goal}."
    table = recording.table()
    values = np.column_stack([table.values(goal.name) for goal in goals])
    finite = values[np.isfinite(values).all(axis=1)]
    on_front = len(pareto.front(finite, [goal.maximise for goal in goals])) if len(finite) else 0
    return f"{words}; {on_front} on the front over {' and '.join(map(str, goals))}."
