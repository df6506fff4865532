"""`TableWindow`: which columns of another tool's table are parameters or figures, guessed and then chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtWidgets import QComboBox, QDialog, QHeaderView, QTableWidget, QTableWidgetItem, QWidget

from ...base.errors import InputError
from ...base.formatting import counted, number
from ...engine.formats.any_table import guess, recording_of, table_of
from ...engine.formats.cells import Table
from ...engine.formats.headings import MEASURED, SET, Column, Role
from ...engine.formats.prepared_table import prepared
from ...engine.formats.recording import Recording
from ...engine.formats.remembered_roles import remember, remembered
from ...engine.formats.table_columns import KERNELS, TableColumns, column_roles
from ...engine.session.summary import by_goal, front_indices
from ...engine.space.search_space import MIXED_KERNELS
from ..shared.label import PlainLabel, plain_tip
from ..shared.panel import Ending
from ..shared.tasks import LatestTask
from ..shared.widgets import button, hbox, vbox

_SHOWN = 3  # values of a column
_DOUBT = "not certain"  # in the notes that ask
_NAME, _ROLE, _UNIT, _WHY, _CALLED, _VALUES = range(6)
_EXPLAINED = (
    "What each column is taken for, and why. Another choice holds for tables with the same headings in this folder."
    " Names may be changed: times, energies and powers whose name ends in a unit (time_ms, energy_wh) are understood."
)


class _Opened(NamedTuple):
    read: Table
    shown: Table
    found: Sequence[Column]
    said: TableColumns
    words: str
    complete: bool


class TableWindow(QDialog, Ending):
    """Stays beside the main window. The table is read, and its front counted, off Qt's thread."""

    accepted_columns = Signal(object, object)  # Path, TableColumns: keep it as a session
    fit_asked = Signal(object)  # Path, for the frequency model

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Table of measurements")
        self.resize(980, 560)
        self._path = Path()
        self._table: Table | None = None  # as it was read
        self._shown = Table(self._path, {})  # with what several of its columns say together
        self._said = TableColumns()
        self._found: tuple[Column, ...] = ()
        self._read = LatestTask(self, self._show, self._failed)
        self._keep = LatestTask(self, self._kept, self._failed)
        self.named, self.message = PlainLabel(), PlainLabel(wrap=True)
        self.columns = QTableWidget(0, 6)
        self.columns.setHorizontalHeaderLabels(["column", "is", "unit", "because", "called", "values"])
        self.columns.setAccessibleName("Columns of the table")
        self.columns.verticalHeader().hide()
        self.columns.setTabKeyNavigation(False)
        self.columns.setWordWrap(False)
        head = self.columns.horizontalHeader()
        head.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        head.setSectionResizeMode(_VALUES, QHeaderView.ResizeMode.Stretch)
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

    def open(self, path: Path, *beside: Path) -> None:  # type: ignore[override]
        """Read a table, a folder of points, or results of a benchmark of a server with logs, and guess its columns."""
        self._path, self._table, self._found = path, None, ()
        self.setWindowTitle(f"Table of measurements – {path.name}")
        self.named.setText(path.name)
        self.message.setText(f"Reading {path.name} …")
        self.keep.setEnabled(False)
        self.columns.setRowCount(0)
        self._read.run(lambda _stop: _opened(path, tuple(map(str, beside))))

    @property
    def chosen(self) -> TableColumns:
        """What the user says of the columns: other roles, and other names."""
        roles = dict(self._said.roles)
        named: dict[bool, dict[str, str]] = {False: {}, True: {}}  # figures, parameters
        renamed = False
        for row in range(self.columns.rowCount()):
            column, name = self.columns.item(row, _NAME), self.columns.item(row, _CALLED)
            assert column is not None
            assert name is not None
            role = Role(self.role_box(row).currentData())
            if changed := role is not self._found[row].role:
                roles[column.text()] = role
            used = changed or column.text() in self._shown.columns
            if used and (role in SET or role in MEASURED or role in (Role.KERNEL, Role.BOARD, Role.REPEAT)):
                named[role not in MEASURED][name.text().strip()] = column.text()
                renamed |= name.text().strip() != column.text()
        if not renamed:
            return TableColumns(roles=roles, beside=self._said.beside)
        return TableColumns(named[True], named[False], roles, self._said.beside)

    def role_box(self, row: int) -> QComboBox:
        """What chooses the role of a column."""
        box = self.columns.cellWidget(row, _ROLE)
        assert isinstance(box, QComboBox)
        return box

    @Slot()
    def accept_columns(self) -> None:
        """Keep the table as a session with these columns, and what is said of them beside it."""
        table, said = self._table, self._said
        if table is not None:
            self.keep.setEnabled(False)
            self._keep.run(lambda _stop: _remembered(table, said))

    @Slot(object)
    def _kept(self, _: object) -> None:
        self.accepted_columns.emit(self._path, self._said)
        self.close()

    @Slot(object)
    def _show(self, opened: _Opened) -> None:
        self._table, self._shown, self._said = opened.read, opened.shown, opened.said
        names = {
            heading: name
            for given in (opened.said.parameters, opened.said.figures)
            for name, heading in (given or {}).items()
        }
        headings = {name: heading for heading, name in names.items()}
        places = {column.heading: place for place, column in enumerate(self._found)}  # none moves under the pointer

        def order(column: Column) -> tuple[bool, int, bool]:
            made = headings.get(column.heading, column.heading) not in opened.read.columns  # of others: it may vanish
            return made, places.get(column.heading, len(places)), column.role is Role.UNUSED

        self._found = tuple(sorted(opened.found, key=order))
        with QSignalBlocker(self.columns):
            self.columns.setRowCount(len(self._found))
            for row, column in enumerate(self._found):
                self._show_column(row, column, headings.get(column.heading, column.heading))
        self.message.setText(opened.words)
        self.keep.setEnabled(opened.complete)

    def _show_column(self, row: int, column: Column, heading: str) -> None:
        """In place where the row is of this column: what chooses its role may have the focus."""
        there = self.columns.item(row, _NAME)
        if there is None or there.text() != heading:
            self.columns.setCellWidget(row, _ROLE, self._role_box_of(heading))
        if column.candidates:  # it is asked about
            self.role_box(row).setEnabled(True)
        with QSignalBlocker(box := self.role_box(row)):
            box.setCurrentText(column.role.value)
        distinct = list(dict.fromkeys(cell for cell in self._table_with(heading).columns[heading] if cell is not None))
        shown = ", ".join(number(c) if isinstance(c, float) else str(c)[:30] for c in distinct[:_SHOWN])
        more = f", … ({counted(len(distinct), 'value')})" if len(distinct) > _SHOWN else ""
        texts = {_NAME: heading, _UNIT: column.unit, _CALLED: column.heading, _VALUES: shown + more}
        for at, text in {**texts, _WHY: column.reasons}.items():
            item = QTableWidgetItem(text)
            item.setToolTip(plain_tip(text))
            if at != _CALLED or heading not in self._shown.columns:
                item.setFlags(item.flags() & ~Qt.ItemFlag.ItemIsEditable)
            self.columns.setItem(row, at, item)

    def _table_with(self, heading: str) -> Table:
        """The table as it was read, where a column is of it."""
        return self._table if self._table is not None and heading in self._table.columns else self._shown

    def _role_box_of(self, heading: str) -> QComboBox:
        box = QComboBox()
        table = self._table_with(heading)
        numeric = table.is_numeric(heading)
        for role in Role:
            box.addItem(role.value, role.value)
            if role in MEASURED and not numeric:
                box.model().item(box.count() - 1).setEnabled(False)  # type: ignore[attr-defined]
        box.setAccessibleName(f"Role of {heading}")
        box.setEnabled(table is self._table)  # what was made of other columns is chosen by their roles
        box.currentIndexChanged.connect(self._changed)
        return box

    @Slot()
    def _changed(self, *_: object) -> None:
        table, chosen = self._table, self.chosen
        self.keep.setEnabled(False)
        if table is not None:
            self._read.run(lambda _stop: _judged(table, chosen))

    @Slot(str, str)
    def _failed(self, what: str, remedy: str) -> None:
        self.message.setText(f"{what} ({remedy})" if remedy else what)
        self.keep.setEnabled(False)

    @Slot()
    def _ask_fit(self) -> None:
        self.fit_asked.emit(self._path)
        self.close()


