"""The window's log: every notice, and faults of the program with their traceback, in the data folder."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType
from typing import Any

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices

from ... import __version__
from ...base.errors import WattridgeError
from ...base.paths import PRIVATE_FILE, data_folder, private_folder

LOG = logging.getLogger("wattridge.window")
LOG.addHandler(logging.NullHandler())
LOG.propagate = False
_SIZE, _OLDER = 500_000, 3  # bytes of a file, files kept besides


def log_folder() -> Path:
    """Where the log is kept; it may not be there yet. Raises InputError if there is no data folder."""
    return data_folder() / "logs"


def open_log_folder() -> None:
    """Show that folder in the system's file manager."""
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(log_folder())))


def last_lines(count: int) -> list[str]:
    """The newest lines of the log."""
    try:
        path = log_folder() / "wattridge.log"
        return path.read_text(encoding="utf-8", errors="replace").splitlines()[-count:]
    except (OSError, WattridgeError):
        return []


class _PrivateFile(RotatingFileHandler):
    """A log that only the user can read, and that is silent where it cannot be written."""

    def _open(self) -> Any:
        os.close(os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT, PRIVATE_FILE))
        return super()._open()

    def handleError(self, record: logging.LogRecord) -> None:
        """A full disk: the window continues, and standard error stays free of tracebacks."""


class Log:
    """Writes from now on, until `close`. `on_fault` is given one line for each fault of the program, on any thread."""

    def __init__(self, on_fault: Callable[[str], None]) -> None:
        self._on_fault = on_fault
        self._before = sys.excepthook, threading.excepthook
        self._handler: logging.Handler = logging.NullHandler()
        with suppress(OSError, WattridgeError):  # the store reports a folder that cannot be written, with the remedy
            path = private_folder("logs") / "wattridge.log"
            self._handler = _PrivateFile(path, maxBytes=_SIZE, backupCount=_OLDER, encoding="utf-8", delay=True)
        self._handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        LOG.addHandler(self._handler)
        LOG.setLevel(logging.INFO)
        LOG.info("wattridge %s starts", __version__)
        sys.excepthook = self._fault
        threading.excepthook = self._thread_fault

    def close(self) -> None:
        """Leave everything as it was."""
        LOG.info("wattridge ends")
        LOG.removeHandler(self._handler)
        self._handler.close()
        sys.excepthook, threading.excepthook = self._before

    def _fault(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            self._before[0](kind, error, trace)
            return
        LOG.error("a fault of the program", exc_info=(kind, error, trace))
        self._on_fault(f"A fault of the program: {kind.__name__}: {error}")

    def _thread_fault(self, arguments: threading.ExceptHookArgs) -> None:
        if arguments.exc_value is not None:
            self._fault(arguments.exc_type, arguments.exc_value, arguments.exc_traceback)
