"""`OwnTurn`: what takes a while on Qt's thread has a turn of Qt's loop to itself.

`InParts`: a widget that takes too long to make for one turn of Qt's loop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import cache

import shiboken6
from PySide6.QtCore import QObject, QTimer, Signal, SignalInstance, Slot


def timer(
    owner: QObject, slot: Callable[..., object] | SignalInstance, interval_ms: int = 0, *, once: bool = False
) -> QTimer:
    """A timer that calls a slot when it is started; with `once`, a single time."""
    made = QTimer(owner, singleShot=once, interval=interval_ms)
    made.timeout.connect(slot)
    return made


class OwnTurn(QObject):
    """Calls `job`, a slot, once after each `start`, in a turn in which no other `OwnTurn` calls its own.

    First come, first served. Of the timers that are due, Qt serves all in one turn, and nobody who clicks or types is
    answered meanwhile.
    """

    due = Signal()

    def __init__(self, parent: QObject, job: Callable[[], object]) -> None:
        super().__init__(parent)
        self.due.connect(job)

    @Slot()
    def start(self) -> None:
        """Ask for a turn, unless it waits for one already."""
        _line().join(self)

    @Slot()
    def stop(self) -> None:
        """Want no turn any more."""
        _line().leave(self)


class _Line(QObject):
    """Those who wait for a turn."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: deque[OwnTurn] = deque()
        self._timer = QTimer(self, singleShot=True, interval=0)
        self._timer.timeout.connect(self._serve)

    def join(self, one: OwnTurn) -> None:
        if one not in self._waiting:
            self._waiting.append(one)
            self._timer.start()

    def leave(self, one: OwnTurn) -> None:
        if one in self._waiting:
            self._waiting.remove(one)

    @Slot()
    def _serve(self) -> None:
        one = self._waiting.popleft() if self._waiting else None
        self._go_on()  # where the job opens a dialog and stays in it
        try:
            if one is not None and shiboken6.isValid(one):
                one.due.emit()
        finally:
            self._go_on()  # behind the timers that became due meanwhile

    def _go_on(self) -> None:
        if self._waiting:
            self._timer.start()


@cache
def _line() -> _Line:
    """The one line; made at the first call, which must be in Qt's thread."""
    return _Line()


class InParts:
    """Mixed into a widget whose `make` does what `__init__` would, and yields where a turn may end.

    `__init__` takes `at_once` and hands it to `begin` last: whoever makes the widget by itself gets all of it, and the
    window asks for it part by part. Until it is whole it is not shown, and hears of nothing: signals are connected in
    the last part, which also reads what they would have said.
    """

    _left: Iterator[None] | None

    def make(self) -> Iterator[None]:
        """Make the widget. At most one plot between two `yield`s: each takes milliseconds."""
        raise NotImplementedError

    def begin(self, at_once: bool) -> None:
        """Make nothing yet, or all of it."""
        self._left = self.make()
        if at_once:
            self.finish()

    @property
    def is_whole(self) -> bool:
        """Whether every part is there."""
        return self._left is None

    def make_part(self) -> None:
        """Make one more part, if any is left."""
        if self._left is not None and next(self._left, self) is self:
            self._left = None

    def make_parts(self) -> Iterator[None]:
        """Make what is left, for a widget that this one is a part of."""
        while not self.is_whole:
            self.make_part()
            yield

    def finish(self) -> None:
        """Make what is left now."""
        for _ in self.make_parts():
            pass
