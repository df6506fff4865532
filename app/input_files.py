"""Opening what the user names: a file, or a pipe (`<(...)`, a FIFO), which is read once and kept."""

from __future__ import annotations

import io
import os
import stat
import time
from pathlib import Path
from typing import BinaryIO, Final

from .errors import InputError

MAXIMUM_PIPED_BYTES: Final = 2**29
WRITER_S: Final = 2.0  # that a pipe may wait for somebody to write into it
PIPED_S: Final = 300.0  # and all that it gives may take
_piped: dict[tuple[int, int], bytes] = {}  # by device and inode: a pipe gives its content only once a process


def is_there(path: Path | str) -> bool:
    """Whether something of that name exists; False also for a name that no file can have."""
    return os.path.exists(path)


def is_input(path: Path | str) -> bool:
    """Whether it can be read: a file, a pipe or a device, but not a folder."""
    return os.path.exists(path) and not os.path.isdir(path)


def open_input(path: Path | str) -> BinaryIO:
    """Open for reading, from the beginning each time, also where it is a pipe.

    Raises OSError, ValueError for a name with a null byte, and InputError for a device, a socket, a pipe that nobody
    writes into, or one that gives more than MAXIMUM_PIPED_BYTES or takes longer than PIPED_S.
    """
    status = os.stat(path)
    if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
        return open(path, "rb")
    if not stat.S_ISFIFO(status.st_mode):
        raise InputError("this is a device or a socket", str(path), "name a file")
    key = status.st_dev, status.st_ino
    if key not in _piped:  # opening it again would wait for a writer that never comes
        _piped[key] = _read_pipe(path)
    return io.BytesIO(_piped[key])


def _read_pipe(path: Path | str) -> bytes:
    """All that it gives. No single wait is longer than a moment, so that signals end it."""
    content, written, began = bytearray(), False, time.monotonic()
    with open(path, "rb", buffering=0, opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as pipe:
        while True:
            piece = pipe.read(1 << 20)  # None while somebody has it open and writes nothing
            written = written or piece != b""
            if written and piece == b"":
                return bytes(content)
            content += piece or b""
            if len(content) > MAXIMUM_PIPED_BYTES:
                what = f"the pipe gives more than {MAXIMUM_PIPED_BYTES >> 20} MiB"
            elif time.monotonic() - began > (PIPED_S if written else WRITER_S):
                what = f"the pipe did not end within {PIPED_S:g} s" if written else "nobody writes into this pipe"
            else:
                time.sleep(0 if piece else 0.005)
                continue
            raise InputError(what, str(path), "save it as a file first")
