"""Work off Qt's thread, its result delivered on it: `LatestTask` (a newer job replaces an older) and `TaskQueue`."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from PySide6.QtCore import QObject, Qt, Signal, SignalInstance, Slot

from ...base.errors import WattridgeError
from .turns import OwnTurn

Job = Callable[[threading.Event], Any]  # its event is set when the result is not wanted any more
Then = Callable[[Any], None]
Hears = Callable[..., object] | SignalInstance | None  # a slot, a signal that goes on from here, or nobody
_Outcome = tuple[Any, tuple[str, str] | None]  # what a job returned; what went wrong, and the remedy

_END: Final = object()


class LatestTask(QObject):
    """One job at a time on a plain thread. Only the newest job's result is delivered."""

    done = Signal(object)  # what the job returned
    failed = Signal(str, str)  # what went wrong, and the remedy

    _arrived = Signal(object)  # (stop event of the job, its outcome)

    def __init__(self, parent: QObject | None = None, done: Hears = None, failed: Hears = None) -> None:
        """`done` and `failed` are slots for the signals of that name."""
        super().__init__(parent)
        _connect(self.done, done)
        _connect(self.failed, failed)
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._newest: tuple[threading.Event, _Outcome] | None = None  # that arrived
        self._turn = OwnTurn(self, self._deliver)
        self._arrived.connect(self._keep, Qt.ConnectionType.QueuedConnection)

    @property
    def busy(self) -> bool:
        """The newest job's result has not been delivered yet."""
        return self._thread is not None and not self._stop.is_set()

    def run(self, job: Job) -> None:
        """Start a job; an older one is asked to stop, and its result is dropped."""
        self._stop.set()
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._work, args=(job, self._stop, self._thread), name="wattridge-latest-task", daemon=True
        )
        self._thread.start()

    def cancel(self) -> None:
        """Request a stop of the job without waiting. Its result is dropped; the next job begins when it has ended."""
        self._stop.set()

    def shutdown(self) -> None:
        """Stop and wait. Nothing is delivered afterwards."""
        self._stop.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()

    def _work(self, job: Job, stop: threading.Event, older: threading.Thread | None) -> None:
        if older is not None:
            older.join()
        if stop.is_set():
            return
        outcome = _outcome_of(lambda: job(stop))
        if not stop.is_set():
            self._arrived.emit((stop, outcome))

    @Slot(object)
    def _keep(self, arrived: tuple[threading.Event, _Outcome]) -> None:
        self._newest = arrived
        self._turn.start()

    @Slot()
    def _deliver(self) -> None:
        assert self._newest is not None
        (stop, (result, error)), self._newest = self._newest, None
        if stop is not self._stop or stop.is_set():
            return
        self._thread = None
        if error is not None:
            self.failed.emit(*error)
        else:
            self.done.emit(result)


class TaskQueue(QObject):
    """Jobs that must not be dropped, one after another on one thread, which the first of them starts."""

    failed = Signal(str, str)  # what went wrong, and the remedy

    _arrived = Signal(object)  # (what to do with the result, the job's outcome)

    def __init__(self, parent: QObject | None = None, failed: Hears = None) -> None:
        """`failed` is a slot for the signal of that name."""
        super().__init__(parent)
        _connect(self.failed, failed)
        self._jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._open = True
        self._under_way = 0
        self._outcomes: deque[tuple[Then | None, _Outcome]] = deque()  # that arrived
        self._turn = OwnTurn(self, self._deliver)
        self._arrived.connect(self._keep, Qt.ConnectionType.QueuedConnection)

    @property
    def busy(self) -> bool:
        """Some result has not been delivered yet."""
        return self._under_way > 0

    def run(self, job: Callable[[], Any], then: Then | None = None) -> None:
        """Run `job` on the thread, after all that were queued before; `then` is given its result in Qt's thread."""
        if not self._open:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="wattridge-task-queue", daemon=True)
            self._thread.start()
        self._under_way += 1
        self._jobs.put((job, then))

    def shutdown(self) -> None:
        """Finish what is queued and end. Nothing is delivered afterwards."""
        self._open = False
        thread, self._thread = self._thread, None
        if thread is not None:
            self._jobs.put(_END)
            thread.join()

    def _work(self) -> None:
        while (queued := self._jobs.get()) is not _END:
            job, then = queued
            outcome = _outcome_of(job)
            if self._open:
                self._arrived.emit((then, outcome))
            del queued, job, then, outcome  # what they hold is not kept until the next job comes

    @Slot(object)
    def _keep(self, arrived: tuple[Then | None, _Outcome]) -> None:
        self._outcomes.append(arrived)
        self._turn.start()

    @Slot()
    def _deliver(self) -> None:
        then, (result, error) = self._outcomes.popleft()
        if self._outcomes:
            self._turn.start()
        self._under_way -= 1
        if not self._open:
            return
        if error is not None:
            self.failed.emit(*error)
        elif then is not None:
            then(result)


def _connect(signal: SignalInstance, slot: Hears) -> None:
    if slot is not None:
        signal.connect(slot)


def _outcome_of(job: Callable[[], Any]) -> _Outcome:
    try:
        return job(), None
    except WattridgeError as problem:
        return None, (f"{problem.where}: {problem.what}" if problem.where else problem.what, problem.remedy)
    except Exception as problem:  # noqa: BLE001  (the thread's last line of defence: it reports)
        return None, (f"{type(problem).__name__}: {problem}", "this is a fault of the program; please report it")
