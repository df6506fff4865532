"""`EngineBridge`: the engine thread's events, delivered on Qt's thread. The only place where the two threads meet.

`Activity`: what the engine does now, how far it is, and how it is paused and stopped.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable
from types import UnionType
from typing import TYPE_CHECKING, Any, Final, Protocol, get_args

from PySide6.QtCore import QObject, Qt, QTimer, Signal, SignalInstance, Slot

from ...base.errors import WattridgeError
from ...base.formatting import duration
from ...engine.results.state import Progress, Purpose, SessionState
from ...engine.session import events
from ...engine.session.queue import RunQueue
from .turns import OwnTurn

if TYPE_CHECKING:
    from ...engine.specification.plan import SessionPlan


class Activity(QObject):
    """The running activity (a session, a sweep, a fit or profiling), if any. Receives every event."""

    changed = Signal()

    def __init__(self, submit: Callable[[events.Command], None], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._submit = submit
        self.plan: SessionPlan | None = None  # of the session that runs or is paused
        self.purpose = Purpose.TUNING  # of the session that started last, or was opened
        self.progress: Progress | None = None  # of the session, once it is known
        self.fit: events.FitProgress | None = None  # of a sweep or fit, for which a session waits
        self.profiling: events.ProfilingProgress | None = None
        self.preparing: events.Preparing | None = None  # until the session's first measurement
        self.pausing = False  # asked for, and not yet answered
        self.stopping = False

    @property
    def busy(self) -> bool:
        """Whether anything runs, or is paused."""
        return self.plan is not None or self.fit is not None or self.profiling is not None

    @property
    def paused(self) -> bool:
        """A session is, and nothing else runs meanwhile."""
        return self.fit is None and self.progress is not None and self.progress.state is SessionState.PAUSED

    @property
    def can_pause(self) -> bool:
        """A session runs, or is paused and can continue. Sweeps and fits have no pause."""
        return self.plan is not None and self.fit is None and not self.pausing and not self.stopping

    @property
    def title(self) -> str:
        """What runs, in words; empty while nothing does."""
        if self.fit is not None:
            return f"Sweep of {self.fit.what}"
        if self.profiling is not None:
            return f"Hardware counters of session {self.profiling.session}"
        if self.plan is None:
            return ""
        if self.plan.purpose is Purpose.ROOFLINE:
            from ...engine.models.roofline.points import precision_words  # imported late: few sessions need it

            return f"Roofline {precision_words(self.plan.origin.get('precision', ''))}"
        if self.plan.purpose is Purpose.REPLAY:
            return f"{'Following' if self.plan.follow is not None else 'Replay of'} {self.plan.title}"
        return f"Tuning {self.plan.title}"

    @property
    def share(self) -> tuple[int, int]:
        """(done, of how many); of 0 while that is not known."""
        if self.fit is not None:
            return self.fit.done, self.fit.total
        if self.profiling is not None:
            return self.profiling.done, self.profiling.total
        if self.preparing is not None:
            return round(self.preparing.done_s), max(1, round(self.preparing.total_s))
        return (self.progress.evaluated, self.progress.budget) if self.progress is not None else (0, 0)

    @property
    def left(self) -> str:
        """The time that is left, or why there is none, in words; empty while it is not known."""
        if self.stopping or self.pausing:
            return "stopping …" if self.stopping else "pausing …"
        if self.fit is not None:
            return ""
        if self.preparing is not None:
            return "preparing"
        if self.paused:
            return "paused"
        eta_s = self.progress.eta_s if self.progress is not None else None
        return "" if eta_s is None else f"{duration(eta_s)} left"

    @Slot()
    def pause_or_resume(self) -> None:
        """Pause the session, or continue it."""
        if self.can_pause:
            self.pausing = not self.paused
            self._submit(events.Pause() if self.pausing else events.Resume())
            self.changed.emit()

    @Slot()
    def stop(self) -> None:
        """End what runs; what was measured stays, and a session can be resumed later."""
        if self.busy and not self.stopping:
            self.stopping = True
            self._submit(events.Stop())
            self.changed.emit()

    def note(self, event: events.Event) -> None:
        """Update from an engine event. Call on Qt's thread, before the event reaches other listeners."""
        match event:
            case events.SessionStarted():
                self.plan, self.purpose = (event.plan if event.running else None), event.plan.purpose
                self.progress = self.preparing = None
                self.pausing = self.stopping = False
            case events.Preparing():
                self.preparing = event
            case events.MeasurementsAdded():
                self.progress, self.preparing = event.progress, None
            case events.SessionChanged():
                self._session_changed(event.progress)
            case events.FitProgress():
                self.fit = event
            case events.FitFinished() | events.FitFailed():
                self.fit = None
                self.stopping = False
            case events.ProfilingProgress():
                self.profiling = event
            case events.ProfilingFinished():
                self.profiling = None
                self.stopping = False
            case _:
                return
        self.changed.emit()

    def _session_changed(self, progress: Progress) -> None:
        self.progress, self.preparing, self.pausing = progress, None, False
        if not progress.state.alive:
            self.plan = self.progress = None
            self.stopping = False


