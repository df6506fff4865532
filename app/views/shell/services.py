"""`Services`: what the panels of a window share: one board, its engine, its store and the way to its settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..context import Context
from ..selection import Selection
from ..threads.bridge import Engine, EngineBridge
from .board_monitor import BoardMonitor

if TYPE_CHECKING:
    from ...engine.control.device_log import Change
    from ...engine.control.guard import DeviceGuard
    from ...engine.session.events import Event
    from ...engine.store.database import Store


class Services:
    """Store, guard and engine are made when they are first needed: a window that only watches loads none of them."""

    def __init__(self, board: BoardMonitor) -> None:
        self.board = board
        self.bridge = EngineBridge(self._make_tuner)
        self.selection = Selection(self.bridge)
        self._store: Store | None = None
        self._guard: DeviceGuard | None = None

    @property
    def store(self) -> Store:
        """The user's sessions. Raises WattridgeError where they cannot be opened."""
        if self._store is None:
            from ...engine.store.database import Store

            self._store = Store()
        return self._store

    @property
    def guard(self) -> DeviceGuard:
        """The one door to this board's settings, shut at every start. Changes of real boards are logged."""
        if self._guard is None:
            from ...engine.control.guard import DeviceGuard

            self._guard = DeviceGuard(self.board.gpu, on_change=self._setting_changed)
        return self._guard

    def context(self, others: tuple[str, ...]) -> Context:
        """What every panel is given; `others` are selectors of boards that are watched at a glance."""
        board = self.board
        return Context(
            self.bridge, board.gpu, board.trace, board.sampler, self.store, self.selection, others, self.guard
        )

    def close(self) -> None:
        """End the engine, then the sampling, then the store."""
        self.bridge.close()
        self.board.close()
        if self._store is not None:
            self._store.close()

    def _make_tuner(self, on_event: Callable[[Event], None]) -> Engine:
        from ...engine.session.tuner import Tuner

        return Tuner(self.store, on_event, guard_of=lambda _: self.guard)

    def _setting_changed(self, change: Change) -> None:
        from ...engine.control.device_log import keep
        from ...engine.session.events import DeviceChanged

        if self.board.gpu.info.source == "nvml":
            keep(change)
        self.bridge.send(DeviceChanged(change))
