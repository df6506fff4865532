"""When Python collects cyclic garbage: on Qt's thread, between two turns of its event loop, and nowhere else.

Left to itself the collector runs wherever something is allocated. Inside `connect` it then destroys widgets while Qt
holds the lock that their destructors want, and the program stands still for ever; on the engine's thread it destroys
them where Qt forbids it; and a full collection halts every thread for tens of milliseconds.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable
from contextlib import suppress

from PySide6.QtCore import QObject, Qt, QTimer, Slot
from PySide6.QtGui import QGuiApplication

_OPENING_MS = 5_000  # within which a window opens
_TURN_MS = 100  # a session of a hundred thousand measurements is read within some seconds
_YOUNG = 2_000  # new objects that are worth a look
_MANY = 40_000  # that stay are a result: to look at 122,304 measurements takes 40 ms, at all there is then 90
_OLDER_EVERY, _ALL_EVERY = 50, 3000  # turns: 5 s and 5 min


def give_back() -> None:
    """Let the C library return freed memory to the system: glibc keeps it for ever behind one small piece in use."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)


def in_the_background() -> bool:
    """Whether the user works in another program."""
    return QGuiApplication.applicationState() != Qt.ApplicationState.ApplicationActive


class Collector(QObject):
    """Owns the collector while it lives. `stop` hands it back.

    Nothing is collected while the window opens: of the hundred thousand objects that this makes, some ten are garbage.
    Nor is a large result looked at: what it holds refers to nothing that refers back, and is freed when it is let go.
    What is left alone beside it may become garbage all the same; it is found when everything is looked at, which takes
    some 60 ms: once `unseen`, when nobody notices.
    """

    def __init__(self, parent: QObject | None = None, unseen: Callable[[], bool] = in_the_background) -> None:
        super().__init__(parent)
        self._unseen = unseen
        self._was_enabled = gc.isenabled()
        self._left_alone = False  # something was, since everything was looked at
        self._turns = self._stayed = 0  # `_stayed`: objects that were new since the last look at the others
        gc.disable()
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._turn)
        self._timer.start(_OPENING_MS)

    @Slot()
    def settle(self) -> None:
        """The window is open. What is loaded by now stays loaded: no collection need look at it."""
        self._leave_alone()
        self._timer.start(_TURN_MS)

    def stop(self) -> None:
        self._timer.stop()
        gc.unfreeze()
        if self._was_enabled:
            gc.enable()

    @Slot()
    def _turn(self) -> None:
        self._timer.setInterval(_TURN_MS)
        self._turns += 1
        new = gc.get_count()[0]
        if self._stayed + new > _MANY:
            if new < _MANY:
                gc.collect()  # garbage would be left alone for good
            self._leave_alone()
            self._left_alone = True
        elif self._turns % _ALL_EVERY == 0:
            if self._left_alone and self._unseen():
                self.look_at_everything()
            else:
                gc.collect()
                self._stayed = 0
            give_back()
        elif self._turns % _OLDER_EVERY == 0:
            self._stayed += max(0, new - gc.collect(1))
        elif new > _YOUNG:
            self._stayed += max(0, new - gc.collect(0))

    def look_at_everything(self) -> None:
        """Find the garbage in what was left alone too. Takes long."""
        gc.unfreeze()
        gc.collect()
        self._leave_alone()
        self._left_alone = False

    def _leave_alone(self) -> None:
        """No collection looks at what there is now."""
        gc.freeze()
        self._stayed = 0
