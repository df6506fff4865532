"""`PoolConnection`: the boards that share a session in place of the shown one, once the user selected them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Qt, Signal, Slot

from ...base.errors import WattridgeError
from ...base.formatting import counted
from ...engine.session import events
from .bridge import EngineBridge
from .tasks import TaskQueue
from .turns import timer

if TYPE_CHECKING:
    from ...engine.runner.pool.pool import PoolBoard
    from ...engine.runner.pool.pooled_gpu import PooledGpu
    from ...engine.session.pool.opening import OpenedPool

_LOOK_MS: Final = 1000  # between two looks at who is there
Opening = Callable[[threading.Event], "OpenedPool"]


class PoolConnection(QObject):
    """Nothing is connected to, and no process started, before `use_boards` or `connect_to` is called.

    Opening and closing happen off Qt's thread. While a session runs on the boards, they stay.
    """

    changed = Signal()  # other boards, another model, or they are being opened
    failed = Signal(str, str)  # what went wrong, and the remedy
    said = Signal(str)  # in one line, what became of the pool's own processes

    _line = Signal(str)  # from any thread

    def __init__(self, bridge: EngineBridge) -> None:
        super().__init__()
        self._bridge = bridge
        self._tasks = TaskQueue(self, self._not_opened)
        self._opened: OpenedPool | None = None
        self._arriving: list[OpenedPool] = []  # open, and not in use yet
        self._give_up = threading.Event()
        self.opening = ""  # what is being opened, in words; empty while nothing is
        self.model = ""  # of the boards that share a session; empty if the pool has none
        self.speed = 1.0  # of simulated boards of this computer
        self._line.connect(self.said, Qt.ConnectionType.QueuedConnection)
        bridge.activity.changed.connect(self._activity_changed)
        bridge.queue_changed.connect(self._activity_changed)
        bridge.subscribe(events.PoolReported, self._activity_changed)  # also before the session begins
        self._was_busy = False
        self._were_there: set[str] = set()
        self._looking = timer(self, self._look, _LOOK_MS)

    # --- what there is ------------------------------------------------------------------------------------------------

    @property
    def open(self) -> bool:
        """Whether sessions of specifications run on several boards."""
        return self._opened is not None

    @property
    def where(self) -> str:
        """'this computer', or the scheduler's address."""
        return self._opened.where if self._opened is not None else ""

    @property
    def here(self) -> bool:
        """The boards are this computer's own."""
        return self._opened is not None and self._opened.options[:1] == ("--gpu",)

    @property
    def busy(self) -> bool:
        """A session runs on the boards, or is about to: they stay what they are."""
        queue = self._bridge.queue
        plans = (self._bridge.activity.plan, queue.asked, queue.current.plan if queue.current is not None else None)
        return any(plan is not None and plan.pool is not None for plan in plans)

    def boards(self) -> tuple[PoolBoard, ...]:
        """All boards that are there now, of every model. Any thread may ask."""
        opened = self._opened
        return opened.pool.boards() if opened is not None else ()

    def models(self) -> list[str]:
        """The models of the boards that are there now."""
        return sorted({board.model for board in self.boards()})

    @property
    def words(self) -> str:
        """The boards that share a session: '4 boards of this computer'; empty if the shown board has it alone."""
        if not self.open:
            return ""
        count = sum(board.model == self.model for board in self.boards())
        return f"{counted(count, 'board')} of {self.where if self.here else 'a pool'}"

    def gpu(self) -> PooledGpu:
        """The boards as one, as they are now, to plan a session for. Any thread may ask. Raises WattridgeError."""
        from ...engine.runner.pool.pooled_gpu import PooledGpu
        from ...engine.session.pool.opening import chosen_model

        opened = self._opened  # it may be let go of meanwhile
        if opened is None:
            raise WattridgeError("no pool is connected", "Boards of a session", "connect to one, or name boards")
        boards = chosen_model(opened.pool, self.model or None)
        model = ("--model", self.model) if len(self.models()) > 1 else ()
        return PooledGpu(opened.pool, boards, (*opened.options, *model))

    # --- what is asked ------------------------------------------------------------------------------------------------

    def use_boards(self, selectors: Sequence[str], *, seed: int = 0, speed: float = 1.0) -> None:
        """Let sessions run on these boards of this computer; `speed` is that of simulated ones."""

        def opened(stop: threading.Event) -> OpenedPool:
            from ...engine.session.pool.opening import open_local_pool

            return open_local_pool(selectors, seed=seed, speed=speed, on_line=self._line.emit, stop=stop)

        self._open(f"Starting {counted(len(selectors), 'worker')} …", opened, speed)

    def connect_to(self, scheduler: str, certificates: Path | None) -> None:
        """Let sessions run on the boards of a scheduler; None: the certificates in the data folder."""

        def opened(stop: threading.Event) -> OpenedPool:
            from ...engine.session.pool.opening import open_scheduler_pool

            return open_scheduler_pool(scheduler, certificates, boards=0, stop=stop)  # they are seen as they come

        self._open(f"Connecting to {scheduler} …", opened, 1.0)

    def choose_model(self, model: str) -> None:
        """Let sessions run on the pool's boards of another model."""
        if model != self.model and not self.busy:
            self.model = model
            self.changed.emit()

    @Slot()
    def leave(self) -> None:
        """Let sessions run on the shown board alone; what was started for the boards, or is being opened, ends."""
        self._give_up.set()
        if not self.busy and self._opened is not None:
            self._let_go()
            self.changed.emit()

    def close(self) -> None:
        """End all of it. Safe to call twice."""
        self._looking.stop()
        self._give_up.set()
        self._tasks.shutdown()
        opened, self._opened = self._opened, None
        for item in (*self._arriving, *([opened] if opened is not None else [])):
            item.close()
        self._arriving.clear()

    # --- inside -------------------------------------------------------------------------------------------------------

    def _open(self, words: str, opening: Opening, speed: float) -> None:
        if self.opening or self.busy:
            return
        self.opening = words
        self._give_up = stop = threading.Event()

        def job() -> OpenedPool:
            opened = opening(stop)
            self._arriving.append(opened)
            return opened

        self._tasks.run(job, lambda opened: self._use(opened, speed, stop))
        self.changed.emit()

    def _use(self, opened: OpenedPool, speed: float, stop: threading.Event) -> None:
        self._arriving.remove(opened)
        if stop.is_set():  # nobody waits for it any more
            self.opening = ""
            self._tasks.run(opened.close)
            self.changed.emit()
            return
        self._let_go()
        self._opened, self.speed, self.opening = opened, speed, ""
        boards = opened.pool.boards()
        counts = {board.model: sum(item.model == board.model for item in boards) for board in boards}
        self.model = max(sorted(counts), key=lambda model: counts[model], default="")
        self._were_there = {board.key for board in boards}
        self._looking.start()
        self.changed.emit()

    def _let_go(self) -> None:
        """What waits in the queue for the boards cannot run."""
        from ...engine.runner.pool.pool import SELECTOR

        opened, self._opened = self._opened, None
        self.model = ""
        self._looking.stop()
        if opened is not None:
            self._bridge.send(events.BoardReleased(SELECTOR))
            self._tasks.run(opened.close)

    @Slot(str, str)
    def _not_opened(self, what: str, remedy: str) -> None:
        self.opening = ""
        if not self._give_up.is_set():
            self._bridge.report(what, remedy)
            self.failed.emit(what, remedy)
        self.changed.emit()

    @Slot()
    def _look(self) -> None:
        """Boards come and leave, also while no session runs."""
        there = {board.key for board in self.boards()}
        if there != self._were_there:
            self._were_there = there
            self.model = self.model or next(iter(self.models()), "")
            self.changed.emit()

    @Slot()
    def _activity_changed(self, *_: object) -> None:
        if self.busy != self._was_busy:
            self._was_busy = self.busy
            self.changed.emit()
