"""The queue of runs: what waits, in which order, what became of the others; paused, reordered, opened, compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from PySide6.QtCore import (
    QItemSelectionModel,
    QMimeData,
    QModelIndex,
    QObject,
    Qt,
    Signal,
    Slot,
)
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QAbstractItemView, QSizePolicy, QTableView, QWidget

from ...base.formatting import UNKNOWN, count_text, duration, percent
from ...engine.results.state import SessionState
from ...engine.session.queue import QueuedRun, RunQueue
from ..shared.bridge import Activity
from ..shared.context import Context
from ..shared.label import PlainLabel, plain_tip
from ..shared.panel import Panel
from ..shared.record_model import AnyIndex, RecordModel
from ..shared.widgets import button, hbox, set_up_table, vbox

_DRAGGED: Final = "application/x-wattridge-queued-run"


class QueueModel(RecordModel):
    """The runs as a table in the order of their turns: finished ones, the one that runs, those that wait.

    Those that wait can be dragged. Call `look_again` after every change of the queue.
    """

    def __init__(self, queue: RunQueue, activity: Activity, parent: QObject | None = None) -> None:
        super().__init__([title for title, _ in COLUMNS], parent)
        self._queue, self._activity = queue, activity
        self._records: tuple[QueuedRun, ...] = queue.runs

    def look_again(self) -> None:
        """The queue has changed."""
        self._replace(self._queue.runs)

    def refresh(self) -> None:
        """What runs is further on, and so the others' times may be better known."""
        if self._records:
            self._rows_changed(0, len(self._records) - 1)

    def run(self, row: int) -> QueuedRun:
        """The run in a row."""
        return self._records[row]

    def row_of(self, number: int) -> int | None:
        """The row of a run; None if it is there no more."""
        return next((row for row, run in enumerate(self._records) if run.number == number), None)

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

    def data(self, index: AnyIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        run = self._records[index.row()]
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
        return plain | Qt.ItemFlag.ItemIsDragEnabled if self._records[index.row()].waits else plain

    def supportedDropActions(self) -> Qt.DropAction:
        return Qt.DropAction.MoveAction

    def mimeTypes(self) -> list[str]:
        return [_DRAGGED]

    def mimeData(self, indexes: Sequence[QModelIndex]) -> QMimeData:
        data = QMimeData()
        numbers = dict.fromkeys(self._records[index.row()].number for index in indexes)
        data.setData(_DRAGGED, ",".join(map(str, numbers)).encode())
        return data

    def dropMimeData(self, data: QMimeData, _action: Qt.DropAction, row: int, _column: int, _parent: AnyIndex) -> bool:
        """The dragged runs, one after the other, before the run of that row; at the end if there is none."""
        if not data.hasFormat(_DRAGGED):
            return False
        before = self._records[row].number if 0 <= row < len(self._records) else None
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
    """The queue in a few words, for the bar over every view and the panel.

    How many runs wait, and why none starts where that is so; empty if none waits and the queue is not paused.
    """
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
    """The runs that wait, as the question before quitting names them: '3 runs that wait (gemm on …; …)'."""
    waiting = queue.waiting
    count = "1 run that waits" if len(waiting) == 1 else f"{len(waiting)} runs that wait"
    more = f"; and {len(waiting) - _NAMED} more" if len(waiting) > _NAMED else ""
    return f"{count} ({'; '.join(run.words for run in waiting[:_NAMED])}{more})"


_EMPTY = (
    "Nothing is queued.\n'Add to queue' beside Start puts runs here: as set up, or several strategies, seeds and "
    "boards at once. They run one after another, whatever boards they are for; each is kept as a session."
)
_PAUSE_TIP = "Start nothing more; what runs continues"
_RESUME_TIP = "Go on with the next run as soon as nothing else runs"
_OPEN_TIP = "Show the results of the selected session"
_BUSY_TIP = "Another session can be shown once nothing runs; 'Compare these' works meanwhile"


class QueuePanel(Panel):
    """Shows `bridge.queue`. Nothing here takes long."""

    open_asked = Signal(int)  # a session to look at
    compare_asked = Signal(object)  # the sessions, a tuple

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self._queue, self._activity = context.bridge.queue, context.bridge.activity
        self.model = QueueModel(self._queue, self._activity, self)
        self.table = QTableView()
        self.state = PlainLabel(wrap=True)
        self.empty = PlainLabel(_EMPTY, wrap=True, muted=True)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.pause = button("&Pause queue", _PAUSE_TIP, self._pause_or_resume)
        self.up = button("Move &up", "Run the selected ones sooner (Alt+Up); they can be dragged too", self._sooner)
        self.down = button("Move &down", "Run the selected ones later (Alt+Down)", self._later)
        self.remove = button("&Remove", "Take the selected runs off the list (Del); sessions stay", self._remove)
        self.clear = button("C&lear", "Remove every run that waits", self._queue.clear)
        self.open = button("&Open", _OPEN_TIP, self._open)
        compare = "The selected sessions, or all that are finished, side by side under Compare"
        self.compare = button("Compare t&hese", compare, self._compare)
        self._set_up_table()
        self._lay_out()
        context.bridge.queue_changed.connect(self._look_again)
        self._activity.changed.connect(self._progressed)
        self._look_again()

    def _set_up_table(self) -> None:
        table = self.table
        table.setModel(self.model)
        set_up_table(table, "Queued runs")
        table.setSortingEnabled(False)  # the order is that of the turns
        table.setTabKeyNavigation(False)
        table.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        table.setDragDropMode(QAbstractItemView.DragDropMode.InternalMove)
        table.setDragDropOverwriteMode(False)
        table.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        measure = self.fontMetrics().horizontalAdvance
        for column, (title, text) in enumerate(COLUMNS):
            table.setColumnWidth(column, max(measure(title), measure(text)) + 14)
        self._actions = [
            self._action("Open", "", self.open.click),
            self._action("Move up", "Alt+Up", self.up.click),
            self._action("Move down", "Alt+Down", self.down.click),
            self._action("Remove", "Del", self.remove.click),
        ]
        table.activated.connect(self.open.click)
        table.selectionModel().selectionChanged.connect(self._set_buttons)

    def _action(self, text: str, keys: str, do: object) -> QAction:
        action = QAction(text, self.table)
        action.setShortcut(QKeySequence(keys))
        action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        action.triggered.connect(do)
        self.table.addAction(action)
        return action

    def _lay_out(self) -> None:
        self.state.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        widest = max(map(self.fontMetrics().horizontalAdvance, ("Pause queue", "Continue queue")))
        self.pause.setMinimumWidth(widest + 36)  # the others keep their places
        vbox(
            self.state,
            hbox(self.clear, 1, self.pause),
            (self.table, 1),
            (self.empty, 1),
            hbox(self.up, self.down, self.remove, 1),
            hbox(self.open, self.compare, 1),
            of=self,
            margins=6,
        )

    # --- what is shown ------------------------------------------------------------------------------------------------

    @Slot()
    def _look_again(self) -> None:
        chosen = {run.number for run in self.chosen()}
        self.model.look_again()
        flags = QItemSelectionModel.SelectionFlag
        for number in chosen:
            row = self.model.row_of(number)
            if row is not None:
                index = self.model.index(row, 0)
                self.table.selectionModel().setCurrentIndex(index, flags.Select | flags.Rows)
        some = self.model.rowCount() > 0
        self.table.setVisible(some)
        self.empty.setVisible(not some)
        self.pause.setText("&Continue queue" if self._queue.paused else "&Pause queue")
        self.pause.setToolTip(_RESUME_TIP if self._queue.paused else _PAUSE_TIP)
        self._show_words()
        self._set_buttons()

    @Slot()
    def _progressed(self) -> None:
        if self.isVisible():
            self.model.refresh()
            self._show_words()
        self._set_buttons()

    def _show_words(self) -> None:
        words = waiting_in_words(self._queue)
        times = [self._queue.estimate_s(run) for run in self._queue.waiting]
        present = [value for value in times if value is not None]
        if present and len(present) == len(times):
            words += f" · about {duration(sum(present))} for all that wait"
        self.state.setText(words)

    def chosen(self) -> list[QueuedRun]:
        """The selected runs, in the table's order."""
        selection = self.table.selectionModel()
        return [self.model.run(row) for row in sorted(index.row() for index in selection.selectedRows())]

    @Slot()
    def _set_buttons(self, *_: object) -> None:
        chosen = self.chosen()
        waiting = self._queue.waiting
        places = [place for place, run in enumerate(waiting) if run in chosen]
        self.up.setEnabled(bool(places) and places != list(range(len(places))))
        self.down.setEnabled(bool(places) and places[0] != len(waiting) - len(places))
        self.remove.setEnabled(any(run != self._queue.current for run in chosen))
        self.clear.setEnabled(bool(waiting))
        idle = not self._activity.busy
        self.open.setEnabled(idle and len(chosen) == 1 and bool(chosen[0].session))
        self.open.setToolTip(_OPEN_TIP if idle else _BUSY_TIP)
        self.compare.setEnabled(len(self._comparable()) >= 2)
        for action, item in zip(self._actions, (self.open, self.up, self.down, self.remove), strict=True):
            action.setEnabled(item.isEnabled())

    def _comparable(self) -> tuple[int, ...]:
        """The selected finished sessions, all of them where fewer than two are selected."""
        finished = self._queue.finished
        selected = tuple(run.session for run in self.chosen() if run.session and run in finished)
        return selected if len(selected) >= 2 else tuple(run.session for run in finished if run.session)

    # --- what is asked ------------------------------------------------------------------------------------------------

    @Slot()
    def _pause_or_resume(self) -> None:
        if self._queue.paused:
            self._queue.resume()
        else:
            self._queue.pause()

    @Slot()
    def _sooner(self) -> None:
        self._move(-1)

    @Slot()
    def _later(self) -> None:
        self._move(1)

    def _move(self, step: int) -> None:
        """The selected runs by one place; those at the end keep theirs."""
        chosen = {run.number for run in self.chosen()}
        order = [run.number for run in self._queue.waiting]
        for number in order if step < 0 else order[::-1]:
            now = [run.number for run in self._queue.waiting]
            place = now.index(number) + step
            if number in chosen and 0 <= place < len(now) and now[place] not in chosen:
                self._queue.move(number, place)

    @Slot()
    def _remove(self) -> None:
        self._queue.remove([run.number for run in self.chosen()])

    @Slot()
    def _open(self) -> None:
        for run in self.chosen()[:1]:
            if run.session:
                self.open_asked.emit(run.session)

    @Slot()
    def _compare(self) -> None:
        self.compare_asked.emit(self._comparable())
