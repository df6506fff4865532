"""`LastingLocks`: what keeps other processes from taking a SQLite database for theirs alone. Linux only.

SQLite's locks are POSIX ones, and all those of a process on a file end when it closes any descriptor of that file
[https://sqlite.org/howtocorrupt.html, section 2.2]. Something else in the process does that sooner or later: a file
dialog that looks into the files of a folder for their kind. Another process then takes itself for the only one that has
the database open. When it comes it shortens the memory that all share, which ends this process with SIGBUS; when it
goes it removes the write-ahead log, and what this process writes after that is nowhere.

Locks of an open file description do not end that way. Two of them, for reading, lie beside SQLite's own on the bytes by
which it knows that others are there [SQLite, src/os.h: SHARED_FIRST; src/os_unix.c: UNIX_SHM_DMS].
"""

from __future__ import annotations

import os
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

_WHERE: Final = (("", 0x4000_0002, 510), ("-shm", 128, 1))  # the file's ending, first byte, bytes


class LastingLocks:
    """Of a database that SQLite has open in WAL mode; none where the system or the file's has no such locks."""

    def __init__(self, path: Path) -> None:
        self._files: list[int] = []
        for ending, start, length in _WHERE if sys.platform == "linux" else ():
            with suppress(OSError):
                self._files.append(os.open(f"{path}{ending}", os.O_RDONLY))
                _lock(self._files[-1], True, start, length)

    def let_go(self) -> None:
        """To be called before SQLite closes the database: it wants the last one's lock for itself then."""
        for file in self._files:
            with suppress(OSError):
                _lock(file, False, 0, 0)

    def close(self) -> None:
        """To be called after SQLite has closed it: this ends its locks. Safe to call twice."""
        while self._files:
            os.close(self._files.pop())


if sys.platform == "linux":
    import fcntl

    def _lock(file: int, held: bool, start: int, length: int) -> None:
        kind = fcntl.F_RDLCK if held else fcntl.F_UNLCK
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi0q", kind, os.SEEK_SET, start, length, 0))

else:

    def _lock(file: int, held: bool, start: int, length: int) -> None:
        pass
