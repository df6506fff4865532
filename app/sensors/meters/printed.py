"""Any meter with a program or a logger of its own: a command that prints, or a file that grows by, lines of power.

A line holds a time stamp and watts, apart by a comma, a semicolon, a tab or spaces, or watts alone. The time stamp is
an ISO date and time, seconds, milliseconds, microseconds or nanoseconds since 1970, or seconds of a clock of the
meter's own, which is compared with the host's as it goes. What is no such line (a header, a comment) is passed over.
"""

from __future__ import annotations

import math
import os
import re
import shlex
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import IO, Final

import numpy as np

from ...base.errors import InputError
from ..gpu import SensorError
from .device_clock import DeviceClock
from .meter import MeterInfo, MeterLost, Samples, meter_channels, nothing

COMMAND: Final = "command"
FILE: Final = "file"
BEGIN_S: Final = 10.0  # how long to wait for the first lines
FIRST: Final = 4  # lines, to see how often they come
_LONGEST: Final = 4096  # characters of a line
_MOST_WAITING: Final = 1 << 20
_BETWEEN = re.compile(r"[,;\s]+")
_WATTS = re.compile(r"\s*[wW](?:atts?)?$")
_SINCE_1970: Final = ((1e17, 1.0), (1e14, 1e3), (1e11, 1e6), (1e8, 1e9))  # from this size on, ns in one of it
_TO_SECOND: Final = 10.0  # slowest that is waited for, and shortest period
_FASTEST_S: Final = 1e-4


def parse_line(line: str) -> tuple[float | None, bool, float] | None:
    """(time stamp in ns, whether that is since 1970, watts) of a line; None if it is none.

    The stamp is None if the line holds watts alone.
    """
    words = [word for word in _BETWEEN.split(_WATTS.sub("", line[:_LONGEST].strip())) if word]
    if not 1 <= len(words) <= 3:
        return None
    try:
        watts = float(words[-1])
        if not math.isfinite(watts):
            return None
        if len(words) == 1:
            return None, False, watts
        return (*_stamp(" ".join(words[:-1])), watts)
    except (ValueError, OverflowError, OSError):
        return None


def _stamp(text: str) -> tuple[float, bool]:
    if text.count("-") >= 2 and ":" in text:
        return datetime.fromisoformat(text.replace("/", "-")).timestamp() * 1e9, True
    number = float(text)
    if not math.isfinite(number) or number < 0:
        raise ValueError(text)
    for size, in_ns in _SINCE_1970:
        if number >= size:
            return number * in_ns, True
    return number * 1e9, False


class PrintedMeter:
    """Implements `PowerMeter` over whatever gives lines. `lines` returns those that are new, with when they came."""

    def __init__(self, kind: str, where: str, open_lines: Callable[[], Lines]) -> None:
        self._where = where
        self._open_lines = open_lines
        self.missed = 0
        self.channels = meter_channels(kind, f"Meter ({kind})", ())
        self._lines: Lines | None = None
        self._last_ns = 0
        self._waiting: list[tuple[str, int]] = []
        period_s = self._open()
        self.info = MeterInfo(kind, f"{kind} {where}", "board", period_s, period_s, poll_s=max(0.005, period_s / 4))

    def read(self) -> Samples:
        if self._lines is None:
            raise SensorError("the meter is closed", self._where)
        came, self._waiting = self._waiting or self._lines.new(), []
        stamps: list[int] = []
        watts: list[float] = []
        for line, arrived_ns in came:
            parsed = parse_line(line)
            if parsed is not None:
                time_ns = self._on_host(parsed[0], parsed[1], arrived_ns)
                if time_ns > self._last_ns:
                    self._last_ns = time_ns
                    stamps.append(time_ns)
                    watts.append(parsed[2])
        if not stamps:
            return nothing(1)
        return Samples(np.asarray(stamps, np.int64), np.asarray(watts)[:, None])

    def reopen(self) -> None:
        self.close()
        self._open()

    def close(self) -> None:
        lines, self._lines = self._lines, None
        if lines is not None:
            lines.close()

    # --- inside -----------------------------------------------------------------------------------------------------

    def _open(self) -> float:
        """Begin, and wait for the first lines; the seconds between two."""
        self._clock = DeviceClock()
        self._last_ns = 0
        self._lines = self._open_lines()
        first: list[tuple[float | None, bool, int]] = []
        deadline = time.monotonic() + BEGIN_S
        try:
            while len(first) < FIRST and time.monotonic() < deadline:
                for line, arrived_ns in self._lines.new():
                    self._waiting.append((line, arrived_ns))
                    if (parsed := parse_line(line)) is not None:
                        first.append((parsed[0], parsed[1], arrived_ns))
                time.sleep(0.005)
            if len(first) < 2:
                beginning = f"; it begins {self._waiting[0][0][:60]!r}" if self._waiting else ""
                what = f"no lines of a time stamp and watts came within {BEGIN_S:g} s{beginning}"
                raise SensorError(what, self._where, "print lines such as: 1700000000.125 231.5")
        except BaseException:
            self.close()
            raise
        times_ns = [float(arrived) if stamp is None else stamp for stamp, _, arrived in first]
        apart_s = [(b - a) / 1e9 for a, b in pairwise(times_ns)]
        return min(_TO_SECOND, max(_FASTEST_S, median(apart_s)))

    def _on_host(self, stamp_ns: float | None, since_1970: bool, arrived_ns: int) -> int:
        if stamp_ns is None:
            return arrived_ns
        if since_1970:
            return round(stamp_ns) - (time.time_ns() - time.monotonic_ns())
        self._clock.note(round(stamp_ns), arrived_ns)
        return int(self._clock.on_host(np.asarray([round(stamp_ns)], np.int64))[0])


