"""`Turns`: the longest time for which Qt's thread did not answer."""

from __future__ import annotations

import sys
import time

from PySide6.QtCore import QObject, Qt, QTimer, Slot


class Turns(QObject):
    """A timer of 1 ms that notes its longest gap. Made on Qt's thread, beside a running event loop."""

    def __init__(self) -> None:
        super().__init__()
        sys.setswitchinterval(5e-5)  # as in the program
        self.begin()
        self._timer = QTimer(self, interval=1, timerType=Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._beat)
        self._timer.start()

    def begin(self) -> None:
        """Forget what was."""
        self._last, self._last_own = time.perf_counter(), time.thread_time()
        self._longest_s = self._longest_own_s = 0.0

    def longest_ms(self) -> float:
        """Since `begin`, this turn included."""
        self._beat()
        return 1e3 * self._longest_s

    def longest_own_ms(self) -> float:
        """The same of its processor time: on a busy machine the wall clock counts the others' work too."""
        self._beat()
        return 1e3 * self._longest_own_s

    @Slot()
    def _beat(self) -> None:
        now, own = time.perf_counter(), time.thread_time()
        self._longest_s = max(self._longest_s, now - self._last)
        self._longest_own_s = max(self._longest_own_s, own - self._last_own)
        self._last, self._last_own = now, own