_FLOOD: Final = 64  # measurements in one event: only recordings come as fast
_PATIENCE_S: Final = 0.1  # a window that is held up does not hold up the engine
_PAINTED_MS: Final = 15  # Qt paints 5 ms after it was asked to


class Engine(Protocol):
    """What the bridge needs of `Tuner` (`engine/session/engine_thread.py`)."""

    def start(self) -> None: ...

    def submit(self, command: events.Command) -> None: ...

    def stop(self) -> None: ...

    def join(self, timeout: float | None = None) -> Any: ...


class _Slots(QObject):
    """The slots connected to one type of event; Qt disconnects those whose object was deleted."""

    reported = Signal(object)


class EngineBridge(QObject):
    """Calls slots with the engine's events, in Qt's thread: `subscribe`.

    `activity` hears of every event first, then `queue`, which starts what waits in it.

    `make_tuner(on_event)` is called at the first use, so that a window that only watches never loads the engine.
    """

    resolved = Signal(str, str)  # what a view reported, and its remedy: the cause is gone
    queue_changed = Signal()

    _arrived = Signal()

    def __init__(self, make_tuner: Callable[[Callable[[events.Event], None]], Engine]) -> None:
        super().__init__()
        self._make_tuner = make_tuner
        self._tuner: Engine | None = None
        self._closed = False
        self._shown = threading.Event()  # what came last is on the screen
        self._waiting: deque[events.Event] = deque()
        self._comes = False  # Qt's thread has been asked to take what waits
        self._lock = threading.Lock()  # for both
        self.activity = Activity(self.submit, self)
        self.queue = RunQueue(lambda plan: self.submit(events.Start(plan)), self.queue_changed.emit)
        self._length = 0  # measurements that were announced
        self._painted = QTimer(self, singleShot=True, interval=_PAINTED_MS, timerType=Qt.TimerType.PreciseTimer)
        self._painted.timeout.connect(self._shown.set)
        self._next = QTimer(self, singleShot=True)
        self._turn = OwnTurn(self, self._take)
        self._next.timeout.connect(self._turn.start)
        self._slots: defaultdict[tuple[type[events.Event], bool], _Slots] = defaultdict(_Slots)
        self._arrived.connect(self._turn.start, Qt.ConnectionType.QueuedConnection)

    def subscribe(
        self, kinds: type[events.Event] | UnionType, slot: Callable[..., object], *, roofline: bool = False
    ) -> None:
        """Have a slot called with each event of a kind, or of several: `SessionStarted | FiguresRestated`.

        Of a session's events these are of one that tunes or replays, whose measurements are the window's current
        result; with `roofline`, of one that measures a board's roofline. Use bound `@Slot` methods of QObjects.
        """
        for kind in get_args(kinds) or (kinds,):
            self.signal(kind, roofline=roofline).connect(slot)

    def signal(self, kind: type[events.Event], *, roofline: bool = False) -> SignalInstance:
        """The signal of one kind of event, for who waits for it; its argument is the event."""
        return self._slots[kind, roofline].reported

    def submit(self, command: events.Command) -> None:
        """Hand a command to the engine thread; returns at once. Nothing happens after `close`.

        An engine that cannot be started, say because the data folder cannot be written, is reported as a fault.
        """
        if self._closed:
            return
        if isinstance(command, events.Start):
            self.queue.expect(command.plan)
        if self._tuner is None:
            try:
                self._tuner = self._make_tuner(self._on_event)
            except WattridgeError as error:
                if isinstance(command, events.Start):
                    self.send(events.StartFailed(command.plan, error.what))
                self.report(f"{error.where}: {error.what}" if error.where else error.what, error.remedy)
                return
            self._tuner.start()
        self._tuner.submit(command)

    def report(self, what: str, remedy: str = "") -> None:
        """Show a fault that a view met itself in the window's banner. Any thread may call it."""
        self.send(events.EngineFault(what, remedy))

    def send(self, event: events.Event) -> None:
        """Hand over an event that did not come by way of the engine's thread. Any thread may call it."""
        self._on_event(event)

    def close(self) -> None:
        """Stop the engine thread and wait for it. Safe to call twice."""
        self._closed = True
        self._shown.set()
        tuner, self._tuner = self._tuner, None
        if tuner is not None:
            tuner.stop()
            tuner.join(10.0)

    def _on_event(self, event: events.Event) -> None:
        """Called on the engine thread: hands the event over.

        A session that begins, and a replay that fills the table faster than it can be drawn, wait until that is done:
        two threads that both want the interpreter would make every picture take several times as long.
        """
        if self._closed:
            return
        waits = isinstance(event, events.SessionStarted)
        if isinstance(event, events.MeasurementsAdded):
            waits = event.length - self._length >= _FLOOD
            self._length = event.length
        self._shown.clear()
        with self._lock:
            self._waiting.append(event)
            comes, self._comes = self._comes, True
        if not comes:
            self._arrived.emit()
        if waits:
            self._shown.wait(_PATIENCE_S)

    @Slot()
    def _take(self) -> None:
        """Deliver one event, and the next in another turn of Qt's loop: one that is posted in this turn still belongs
        to it, and nobody would be answered while the engine is the faster of the two. What measurements add up to is
        drawn before the next."""
        with self._lock:
            if not self._waiting:
                self._comes = False
                return
            event = self._waiting.popleft()
            while self._is_outdated(event):
                event = self._waiting.popleft()
        self._next.start(0)  # also where a slot raises, or opens a dialog and stays in it
        self.deliver(event)
        if isinstance(event, events.MeasurementsAdded):
            self._next.start(_PAINTED_MS)

    def _is_outdated(self, event: events.Event) -> bool:
        """Whether a queued event of the same type, with only counts in between, supersedes this one."""
        for later in self._waiting if _only_counts(event) else ():
            if not _only_counts(later):
                return False
            if type(later) is type(event):
                return True
        return False

    @Slot(object)
    def deliver(self, event: events.Event) -> None:
        """Call the slots of an event's kind. For Qt's thread."""
        if not self._closed:
            self.activity.note(event)
            self.queue.note(event)
            purpose = self.activity.purpose
            if isinstance(event, events.FiguresRestated):  # of what is shown, though a roofline may have run last
                purpose = event.plan.purpose
            roofline = purpose is Purpose.ROOFLINE and isinstance(event, events.SessionEvent)
            self._slots[type(event), roofline].reported.emit(event)
            self._painted.start()


def _only_counts(event: events.Event) -> bool:
    """How far it is, all in all: the newest of several is enough."""
    return isinstance(event, events.MeasurementsAdded) or (isinstance(event, events.PoolReported) and not event.remark)
