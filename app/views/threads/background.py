"""`Background`: slow work off Qt's thread, its result back as a signal. A newer job replaces an older one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, Qt, Signal, Slot

from ...errors import WattridgeError

Job = Callable[[threading.Event], Any]  # is given an event that is set when nobody wants its result any more


class Background(QObject):
    """One job at a time on a plain thread. Only the newest job's result is told."""

    done = Signal(object)  # what the job returned
    failed = Signal(str, str)  # what went wrong, and the remedy

    _arrived = Signal(object)  # (stop event of the job, result, error)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._arrived.connect(self._deliver, Qt.ConnectionType.QueuedConnection)

    @property
    def busy(self) -> bool:
        """The newest job has not told its result yet."""
        return self._thread is not None

    def run(self, job: Job) -> None:
        """Start a job; an older one is told to stop, and its result is dropped."""
        self._stop.set()
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._work, args=(job, self._stop, self._thread), name="wattridge-background", daemon=True
        )
        self._thread.start()

    def shutdown(self) -> None:
        """Stop and wait. Nothing is told afterwards."""
        self._stop.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()

    def _work(self, job: Job, stop: threading.Event, older: threading.Thread | None) -> None:
        if older is not None:
            older.join()
        if stop.is_set():
            return
        result: Any = None
        error: tuple[str, str] | None = None
        try:
            result = job(stop)
        except WattridgeError as problem:
            error = (f"{problem.where}: {problem.what}" if problem.where else problem.what, problem.remedy)
        except Exception as problem:  # noqa: BLE001  (the thread's last line of defence: it reports)
            error = (f"{type(problem).__name__}: {problem}", "this is a fault of the program; please report it")
        if not stop.is_set():
            self._arrived.emit((stop, result, error))

    @Slot(object)
    def _deliver(self, arrived: tuple[threading.Event, Any, tuple[str, str] | None]) -> None:
        stop, result, error = arrived
        if stop is not self._stop or stop.is_set():
            return
        self._thread = None
        if error is not None:
            self.failed.emit(*error)
        else:
            self.done.emit(result)
