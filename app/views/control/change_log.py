"""`ChangeLog`: the changes of a board's settings as a table, made by hand or by sessions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from PySide6.QtCore import QObject, Qt, Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTabBar, QTableView, QWidget

from ...base.formatting import UNKNOWN
from ...engine.control.device_log import BY_HAND, Change
from ..shared.label import plain_tip
from ..shared.record_model import NO_PARENT, AnyIndex, RecordModel
from ..shared.widgets import vbox

KEPT = 200  # changes of each kind

# title, a text as wide as most, what a cell says
_COLUMNS: tuple[tuple[str, str, Callable[[Change], str]], ...] = (
    ("Time", "2026-01-01 00:00:00", lambda c: c.when),
    ("What", "power limit, graphics clock", lambda c: c.what),
    ("Asked", "900–1200 MHz", lambda c: c.asked or UNKNOWN),
    ("Observed", "1200 MHz", lambda c: c.observed or UNKNOWN),
    ("By", "session, anyone", lambda c: c.by.removeprefix(f"{BY_HAND}, ")),  # the tab says it
    ("Result", "not obeyed: the clock", lambda c: c.outcome),
)
COLUMNS = tuple(title for title, _, _ in _COLUMNS)


class ChangesModel(RecordModel):
    """The newest last."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(COLUMNS, parent)
        self._records: list[Change] = []

    def add(self, change: Change) -> None:
        """One more; or what was observed of the last one."""
        last = len(self._records) - 1
        if self._records and self._records[last].same_as(change):
            self._records[last] = change
            self._rows_changed(last, last)
            return
        if len(self._records) == KEPT:
            self.beginRemoveRows(NO_PARENT, 0, 0)
            del self._records[0]
            self.endRemoveRows()
        self.beginInsertRows(NO_PARENT, len(self._records), len(self._records))
        self._records.append(change)
        self.endInsertRows()

    def put_before(self, changes: Sequence[Change]) -> None:
        """Those of before, which were read while newer ones came."""
        here = {change.time_s for change in self._records}
        self._replace([*(change for change in changes if change.time_s not in here), *self._records][-KEPT:])

    def clear(self) -> None:
        """Of another board from now on."""
        self._replace([])

    def rows(self) -> list[tuple[str, ...]]:
        """The texts of every cell."""
        return [tuple(text(change) for _, _, text in _COLUMNS) for change in self._records]

    def data(self, index: AnyIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        text = _COLUMNS[index.column()][2]
        if role == Qt.ItemDataRole.DisplayRole:
            return text(self._records[index.row()])
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tip(text(self._records[index.row()]))
        return None


class ChangeLog(QWidget):
    """The changes of a board as a table, those made by hand apart from those of sessions.

    There are two tabs over the table, which follows the newest change unless the user has scrolled back.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.by_hand, self.by_sessions = ChangesModel(self), ChangesModel(self)
        self.tabs = QTabBar()
        self.tabs.setAccessibleName("Changes by hand, or by sessions")
        self.tabs.setDrawBase(False)
        self.tabs.setExpanding(False)
        self.tabs.addTab("")
        self.tabs.addTab("")
        self.table = QTableView()
        self.table.setModel(self.by_hand)
        self.table.setAccessibleName("Log of changes")
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setAlternatingRowColors(True)
        self.table.setWordWrap(False)
        self.table.setCornerWidget(QWidget())  # as in `set_up_table`
        self.table.setTabKeyNavigation(False)
        self.table.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.table.verticalHeader().hide()
        self.table.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.table.verticalHeader().setDefaultSectionSize(self.table.fontMetrics().height() + 6)
        self.table.horizontalHeader().setStretchLastSection(True)
        for place, (_, widest, _) in enumerate(_COLUMNS):
            self.table.setColumnWidth(place, self.fontMetrics().horizontalAdvance(widest) + 14)
        self.table.setMinimumHeight(5 * self.table.verticalHeader().defaultSectionSize())
        vbox(self.tabs, (self.table, 1), of=self, margins=0, spacing=0)
        self._follows = True
        bar = self.table.verticalScrollBar()
        bar.valueChanged.connect(self._scrolled)
        bar.rangeChanged.connect(self._range_changed)
        self.tabs.currentChanged.connect(self._tab_chosen)
        self._count()

    def put_before(self, changes: Sequence[Change]) -> None:
        """Show the changes of other days too."""
        self.by_hand.put_before([change for change in changes if change.by_hand])
        self.by_sessions.put_before([change for change in changes if not change.by_hand])
        self._count()
        self._follow()

    def clear(self) -> None:
        """Show the changes of another board from now on."""
        self.by_hand.clear()
        self.by_sessions.clear()
        self._count()

    def add(self, change: Change) -> None:
        """Show one more change, or what was observed of the last one."""
        (self.by_hand if change.by_hand else self.by_sessions).add(change)
        self._count()

    def _count(self) -> None:
        for place, (title, model) in enumerate((("By hand", self.by_hand), ("By sessions", self.by_sessions))):
            self.tabs.setTabText(place, f"{title}: {model.rowCount()}")

    @Slot(int)
    def _tab_chosen(self, place: int) -> None:
        self.table.setModel((self.by_hand, self.by_sessions)[place])
        self._follow()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._follow()

    def _follow(self) -> None:
        self._follows = True
        self.table.scrollToBottom()

    @Slot(int)
    def _scrolled(self, value: int) -> None:
        self._follows = value == self.table.verticalScrollBar().maximum()

    @Slot(int, int)
    def _range_changed(self, _least: int, most: int) -> None:
        """There are more changes, or the table has another size."""
        if self._follows:
            self.table.verticalScrollBar().setValue(most)
