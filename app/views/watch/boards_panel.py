"""Every board at a glance: a row of its small trace and figures each, any in full; and the processes on them.

The processes on the boards that are watched.

`Hosts`: asks for another machine, and watches its boards through the user's own ssh.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence

from PySide6.QtCore import QObject, Qt, Slot
from PySide6.QtGui import QAction, QHideEvent, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QInputDialog,
    QScrollArea,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)

from ...base.errors import WattridgeError
from ...base.formatting import UNKNOWN
from ...engine.control.outside import held_elsewhere
from ...sensors.gpu import LIVE, GpuProcess, ListsProcesses, SensorError
from ...sensors.remote.address import Address, parse_address
from ...sensors.remote.run_there import RemoteBoard, boards_there
from ...sensors.select import gpu_selectors
from ..shared.context import Context
from ..shared.label import PlainLabel
from ..shared.panel import Panel
from ..shared.settings import Settings
from ..shared.tasks import LatestTask, TaskQueue
from ..shared.turns import timer
from ..shared.watched_boards import WatchedBoard, WatchedBoards, beat, is_real
from ..shared.widgets import hbox, menu_button, vbox
from .board_row import BoardRow


class Hosts(QObject):
    """Nothing is connected to before the user has named it and pressed Connect."""

    def __init__(self, boards: WatchedBoards, tasks: TaskQueue, parent: QWidget) -> None:
        super().__init__(parent)
        self._boards, self._tasks, self._parent = boards, tasks, parent
        self._settings = Settings()
        self.offered: list[RemoteBoard] = []  # boards of machines that answered
        self.dialog: QInputDialog | None = None
        self._give_up = threading.Event()

    def shutdown(self) -> None:
        """Wait for no machine any longer."""
        self._give_up.set()

    @Slot()
    def ask(self) -> None:
        """Ask which machine; those that answered before are offered."""
        self._forget_dialog()
        dialog = QInputDialog(self._parent)
        dialog.setWindowTitle("Boards of another machine")
        dialog.setLabelText(
            "[user@]host, as your ssh knows it. Wattridge has to be installed there;\n"
            "your keys and your ssh configuration are used, and no port is opened."
        )
        dialog.setComboBoxEditable(True)
        dialog.setComboBoxItems(["", *self._settings.hosts] if self._settings.hosts else [""])
        dialog.setOkButtonText("Connect")
        dialog.textValueSelected.connect(self.connect_to)
        dialog.finished.connect(self._forget_dialog)
        self.dialog = dialog
        dialog.open()

    @Slot()
    def _forget_dialog(self, *_: object) -> None:
        dialog, self.dialog = self.dialog, None
        if dialog is not None:
            dialog.deleteLater()

    @Slot(str)
    def connect_to(self, text: str) -> None:
        """Watch the real boards of a machine; of one without, its simulated boards can be added."""
        if not text.strip():
            return
        try:
            address = parse_address(text)
        except WattridgeError as error:
            self._boards.failed.emit(error.what, error.remedy)
            return
        self._tasks.run(lambda: _listed(address, self._give_up), lambda found: self._listed(address, found))

    def _listed(self, address: Address, reply: list[RemoteBoard] | WattridgeError) -> None:
        if isinstance(reply, WattridgeError):
            self._boards.failed.emit(f"{reply.where}: {reply.what}", reply.remedy)
            return
        self._settings.add_host(address.machine)
        selectors = {board.selector for board in reply}
        self.offered = [*reply, *(board for board in self.offered if board.selector not in selectors)]
        real = [board for board in reply if board.source in LIVE]
        for board in real or reply[:1]:
            self._boards.watch(board.selector)


def _listed(address: Address, give_up: threading.Event) -> list[RemoteBoard] | WattridgeError:
    """On the queue's thread."""
    try:
        return boards_there(address, give_up)
    except WattridgeError as error:
        return error


Found = list[tuple[WatchedBoard, list[GpuProcess], str]]


def processes_of(boards: Sequence[WatchedBoard]) -> Found:
    """(board, its processes, why they are unknown) of each board; queries the driver, a few ms per board."""
    findings: Found = []
    for board in boards:
        gpu = board.gpu
        if not isinstance(gpu, ListsProcesses):
            findings.append((board, [], "a recording holds no processes"))
            continue
        try:
            findings.append((board, list(gpu.processes()), ""))
        except SensorError as error:
            findings.append((board, [], error.what))
    return findings


_TICK_MS = 500
_PROCESSES_EVERY, _HELD_EVERY = 4, 20  # ticks
_COLUMNS = ("Board", "PID", "Process", "Memory", "GPU share", "Use")
_FIGURES = (1, 3, 4)  # columns of numbers


