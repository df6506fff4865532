"""`FileMenus`: recent files and examples to open.

`FileOpener`: any file that the program reads, to the view that shows it: a specification, a recording, a log.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import shorten

from PySide6.QtCore import QObject, Signal, SignalInstance, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QWidget

from ..shared.label import plain_tip
from ..shared.settings import Settings
from ..shared.tasks import LatestTask
from ..shared.widgets import choose_folder, open_file

_LINE, _TELLING = 80, 30  # characters of what an entry says: at most, and before a colon for that to be enough


class FileMenus(QObject):
    """Fills the submenus when they are about to be shown."""

    chosen = Signal(object)  # a Path to be opened

    def __init__(
        self, window: QWidget, settings: Settings, recent: QMenu, examples: QMenu, beyond: Sequence[QAction]
    ) -> None:
        """`beyond` are the actions that lead to boards elsewhere, which stand below the examples."""
        super().__init__(window)
        self._beyond = tuple(beyond)
        self._settings = settings
        self._recent, self._examples = recent, examples
        recent.aboutToShow.connect(self._fill_recent)
        examples.aboutToShow.connect(self._fill_examples)

    @Slot()
    def _fill_examples(self) -> None:
        from ...engine.specification.examples import about, examples, kind_of  # imported late: it is in no first frame

        if not self._examples.isEmpty():
            return
        kind = ""
        for path in examples():
            if kind_of(path) != kind:
                self._examples.addSection(kind := kind_of(path))
            line = about(path)
            first, *_ = line.split(": ")
            brief = shorten(first if len(first) > _TELLING else line, _LINE, placeholder=" …")
            self._offer(self._examples, path, f"{path.stem.replace('_', ' ')}: {brief}".replace("&", "&&"), line)
        self._examples.addSection("Other boards")
        self._examples.addActions(self._beyond)

    @Slot()
    def _fill_recent(self) -> None:
        self._recent.clear()
        for path in self._settings.recent:
            self._offer(self._recent, path, path.name)
        if self._recent.isEmpty():
            self._recent.addAction("nothing yet").setEnabled(False)
        else:
            self._recent.addSeparator()
            self._recent.addAction("Forget these").triggered.connect(self._settings.forget_recent)

    def _offer(self, menu: QMenu, path: Path, text: str, says: str = "") -> None:
        action = menu.addAction(text)
        action.setStatusTip(says or f"Open {path}")
        action.setToolTip(plain_tip(str(path)))
        action.triggered.connect(lambda _=False: self.chosen.emit(path))


_FILES = (
    "Specifications, recordings, logs, tables and profiles"
    " (*.wprofile *.toml *.json *.json.gz *.jsonl *.ndjson *.csv *.csv.gz *.tsv *.parquet *.txt *.log);;All files (*)"
)


class FileOpener(QObject):
    """Looks into a file off Qt's thread."""

    to_tune = Signal(object)  # the Path of a specification or a recording
    to_model = Signal(object)  # of a table of powers at clocks
    to_log = Signal(object)  # of a log of power over time, or a recording of a board's channels
    to_program = Signal(object)  # of a profile of a program, or a trace of one
    to_table = Signal(object)  # of any other table of measurements, or a folder of points
    apart = Signal(object)  # several Paths that are no results of one service, and the `asked` of `open_several`
    failed = Signal(str, str)

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._task, self._several = (LatestTask(self, self._looked, self.failed) for _ in range(2))

    @Slot()
    def choose(self) -> None:
        """Let the user choose a file."""
        open_file(self._window, "Open a specification, a recording, a log, a table or a profile", _FILES, self.open)

    @Slot(object)
    def open(self, path: Path) -> None:
        """Open a file where its kind is shown."""
        signals = {"log": self.to_log, "table": self.to_table, "clocks": self.to_model}
        signals["program"] = self.to_program
        self._task.run(lambda _stop: (signals.get(_kind_of(path), self.to_tune), path))

    def open_several(self, paths: tuple[Path, ...], asked: int) -> None:
        """Open results of a benchmark of a server, with logs among them, as one table; others are `apart`."""
        self._several.run(lambda _stop: (self.to_table, paths) if _are_served(paths) else (self.apart, (paths, asked)))

    @Slot()
    def choose_folder(self) -> None:
        """Let the user choose a folder with one JSON file per point."""
        choose_folder(self._window, "Open a folder with one JSON file per point", self.open)

    @Slot(object)
    def _looked(self, opened: tuple[SignalInstance, object]) -> None:
        where, what = opened
        where.emit(what)


def _are_served(paths: tuple[Path, ...]) -> bool:
    from ...engine.formats.service_results import is_served

    return any(map(is_served, paths))


def _kind_of(path: Path) -> str:
    """Raises InputError if it cannot be read."""
    from ...engine.formats.read import kind_of_file  # imported late: the first frame needs none of it

    return kind_of_file(path).value
