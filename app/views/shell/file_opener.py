"""`FileOpener`: any file that the program reads, to the view that shows it: a specification, a recording, a log."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, Signal, SignalInstance, Slot
from PySide6.QtWidgets import QWidget

from ..file_dialogs import open_file
from ..threads.tasks import LatestTask

_FILES = "Specifications, recordings and logs (*.toml *.json *.json.gz *.csv *.csv.gz *.txt *.log);;All files (*)"


class FileOpener(QObject):
    """Looks into a file off Qt's thread."""

    to_tune = Signal(object)  # the Path of a specification or a recording
    to_model = Signal(object)  # of a table of clocks, such as a log of nvidia-smi
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
        tune, model = self.to_tune, self.to_model
        self._task.run(lambda _stop: (tune if _is_tunable(path) else model, path))

    def shutdown(self) -> None:
        """End what is being read."""
        self._task.shutdown()

    @Slot(object)
    def _looked(self, found: tuple[SignalInstance, object]) -> None:
        where, what = found
        where.emit(what)


def _is_tunable(path: Path) -> bool:
    """Whether it is a specification or a recording. Raises InputError where it cannot be read."""
    from ...engine.formats.read import is_recording  # imported late: the first frame needs none of it
    from ...engine.formats.t1 import is_specification

    return is_specification(path) or is_recording(path)
