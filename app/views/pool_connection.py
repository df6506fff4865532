"""`PoolConnection`: the boards that share a session in place of the one that is shown, once the user asked for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal, Slot

from ..errors import WattridgeError
from ..numbers import counted
from .threads.bridge import EngineBridge
from .threads.tasks import TaskQueue

if TYPE_CHECKING:
    from ..engine.runner.pool.boards import PoolBoard
    from ..engine.runner.pool.gpu import PooledGpu
    from ..engine.session.pool.opening import OpenedPool

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
        self._tasks = TaskQueue(self)
        self._tasks.failed.connect(self._not_opened)
        self._opened: OpenedPool | None = None
        self._arriving: list[OpenedPool] = []  # open, and not in use yet
        self._give_up = threading.Event()
        self.opening = ""  # what is being opened, in words; empty while nothing is
        self.model = ""  # of the boards that share a session; empty where the pool has none
        self.speed = 1.0  # of simulated boards of this computer
        self._line.connect(self.said, Qt.ConnectionType.QueuedConnection)
        bridge.activity.changed.connect(self._activity_changed)
        bridge.queue_changed.connect(self._activity_changed)
        self._was_busy = False

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
        running, queued = self._bridge.activity.plan, self._bridge.queue.current
        plans = [running, *([queued.plan] if queued is not None else [])]
        return any(plan is not None and plan.reports is not None for plan in plans)

    def boards(self) -> tuple[PoolBoard, ...]:
        """All boards that are there now, of every model. Any thread may ask."""
        opened = self._opened
        return opened.pool.boards() if opened is not None else ()

    def models(self) -> list[str]:
        """The models of the boards that are there now."""
        return sorted({board.model for board in self.boards()})

    @property
    def words(self) -> str:
        """The boards that share a session: '4 boards of this computer'; empty where the shown board has it alone."""
        if not self.open:
            return ""
        count = sum(board.model == self.model for board in self.boards())
        return f"{counted(count, 'board')} of {self.where if self.here else 'a pool'}"

    def gpu(self) -> PooledGpu:
        """The boards as one, as they are now, to plan a session for. Any thread may ask. Raises WattridgeError."""
        from ..engine.runner.pool.gpu import PooledGpu
        from ..engine.session.pool.opening import chosen_model

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
            from ..engine.session.pool.opening import open_local_pool

            return open_local_pool(selectors, seed=seed, speed=speed, on_line=self._line.emit, stop=stop)

        self._open(f"Starting a worker for each of {len(selectors)} boards …", opened, speed)

    def connect_to(self, scheduler: str, certificates: Path | None) -> None:
        """Let sessions run on the boards of a scheduler; None: the certificates in the data folder."""

        def opened(stop: threading.Event) -> OpenedPool:
            from ..engine.session.pool.opening import open_scheduler_pool

            return open_scheduler_pool(scheduler, certificates, stop=stop)

        self._open(f"Connecting to {scheduler} …", opened, 1.0)

    def choose_model(self, model: str) -> None:
        """Let sessions run on the pool's boards of another model."""
        if model != self.model and not self.busy:
            self.model = model
            self.changed.emit()

    @Slot()
    def leave(self) -> None:
        """Let sessions run on the shown board alone; what was started for the boards ends."""
        if not self.busy and self._opened is not None:
            self._let_go()
            self.changed.emit()

    def close(self) -> None:
        """End all of it. Safe to call twice."""
        self._give_up.set()
        self._tasks.shutdown()
        opened, self._opened = self._opened, None
        for each in (*self._arriving, *([opened] if opened is not None else [])):
            each.close()
        self._arriving.clear()

    # --- inside -------------------------------------------------------------------------------------------------------

    def _open(self, words: str, opening: Opening, speed: float) -> None:
        if self.opening or self.busy:
            return
        self.opening = words

        def job() -> OpenedPool:
            opened = opening(self._give_up)
            self._arriving.append(opened)
            return opened

        self._tasks.run(job, lambda opened: self._use(opened, speed))
        self.changed.emit()

    def _use(self, opened: OpenedPool, speed: float) -> None:
        self._arriving.remove(opened)
        self._let_go()
        self._opened, self.speed, self.opening = opened, speed, ""
        boards = opened.pool.boards()
        counts = {board.model: sum(each.model == board.model for each in boards) for board in boards}
        self.model = max(sorted(counts), key=lambda model: counts[model], default="")
        self.changed.emit()

    def _let_go(self) -> None:
        """What waits in the queue for the boards cannot run."""
        from ..engine.runner.pool.gpu import SELECTOR
        from ..engine.session.events import BoardReleased

        opened, self._opened = self._opened, None
        self.model = ""
        if opened is not None:
            self._bridge.send(BoardReleased(SELECTOR))
            self._tasks.run(opened.close)

    @Slot(str, str)
    def _not_opened(self, what: str, remedy: str) -> None:
        self.opening = ""
        self.failed.emit(what, remedy)
        self.changed.emit()

    @Slot()
    def _activity_changed(self) -> None:
        if self.busy != self._was_busy:
            self._was_busy = self.busy
            self.changed.emit()
