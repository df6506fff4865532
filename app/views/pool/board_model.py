"""`BoardModel`: the boards of a session as a Qt model: a row for each, also those that left."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtGui import QColor

from ...base.formatting import UNKNOWN, count_text, counted, percent
from ...engine.runner.pool.pool import BoardStatus, Doing, PoolStatus, board_name
from ..shared import theme
from ..shared.label import plain_tip

AnyIndex = QModelIndex | QPersistentModelIndex
_NO_PARENT = QModelIndex()
_ORDER: Final = tuple(Doing)
_OVER: Final = "took part"  # of a session that is stored


class BoardModel(QAbstractTableModel):
    """`show_status` puts another moment in place of the last."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._joined: tuple[BoardStatus, ...] = ()
        self._boards: tuple[BoardStatus, ...] = ()  # in the order of the rows
        self._sorted_by: tuple[int, bool] | None = None  # column, descending
        self._stored = False
        self.words_of_row: Callable[[int], str] = str  # what a row of the space is, for tool tips

    def show_status(self, status: PoolStatus, *, stored: bool = False) -> None:
        """Boards keep their rows where they are not sorted; those that joined are appended. `stored`: it is over."""
        self._stored = stored
        self._joined = status.boards
        self._arrange()

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by a column; -1 is the order in which the boards joined."""
        self._sorted_by = None if column < 0 else (column, order is Qt.SortOrder.DescendingOrder)
        self._arrange()

    def _arrange(self) -> None:
        before, after = self._boards, self._in_order()
        keys, new = [board.key for board in before], [board.key for board in after]
        if keys == new[: len(keys)]:
            self._boards = after[: len(before)]
            if before and before != self._boards:
                self.dataChanged.emit(self.index(0, 0), self.index(len(before) - 1, len(COLUMNS) - 1))
            if len(after) > len(before):
                self.beginInsertRows(_NO_PARENT, len(before), len(after) - 1)
                self._boards = after
                self.endInsertRows()
        elif sorted(keys) == sorted(new):
            self.layoutAboutToBeChanged.emit()
            held, rows = self.persistentIndexList(), {key: row for row, key in enumerate(new)}
            self._boards = after
            self.changePersistentIndexList(held, [self.index(rows[keys[i.row()]], i.column()) for i in held])
            self.layoutChanged.emit()
        else:
            self.beginResetModel()
            self._boards = after
            self.endResetModel()

    def _in_order(self) -> tuple[BoardStatus, ...]:
        if self._sorted_by is None:
            return self._joined
        column, descending = self._sorted_by
        return tuple(sorted(self._joined, key=COLUMNS[column].key, reverse=descending))

    def board(self, row: int) -> BoardStatus:
        """The board of a row."""
        return self._boards[row]

    # --- Qt's side ----------------------------------------------------------------------------------------------------

    def rowCount(self, parent: AnyIndex = _NO_PARENT) -> int:
        return 0 if parent.isValid() else len(self._boards)

    def columnCount(self, parent: AnyIndex = _NO_PARENT) -> int:
        return 0 if parent.isValid() else len(COLUMNS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation is Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return COLUMNS[section].title
        if orientation is Qt.Orientation.Horizontal and role == Qt.ItemDataRole.ToolTipRole:
            return COLUMNS[section].tip
        return None

    def data(self, index: AnyIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid() or index.row() >= len(self._boards):
            return None
        board, column = self._boards[index.row()], COLUMNS[index.column()]
        if role == Qt.ItemDataRole.DisplayRole:
            over = self._stored and board.doing is Doing.WAITING and column.text is doing_words
            return _OVER if over else column.text(board)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            side = Qt.AlignmentFlag.AlignRight if column.number else Qt.AlignmentFlag.AlignLeft
            return side | Qt.AlignmentFlag.AlignVCenter
        if role == Qt.ItemDataRole.ForegroundRole and not board.there:
            return QColor(theme.colours().muted)
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tip("\n".join(line for line in (board.label, self._doing_in_full(board)) if line))
        return None

    def _doing_in_full(self, board: BoardStatus) -> str:
        if board.row is not None:
            more = f", and {counted(board.next_rows, 'row')} after it" if board.next_rows else ""
            return f"measuring {self.words_of_row(board.row)}{more}"
        return f"{board.doing}: {board.reason}" if board.reason else board.doing.value


class _Column:
    """How one of the columns is shown and sorted."""

    def __init__(
        self,
        title: str,
        tip: str,
        widest: str,
        text: Callable[[BoardStatus], str],
        key: Callable[[BoardStatus], Any],
        *,
        number: bool = True,
    ) -> None:
        self.title, self.tip, self.widest, self.text, self.key, self.number = title, tip, widest, text, key, number


def doing_words(board: BoardStatus) -> str:
    """What a board does, in a few words."""
    if board.doing is Doing.MEASURING and board.row is not None:
        return f"row {board.row}"
    return f"{board.doing}: {board.reason}" if board.reason else board.doing.value


def _share(board: BoardStatus) -> str:
    return UNKNOWN if math.isnan(board.share) else percent(board.share, 0)


COLUMNS: Final = (
    _Column(
        "Board",
        "The beginning of the board's UUID; of a simulated board, its machine and number",
        "GPU-0000",
        lambda b: board_name(b.key),
        lambda b: b.key,
        number=False,
    ),
    _Column(
        "State",
        "What it does for the session: the row of the space that it measures, or why it measures none",
        "getting ready",
        doing_words,
        lambda b: _ORDER.index(b.doing),
        number=False,
    ),
    _Column(
        "Done",
        "Results that it reported. Some rows are measured on several boards",
        "10 000",
        lambda b: count_text(b.measured),
        lambda b: b.measured,
    ),
    _Column(
        "Works",
        "Of the time that it was there, the part in which it had rows to measure; pauses of the session count",
        "100 %",
        _share,
        lambda b: -1.0 if math.isnan(b.share) else b.share,
    ),
    _Column("Failed", "Of them, those that failed", "1 000", lambda b: count_text(b.failed), lambda b: b.failed),
    _Column(
        "Lost",
        "How often its worker died, or could not be reached any more; its rows went to other boards",
        "Lost",
        lambda b: count_text(b.lost),
        lambda b: b.lost,
    ),
    _Column("Machine", "The machine that the board is in", "node17", lambda b: b.host, lambda b: b.host, number=False),
)
