"""`Copying`: the command, or the script, that gives what the view in use shows, onto the clipboard."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QWidget

from ...errors import WattridgeError
from ..context import Context
from ..monitor.panel import MonitorPanel
from ..threads.tasks import LatestTask
from .panels import Panels
from .shown_command import TRACES, command_of


class Copying(QObject):
    """The view in use is the one that had the focus last, as long as it is in sight. Made in Qt's thread."""

    said = Signal(str)
    failed = Signal(str, str)  # why nothing was copied, and the remedy

    def __init__(self, panels: Panels, monitor: MonitorPanel, context: Callable[[], Context], parent: QObject) -> None:
        super().__init__(parent)
        self._panels, self._monitor, self._context = panels, monitor, context
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
        return self._last if self._in_sight(self._last) else next(filter(self._in_sight, self._by_name()), TRACES)

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
        seconds = self._monitor.view.window_of_time.length_s
        try:
            make = command_of(self.view, self._panels, self._context(), seconds)
        except WattridgeError as error:
            self.failed.emit(error.what, error.remedy)
            return
        self._reader.run(lambda _stop: write(make()))

    @Slot(object)
    def _copy(self, text: str) -> None:
        QGuiApplication.clipboard().setText(text)
        lines = text.count("\n")
        self.said.emit(f"Copied: a script of {lines} lines" if lines else f"Copied: {text}")

    def _by_name(self) -> Mapping[str, QWidget]:
        return {**cast(Mapping[str, QWidget], self._panels), TRACES: self._monitor}

    def _in_sight(self, name: str) -> bool:
        panel = self._by_name().get(name)
        return panel is not None and panel.isVisible()

    @Slot(QWidget, QWidget)
    def _focus_changed(self, _before: QWidget | None, now: QWidget | None) -> None:
        if now is not None:
            within = [name for name, panel in self._by_name().items() if panel is now or panel.isAncestorOf(now)]
            around = [name for name, panel in self._by_name().items() if now.isAncestorOf(panel)]  # it has no field
            found = within or (around if len(around) == 1 else [])
            self._last = found[0] if found else self._last
