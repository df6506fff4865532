"""`OwnTurn`: a long job on Qt's thread gets an iteration of the event loop of its own.

`InParts`: a widget that takes too long to make for one turn of Qt's loop.

`Frames`: when windows are painted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import cache

import shiboken6
from PySide6.QtCore import QCoreApplication, QEvent, QObject, Qt, QTimer, Signal, SignalInstance, Slot
from PySide6.QtWidgets import QWidget

_PAUSE_MS = 4  # so that what changes in a few turns is painted once


class Frames(QObject):
    """Each window that it follows is painted in a turn of Qt's loop of its own, once everything has its place.

    Left to itself Qt paints all windows in one turn. Every plot, moreover, has what waits to be painted in its window
    painted at once, in the middle of a turn, before the layouts are done: a workspace that came to sight was painted
    three times over.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._waiting: deque[QWidget] = deque()
        self._paints = False
        self._next = QTimer(self, singleShot=True, interval=_PAUSE_MS, timerType=Qt.TimerType.PreciseTimer)
        self._turn = OwnTurn(self, self._paint)
        self._next.timeout.connect(self._turn.start)

    def follow(self, window: QWidget) -> None:
        """A window, or a dock that may become one."""
        window.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Hold back what paints a window until its turn comes."""
        if event.type() != QEvent.Type.UpdateRequest or self._paints or not isinstance(watched, QWidget):
            return False
        if watched not in self._waiting:
            self._waiting.append(watched)
        if not self._next.isActive():
            self._next.start()
        return True

    @Slot()
    def _paint(self) -> None:
        """The window that has waited longest."""
        if not self._waiting:
            return
        window = self._waiting.popleft()
        if self._waiting:
            self._next.start()
        if shiboken6.isValid(window):
            self._paints = True
            QCoreApplication.sendEvent(window, QEvent(QEvent.Type.UpdateRequest))
            self._paints = False


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
        """Request a turn unless one is pending."""
        _line().join(self)

    @Slot()
    def stop(self) -> None:
        """Cancel the pending turn."""
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
