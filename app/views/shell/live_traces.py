"""`LiveTraces`: the traces of the shown board: at full width in Watch, and as a strip below other workspaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QPainter

from ...engine.session import events
from ..shared import theme
from ..shared.bridge import EngineBridge
from ..shared.current_result import CurrentResult
from ..shared.watched_boards import WatchedBoard, WatchedBoards
from ..watch.board_meters import BoardMeters
from ..watch.live_strip import LiveStrip, WindowMarks, paint_alarms
from ..watch.monitor_panel import MonitorPanel
from ..watch.readout import Readout

if TYPE_CHECKING:
    from ..watch.lanes import Layout


class LiveTraces(QObject):
    """Both draw the same: what is marked of the result, the board's alarms, its estimated voltage."""

    first_frame = Signal()  # once, of whichever is in sight first

    def __init__(self, boards: WatchedBoards, meters: BoardMeters, result: CurrentResult, bridge: EngineBridge) -> None:
        super().__init__()
        self._boards, self._meters, self._drawn = boards, meters, False
        board = boards.current
        self.monitor = MonitorPanel(board.gpu, board.trace, recorder=board.recorder)
        self.strip = LiveStrip(board.gpu, board.trace)
        self._views = (self.monitor.view, self.strip.view)
        self._marks = tuple(WindowMarks(result, view, board) for view in self._views)
        for view in self._views:
            view.add_overlay(self._paint_alarms)
            view.first_frame.connect(self._first_frame)
        bridge.subscribe(events.FitFinished, self.monitor.show_fit)
        self.monitor.estimated.connect(self.strip.show_estimate)
        boards.board_changed.connect(self._board_changed)
        boards.added.connect(self._overlay_boards)
        boards.removed.connect(self._overlay_boards)
        boards.speed_changed.connect(self._overlay_boards)
        meters.changed.connect(self._overlay_meters)
        self._overlay_meters(board)

    def make_readout(self) -> Readout:
        """The table of the channels, filled from now on."""
        readout = Readout(self._boards.current.gpu.channels)
        self.monitor.fill(readout)
        return readout

    @property
    def marks(self) -> WindowMarks:
        """What is marked of the result on the traces of the shown board."""
        return self._marks[0]

    @Slot()
    def _first_frame(self) -> None:
        if not self._drawn:
            self._drawn = True
            self.first_frame.emit()

    def set_length(self, length_s: float) -> None:
        """Show that many seconds."""
        for view in self._views:
            view.set_length(length_s)

    def update(self) -> None:
        """Draw what lies over the traces again."""
        for view in self._views:
            view.update()

    @Slot(object)
    def _board_changed(self, board: WatchedBoard) -> None:
        self.monitor.show_board(board.gpu, board.trace)
        if self.monitor.record is not None:
            self.monitor.record.show_board(board.recorder, board.gpu.info)
        self.strip.show_board(board.gpu, board.trace)
        self._overlay_boards()
        self._overlay_meters(board)
        for marks in self._marks:
            marks.show_board(board)

    @Slot()
    def _overlay_boards(self, *_: object) -> None:
        """Draw the power of the other boards that are watched beside that of this one."""
        others = [board for board in self._boards.all if board is not self._boards.current]
        self.monitor.view.set_boards([(board.gpu, board.trace) for board in others])

    @Slot(object)
    def _overlay_meters(self, board: WatchedBoard) -> None:
        """Draw what the meters beside the shown board report."""
        if board is self._boards.current:
            self.monitor.view.set_meters(self._meters.meters(board))

    def _paint_alarms(self, painter: QPainter, layout: Layout, bounds: tuple[int, int], colours: theme.Colours) -> None:
        paint_alarms(painter, self._boards.current.alarms.raised_so_far, layout, bounds, colours)
