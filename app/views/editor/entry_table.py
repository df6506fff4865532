"""`EntryTable`: entries of a table or items of a list, to change, add, remove and reorder; each with its problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QColor, QKeySequence, QShortcut
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableWidget, QTableWidgetItem, QWidget

from ...engine.specification.problems import Problem
from ...engine.specification.toml_edit import Place
from ..plots import theme
from ..plots.label import PlainLabel, plain_tip
from ..widgets import button, hbox, vbox
from .cells import cell_text, edit_cell, shown_value, typed_value
from .complaint import Complaint
from .edited import EditedSpecification

Problems = Mapping[Place, Problem]


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `key` is that of an entry's own table; '' is the value itself, and None the entry's key."""

    head: str
    key: str | None = ""
    show: Callable[[Any], str] = shown_value
    read: Callable[[str], Any] = typed_value


class EntryTable(QWidget):
    """What lies at `place`: a table of values, a list of values, or a list of tables, as `columns` says.

    `first` is what a new entry holds. The last column has the problem of an entry, else a note on it.
    """

    def __init__(
        self,
        edited: EditedSpecification,
        place: Place,
        title: str,
        columns: Sequence[Column],
        first: Any,
        hint: str = "",
        new_name: str = "name",
    ) -> None:
        super().__init__()
        self._edited, self.place, self._columns = edited, place, tuple(columns)
        self._first, self._new_name = first, new_name
        self._keys: list[str | int] = []  # of the rows
        self._entries: Any = {}
        self._filling = False
        self._named = columns[0].key is None
        self.table = QTableWidget(0, len(columns) + 1)
        self.table.setAccessibleName(title)
        self.table.setHorizontalHeaderLabels([*(column.head for column in columns), ""])
        self.table.verticalHeader().hide()
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.table.setTabKeyNavigation(False)
        self.table.setAlternatingRowColors(True)
        self._height = self.table.fontMetrics().height() + 8
        self.table.verticalHeader().setDefaultSectionSize(self._height)
        header = self.table.horizontalHeader()
        header.setHighlightSections(False)
        header.setStretchLastSection(True)
        for column in range(len(columns)):
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.Interactive)
        self.add = button("&Add", f"Add to {title.lower()}", self.add_entry)
        self.drop = button("Re&move", "Remove the selected entry (Delete)", self.remove_entry)
        self.up = button("&Up", "Move the selected entry up (Alt+Up)", self.move_up)
        self.down = button("Do&wn", "Move the selected entry down (Alt+Down)", self.move_down)
        for keys, slot in (("Del", self.remove_entry), ("Alt+Up", self.move_up), ("Alt+Down", self.move_down)):
            shortcut = QShortcut(QKeySequence(keys), self.table, context=Qt.ShortcutContext.WidgetShortcut)
            shortcut.activated.connect(slot)
        self.complaint = Complaint(self.table)
        heading = PlainLabel(title)
        bold = heading.font()
        bold.setBold(True)
        heading.setFont(bold)
        self.hint = PlainLabel(hint, wrap=True, muted=True)
        self.hint.setVisible(bool(hint))
        vbox(
            heading,
            self.hint,
            (self.table, 1),
            self.complaint,
            hbox(self.add, self.drop, self.up, self.down, 1),
            of=self,
            margins=0,
            spacing=4,
        )
        self.table.cellChanged.connect(self._cell_changed)
        self.table.itemSelectionChanged.connect(self._set_buttons)
        self._set_buttons()

    def show_entries(self, document: Mapping[str, Any], problems: Problems, notes: Mapping[str, str]) -> None:
        """Show what a document holds; `notes` are words on values that have no problem."""
        entries: Any = document
        for key in self.place:
            entries = entries.get(key, {}) if isinstance(entries, Mapping) else {}
        if isinstance(entries, str | int | float):
            entries = [entries]  # a single value stands for a list of one
        self._entries = entries
        own: list[Any] = list(entries.items()) if isinstance(entries, Mapping) else list(enumerate(entries))
        self._keys = [key for key, _ in own]
        below: list[str] = []
        self._filling = True
        self.table.setRowCount(len(own))
        for row, (key, value) in enumerate(own):
            wrong = {
                place: problem
                for place, problem in problems.items()
                if place[: len(self.place) + 1] == (*self.place, key)
            }
            for at, column in enumerate(self._columns):
                bad = any(place[-1] == column.key for place in wrong) or (wrong and not column.key)
                self._put(row, at, self._cell(key, value, column), bad=bool(bad))
            said = "; ".join(map(str, wrong.values())) or notes.get(str(value), "")
            if wrong and self._columns[-1].key:  # many columns leave no room beside them
                below += [f"{self._cell(key, value, self._columns[0])}: {problem}" for problem in wrong.values()]
                said = "see below"
            self._put(row, len(self._columns), said, bad=bool(wrong), editable=False)
            if wrong:
                self.table.resizeRowToContents(row)
            elif self.table.rowHeight(row) != self._height:
                self.table.setRowHeight(row, self._height)
        self._filling = False
        here = [str(problem) for place, problem in problems.items() if place == self.place]
        self.complaint.say("\n".join([*here, *below]))
        self._set_buttons()

    @Slot()
    def add_entry(self) -> None:
        """Add an entry at the end, and begin to type it."""
        if self._named:
            name, number = self._new_name, 1
            while name in self._keys:
                number += 1
                name = f"{self._new_name}_{number}"
            done = self._edited.change(_setting((*self.place, name), self._first))
            self._keys.append(name)
        else:
            done = self._edited.change(_setting((*self.place, len(self._keys)), self._first))
            self._keys.append(len(self._keys))
        if not done:
            self._keys.pop()
            return
        self._filling = True
        row = self.table.rowCount()
        self.table.setRowCount(row + 1)
        for at, column in enumerate(self._columns):
            self._put(row, at, self._cell(self._keys[-1], self._first, column))
        self._filling = False
        self.table.setCurrentCell(row, 0)
        self.table.setFocus()
        edit_cell(self.table, row, 0)

    @Slot()
    def remove_entry(self) -> None:
        """Remove the selected entry."""
        row = self.table.currentRow()
        if 0 <= row < len(self._keys):
            self._edited.remove((*self.place, self._keys[row]))

    @Slot()
    def move_up(self) -> None:
        """The selected entry changes places with the one above."""
        self._move(-1)

    @Slot()
    def move_down(self) -> None:
        """The selected entry changes places with the one below."""
        self._move(1)

    def _move(self, by: int) -> None:
        row = self.table.currentRow()
        if 0 <= row < len(self._keys) and 0 <= row + by < len(self._keys):
            here, there = (*self.place, self._keys[row]), (*self.place, self._keys[row + by])
            if self._edited.move(here, there):
                self.table.setCurrentCell(row + by, max(0, self.table.currentColumn()))

    def _cell(self, key: str | int, value: Any, column: Column) -> str:
        if column.key is None:
            return str(key)
        if column.key:
            value = value.get(column.key) if isinstance(value, Mapping) else None
        return "" if value is None else column.show(value)

    def _put(self, row: int, column: int, text: str, *, bad: bool = False, editable: bool = True) -> None:
        item = self.table.item(row, column)
        if item is None:
            item = QTableWidgetItem()
            self.table.setItem(row, column, item)
            if not editable:
                item.setFlags(Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable)
        if item.text() != text:
            item.setText(text)
            item.setToolTip(plain_tip(text))
        colours = theme.colours()
        item.setData(Qt.ItemDataRole.BackgroundRole, QColor(colours.warning) if bad else None)
        muted = None if editable else QColor(colours.muted)
        item.setData(Qt.ItemDataRole.ForegroundRole, QColor(colours.warning_text) if bad else muted)

    @Slot(int, int)
    def _cell_changed(self, row: int, at: int) -> None:
        if self._filling or at >= len(self._columns) or row >= len(self._keys):
            return
        column, key = self._columns[at], self._keys[row]
        text = cell_text(self.table, row, at)
        if column.key is None:
            if text and text != key and self._edited.rename((*self.place, key), text):
                self._keys[row] = text
            elif text != key:
                self._filling = True
                self._put(row, at, str(key))
                self._filling = False
            return
        place = (*self.place, key, column.key) if column.key else (*self.place, key)
        value = column.read(text)
        if column.key and value in ("", []):
            self._edited.remove(place)
        else:
            self._edited.change(_setting(place, value))

    @Slot()
    def _set_buttons(self) -> None:
        row, count = self.table.currentRow(), len(self._keys)
        self.drop.setEnabled(0 <= row < count)
        self.up.setEnabled(0 < row < count)
        self.down.setEnabled(0 <= row < count - 1)

    def fit(self, widths: Sequence[int]) -> None:
        """The widths of the columns, in characters."""
        for at, characters in enumerate(widths):
            self.table.setColumnWidth(at, self.table.fontMetrics().averageCharWidth() * characters + 12)


def _setting(place: Place, value: Any) -> Callable[[str], str]:
    from ...engine.specification.toml_edit import with_value

    return lambda text: with_value(text, place, value)
