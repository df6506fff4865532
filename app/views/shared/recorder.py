"""`Recorder`: records one board to a file while it is watched, as `wattridge monitor --record` does."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from ...base.paths import private_folder
from ...sensors.gpu import GpuInfo
from .tasks import TaskQueue
from .turns import timer

if TYPE_CHECKING:
    from ...sensors.recorded.writer import Writer
    from ...sensors.trace.live_board import LiveBoard

KINDS = "Recording (*.wrec);;Recording as text (*.csv.gz)"
SUFFIX = ".wrec"
_TICK_MS = 1000


def usual_name(info: GpuInfo, now: datetime) -> str:
    """'nvidia-h200-2026-11-22-140321.wrec'; a board that is not a real one says so."""
    board = re.sub(r"[^a-z0-9]+", "-", info.label.lower()).strip("-") or "gpu"
    return f"{board}-{now:%Y-%m-%d-%H%M%S}{SUFFIX}"


class Recorder(QObject):
    """Files are opened and finished off Qt's thread; the sampler writes them. A full disk ends a recording: the sampler
    reports it, and what was written stays."""

    changed = Signal()  # a recording began, grew or ended
    saved = Signal(str)  # the file of one that has ended
    failed = Signal(str, str)  # what, and the remedy

    def __init__(self, board: LiveBoard, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._board = board
        self._writer: Writer | None = None
        self._begun_ns = 0
        self._tasks = TaskQueue(self, self._task_failed)
        self._timer = timer(self, self._tick, _TICK_MS)

    @property
    def recording(self) -> bool:
        """A recording is being written."""
        return self._writer is not None

    @property
    def busy(self) -> bool:
        """A file is being opened or finished."""
        return self._tasks.busy

    @property
    def path(self) -> Path | None:
        """The file that is being written will have this name."""
        return self._writer.path if self._writer is not None else None

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return self._writer.size if self._writer is not None else 0

    @property
    def seconds(self) -> float:
        """How long it has recorded, on the board's clock."""
        return (self._board.gpu.clock.now_ns() - self._begun_ns) / 1e9 if self.recording else 0.0

    def start(self, path: Path | None = None) -> None:
        """Begin to record; without a path to a file of the usual name in the data folder's exports."""
        if self.recording or self.busy:
            return

        def begin() -> Writer:
            return self._board.record(
                path or private_folder("exports") / usual_name(self._board.gpu.info, datetime.now())
            )

        self._run(begin, self._begun)

    @Slot()
    def stop(self) -> None:
        """End the recording; its file is then complete."""
        writer, self._writer = self._writer, None
        if writer is not None:
            self._timer.stop()

            def finish() -> Writer:
                self._board.finish_recording()
                return writer

            self._run(finish, self._ended)

    @Slot()
    def toggle(self) -> None:
        """Begin or end."""
        if self.recording:
            self.stop()
        else:
            self.start()

    def shutdown(self) -> None:
        """Finish the file, if one is being written."""
        self._timer.stop()
        self._tasks.run(self._board.finish_recording)
        self._tasks.shutdown()

    def _run(self, job: Callable[[], Writer], then: Callable[[Writer], None]) -> None:
        self._tasks.run(job, then)
        self.changed.emit()

    def _begun(self, writer: Writer) -> None:
        self._writer, self._begun_ns = writer, self._board.gpu.clock.now_ns()
        self._timer.start()
        self.changed.emit()

    def _ended(self, writer: Writer) -> None:
        if writer.finished:
            self.saved.emit(str(writer.path))
        self.changed.emit()

    @Slot()
    def _tick(self) -> None:
        if self._board.sampler.recording:
            self.changed.emit()
        else:
            self.stop()

    @Slot(str, str)
    def _task_failed(self, what: str, remedy: str) -> None:
        self.changed.emit()
        self.failed.emit(what, remedy)
