"""`FileOpener`: any file that the program reads, to the view that shows it: a specification, a recording, a log."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QWidget

from ..file_dialogs import open_file
from ..threads.tasks import LatestTask

_FILES = "Specifications, recordings and logs (*.toml *.json *.json.gz *.csv *.csv.gz *.txt *.log);;All files (*)"


class FileOpener(QObject):
    """Looks into a file off Qt's thread."""

    to_tune = Signal(object)  # the Path of a specification or a recording
    to_model = Signal(object)  # of a table of clocks, such as a log of nvidia-smi
    to_library = Signal(object)  # the Paths of several, or of a recording that is to be kept
    failed = Signal(str, str)

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._task = LatestTask(self)
        self._task.done.connect(self._looked)
        self._task.failed.connect(self.failed)

    @Slot()
    def choose(self) -> None:
        """Let the user choose a file."""
        open_file(self._window, "Open a specification, a recording or a log", _FILES, self.open)

    @Slot(object)
    def open(self, path: Path) -> None:
        """Open a file where its kind is shown."""
        self._task.run(lambda _stop: _Opened(path) if _is_tunable(path) else _Log(path))

    def keep(self, paths: list[Path]) -> None:
        """Files that were dropped: a log goes to the model, everything else to the Library."""
        self._task.run(lambda _stop: _Log(paths[0]) if len(paths) == 1 and not _is_tunable(paths[0]) else _Kept(paths))

    def shutdown(self) -> None:
        """End what is being read."""
        self._task.shutdown()

    @Slot(object)
    def _looked(self, found: _Opened | _Log | _Kept) -> None:
        match found:
            case _Opened(path):
                self.to_tune.emit(path)
            case _Log(path):
                self.to_model.emit(path)
            case _Kept(paths):
                self.to_library.emit(paths)


@dataclass(frozen=True, slots=True)
class _Opened:
    path: Path


@dataclass(frozen=True, slots=True)
class _Log:
    path: Path


@dataclass(frozen=True, slots=True)
class _Kept:
    paths: list[Path]


def _is_tunable(path: Path) -> bool:
    """Raises InputError where it cannot be read."""
    from ...engine.formats.read import is_recording  # imported late: the first frame needs none of it
    from ...engine.formats.t1 import is_specification

    return is_specification(path) or is_recording(path)
