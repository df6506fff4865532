"""The queue of runs: what waits, in which order, what became of the others; paused, reordered, opened, compared."""

from __future__ import annotations

from PySide6.QtCore import QItemSelectionModel, Qt, Signal, Slot
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QAbstractItemView, QSizePolicy, QTableView, QWidget

from ...base.formatting import duration
from ...engine.session.queue import QueuedRun
from ..shared.context import Context
from ..shared.label import PlainLabel
from ..shared.panel import Panel
from ..shared.widgets import button, hbox, set_up_table, vbox
from .queue_model import COLUMNS, QueueModel, waiting_in_words

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
        known = [each for each in times if each is not None]
        if known and len(known) == len(times):
            words += f" · about {duration(sum(known))} for all that wait"
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
        for action, each in zip(self._actions, (self.open, self.up, self.down, self.remove), strict=True):
            action.setEnabled(each.isEnabled())

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
