"""When Python collects cyclic garbage: on Qt's thread, between two turns of its event loop, and nowhere else.

Left to itself the collector runs wherever something is allocated. Inside `connect` it then destroys widgets while Qt
holds the lock that their destructors want, and the program stands still for ever; on the engine's thread it destroys
them where Qt forbids it; and a full collection halts every thread for tens of milliseconds.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from contextlib import suppress

from PySide6.QtCore import QObject, QTimer, Slot

_TURN_MS = 500
_YOUNG = 2_000  # new objects that are worth a look
_OLDER_EVERY, _ALL_EVERY = 10, 600  # turns: 5 s and 5 min


def give_back() -> None:
    """Let the C library return freed memory to the system: glibc keeps it for ever behind one small piece in use."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)


class Collector(QObject):
    """Owns the collector while it lives. `stop` hands it back."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._was_enabled = gc.isenabled()
        self._turns = 0
        gc.disable()
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._turn)
        self._timer.start(_TURN_MS)

    @Slot()
    def settle(self) -> None:
        """What is loaded by now stays loaded: later collections need not look at it."""
        gc.collect(1)
        gc.freeze()

    def stop(self) -> None:
        self._timer.stop()
        gc.unfreeze()
        if self._was_enabled:
            gc.enable()

    @Slot()
    def _turn(self) -> None:
        self._turns += 1
        if self._turns % _ALL_EVERY == 0:
            gc.collect()
            give_back()
        elif self._turns % _OLDER_EVERY == 0:
            gc.collect(1)
        elif gc.get_count()[0] > _YOUNG:
            gc.collect(0)
