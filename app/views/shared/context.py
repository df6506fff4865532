"""`Context`: what every panel of the window is given."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from .bridge import EngineBridge
from .current_result import CurrentResult
from .pool_connection import PoolConnection

if TYPE_CHECKING:
    from ...engine.store.database import Store
    from ...sensors.gpu import Gpu
    from .thumbnail import SmallFronts
    from .watched_boards import WatchedBoards


@dataclass(frozen=True)
class Context:
    """The boards, the engine behind the bridge and the result that is shown. Panels are `Panel(context)`.

    What a panel does, it does on `boards.current`, the board that is shown; `boards.board_changed` says that this is
    another one. Panels own what they connect; the window deletes them before it closes the bridge and the boards. A
    panel reports what went wrong with `context.bridge.report(what, remedy)`. What it hears of the engine, how it takes
    over other colours and how it ends is in `shared.panel.Panel`. The tuning panel also has
    `open(path: Path, *, start: bool = False)`, called when the program is given a specification or runs the demo.
    """

    bridge: EngineBridge
    boards: WatchedBoards
    store: Store
    result: CurrentResult  # what every view shows and every export writes

    @property
    def gpu(self) -> Gpu:
        """The board that is shown."""
        return self.boards.current.gpu

    @cached_property
    def pool(self) -> PoolConnection:
        """The boards that share a session in place of the shown one; made on Qt's thread."""
        return PoolConnection(self.bridge)

    def close(self) -> None:
        """End what was made of it, once the engine has ended."""
        if "pool" in vars(self):
            self.pool.close()

    @cached_property
    def fronts(self) -> SmallFronts:
        """Small fronts of stored sessions, for all panels; made on Qt's thread. A panel that shows them ends them."""
        from .thumbnail import SmallFronts  # imported late: plots come with the panels

        return SmallFronts(self.store)
