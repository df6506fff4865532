"""`Errands`: work off Qt's thread that must not be dropped, one after another, each with its result handed back."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any, Final

from PySide6.QtCore import QObject, Qt, Signal, Slot

from ...errors import WattridgeError

_END: Final = object()
Then = Callable[[Any], None]


class Errands(QObject):
    """One thread, started by the first errand. `Background` is for work of which only the newest counts."""

    failed = Signal(str, str)  # what went wrong, and the remedy

    _arrived = Signal(object)  # (what to do with the result, the result, error)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._open = True
        self._under_way = 0
        self._arrived.connect(self._deliver, Qt.ConnectionType.QueuedConnection)

    @property
    def busy(self) -> bool:
        """Something has not told its result yet."""
        return self._under_way > 0

    def run(self, job: Callable[[], Any], then: Then | None = None) -> None:
        """Do `job` on the thread, after all that was asked before; `then` is given its result in Qt's thread."""
        if not self._open:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="wattridge-errands", daemon=True)
            self._thread.start()
        self._under_way += 1
        self._jobs.put((job, then))

    def shutdown(self) -> None:
        """Finish what was asked and end. Nothing is told afterwards."""
        self._open = False
        thread, self._thread = self._thread, None
        if thread is not None:
            self._jobs.put(_END)
            thread.join()

    def _work(self) -> None:
        while (errand := self._jobs.get()) is not _END:
            job, then = errand
            result, error = None, None
            try:
                result = job()
            except WattridgeError as problem:
                error = (f"{problem.where}: {problem.what}" if problem.where else problem.what, problem.remedy)
            except Exception as problem:  # noqa: BLE001  (the thread's last line of defence: it reports)
                error = (f"{type(problem).__name__}: {problem}", "this is a fault of the program; please report it")
            if self._open:
                self._arrived.emit((then, result, error))

    @Slot(object)
    def _deliver(self, arrived: tuple[Then | None, Any, tuple[str, str] | None]) -> None:
        then, result, error = arrived
        self._under_way -= 1
        if not self._open:
            return
        if error is not None:
            self.failed.emit(*error)
        elif then is not None:
            then(result)
