"""`FreedAside`: a list whose many objects are freed on a thread of their own, a few at a time.

A hundred thousand measurements take a tenth of a second to free, during which the thread that lets go of them last, and
every other one that wants the interpreter, stands still. In the window that would be Qt's.
"""

from __future__ import annotations

import _thread
from contextlib import suppress
from typing import Any, TypeVar

_T = TypeVar("_T")
_MANY = 4_000  # what is freed in 3 ms is freed at once
_SLICE = 100


class FreedAside(list[_T]):
    """Use it as a list, and share it rather than copy it."""

    def __del__(self, many: int = _MANY) -> None:  # at the interpreter's end the module's names may be gone
        if len(self) > many:
            kept = self[:]
            with suppress(RuntimeError):  # the interpreter ends, and starts no thread any more
                _thread.start_new_thread(_free, (kept,))  # `Thread.start` would wait for it, at the end for ever


def _free(kept: list[Any]) -> None:
    while kept:
        del kept[-_SLICE:]  # between two slices others have their turn
