"""`FakePool`: boards in this process, each with a thread of its own, that can be lost, killed and garbled by a test.

What is sent and said are the lines that Dask would carry; the far side is the one that a worker has.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Protocol

from app.engine.runner.pool.pool import Came, Failure, Heard, Left, PoolBoard, Said, Unanswered


class FarSide(Protocol):
    """What answers requests beside a board: `BoardWork`, or a test's own."""

    board: PoolBoard

    @property
    def key(self) -> str: ...

    def answer(self, line: bytes, say: Callable[[bytes], None]) -> bytes: ...

    def end_until(self, session: str, number: int) -> None: ...


class _Killed(Exception):
    """The worker of a board died while it was at a request."""


class FakePool:
    """Implements `Pool`."""

    def __init__(self, *sides: FarSide) -> None:
        self.sides: dict[str, FarSide] = {}
        self.sent: list[tuple[str, int, bytes]] = []
        self._heard: queue.SimpleQueue[Heard] = queue.SimpleQueue()
        self._queues: dict[str, queue.SimpleQueue[tuple[int, bytes] | None]] = {}
        self._under_way: dict[int, str] = {}
        self._doomed: set[str] = set()
        self._threads: list[threading.Thread] = []
        self._lock = threading.RLock()
        self.garble: Callable[[str, bytes], bytes] = lambda _board, line: line
        for side in sides:
            self.join(side)

    # --- what a test does ---------------------------------------------------------------------------------------------

    def join(self, side: FarSide) -> None:
        """A worker joins with its board."""
        with self._lock:
            key = side.key
            self.sides[key] = side
            self._doomed.discard(key)
            waiting: queue.SimpleQueue[tuple[int, bytes] | None] = queue.SimpleQueue()
            self._queues[key] = waiting
            thread = threading.Thread(target=self._work, args=(key, side, waiting), name=f"board {key}", daemon=True)
            self._threads.append(thread)
            thread.start()
            self._heard.put(Came(side.board))

    def kill(self, key: str) -> None:
        """The worker of a board dies with all that it has; nobody hears more of it."""
        self._go(key, Failure.LOST, "its worker died")

    def lose(self, key: str) -> None:
        """The way to a board breaks."""
        self._go(key, Failure.BROKEN, "its worker left")

    # --- the seam -----------------------------------------------------------------------------------------------------

    def boards(self) -> tuple[PoolBoard, ...]:
        return tuple(side.board for side in self.sides.values())

    def send(self, board: str, number: int, line: bytes) -> None:
        with self._lock:
            self.sent.append((board, number, line))
            if board not in self._queues:
                self._heard.put(Unanswered(number, board, Failure.BROKEN, "its worker left"))
                return
            self._under_way[number] = board
            self._queues[board].put((number, line))

    def cancel(self, number: int) -> None:
        with self._lock:
            self._under_way.pop(number, None)

    def end_until(self, session: str, number: int) -> None:
        for side in list(self.sides.values()):
            side.end_until(session, number)

    def heard(self, timeout_s: float) -> Heard | None:
        try:
            return self._heard.get(timeout=timeout_s) if timeout_s > 0 else self._heard.get_nowait()
        except queue.Empty:
            return None

    def close(self) -> None:
        for waiting in self._queues.values():
            waiting.put(None)
        for thread in self._threads:
            thread.join()

    # --- inside -------------------------------------------------------------------------------------------------------

    def _go(self, key: str, how: Failure, why: str) -> None:
        with self._lock:
            self._doomed.add(key)
            self._queues.pop(key).put(None)
            del self.sides[key]
            for number in [number for number, board in self._under_way.items() if board == key]:
                del self._under_way[number]
                self._heard.put(Unanswered(number, key, how, why))
            self._heard.put(Left(key, why))

    def _work(self, key: str, side: FarSide, waiting: queue.SimpleQueue[tuple[int, bytes] | None]) -> None:
        while (next_one := waiting.get()) is not None:
            number, line = next_one

            def say(part: bytes, number: int = number) -> None:
                with self._lock:
                    if self._queues.get(key) is not waiting:
                        raise _Killed
                    if number in self._under_way:
                        self._heard.put(Said(number, key, self.garble(key, part)))

            try:
                if number not in self._under_way:
                    continue
                answer = side.answer(line, say)
                with self._lock:
                    if self._under_way.pop(number, None) is not None:
                        self._heard.put(Said(number, key, self.garble(key, answer)))
            except _Killed:
                return
