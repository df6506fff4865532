"""The boards that share a session: which, what each of them does and has done, which one decided, what happened.

`BoardModel`: the boards of a session as a Qt model: a row for each, also those that left.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from PySide6.QtCore import QObject, Qt, Slot
from PySide6.QtGui import QColor, QShowEvent
from PySide6.QtWidgets import QAbstractItemView, QListWidget, QSizePolicy, QTableView, QWidget

from ...base.formatting import UNKNOWN, count_text, counted, percent
from ...engine.runner.pool.pool import BoardStatus, Doing, PoolStatus, board_name, status_of_origin
from ...engine.session import events
from ...engine.space.result_table import DECIDED_ON
from ...engine.specification.plan import SessionPlan
from ..shared import theme
from ..shared.context import Context
from ..shared.label import PlainLabel, plain_tip
from ..shared.panel import Panel
from ..shared.pool_connection import PoolConnection
from ..shared.record_model import NO_PARENT, AnyIndex, RecordModel
from ..shared.watched_boards import speed_words
from ..shared.widgets import set_up_table, vbox
from .runs_on import RunsOn

_ORDER: Final = tuple(Doing)
_OVER: Final = "took part"  # of a session that is stored


class BoardModel(RecordModel):
    """`show_status` puts another moment in place of the last."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__([column.title for column in COLUMNS], parent)
        self._joined: tuple[BoardStatus, ...] = ()
        self._records: tuple[BoardStatus, ...] = ()  # in the order of the rows
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
        before, after = self._records, self._in_order()
        keys, new = [board.key for board in before], [board.key for board in after]
        if keys == new[: len(keys)]:
            self._records = after[: len(before)]
            if before and before != self._records:
                self._rows_changed(0, len(before) - 1)
            if len(after) > len(before):
                self.beginInsertRows(NO_PARENT, len(before), len(after) - 1)
                self._records = after
                self.endInsertRows()
        elif sorted(keys) == sorted(new):
            self.layoutAboutToBeChanged.emit()
            held, rows = self.persistentIndexList(), {key: row for row, key in enumerate(new)}
            self._records = after
            self.changePersistentIndexList(held, [self.index(rows[keys[i.row()]], i.column()) for i in held])
            self.layoutChanged.emit()
        else:
            self._replace(after)

    def _in_order(self) -> tuple[BoardStatus, ...]:
        if self._sorted_by is None:
            return self._joined
        column, descending = self._sorted_by
        return tuple(sorted(self._joined, key=COLUMNS[column].key, reverse=descending))

    def board(self, row: int) -> BoardStatus:
        """The board of a row."""
        return self._records[row]

    # --- Qt's side ----------------------------------------------------------------------------------------------------

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation is Qt.Orientation.Horizontal and role == Qt.ItemDataRole.ToolTipRole:
            return COLUMNS[section].tip
        return super().headerData(section, orientation, role)

    def data(self, index: AnyIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid() or index.row() >= len(self._records):
            return None
        board, column = self._records[index.row()], COLUMNS[index.column()]
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


_MOST_LINES: Final = 500
_ROWS, _LINES = 4, 4  # in sight at least: of a table, of what happened
_EMPTY = (
    "One session can run on several boards of one model at once: those of this computer, or of a pool of machines.\n"
    "Each measures a part of the configurations; at the end one of them measures the best of each, and decides.\n"
    "Choose the boards above, or in Session (F6)."
)


class PoolPanel(Panel):
    """Shows what the runner reports while a session runs, else who is there; of a stored session, what it did."""

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self._context, self._pool = context, context.pool
        self._live = PoolStatus()  # of the last session on the boards, and who joined since
        self.runs_on = RunsOn(context)
        self.runs_on.look.setVisible(False)  # it is here
        self.state, self.totals = PlainLabel(wrap=True), PlainLabel(wrap=True)
        self.empty = PlainLabel(_EMPTY, wrap=True, muted=True)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.boards = BoardModel(self)
        self.table = QTableView()
        self.decided = PlainLabel(wrap=True)
        self.happened = QListWidget()
        self._set_up()
        self._pool.changed.connect(self._pool_changed)
        self._pool.failed.connect(self._failed)
        self._pool.said.connect(self.note)
        self.subscribe(events.PoolReported, self._reported)
        context.result.replaced.connect(self._result_changed)
        self.subscribe(events.FiguresRestated, self._result_changed)
        self._result_changed()
        self._pool_changed()

    def _set_up(self) -> None:
        table, measure = self.table, self.fontMetrics().horizontalAdvance
        table.setModel(self.boards)
        set_up_table(table, "Boards of the session")
        table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        for column, item in enumerate(COLUMNS):
            table.setColumnWidth(column, max(measure(item.title) + 22, measure(item.widest) + 14))
        self.happened.setAccessibleName("What happened to the boards")
        self.happened.setWordWrap(True)
        line = self.fontMetrics().height()
        self.happened.setFixedHeight(_LINES * line + 8)
        table.setMinimumHeight((_ROWS + 1) * (line + 6) + 20)  # with its head and a scroll bar
        self.state.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.totals.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        vbox(
            self.runs_on,
            self.state,
            (self.empty, 1),
            self.totals,
            (self.table, 3),
            self.decided,
            self.happened,
            of=self,
            margins=6,
        )

    @Slot()
    def _pool_changed(self) -> None:
        if not self._pool.open:
            self._live = PoolStatus()
        self._look()

    @Slot(str, str)
    def _failed(self, what: str, remedy: str) -> None:
        self.note(f"{what}: {remedy}" if remedy else what)

    # --- what they do -------------------------------------------------------------------------------------------------

    @Slot(object)
    def _reported(self, event: events.PoolReported) -> None:
        self._live = event.status
        if event.remark:
            self.note(event.remark)
        self._look()

    @Slot()
    def _result_changed(self, *_: object) -> None:
        """Show another session, or refresh the figures of this one."""
        plan = self._context.result.plan
        if plan is not None:
            self.boards.words_of_row = lambda row: configuration_words(plan, row)
        board = plan.origin.get(DECIDED_ON, "") if plan is not None else ""
        self.decided.setVisible(bool(board))
        self.decided.setText(f"Decided on {board_name(board)}: it measured the finalists, and its figures are compared")
        self._look()

    @Slot()
    def _look(self) -> None:
        """The boards' activity; for an idle pool, its members; without a pool, the boards stored with the session."""
        if self._pool.open and not self._pool.busy:
            before = self._live
            self._live = with_those_there(before, self._pool)
            for line in came_and_left(before, self._live):
                self.note(line)
        if not self.isVisible():
            return
        if self._pool.open or self._pool.busy:
            self._show(self._live)
        else:
            plan = self._context.result.plan
            kept = status_of_origin(plan.origin) if plan is not None else None
            self._show(kept or PoolStatus(), stored=True)

    def _show(self, status: PoolStatus, *, stored: bool = False) -> None:
        any_board = bool(status.boards)
        self.boards.show_status(status, stored=stored)
        self.empty.setVisible(not any_board)
        self.table.setVisible(any_board)
        self.totals.setVisible(any_board)
        self.happened.setVisible(self.happened.count() > 0)
        self.totals.setText(totals_words(status, stored=stored))
        words = self._words(below=any_board and stored)
        self.state.setText(words)
        self.state.setVisible(bool(words))

    def _words(self, *, below: bool) -> str:
        pool = self._pool
        if pool.opening:
            return ""  # it stands above
        if not pool.open:
            return f"Session {self._context.result.session} was measured on these boards:" if below else ""
        speed = words if (words := speed_words(pool.speed)) else ""
        where = "" if pool.here else pool.where
        return " · ".join(part for part in (pool.model or "No board is there yet", where, speed) if part)

    @Slot(str)
    def note(self, line: str) -> None:
        """One more line of what happened, the newest at the top."""
        for board in self._live.boards:  # by the same name as above
            line = line.replace(board.label, board_name(board.key))
        self.happened.insertItem(0, f"{time.strftime('%H:%M:%S')}  {line}")
        while self.happened.count() > _MOST_LINES:
            self.happened.takeItem(self.happened.count() - 1)
        self.happened.setVisible(True)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._look()


def totals_words(status: PoolStatus, *, stored: bool = False) -> str:
    """All boards together, in one line; for a stored session, those that took part."""
    boards = counted(len(status.boards), "board")
    parts = [boards if stored else f"{status.there} of {boards}"]
    if status.working:
        parts.append(f"{status.working} measuring")
    failed = f"{count_text(status.failed)} of them failed" if status.failed else "none failed"
    if status.measured:
        parts.append(f"{counted(status.measured, 'result')}, {failed}")
    if not math.isnan(status.share) and status.measured:
        parts.append(f"at work {percent(status.share, 0)} of the time")
    if status.lost:
        parts.append(f"lost {'once' if status.lost == 1 else f'{status.lost} times'}")
    return " · ".join(parts)


def came_and_left(before: PoolStatus, after: PoolStatus) -> list[str]:
    """What became of the boards of a pool between two looks; of the first look, nothing."""
    was = {board.key: board.doing is not Doing.LEFT for board in before.boards}
    lines = []
    for board in after.boards if was else ():
        there = board.doing is not Doing.LEFT
        if there != was.get(board.key, False):
            lines.append(f"{board.label} {'joined' if there else 'left'} the pool")
    return lines


def configuration_words(plan: SessionPlan, row: int) -> str:
    """A row of a session's space in one line."""
    chosen = ", ".join(f"{name}={value}" for name, value in plan.space.configuration(row).items())
    return f"row {row}: {chosen}"


def with_those_there(status: PoolStatus, pool: PoolConnection) -> PoolStatus:
    """What the boards of a pool did in the last session, if any, and which of them are there now that none runs."""
    now = {board.key: board for board in pool.boards()}
    by_key = {board.key: board for board in status.boards}
    joined = [
        BoardStatus(key, board.label, board.host, Doing.WAITING) for key, board in now.items() if key not in by_key
    ]
    boards = []
    for board in (*status.boards, *joined):
        if board.key not in now:
            why = board.reason if board.doing is Doing.LEFT else "its worker left"
            boards.append(replace(board, doing=Doing.LEFT, reason=why, row=None, next_rows=0))
        elif now[board.key].model != pool.model:
            boards.append(replace(board, doing=Doing.REFUSED, reason="it is of another model"))
        elif board.doing is not Doing.REFUSED or not board.measured:
            boards.append(replace(board, doing=Doing.WAITING, reason="", row=None, next_rows=0))
        else:
            boards.append(board)
    return PoolStatus(tuple(boards))
