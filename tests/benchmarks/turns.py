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

from app.native_libraries import import_beside_the_main_thread

LOOKED_AT_S = 0.02  # turns that take longer are looked into,
LOOK_S = 0.003  # so often


class Turns(QObject):
    """A timer of 1 ms that notes its longest gap. Made on Qt's thread, beside a running event loop.

    Another thread looks at what runs in long ones, where `look` asks for it.
    """

    def __init__(self, *, look: bool = False) -> None:
        super().__init__()
        sys.setswitchinterval(5e-5)  # both as in the program
        import_beside_the_main_thread()
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
        self._beside: list[tuple[float, list[str]]] = []  # when something took long, and what all threads did then
        self._longest = 0.0, 0.0  # from when to when the longest turn was

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

    def beside(self, most: int = 8) -> list[str]:
        """What every thread that was at work, or had just been, did in the turn that took longest.

        One that keeps the interpreter's lock is seen when it has let go of it, at the call that kept it.
        """
        begun, ended = self._longest
        seen = Counter(place for at, places in self._beside if begun < at < ended + 2 * LOOK_S for place in places)
        return [f"{count:3d} {place}" for place, count in seen.most_common(most)]

    @Slot()
    def _beat(self) -> None:
        now, own = time.perf_counter(), time.thread_time()
        seen, self._seen = self._seen, []
        if now - self._last > self._longest_s:
            self._longest_s, self._longest = now - self._last, (self._last, now)
        if own - self._last_own > self._longest_own_s:
            self._longest_own_s, self._where = own - self._last_own, seen
        self._last, self._last_own = now, own

    def _look(self) -> None:
        """By way of `faulthandler`: a frame that is held here would keep what it paints with from its end."""
        clock = time.pthread_getcpuclockid(self._qt)
        with tempfile.TemporaryFile("w+") as file:
            looked = time.perf_counter()
            while True:
                time.sleep(LOOK_S)
                now = time.perf_counter()
                works = time.clock_gettime(clock) - self._last_own > LOOKED_AT_S
                if works or now - self._last > LOOKED_AT_S or now - looked > LOOKED_AT_S:  # nor was this one let in
                    file.seek(0)
                    file.truncate()
                    faulthandler.dump_traceback(file)
                    file.seek(0)
                    stacks = file.read()
                    if works:
                        self._seen.append(_place(stacks, self._qt))
                    self._beside.append((now, _places(stacks, self._names())))
                looked = time.perf_counter()

    def _names(self) -> dict[int, str]:
        """Of the threads; the looking one has none."""
        named = {each.ident or 0: each.name for each in threading.enumerate()}
        return {**named, self._qt: "Qt's", threading.get_ident(): ""}


def _place(stacks: str, thread: int) -> str:
    """The innermost functions of the program or of pyqtgraph in a thread's stack, the innermost first."""
    _, _, own = stacks.partition(f"hread 0x{thread:016x} ")
    found = re.findall(r'File ".*?/((?:app|pyqtgraph)/[^"]*)", line (\d+) in (\S+)', own.partition("\n\n")[0])
    return " < ".join(f"{file}:{line} {function}" for file, line, function in found[:4]) or "Qt"


def _places(stacks: str, names: dict[int, str]) -> list[str]:
    """The innermost functions of every thread but those that wait for another: modules that are imported included."""
    places = []
    for stack in stacks.split("\n\n"):
        thread = re.search(r"hread 0x([0-9a-f]+)", stack)
        name = names.get(int(thread[1], 16), "a thread of a library") if thread else ""
        found = re.findall(r'File "(?:[^"]*/)?([^"/]*/[^"/]*)", line (\d+) in (\S+)', stack)
        if name and found and found[0][2] not in _WAITS:
            places.append(f"{name}: " + " < ".join(f"{file}:{line} {function}" for file, line, function in found[:4]))
    return places


_WAITS = (
    "wait",
    "select",
    "get",
    "join",
    "_wait_for_tstate_lock",
    "_read_errors",
    "receive",
    "_worker",
    "_work",
    "_take",
)
