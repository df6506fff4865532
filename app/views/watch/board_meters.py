"""`BoardMeters`: the meters that are assigned to each board: opened off Qt's thread, and remembered."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from ...engine.metering.external_meters import NO_METERS, MeterChoice
from ..shared.settings import Settings
from ..shared.tasks import TaskQueue
from ..shared.watched_boards import WatchedBoard, WatchedBoards

if TYPE_CHECKING:
    from ...sensors.meters.sampled import SampledMeter

_LOOK_MS: Final = 1000


class BoardMeters(QObject):
    """A meter that does not answer is reported and not assigned; what is assigned is opened again at the next start."""

    changed = Signal(object)  # WatchedBoard: other meters are beside it
    failed = Signal(str, str)  # what went wrong, and the remedy

    def __init__(self, boards: WatchedBoards) -> None:
        super().__init__()
        self._boards = boards
        self._settings = Settings()
        self._open: dict[str, tuple[MeterChoice, list[SampledMeter], ExitStack]] = {}  # by the board's UUID
        self._tasks = TaskQueue(self, self._failed)
        self._lost: set[SampledMeter] = set()
        self._timer = QTimer(self)
        self._timer.setInterval(_LOOK_MS)
        self._timer.timeout.connect(self._look)
        self._timer.start()
        boards.added.connect(self._added)
        boards.removed.connect(self._removed)
        self._added(boards.current)

    def choice(self, board: WatchedBoard) -> MeterChoice:
        """What is assigned to a board."""
        return self._open[board.uuid][0] if board.uuid in self._open else NO_METERS

    def meters(self, board: WatchedBoard) -> Sequence[SampledMeter]:
        """Its meters, open."""
        return self._open[board.uuid][1] if board.uuid in self._open else ()

    def assign(self, board: WatchedBoard, choice: MeterChoice) -> None:
        """Put these meters beside a board, in place of those that are there."""
        self._tasks.run(lambda: _opened(board, choice), lambda opened: self._take(board, choice, opened))

    def shutdown(self) -> None:
        """Close every meter."""
        self._timer.stop()
        self._tasks.shutdown()
        for _, _, stack in self._open.values():
            stack.close()
        self._open.clear()

    # --- inside -------------------------------------------------------------------------------------------------------

    def _take(
        self, board: WatchedBoard, choice: MeterChoice, opened: tuple[list[SampledMeter], ExitStack] | None
    ) -> None:
        before = self._open.pop(board.uuid, None)
        if before is not None:  # after the new ones are open: a meter that stays is not opened twice
            self._tasks.run(before[2].close)
        if opened is not None:
            self._open[board.uuid] = choice, *opened
        self._settings.set_meters(board.uuid, choice)
        self.changed.emit(board)

    @Slot(object)
    def _added(self, board: WatchedBoard) -> None:
        kept = self._settings.meters(board.uuid)
        if kept:
            self.assign(board, kept)

    @Slot(object)
    def _removed(self, board: WatchedBoard) -> None:
        before = self._open.pop(board.uuid, None)
        if before is not None:
            self._tasks.run(before[2].close)

    @Slot()
    def _look(self) -> None:
        """Report each meter that was lost, once."""
        lost = {meter for _, meters, _ in self._open.values() for meter in meters if meter.lost}
        for meter in lost - self._lost:
            self.failed.emit(f"{meter.info.label} does not answer", "plug it in again: it is found by itself")
        self._lost = lost

    @Slot(str, str)
    def _failed(self, what: str, remedy: str) -> None:
        self.failed.emit(what, remedy)


def _opened(board: WatchedBoard, choice: MeterChoice) -> tuple[list[SampledMeter], ExitStack] | None:
    """On the queue's thread. Raises WattridgeError."""
    from ...engine.metering.external_meters import put_beside  # imported late: the window opens without

    if not choice:
        return None
    stack = ExitStack()
    beside = stack.enter_context(put_beside(board.gpu, choice))
    return list(beside.meters.values()) if beside is not None else [], stack
