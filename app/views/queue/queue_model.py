"""`QueueModel`: the runs of the queue as a table, in the order of their turns; those that wait can be dragged.

The queue in a few words, as the bar over every view, the panel and the question before quitting have them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from PySide6.QtCore import QAbstractTableModel, QMimeData, QModelIndex, QObject, QPersistentModelIndex, Qt

from ...base.formatting import UNKNOWN, count_text, duration, percent
from ...engine.results.state import SessionState
from ...engine.session.queue import QueuedRun, RunQueue
from ..shared.bridge import Activity
from ..shared.label import plain_tip

AnyIndex = QModelIndex | QPersistentModelIndex
_NO_PARENT = QModelIndex()
_DRAGGED: Final = "application/x-wattridge-queued-run"


class QueueModel(QAbstractTableModel):
    """Finished runs first, then the one that runs, then those that wait. `look_again` after every change."""

    def __init__(self, queue: RunQueue, activity: Activity, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._queue, self._activity = queue, activity
        self._runs: tuple[QueuedRun, ...] = queue.runs

    def look_again(self) -> None:
        """The queue has changed."""
        self.beginResetModel()
        self._runs = self._queue.runs
        self.endResetModel()

    def refresh(self) -> None:
        """What runs is further on, and so the others' times may be better known."""
        if self._runs:
            self.dataChanged.emit(self.index(0, 0), self.index(len(self._runs) - 1, len(COLUMNS) - 1))

    def run(self, row: int) -> QueuedRun:
        """The run in a row."""
        return self._runs[row]

    def row_of(self, number: int) -> int | None:
        """The row of a run; None where it is there no more."""
        return next((row for row, run in enumerate(self._runs) if run.number == number), None)

    # --- what the cells say -------------------------------------------------------------------------------------------

    def _state(self, run: QueuedRun) -> str:
        if run.waits:
            return "waits"
        session = f"Session {run.session} · " if run.session else ""
        if run.state is not SessionState.RUNNING:
            return f"{session}{run.state}"
        done, total = self._activity.share
        if self._activity.paused or not (total and session):
            return f"{session}{'paused' if self._activity.paused else 'running'}"
        return f"{session}{percent(done / total, 0)}"

    def _time(self, run: QueuedRun) -> str:
        if run.state is SessionState.RUNNING:
            return self._activity.left or UNKNOWN
        if not run.waits:
            return UNKNOWN if run.took_s is None else f"took {duration(run.took_s)}"
        expected = self._queue.estimate_s(run)
        return UNKNOWN if expected is None else f"about {duration(expected)}"

    def _cell(self, run: QueuedRun, column: int) -> str:
        return (
            self._state,
            lambda r: r.plan.title,
            lambda r: r.plan.strategy.replace("_", " "),
            lambda r: str(r.plan.seed),
            self._time,
            lambda r: r.plan.board,
            _budget,
        )[column](run)

    # --- Qt's side ----------------------------------------------------------------------------------------------------

    def rowCount(self, parent: AnyIndex = _NO_PARENT) -> int:
        return 0 if parent.isValid() else len(self._runs)

    def columnCount(self, parent: AnyIndex = _NO_PARENT) -> int:
        return 0 if parent.isValid() else len(COLUMNS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation is Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return COLUMNS[section][0]
        return None

    def data(self, index: AnyIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        run = self._runs[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return self._cell(run, index.column())
        if role == Qt.ItemDataRole.ToolTipRole:
            lines = (run.words, run.reason, run.plan.origin.get("file", ""))
            return plain_tip("\n".join(line for line in lines if line))
        return None

    def flags(self, index: AnyIndex) -> Qt.ItemFlag:
        """Rows are dropped between others, never onto one."""
        if not index.isValid():
            return Qt.ItemFlag.ItemIsDropEnabled
        plain = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
        return plain | Qt.ItemFlag.ItemIsDragEnabled if self._runs[index.row()].waits else plain

    def supportedDropActions(self) -> Qt.DropAction:
        return Qt.DropAction.MoveAction

    def mimeTypes(self) -> list[str]:
        return [_DRAGGED]

    def mimeData(self, indexes: Sequence[QModelIndex]) -> QMimeData:
        data = QMimeData()
        numbers = dict.fromkeys(self._runs[index.row()].number for index in indexes)
        data.setData(_DRAGGED, ",".join(map(str, numbers)).encode())
        return data

    def dropMimeData(self, data: QMimeData, _action: Qt.DropAction, row: int, _column: int, _parent: AnyIndex) -> bool:
        """The dragged runs, one after the other, before the run of that row; at the end where there is none."""
        if not data.hasFormat(_DRAGGED):
            return False
        before = self._runs[row].number if 0 <= row < len(self._runs) else None
        for number in map(int, bytes(data.data(_DRAGGED).data()).split(b",")):
            self._move_before(number, before)
        return True

    def _move_before(self, number: int, before: int | None) -> None:
        others = [run.number for run in self._queue.waiting if run.number != number]
        if before == number:
            return
        if before is None:
            place = len(others)
        else:
            place = others.index(before) if before in others else 0  # before a finished one: as early as can be
        self._queue.move(number, place)


def _budget(run: QueuedRun) -> str:
    limit = f", {duration(run.plan.max_seconds)}" if run.plan.max_seconds is not None else ""
    return f"{count_text(run.plan.budget)}{limit}"


# title, and a text as wide as most
COLUMNS: Final = (
    ("State", "Session 100 · stopped"),
    ("Kernel", "vector_add"),
    ("Strategy", "genetic algorithm"),
    ("Seed", "100"),
    ("Time", "about 10 min 50 s"),
    ("Board", "Tesla V100-PCIE-16GB (simulated)"),
    ("At most", "100 000, 10 min"),
)


_NAMED = 3  # runs


def waiting_in_words(queue: RunQueue) -> str:
    """How many wait, and why none of them starts where that is so; empty while there is nothing to say."""
    count = len(queue.waiting)
    if not count:
        return "The queue is paused" if queue.paused else ""
    more = "more " if queue.current is not None else ""
    words = f"{count} {more}{'waits' if count == 1 else 'wait'}"
    if queue.paused:
        because = f": {queue.paused_because}" if queue.paused_because else ""
        return f"{words} · queue paused{because}"
    return words


def named(queue: RunQueue) -> str:
    """The runs that wait, the first of them by name: '3 runs that wait (gemm on …; …)'."""
    waiting = queue.waiting
    count = "1 run that waits" if len(waiting) == 1 else f"{len(waiting)} runs that wait"
    more = f"; and {len(waiting) - _NAMED} more" if len(waiting) > _NAMED else ""
    return f"{count} ({'; '.join(run.words for run in waiting[:_NAMED])}{more})"
