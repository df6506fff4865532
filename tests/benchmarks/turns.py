"""`Turns`: the longest time for which Qt's thread did not answer, and what it did meanwhile. POSIX only."""

from __future__ import annotations

import _imp
import builtins
import gc
import marshal
import re
import resource
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, NamedTuple

from PySide6.QtCore import QObject, Qt, QTimer, Slot
from stacks import Stack, stacks

from app.base.installation import import_beside_the_main_thread

LOOKED_AT_S = 0.02  # turns that take longer are looked into,
LOOK_S = 0.003  # so often
NOTED_S = 0.002  # what takes longer is noted
# What sleeps for so long and says when it slept longer, until its input ends.
_BESIDE = f"""
import sys, threading, time
threading.Thread(target=sys.stdin.read).start()
while threading.active_count() > 1:
    since = time.perf_counter() + {LOOK_S}
    time.sleep({LOOK_S})
    until = time.perf_counter()
    if until - since > {LOOK_S}:
        print(since, until, flush=True)
"""


class Look(NamedTuple):
    """What all threads did."""

    at: float
    stacks: dict[int, Stack]
    names: dict[int, str]


Span = tuple[float, float, str]  # from when to when something happened


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
            _note_what_keeps_the_lock(lambda span: self._spans.append(span))
            threading.Thread(target=self._look, daemon=True).start()
            threading.Thread(target=self._note_waits_for_a_core, daemon=True).start()

    def begin(self) -> None:
        """Forget what was."""
        self._last, self._last_own = time.perf_counter(), time.thread_time()
        self._longest_s = self._longest_own_s = 0.0
        self._seen: list[Stack] = []  # of Qt's thread, in this turn
        self._where: list[Stack] = []  # in the one that took most processor time
        self._looks: list[Look] = []  # at turns that took long
        self._spans: list[Span] = []  # what kept Python's lock, or could have
        self._longest = 0.0, 0.0  # from when to when the longest turn was
        self._faults, self._faults_of_longest = _faults(), 0  # pages that were not in memory

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
        return [f"{count:3d} {place}" for place, count in Counter(map(_place, self._where)).most_common(most)]

    def beside(self, most: int = 12) -> list[str]:
        """What every thread that was at work, or had just been, did in the turn that took longest.

        One that keeps the interpreter's lock is seen when it has let go of it, at the call that kept it.
        """
        begun, ended = self._longest
        looks = (look for look in self._looks if begun < look.at < ended + 2 * LOOK_S)
        seen = Counter(place for look in looks for place in _places(look))
        return [f"{count:3d} {place}" for place, count in seen.most_common(most)]

    def held(self) -> list[str]:
        """What keeps Python's lock, or shows that it was kept, in the turn that took longest: how often, how long."""
        begun, ended = self._longest
        found: dict[str, list[tuple[float, float]]] = {}
        for since, until, what in self._spans:
            if since < ended and until > begun:
                found.setdefault(what, []).append((until - since, since - begun))
        return [
            f"{len(spans):3d} {what}: {1e3 * sum(took_s for took_s, _ in spans):.1f} ms together, "
            f"{1e3 * max(spans)[0]:.1f} ms from {1e3 * max(spans)[1]:+.1f} ms"
            for what, spans in found.items()
        ] + [f"{self._faults_of_longest:3d} pages read from files, by any thread"]

    @Slot()
    def _beat(self) -> None:
        now, own, faults = time.perf_counter(), time.thread_time(), _faults()
        seen, self._seen = self._seen, []
        if now - self._last > self._longest_s:
            self._longest_s, self._longest = now - self._last, (self._last, now)
            self._faults_of_longest = faults - self._faults
        if own - self._last_own > self._longest_own_s:
            self._longest_own_s, self._where = own - self._last_own, seen
        self._last, self._last_own, self._faults = now, own, faults

    def _look(self) -> None:
        clock = time.pthread_getcpuclockid(self._qt)
        while True:
            asleep = time.perf_counter()
            time.sleep(LOOK_S)
            now, own = time.perf_counter(), time.thread_time()
            late_s = now - asleep - LOOK_S
            if late_s > LOOK_S:
                self._spans.append((now - late_s, now, "wait of the looking thread for the lock or a core"))
            works = time.clock_gettime(clock) - self._last_own > LOOKED_AT_S
            if works or now - self._last > LOOKED_AT_S or late_s > LOOKED_AT_S:
                look = Look(now, stacks(), self._names())  # put into words when it is asked for
                if works:
                    self._seen.append(look.stacks.get(self._qt, []))
                self._looks.append(look)
                self._spans.append((now, now + time.thread_time() - own, "look, of its processor time"))

    def _note_waits_for_a_core(self) -> None:
        """Of another process, which needs a core and not this one's lock."""
        beside = subprocess.Popen(
            [sys.executable, "-c", _BESIDE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert beside.stdout is not None
        for line in beside.stdout:
            since, until = map(float, line.split())
            self._spans.append((since, until, "wait of another process for a core"))

    def _names(self) -> dict[int, str]:
        """Of the threads."""
        named = {each.ident or 0: each.name for each in threading.enumerate()}
        return {**named, self._qt: "Qt's"}


def _faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_majflt


def _note_what_keeps_the_lock(note: Callable[[Span], object]) -> None:
    """Calls of C that let no other thread in: until a process runs its program, of imports, searches for garbage."""
    begun = 0.0

    def wrap(module: Any, name: str, what: Callable[..., str]) -> None:
        call = getattr(module, name)

        def noted(*words: Any, **more: Any) -> Any:
            since = time.perf_counter()
            found = call(*words, **more)
            until = time.perf_counter()
            if until - since > NOTED_S:
                note((since, until, f"{what(*words, **more)} by {threading.current_thread().name}"))
            return found

        setattr(module, name, noted)

    def collect(phase: str, found: dict[str, int]) -> None:
        nonlocal begun
        if phase == "stop":
            name = threading.current_thread().name
            note((begun, time.perf_counter(), f"search for garbage of generation {found['generation']} by {name}"))
        begun = time.perf_counter()

    wrap(subprocess, "_fork_exec", lambda *_: "start of a process")
    wrap(builtins, "compile", lambda _text, file, *_, **__: f"compilation of {str(file)[-40:]}")
    wrap(marshal, "loads", lambda data, **_: f"{len(data)} bytes of bytecode read")
    wrap(_imp, "create_dynamic", lambda spec, *_: f"creation of {spec.name}")
    wrap(_imp, "exec_dynamic", lambda module: f"initialisation of {module.__name__}")
    gc.callbacks.append(collect)


def _place(stack: Stack) -> str:
    """The innermost functions of the program or of pyqtgraph in a thread's stack, the innermost first."""
    found = ((re.search(r"/((?:app|pyqtgraph)/.*)", code.co_filename), code, line) for code, line in stack)
    return _line((match[1], code.co_name, line) for match, code, line in found if match) or "Qt"


def _places(look: Look) -> list[str]:
    """The innermost functions of every thread but those that wait for another: modules that are imported included."""
    return [
        f"{look.names.get(thread, 'a thread of a library')}: "
        + _line(("/".join(code.co_filename.split("/")[-2:]), code.co_name, line) for code, line in stack)
        for thread, stack in look.stacks.items()
        if stack and stack[0][0].co_name not in _WAITS
    ]


def _line(functions: Iterable[tuple[str, str, int | None]], most: int = 4) -> str:
    return " < ".join(f"{file}:{line} {function}" for file, function, line in islice(functions, most))


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
    "_note_waits_for_a_core",
)