def _opened(path: Path, beside: tuple[str, ...]) -> _Opened:
    table = table_of(path, TableColumns(beside=beside))
    said = TableColumns.parse(**remembered(path, table.columns)) or TableColumns()
    return _judged(table, replace(said, beside=beside))


def _judged(read: Table, said: TableColumns) -> _Opened:
    """Judge the columns, those that are joined in one among them, and what becomes of the table."""
    shown = prepared(read, said)
    found = column_roles(shown, said)
    joined = [c for c in column_roles(read, said.roles_in(read)) if c.heading not in shown.columns]
    stands_for = next((note for note in shown.notes if note.startswith("kernel stands for")), "")
    every = [replace(c, why=stands_for) if stands_for and c.heading == "kernel" else c for c in found]
    every += [column for column in joined if column.heading not in said.headings.values()]
    try:
        session = recording_of(shown, guess(shown, said, found), found)
        said_of_it = (note for note in shown.notes if _DOUBT not in note)  # of which `_words_of` asks
        words = "\n".join((_words_of(session, len(shown)), *said_of_it))
        return _Opened(read, shown, every, said, words, complete=True)
    except InputError as error:
        return _Opened(read, shown, every, said, f"{error.what}: choose them here.", complete=False)


def _remembered(table: Table, said: TableColumns) -> None:
    if said.options:
        remember(table.path, table_of(table.path, said).columns, said.options)


def _words_of(recording: Recording, rows: int) -> str:
    """The answer of the table: its best by each goal, how many are on the front, and what to know of it."""
    mixed: list[str] = []
    if any(note.startswith(MIXED_KERNELS) for note in recording.notes):
        name = next(filter(KERNELS.__contains__, recording.space().names))
        kernels = {measurement.configuration[name] for measurement in recording.measurements()}
        mixed = [f"{counted(len(kernels), 'kernel')}, each with a best of its own."]
    asked = [
        f"{note.partition(' (--roles ')[0]}: choose what it is above." for note in recording.notes if _DOUBT in note
    ]
    table, front = recording.table(), recording.objective.front
    words = f"{counted(rows, 'row')}, {counted(len(recording), 'configuration')}"
    if front and not mixed:
        words += f"; {len(front_indices(table, front))} on the front over {' and '.join(map(str, front))}"
    lines = [f"{words}."]
    for goal in () if mixed else front or (recording.objective.goal,):
        for best in map(table.measurement, by_goal(table, goal)[:1]):
            setting = ", ".join(f"{name} {value}" for name, value in best.configuration.items())
            lines.append(f"Best for {goal}: {setting} ({number(best.values[goal.name])}).")
    return "\n".join([*lines, *mixed, *asked])
