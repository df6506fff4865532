"""Remarks and a progress bar on standard error, so that standard output stays the document."""

from __future__ import annotations

import shutil
import sys
import time
from contextlib import suppress

from .plain_text import one_line, visible


class ProgressBar:
    """One line on standard error: a bar with rate, best so far and ETA. Silent lines apart where it is no terminal."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._terminal = sys.stderr.isatty()
        self._quiet = quiet
        self._last = 0.0
        self._width = 0

    def show(self, done: int, total: int, details: str, *, final: bool = False) -> None:
        now = time.monotonic()
        if self._quiet or (not final and now - self._last < (0.1 if self._terminal else 2.0)):
            return
        self._last = now
        details = one_line(details)
        line = f"{done} so far  {details}"
        if total:  # how many there will be is known
            filled = round(min(1.0, done / total) * 24)
            line = f"[{'█' * filled}{'░' * (24 - filled)}] {done}/{total}  {details}"
        if self._terminal:
            columns = shutil.get_terminal_size().columns
            line = line[: columns - 1]
            _to_stderr("\r" + line.ljust(self._width) + ("\n" if final else ""))
            self._width = len(line)
        else:
            _to_stderr(line + "\n")


def say(text: str) -> None:
    """A remark on standard error, in one line, so that standard output stays the document."""
    _to_stderr(one_line(text) + "\n")


def say_lines(text: str) -> None:
    """Lines as they are, but for what would act on a terminal."""
    for line in text.splitlines():
        _to_stderr(visible(line) + "\n")


def ask(text: str) -> None:
    """A question on standard error, over the one before it; an empty one ends the line."""
    _to_stderr(f"\r{visible(text)}" if text else "\n")


def _to_stderr(text: str) -> None:
    """Write without failing: a full disk behind standard error must not end what is being measured."""
    with suppress(OSError, ValueError):  # ValueError: it was closed
        sys.stderr.write(text)
        sys.stderr.flush()
