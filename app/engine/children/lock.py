"""A lock that a process holds while it runs a session, and that the system lets go of however the process ends."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

from ...paths import make_folder


class SessionLock:
    """An exclusive lock on a small file. Process ids are reused and heartbeats stall; this does neither."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor: int | None = descriptor

    @classmethod
    def acquire(cls, path: Path) -> SessionLock | None:
        """Take the lock; None where it is held already. Raises OSError where the folder cannot be written."""
        make_folder(path.parent)
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            if not _lock(descriptor):
                os.close(descriptor)
                return None
            if _is_still(path, descriptor):  # its last holder may have removed the file between open and lock
                return cls(path, descriptor)
            os.close(descriptor)

    @staticmethod
    def is_held(path: Path) -> bool:
        """Whether a process holds the lock of that path, looked at without changing anything."""
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except OSError:
            return False
        try:
            return not _lock(descriptor)
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

else:
    import fcntl

    def _lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
