"""What each thread of this process does, asked from another one without holding it up.

A frame that is kept by who looks would keep what it paints with from its end, so that each function here lets go of all
frames within one call of C, before any other thread runs. `faulthandler` keeps none either, but makes ten system calls
for each, with Python's lock: 50 ms for 40 threads where a system call takes 9 us.
"""

from __future__ import annotations

import sys
import threading
from itertools import accumulate, chain, repeat, starmap, takewhile
from operator import attrgetter, itemgetter
from types import CodeType

Stack = list[tuple[CodeType, int | None]]  # of a thread, with lines, the innermost first


def stacks() -> dict[int, Stack]:
    """Of all other threads, by their idents."""
    found = {}
    for thread in _threads():
        if thread != threading.get_ident():
            try:
                found[thread] = _stack(thread)
            except KeyError:  # it has ended meanwhile
                continue
    return found


def _threads() -> list[int]:
    return list(chain.from_iterable(starmap(sys._current_frames, [()])))


def _stack(thread: int) -> Stack:
    frame = map(itemgetter(thread), starmap(sys._current_frames, [()]))
    frames = takewhile(bool, accumulate(chain(frame, repeat("f_back")), getattr))
    return list(map(attrgetter("f_code", "f_lineno"), frames))  # all of it happens here
