"""Printing for people (tables, a progress bar on standard error) and for programs (one JSON document)."""

from __future__ import annotations

import json
import math
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np


def clean(value: Any) -> Any:
    """A value as JSON can hold it: NaN and infinities become null, NumPy scalars and arrays plain ones."""
    if isinstance(value, dict):
        return {str(key): clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [clean(item) for item in value]
    if isinstance(value, np.generic):
        return clean(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def print_json(document: Any) -> None:
    """The one document of a `--json` command."""
    print(json.dumps(clean(document), indent=1, allow_nan=False, ensure_ascii=False))


def number(value: Any, digits: int = 4) -> str:
    """A figure for a table: four significant digits, thousands left whole, a dash where unknown."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or abs(value) >= 10**digits:
        return f"{value:.0f}"
    return f"{value:.{digits}g}"


def print_table(rows: Sequence[Sequence[Any]], header: Sequence[str], *, elastic: int | None = None) -> None:
    """Columns as wide as their content; numbers to the right. A terminal's width is kept by one `elastic` column."""
    text = [[number(cell) for cell in row] for row in rows]
    if elastic is not None and sys.stdout.isatty():
        others = [max(len(line[i]) for line in [list(header), *text]) for i in range(len(header)) if i != elastic]
        room = max(len(header[elastic]), shutil.get_terminal_size().columns - sum(others) - 2 * len(others))
        for cells in text:
            cells[elastic] = _elided(cells[elastic], room)
    widths = [max(len(line[i]) for line in [list(header), *text]) for i in range(len(header))]
    right = [all(isinstance(row[i], int | float) or row[i] is None for row in rows) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        parts = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(cells, widths, right, strict=True))
        return "  ".join(parts).rstrip()

    print(line(list(header)))
    print("  ".join("─" * width for width in widths))
    for cells in text:
        print(line(cells))


def _elided(text: str, room: int) -> str:
    """The text, without its middle where it is too long."""
    kept = room - 1
    return text if len(text) <= room else f"{text[: kept - kept // 2]}…{text[len(text) - kept // 2 :]}"


def duration(seconds: float | None) -> str:
    """'4 s', '3:05 min' or '2:10 h'."""
    if seconds is None or not math.isfinite(seconds):
        return "–"
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d} min"
    return f"{whole // 3600}:{whole % 3600 // 60:02d} h"


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
        line = f"{done} so far  {details}"
        if total:  # how many there will be is known
            filled = round(min(1.0, done / total) * 24)
            line = f"[{'█' * filled}{'░' * (24 - filled)}] {done}/{total}  {details}"
        if self._terminal:
            columns = shutil.get_terminal_size().columns
            line = line[: columns - 1]
            sys.stderr.write("\r" + line.ljust(self._width) + ("\n" if final else ""))
            self._width = len(line)
        else:
            sys.stderr.write(line + "\n")
        sys.stderr.flush()


class Stop(threading.Event):
    """Set when the command is to end and keep what it has; `interrupted` where Ctrl+C said so."""

    interrupted = False

    def heed(self, number: int) -> None:
        self.interrupted = number == signal.SIGINT
        self.set()


@contextmanager
def stop_on_interrupt() -> Iterator[Stop]:
    """While inside, Ctrl+C, SIGTERM and SIGHUP set the event instead of breaking off: what was measured is kept."""
    stop = Stop()
    with _handling((signal.SIGINT, *_ending()), stop.heed):
        yield stop


@contextmanager
def end_on_signals() -> Iterator[None]:
    """While inside, SIGTERM and SIGHUP end the program as an exception does: whatever it began is put away.

    The exit status is the one that a shell shows for that signal.
    """
    seen = False

    def end(number: int) -> None:
        nonlocal seen
        if not seen:  # a second one must not break off the putting away
            seen = True
            raise SystemExit(128 + number)

    with _handling(_ending(), end):
        yield


def _ending() -> tuple[signal.Signals, ...]:
    """Signals that ask a program to end, without those that it was started to ignore (`nohup`)."""
    found = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    return tuple(each for each in found if signal.getsignal(each) is not signal.SIG_IGN)


@contextmanager
def _handling(numbers: Sequence[signal.Signals], handle: Callable[[int], None]) -> Iterator[None]:
    """Python hears of signals on the main thread only; elsewhere nothing is changed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {number: signal.signal(number, lambda heard, _: handle(heard)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def say(text: str) -> None:
    """A remark for people on standard error, so that standard output stays the document."""
    print(text, file=sys.stderr, flush=True)
