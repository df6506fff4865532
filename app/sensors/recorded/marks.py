"""Marks from elsewhere: `wattridge mark TEXT` and `wattridge.mark` reach every recording that the user has running.

A recording that runs keeps an inbox, a file in the data folder with a lock beside it: its first line names the
recording, and each further line is a mark, appended in one write. The recorder reads it once a second. An inbox whose
lock is not held was left behind by a process that was killed, and is removed.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from ...base.errors import WattridgeError
from ...base.file_lock import FileLock
from ...base.paths import PRIVATE_FILE, data_folder, private_folder
from ...base.text import json_or_none
from .header import mark_text

FOLDER: Final = "recording-now"
_LARGEST: Final = 1 << 22  # bytes of an inbox that are read


class MarkInbox:
    """Of one recording, from its beginning to its end."""

    def __init__(self, recording: Path) -> None:
        """Raises WattridgeError or OSError where the data folder cannot be written: then no mark can come."""
        self._path = private_folder(FOLDER) / f"{os.getpid()}-{secrets.token_hex(6)}.jsonl"
        self._lock = FileLock.acquire(_lock_of(self._path))  # first: what has no lock is taken for left behind
        first = (json.dumps({"recording": os.path.abspath(recording)}) + "\n").encode()
        self._file = open(self._path, "x+b", buffering=0, opener=_private)  # noqa: SIM115  (until `close`)
        self._file.write(first)
        self._read = len(first)

    def new(self) -> list[tuple[int | None, int, str]]:
        """What came since the last call: the time in the recording, where it was given, else how long ago; the text."""
        self._file.seek(self._read)
        text = self._file.read(_LARGEST)
        text = text[: text.rfind(b"\n") + 1]
        self._read += len(text)
        come: list[tuple[int | None, int, str]] = []
        now_ns = time.monotonic_ns()
        for line in text.decode("utf-8", "replace").splitlines():
            match json_or_none(line):
                case {"time_ns": int(time_ns), "text": str(words)}:
                    come.append((time_ns, 0, words))
                case {"monotonic_ns": int(stamp_ns), "text": str(words)}:
                    come.append((None, max(0, now_ns - stamp_ns), words))
        return come

    def close(self) -> list[tuple[int | None, int, str]]:
        """Take no more; the last that came."""
        with suppress(OSError):
            os.unlink(self._path)  # first: who appends sees it, and knows that it came too late
        last = self.new()
        self._file.close()
        if self._lock is not None:
            self._lock.release()
        return last


def mark(text: str) -> list[Path]:
    """Set a mark now in every recording that runs with this data folder.

    Parameters
    ----------
    text : str
        The name of the mark: one line of at most 200 characters.

    Returns
    -------
    list of Path
        The recordings that have it; empty if none runs.

    Raises
    ------
    InputError
        Where the text is empty or too long.

    Examples
    --------
    >>> import wattridge
    >>> wattridge.mark("epoch 2")  # no recording runs here
    []
    """
    return _send({"monotonic_ns": time.monotonic_ns(), "text": mark_text(text)})


def mark_at(recording: Path, time_ns: int, text: str) -> bool:
    """Set a mark in a recording that runs, at a time after its beginning; False if that recording does not run."""
    return bool(_send({"time_ns": time_ns, "text": mark_text(text)}, recording))


def _send(line: dict[str, Any], only: Path | None = None) -> list[Path]:
    packed = (json.dumps(line) + "\n").encode()
    reached = []
    try:
        inboxes = sorted((data_folder() / FOLDER).glob("*.jsonl"))
    except (OSError, WattridgeError):
        return []
    for inbox in inboxes:
        with suppress(OSError):
            if not FileLock.is_held(_lock_of(inbox)):
                os.unlink(inbox)
                continue
            with inbox.open("r+b", buffering=0) as file:
                first = json_or_none(file.read(1 << 16).split(b"\n", 1)[0].decode("utf-8", "replace"))
                recording = Path(first["recording"]) if isinstance(first, dict) and "recording" in first else None
            if recording is None or (only is not None and recording != only):
                continue
            with open(inbox, "ab", buffering=0) as file:
                file.write(packed)
                if os.fstat(file.fileno()).st_nlink:  # else the recording ended meanwhile
                    reached.append(recording)
    return reached


def _lock_of(inbox: Path) -> Path:
    return inbox.with_suffix(".lock")


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, PRIVATE_FILE)