class BoardsPanel(Panel):
    """The boards in the order in which they were asked for, whichever is shown."""

    def __init__(self, context: Context, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self._boards = context.boards
        self._selectors: list[tuple[str, str]] = []  # what can be watched, and its label
        self.rows: list[BoardRow] = []
        self._ticks = 0
        tip = "Watch a simulated board, a recording, or the boards of another machine beside the others"
        self.add = menu_button("Add a board", tip, self._fill_menu, self._add_chosen)
        self.held = PlainLabel(wrap=True, selectable=True)  # what other tools have set, and which run
        self.note = PlainLabel(wrap=True, muted=True)
        self.processes = QTableWidget(0, len(_COLUMNS))
        self._set_up_table()
        self._lay_out()
        self._tasks = TaskQueue(self, context.bridge.report)
        self._asking = LatestTask(self, self._show_processes, self._processes_failed)
        self._looking = LatestTask(self, self._show_held)
        self._timer = timer(self, self._tick, _TICK_MS)
        beat().struck.connect(self._show_present)
        self._tasks.run(gpu_selectors, self._selectors.extend)
        boards = context.boards
        self.hosts = Hosts(boards, self._tasks, self)
        boards.added.connect(self._put)
        boards.removed.connect(self._remove)
        boards.board_changed.connect(self._mark_shown)
        for board in boards.all:
            self._put(board)

    def _set_up_table(self) -> None:
        table = self.processes
        table.setAccessibleName("Processes on the boards")
        table.setHorizontalHeaderLabels(_COLUMNS)
        table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setTabKeyNavigation(False)
        table.verticalHeader().hide()
        table.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + 6)
        share = QTableWidgetItem(_COLUMNS[4])
        share.setToolTip("Share of the time in which a kernel of the process ran, where the driver reports it")
        table.setHorizontalHeaderItem(4, share)
        head = table.horizontalHeader()
        head.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        head.setSectionResizeMode(2, QHeaderView.ResizeMode.Stretch)
        table.hide()  # until there is one

    def _lay_out(self) -> None:
        top = hbox((PlainLabel("Each board's power over the last minute"), 1), self.add)
        inside = QWidget()
        self._column = vbox(1, of=inside, margins=0)
        scroll = QScrollArea()
        scroll.setAccessibleName("Boards")
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QScrollArea.Shape.NoFrame)
        scroll.setWidget(inside)
        vbox(top, (scroll, 2), self.held, self.note, (self.processes, 1), of=self, margins=6)

    def shutdown(self) -> None:
        """End what runs in the background; the boards are the window's."""
        self.hosts.shutdown()
        super().shutdown()

    @Slot(object)
    def _put(self, board: WatchedBoard) -> None:
        row = BoardRow(board)
        row.opened.connect(self._boards.show)
        row.removed.connect(self._boards.forget)
        self.rows.append(row)
        self._column.insertWidget(self._column.count() - 1, row)
        row.refresh()
        self._mark_shown()

    @Slot(object)
    def _remove(self, board: WatchedBoard) -> None:
        for row in [row for row in self.rows if row.board is board]:
            self.rows.remove(row)
            row.hide()
            row.deleteLater()

    @Slot()
    def _mark_shown(self, *_: object) -> None:
        for row in self.rows:
            row.set_in_full(row.board is self._boards.current)

    @Slot()
    def _fill_menu(self) -> None:
        menu = self.add.menu()
        for selector, label in self._selectors:
            if self._boards.find(selector) is None and not is_real(selector):
                menu.addAction(label).setData(selector)
        for board in self.hosts.offered:
            if self._boards.find(board.selector) is None:
                menu.addAction(f"{board.name} on {board.machine} ({board.source})").setData(board.selector)
        menu.addSeparator()
        menu.addAction("On another machine...")

    @Slot(QAction)
    def _add_chosen(self, action: QAction) -> None:
        if action.data() is None:
            self.hosts.ask()
        else:
            self._boards.watch(str(action.data()))

    # --- what is new --------------------------------------------------------------------------------------------------

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._ticks = 0
        self._timer.start()
        self._show_present()
        self._tick()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._timer.stop()

    @Slot()
    def _show_present(self) -> None:
        if self.isVisible() and not self.window().isMinimized():
            for row in self.rows:
                row.refresh()

    @Slot()
    def _tick(self) -> None:
        if self._ticks % _PROCESSES_EVERY == 0 and not self._asking.busy:
            boards = list(self._boards.all)
            self._asking.run(lambda _: processes_of(boards))
        if self._ticks % _HELD_EVERY == 0 and not self._looking.busy:
            gpus = [board.gpu for board in self._boards.all]
            self._looking.run(lambda stop: [held.text for gpu in gpus for held in held_elsewhere(gpu, stop)])
        self._ticks += 1

    @Slot(object)
    def _show_held(self, lines: list[str]) -> None:
        self.held.setText("\n".join(dict.fromkeys(lines)))
        self.held.setVisible(bool(lines))

    @Slot(object)
    def _show_processes(self, reports: Found) -> None:
        lines = [(board.gpu.info.name, process) for board, processes, _ in reports for process in processes]
        self.processes.setRowCount(len(lines))
        for row, (board, process) in enumerate(lines):
            memory = UNKNOWN if math.isnan(process.memory_mib) else f"{process.memory_mib:,.0f} MiB"
            share = UNKNOWN if math.isnan(process.share_percent) else f"{process.share_percent:.0f} %"
            for column, text in enumerate((board, str(process.pid), process.name, memory, share, process.use)):
                item = self.processes.item(row, column)
                if item is None:
                    item = QTableWidgetItem()
                    if column in _FIGURES:
                        item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
                    self.processes.setItem(row, column, item)
                if item.text() != text:
                    item.setText(text)
        why = [f"{board.gpu.info.name}: processes unknown ({words})" for board, _, words in reports if words]
        self.note.setText("; ".join(why) if why else "" if lines else "No process uses these boards.")
        self.note.setVisible(bool(self.note.text()))
        self.processes.setVisible(bool(lines))

    @Slot(str, str)
    def _processes_failed(self, what: str, _remedy: str) -> None:
        self.note.setText(what)
        self.note.show()
