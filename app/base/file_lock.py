"""Locks on files, which the system releases however the process ends.

`FileLock`: a process holds it while it runs a session, say. `lock_open_file`: waits for a file that is open.
"""

from __future__ import annotations

import contextlib
import os
import struct
import sys
from pathlib import Path
from typing import BinaryIO

from .paths import make_folder


class FileLock:
    """An exclusive lock on a small file. Process ids are reused and heartbeats stall; this does neither."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor: int | None = descriptor

    @classmethod
    def acquire(cls, path: Path) -> FileLock | None:
        """Take the lock; None if it is held already. Raises OSError if there is no folder or no lock."""
        make_folder(path.parent)
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            taken = kept = False
            try:
                taken = _lock(descriptor)
                kept = taken and _is_still(path, descriptor)  # its last holder may have removed the file meanwhile
            finally:
                if not kept:
                    os.close(descriptor)
            if kept or not taken:
                return cls(path, descriptor) if kept else None

    @staticmethod
    def is_held(path: Path) -> bool:
        """Whether a process holds the lock of that path, or this is unknown; the check takes no lock itself."""
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except OSError as error:
            return not isinstance(error, FileNotFoundError)
        try:
            return _is_locked(descriptor)
        except OSError:
            return True
        finally:
            os.close(descriptor)

    def release(self) -> None:
        """Let go and remove the file. Safe to call twice."""
        if self._descriptor is None:
            return
        with contextlib.suppress(OSError):  # not every system removes an open file; one left over is harmless
            self._path.unlink(missing_ok=True)
        os.close(self._descriptor)
        self._descriptor = None


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _is_locked(descriptor: int) -> bool:
        return not _lock(descriptor)

    def lock_open_file(file: BinaryIO) -> None:
        """Wait until no other process has this file locked; it is unlocked when it is closed. Raises OSError."""
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)

else:
    import fcntl

    _WHOLE_FILE = struct.pack("hhqqi0q", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)  # Linux's struct flock

    def _lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        if sys.platform == "linux":
            with contextlib.suppress(OSError):  # a second lock, of the kind that can be queried without being taken
                fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _WHOLE_FILE)
        return True

    def lock_open_file(file: BinaryIO) -> None:
        """Wait until no other process has this file locked; it is unlocked when it is closed. Raises OSError."""
        fcntl.flock(file, fcntl.LOCK_EX)

    def _is_locked(descriptor: int) -> bool:
        if sys.platform != "linux":
            return not _lock(descriptor)
        holder: bytes = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, _WHOLE_FILE)
        return bool(struct.unpack("h", holder[:2])[0] != fcntl.F_UNLCK)
