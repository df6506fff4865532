"""A script whose sessions the window runs and shows, beside what the user does there.

The script has a thread of its own; its sessions wait in the queue for their turn, and their events come back to it.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any, Final

from PySide6.QtCore import QObject, Qt, Signal, Slot

from ...base.errors import WattridgeError
from ...engine.runner.boards import ReadyPlan
from ...engine.session import events
from ...engine.session.live_session import SessionResult
from ...engine.space.result_table import ResultTable
from ...engine.specification.plan import SessionPlan
from ..shared.bridge import EngineBridge

_LOOK_S: Final = 0.2
_HEARD: Final = (
    events.SessionStarted
    | events.StartFailed
    | events.MeasurementsAdded
    | events.FiguresRestated
    | events.SessionChanged
)
Run = Callable[[ReadyPlan, Callable[[events.Event], None], bool], SessionResult]


class ScriptRun(QObject):
    """Runs `script(run)` on a thread of its own; `run` hands a session to the window and waits for its end."""

    _asked = Signal(object)

    def __init__(self, bridge: EngineBridge, script: Callable[[Run], None]) -> None:
        super().__init__()
        self._bridge = bridge
        self._heard: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=lambda: script(self._run), name="script", daemon=True)
        self._asked.connect(self._submit, Qt.ConnectionType.QueuedConnection)
        bridge.subscribe(_HEARD, self._hear)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """The window closes: a session that the script waits for ends as if the user had stopped it."""
        self._closed.set()
        self._thread.join(5.0)

    @Slot(object)
    def _submit(self, plan: ReadyPlan) -> None:
        try:
            self._bridge.queue.add([plan])
        except WattridgeError as error:
            self._heard.put(events.StartFailed(plan, str(error)))

    @Slot(object)
    def _hear(self, event: events.Event) -> None:
        self._heard.put(event)

    # --- on the script's thread -------------------------------------------------------------------------------------

    def _run(self, plan: ReadyPlan, on_event: Callable[[events.Event], None], quiet: bool) -> SessionResult:
        """Raises WattridgeError if it does not start, KeyboardInterrupt where the window closes."""
        self._asked.emit(plan)
        started: events.SessionStarted | None = None
        table: ResultTable | None = None
        present: SessionPlan = plan
        while True:
            try:
                event = self._heard.get(timeout=_LOOK_S)
            except queue.Empty:
                if self._closed.is_set():
                    raise KeyboardInterrupt("the window was closed") from None
                continue
            match event:
                case events.SessionStarted() if event.plan is plan:
                    started, table = event, event.table
                case events.StartFailed() if event.plan is plan:
                    raise WattridgeError(event.reason, plan.title, "look at the window")
                case _ if started is None or getattr(event, "session", started.session) != started.session:
                    continue
                case events.FiguresRestated():
                    present, table = event.plan, event.table
            on_event(event)
            if started is None or table is None or not isinstance(event, events.SessionChanged):
                continue
            progress = event.progress
            if progress.session == started.session and not progress.state.alive:
                return SessionResult(started.session, present, table, progress.state, event.reason, progress)
