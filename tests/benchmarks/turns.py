"""`Turns`: the longest time for which Qt's thread did not answer, and what it did meanwhile. POSIX only."""

from __future__ import annotations

import faulthandler
import re
import sys
import tempfile
import threading
import time
from collections import Counter

from PySide6.QtCore import QObject, Qt, QTimer, Slot

LOOKED_AT_S = 0.02  # turns that take more processor time are looked into,
LOOK_S = 0.003  # so often


class Turns(QObject):
    """A timer of 1 ms that notes its longest gap. Made on Qt's thread, beside a running event loop.

    Another thread looks at what runs in long ones, where `look` asks for it.
    """

    def __init__(self, *, look: bool = False) -> None:
        super().__init__()
        sys.setswitchinterval(5e-5)  # as in the program
        self._qt = threading.get_ident()
        self.begin()
        self._timer = QTimer(self, interval=1, timerType=Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._beat)
        self._timer.start()
        if look:
            threading.Thread(target=self._look, daemon=True).start()

    def begin(self) -> None:
        """Forget what was."""
        self._last, self._last_own = time.perf_counter(), time.thread_time()
        self._longest_s = self._longest_own_s = 0.0
        self._seen: list[str] = []  # in this turn
        self._where: list[str] = []  # in the one that took most processor time

    def longest_ms(self) -> float:
        """Since `begin`, this turn included."""
        self._beat()
        return 1e3 * self._longest_s

    def longest_own_ms(self) -> float:
        """The same of its processor time: on a busy machine the wall clock counts the others' work too."""
        self._beat()
        return 1e3 * self._longest_own_s

    def where(self, most: int = 6) -> list[str]:
        """Where the turn of most processor time was seen, the most frequent places first, with how often."""
        return [f"{count:3d} {place}" for place, count in Counter(self._where).most_common(most)]

    @Slot()
    def _beat(self) -> None:
        now, own = time.perf_counter(), time.thread_time()
        seen, self._seen = self._seen, []
        self._longest_s = max(self._longest_s, now - self._last)
        if own - self._last_own > self._longest_own_s:
            self._longest_own_s, self._where = own - self._last_own, seen
        self._last, self._last_own = now, own

    def _look(self) -> None:
        """By way of `faulthandler`: a frame that is held here would keep what it paints with from its end."""
        clock = time.pthread_getcpuclockid(self._qt)
        with tempfile.TemporaryFile("w+") as file:
            while True:
                time.sleep(LOOK_S)
                if time.clock_gettime(clock) - self._last_own > LOOKED_AT_S:
                    file.seek(0)
                    file.truncate()
                    faulthandler.dump_traceback(file)
                    file.seek(0)
                    self._seen.append(_place(file.read(), self._qt))


def _place(stacks: str, thread: int) -> str:
    """The innermost functions of the program or of pyqtgraph in a thread's stack, the innermost first."""
    _, _, own = stacks.partition(f"hread 0x{thread:016x} ")
    found = re.findall(r'File ".*?/((?:app|pyqtgraph)/[^"]*)", line (\d+) in (\S+)', own.partition("\n\n")[0])
    return " < ".join(f"{file}:{line} {function}" for file, line, function in found[:4]) or "Qt"
