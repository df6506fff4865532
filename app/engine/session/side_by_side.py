"""Sessions on several boards at the same time: those of one board after one another, boards beside each other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from ...base.errors import WattridgeError
from ..runner.boards import ReadyPlan
from ..store.database import Store
from .events import EngineFault, Event
from .live_session import SessionResult
from .run import run_session


def run_side_by_side(
    boards: Sequence[Sequence[ReadyPlan]],
    store: Store,
    on_event: Callable[[Event], None],
    stop: threading.Event,
) -> list[SessionResult]:
    """Run the plans of each board on a thread of its own; the results, board by board, of sessions that could begin.

    Events come from all threads, one at a time. A session that fails costs neither the others of its board nor those
    of the others. Setting `stop` ends all of them, with what was measured.
    """
    mutex = threading.Lock()
    results: list[list[SessionResult]] = [[] for _ in boards]
    defects: list[BaseException] = []

    def hear(event: Event) -> None:
        with mutex:
            on_event(event)

    def work(at: int) -> None:
        for plan in boards[at]:
            if stop.is_set():
                return
            try:
                results[at].append(run_session(plan, store, hear, stop))
            except WattridgeError as error:
                hear(EngineFault.of(error))
            except BaseException as error:
                defects.append(error)
                stop.set()
                raise

    threads = [threading.Thread(target=work, args=(at,), name=f"board {at}") for at in range(len(boards))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if defects:
        raise defects[0]
    return [result for of_board in results for result in of_board]
