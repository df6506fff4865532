"""`Services`: what the panels of a window share: the boards, the engine and the store."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..shared.bridge import Engine, EngineBridge
from ..shared.context import Context
from ..shared.current_result import CurrentResult
from ..shared.settings import Settings
from ..shared.watched_boards import WatchedBoards, is_real
from ..watch.board_meters import BoardMeters

if TYPE_CHECKING:
    from ...engine.control.device_log import Change
    from ...engine.session.events import Event
    from ...engine.store.database import Store
    from ...sensors.gpu import Gpu


class Services:
    """Store and engine are made when they are first needed: a window that only watches loads none of them."""

    def __init__(self, gpu: Gpu, *, seed: int = 0, speed: float = 1.0) -> None:
        """`gpu` is shown first; `seed` and `speed` are of the simulated boards and recordings that follow."""
        self.bridge = EngineBridge(self._make_tuner)
        self.boards = WatchedBoards(gpu, self.bridge, seed=seed, speed=speed, on_change=self._setting_changed)
        self.meters = BoardMeters(self.boards)
        self.result = CurrentResult(self.bridge)
        self.result.follow_board(self.boards.current)
        self.boards.board_changed.connect(self.result.follow_board)
        self._store: Store | None = None
        self._samples_mb = Settings().samples_mb  # read on Qt's thread
        self._opening = threading.Lock()
        self._context: Context | None = None

    @property
    def store(self) -> Store:
        """The user's sessions, opened once by the first thread that needs them.

        Raises WattridgeError if they cannot be opened.
        """
        with self._opening:
            if self._store is None:
                from ...engine.store.database import Store

                self._store = Store(evidence_byte=self._samples_mb << 20)
            return self._store

    def context(self) -> Context:
        """What every panel is given."""
        if self._context is None:
            self._context = Context(self.bridge, self.boards, self.store, self.result)
        return self._context

    def keep_samples(self, most_mb: int) -> None:
        """From the next session on each keeps so many samples of its measurements; 0: none."""
        self._samples_mb = Settings().samples_mb = most_mb
        if self._store is not None:
            self._store.evidence_byte = most_mb << 20

    def close(self) -> None:
        """End the engine, then the sampling, then the store."""
        self.bridge.close()
        if self._context is not None:
            self._context.close()
        self.meters.shutdown()
        self.boards.close()
        if self._store is not None:
            self._store.close()

    def _make_tuner(self, on_event: Callable[[Event], None]) -> Engine:
        from ...engine.session.engine_thread import Tuner

        return Tuner(self.store, on_event, guard_of=self.boards.guard_of)

    def _setting_changed(self, change: Change) -> None:
        """Changes of real boards are logged."""
        from ...engine.control.device_log import keep
        from ...engine.session.events import DeviceChanged

        if is_real(change.uuid):
            keep(change)
        self.bridge.send(DeviceChanged(change))
