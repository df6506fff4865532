"""Opening what the user names: a file, or a pipe (`<(...)`, a FIFO), which is read once and kept."""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path
from typing import BinaryIO, Final

from .errors import InputError

MAXIMUM_PIPED_BYTES: Final = 2**29
_piped: dict[tuple[int, int], bytes] = {}  # by device and inode: a pipe gives its content only once a process


def is_there(path: Path | str) -> bool:
    """Whether something of that name exists; False also for a name that no file can have."""
    return os.path.exists(path)


def is_input(path: Path | str) -> bool:
    """Whether it can be read: a file, a pipe or a device, but not a folder."""
    return os.path.exists(path) and not os.path.isdir(path)


def open_input(path: Path) -> BinaryIO:
    """Open for reading, from the beginning each time, also where it is a pipe.

    Raises OSError, ValueError for a name with a null byte, and InputError for what is no file, or a pipe that gives
    more than MAXIMUM_PIPED_BYTES.
    """
    status = os.stat(path)
    if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
        return open(path, "rb")
    key = status.st_dev, status.st_ino
    if key not in _piped:  # opening it again would wait for a writer that never comes
        with open(path, "rb") as pipe:
            content = pipe.read(MAXIMUM_PIPED_BYTES + 1)
        if len(content) > MAXIMUM_PIPED_BYTES:
            size = f"{MAXIMUM_PIPED_BYTES >> 20} MiB"
            raise InputError(f"the pipe gives more than {size}", str(path), "save it as a file first")
        _piped[key] = content
    return io.BytesIO(_piped[key])