class Lines:
    """What a command prints, or a file grows by, read on a thread of its own: a pipe cannot be asked on every system.

    `follow` waits at the end of a file for more; a command's end is the meter's.
    """

    def __init__(self, stream: IO[bytes], where: str, *, follow: bool, process: subprocess.Popen[bytes] | None) -> None:
        self._stream, self._where, self._follow, self._process = stream, where, follow, process
        self._came: deque[tuple[str, int]] = deque(maxlen=_MOST_WAITING)
        self._stop = threading.Event()
        self._ended = False
        self._thread = threading.Thread(target=self._read, name="meter's lines", daemon=True)
        self._thread.start()

    def new(self) -> list[tuple[str, int]]:
        """Lines and when they came. Raises MeterLost where no more can come."""
        ended = self._ended
        came = [self._came.popleft() for _ in range(len(self._came))]
        if ended and not came:
            raise MeterLost("the meter's command has ended", self._where, "it is started again")
        return came

    def close(self) -> None:
        """End the command with what it started, and wait for the thread."""
        self._stop.set()
        if self._process is not None:
            self._signal(self._process, kill=False)
            try:
                self._process.wait(2.0)
            except subprocess.TimeoutExpired:
                self._signal(self._process, kill=True)
                self._process.wait()
            self._thread.join(0.2)
            if self._thread.is_alive():  # something that it started holds the pipe
                self._signal(self._process, kill=True)
        self._thread.join(1.0)
        if not self._thread.is_alive():
            self._stream.close()

    @staticmethod
    def _signal(process: subprocess.Popen[bytes], *, kill: bool) -> None:
        if os.name != "posix":
            process.kill()
        else:
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL if kill else signal.SIGTERM)

    def _read(self) -> None:
        rest = b""
        while not self._stop.is_set():
            with suppress(ValueError, OSError):
                part = os.read(self._stream.fileno(), 1 << 16)
                if part:
                    now_ns = time.monotonic_ns()
                    *whole, rest = (rest + part).split(b"\n")
                    rest = rest[-_LONGEST:]
                    self._came.extend((line.decode("utf-8", "replace"), now_ns) for line in whole)
                    continue
            if not self._follow:
                break
            self._stop.wait(0.01)
        self._ended = True


def command_meter(command: str) -> PrintedMeter:
    """A program that prints lines until it is ended. It is started as it is, without a shell.

    Raises InputError if it cannot be started, SensorError if it prints no such lines.
    """
    words = shlex.split(command, posix=os.name != "nt")
    if not words:
        raise InputError("there is no command", f"--meter {COMMAND}:", f"name a program: {COMMAND}:PROGRAM ARGUMENTS")

    def start() -> Lines:
        quiet = subprocess.DEVNULL
        try:
            process = subprocess.Popen(
                words, stdin=quiet, stdout=subprocess.PIPE, stderr=quiet, bufsize=0, start_new_session=True
            )
        except OSError as error:
            raise InputError(f"it does not start: {error.strerror}", command, "name a program that is there") from None
        assert process.stdout is not None
        return Lines(process.stdout, command, follow=False, process=process)

    return PrintedMeter(COMMAND, command, start)


def file_meter(path: Path) -> PrintedMeter:
    """A file that a logger appends to: from its present end on. Raises InputError and SensorError."""

    def open_end() -> Lines:
        if path.exists() and not path.is_file():
            raise InputError("this is no file", str(path), "name one that a logger appends to")
        try:
            stream = path.open("rb", buffering=0)
        except OSError as error:
            raise InputError(f"it does not open: {error.strerror}", str(path), "name a file that is there") from None
        stream.seek(0, os.SEEK_END)
        return Lines(stream, str(path), follow=True, process=None)

    return PrintedMeter(FILE, str(path), open_end)
