"""The boards that share a session: which, what each of them does and has done, which one decided, what happened."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Final

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QAbstractItemView, QListWidget, QSizePolicy, QTableView, QWidget

from ...base.formatting import count_text, counted, percent
from ...engine.runner.pool.pool import BoardStatus, Doing, PoolStatus, board_name, status_of_origin
from ...engine.session import events
from ...engine.space.result_table import DECIDED_ON
from ...engine.specification.plan import SessionPlan
from ..shared.context import Context
from ..shared.label import PlainLabel
from ..shared.pool_connection import PoolConnection
from ..shared.watched_boards import speed_words
from ..shared.widgets import set_up_table, vbox
from .board_model import COLUMNS, BoardModel
from .runs_on import RunsOn

_MOST_LINES: Final = 500
_ROWS, _LINES = 4, 4  # in sight at least: of a table, of what happened
_EMPTY = (
    "One session can run on several boards of one model at once: those of this computer, or of a pool of machines.\n"
    "Each measures a part of the configurations; at the end one of them measures the best of each, and decides.\n"
    "Choose the boards above, or in Session (F6)."
)


class PoolPanel(QWidget):
    """Shows what the runner reports while a session runs, else who is there; of a stored session, what it did."""

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(parent)
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
        context.bridge.pool_reported.connect(self._reported)
        context.result.replaced.connect(self._result_changed)
        context.bridge.figures_restated.connect(self._result_changed)
        self._result_changed()
        self._pool_changed()

    def _set_up(self) -> None:
        table, measure = self.table, self.fontMetrics().horizontalAdvance
        table.setModel(self.boards)
        set_up_table(table, "Boards of the session")
        table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        for column, each in enumerate(COLUMNS):
            table.setColumnWidth(column, max(measure(each.title) + 22, measure(each.widest) + 14))
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

    def shutdown(self) -> None:
        """End what runs in the background; the boards are the window's."""
        self.runs_on.shutdown()

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
        """Another session is shown, or the figures of this one are given once more."""
        plan = self._context.result.plan
        if plan is not None:
            self.boards.words_of_row = lambda row: configuration_words(plan, row)
        board = plan.origin.get(DECIDED_ON, "") if plan is not None else ""
        self.decided.setVisible(bool(board))
        self.decided.setText(f"Decided on {board_name(board)}: it measured the finalists, and its figures are compared")
        self._look()

    @Slot()
    def _look(self) -> None:
        """What the boards do; of a pool that nobody uses, who is there; without one, what is stored of the session."""
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
        known = bool(status.boards)
        self.boards.show_status(status, stored=stored)
        self.empty.setVisible(not known)
        self.table.setVisible(known)
        self.totals.setVisible(known)
        self.happened.setVisible(self.happened.count() > 0)
        self.totals.setText(totals_words(status, stored=stored))
        words = self._words(below=known and stored)
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
    """All boards together, in one line; of a session that is stored, whoever took part."""
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
    known = {board.key: board for board in status.boards}
    joined = [
        BoardStatus(key, board.label, board.host, Doing.WAITING) for key, board in now.items() if key not in known
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
