"""Temporary folders that go with the process: when it ends, or at a later start where it was killed."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
import threading
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Final

from ...base.file_lock import FileLock

_PREFIX: Final = "wattridge-"
_LOCK: Final = "in-use"
_lock = threading.Lock()


def scratch_folder() -> Path:
    """A new empty folder, for the caller to remove when it is done with it. Raises OSError."""
    with _lock:
        return Path(tempfile.mkdtemp(dir=_own_folder(os.getpid())))


def without_scratch(text: str) -> str:
    """A text that names files, with '<scratch>' for each of these folders: the same files in another are the same."""
    for place in {tempfile.gettempdir(), os.path.realpath(tempfile.gettempdir())}:
        text = re.sub(rf"{re.escape(place)}[\\/]{_PREFIX}\w+[\\/]\w+", "<scratch>", text)
    return text


@lru_cache(maxsize=1)
def _own_folder(process: int) -> Path:
    """The folder of this process, which holds a lock in it as long as it lives."""
    place = Path(tempfile.gettempdir())
    _sweep(place)
    lock = None
    while lock is None:  # another process that sweeps may be faster
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
        lock = FileLock.acquire(folder / _LOCK)

    def remove() -> None:
        if os.getpid() == process:
            lock.release()
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def _sweep(place: Path) -> None:
    """Remove the folders of processes that were killed: those with a free lock. Never another user's."""
    with suppress(OSError):
        for folder in place.glob(f"{_PREFIX}*"):
            with suppress(OSError):
                if folder.is_symlink() or not (folder / _LOCK).is_file():
                    continue
                if hasattr(os, "getuid") and folder.stat().st_uid != os.getuid():
                    continue
                lock = FileLock.acquire(folder / _LOCK)
                if lock is not None:
                    lock.release()
                    shutil.rmtree(folder, ignore_errors=True)
