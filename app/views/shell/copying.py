"""`Copying`: the command, or the script, that gives what the view in use shows, onto the clipboard."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QWidget

from ...errors import WattridgeError
from ..context import Context
from ..threads.tasks import LatestTask
from .loading import Panels
from .panels import TRACES
from .shown_command import command_of


class Copying(QObject):
    """The view in use is the one that had the focus last, as long as it is in sight. Made in Qt's thread."""

    said = Signal(str)
    failed = Signal(str, str)  # why nothing was copied, and the remedy

    def __init__(self, panels: Panels, context: Callable[[], Context], length_s: Callable[[], float]) -> None:
        """`length_s` is how many seconds the traces show."""
        super().__init__(panels)
        self._panels, self._context, self._length_s = panels, context, length_s
        self._last = TRACES
        self._reader = LatestTask(self)
        self._reader.done.connect(self._copy)
        self._reader.failed.connect(self.failed)
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        application.focusChanged.connect(self._focus_changed)

    @property
    def view(self) -> str:
        """The view in use."""
        return self._last if self._in_sight(self._last) else next(filter(self._in_sight, self._panels), TRACES)

    def copy_command(self) -> None:
        """Copy a line for the shell."""
        self._run(lambda command: command.shell())

    def copy_python(self) -> None:
        """Copy a script."""
        self._run(lambda command: command.python())

    def shutdown(self) -> None:
        """Copy nothing any more."""
        self._reader.shutdown()

    def _run(self, write: Callable[..., str]) -> None:
        try:
            make = command_of(self.view, self._panels, self._context(), self._length_s())
        except WattridgeError as error:
            self.failed.emit(error.what, error.remedy)
            return
        self._reader.run(lambda _stop: write(make()))

    @Slot(object)
    def _copy(self, text: str) -> None:
        QGuiApplication.clipboard().setText(text)
        lines = text.count("\n")
        self.said.emit(f"Copied: a script of {lines} lines" if lines else f"Copied: {text}")

    def _in_sight(self, name: str) -> bool:
        return self._panels.has(name) and self._panels[name].isVisible()

    @Slot(QWidget, QWidget)
    def _focus_changed(self, _before: QWidget | None, now: QWidget | None) -> None:
        if now is not None:
            within = [name for name, panel in self._panels.items() if panel is now or panel.isAncestorOf(now)]
            around = [name for name, panel in self._panels.items() if now.isAncestorOf(panel)]  # it has no field
            found = within or (around if len(around) == 1 else [])
            self._last = found[0] if found else self._last
