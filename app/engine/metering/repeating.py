"""Calls of a Python function one after the other until their time is known well enough, and which clock times them.

Calls that return before their work is done are timed by events of the library whose device does the work: two batches
are in its queue at any time, so that the device does not wait for Python.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final, Protocol

from .confidence import Interval, confidence_interval

BATCH_S: Final = 0.012  # of calls between two marks
AHEAD: Final = 2  # batches in the queue
MOST_CALLS: Final = 20_000  # in one batch
LEAST_BATCHES: Final = 3  # before their scatter says anything


class Stopwatch(Protocol):
    """Marks in the order of the calls, and the time between two of them."""

    words: str  # what times

    def mark(self) -> Any:
        """A mark after the calls so far."""
        ...

    def wait(self, mark: Any) -> None:
        """Until what was called before the mark is done."""
        ...

    def seconds(self, first: Any, last: Any) -> float:
        """Between two marks that were waited for."""
        ...


class HostStopwatch:
    """The host's clock: for functions whose work is done when they return, or once `synchronise` has returned."""

    def __init__(self, synchronise: Callable[[], object] | None = None) -> None:
        self._synchronise = synchronise
        self.words = "the host's clock" if synchronise is None else "the host's clock after synchronise"

    def mark(self) -> int:
        if self._synchronise is not None:
            self._synchronise()
        return time.perf_counter_ns()

    def wait(self, mark: int) -> None:
        """It has passed."""

    def seconds(self, first: int, last: int) -> float:
        return (last - first) / 1e9


class TorchStopwatch:
    """PyTorch's CUDA events."""

    words = "CUDA events of PyTorch"

    def __init__(self, torch: Any) -> None:
        self._torch = torch

    def mark(self) -> Any:
        event = self._torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def wait(self, mark: Any) -> None:
        mark.synchronize()

    def seconds(self, first: Any, last: Any) -> float:
        return float(first.elapsed_time(last)) / 1e3


class CupyStopwatch:
    """CuPy's CUDA events."""

    words = "CUDA events of CuPy"

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy

    def mark(self) -> Any:
        event = self._cupy.cuda.Event()
        event.record()
        return event

    def wait(self, mark: Any) -> None:
        mark.synchronize()

    def seconds(self, first: Any, last: Any) -> float:
        return float(self._cupy.cuda.get_elapsed_time(first, last)) / 1e3


def find_stopwatch(synchronise: Callable[[], object] | None = None) -> Stopwatch:
    """By `synchronise` where it is given, else the events of a library that is in use; nothing is imported for it."""
    if synchronise is not None:
        return HostStopwatch(synchronise)
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        return TorchStopwatch(torch)
    if cupy is not None and cupy.cuda.is_available():
        return CupyStopwatch(cupy)
    return HostStopwatch()


@dataclass(frozen=True, slots=True)
class Repeated:
    """How the calls of one stretch went."""

    time_s: float  # mean of one call
    interval_s: Interval | None  # 95 % confidence of the mean
    calls: int
    start_ns: int  # on the clock given
    end_ns: int
    busy: float  # share of the stretch that the stopwatch saw, 1 where the device never waited


def call_repeatedly(
    call: Callable[[], object],
    stopwatch: Stopwatch,
    now_ns: Callable[[], int],
    *,
    rise_s: float = 0.0,
    least_s: float = 0.0,
    most_s: float = 1.0,
    target: float = 0.01,
    stop: threading.Event | None = None,
) -> Repeated | None:
    """Call until half of the interval of the mean time is at most `target` of it; None when `stop` was set.

    The stretch opens after `rise_s` of calls and lasts from `least_s` to about `most_s`.
    """
    first = stopwatch.mark()
    stopwatch.wait(first)
    call()
    last = stopwatch.mark()
    stopwatch.wait(last)
    once_s = max(stopwatch.seconds(first, last), 1e-7)
    opens_ns = now_ns() + round(rise_s * 1e9)
    while now_ns() < opens_ns:
        _batch(call, stopwatch, once_s)
        if stop is not None and stop.is_set():
            return None
    base = previous = stopwatch.mark()
    stopwatch.wait(base)
    start_ns = now_ns()
    times_s: list[float] = []
    marks: deque[tuple[Any, int]] = deque()
    calls = 0

    def pass_mark() -> None:
        nonlocal previous
        mark, size = marks.popleft()
        stopwatch.wait(mark)
        times_s.append(stopwatch.seconds(previous, mark) / size)
        previous = mark

    enough = False
    while not enough:
        size = max(1, min(MOST_CALLS, round(BATCH_S / (times_s[-1] if times_s and times_s[-1] > 0 else once_s))))
        for _ in range(size):
            call()
        calls += size
        marks.append((stopwatch.mark(), size))
        if len(marks) >= AHEAD:
            pass_mark()
        seconds = (now_ns() - start_ns) / 1e9
        if stop is not None and stop.is_set():
            return None
        enough = seconds >= least_s and (seconds >= most_s or _certain(times_s, target))
    while marks:
        pass_mark()
    end_ns = now_ns()
    time_s = stopwatch.seconds(base, previous) / calls
    busy = min(1.0, time_s * calls / max(1e-9, (end_ns - start_ns) / 1e9))
    return Repeated(time_s, confidence_interval(times_s), calls, start_ns, end_ns, busy)


def _batch(call: Callable[[], object], stopwatch: Stopwatch, once_s: float) -> None:
    for _ in range(max(1, min(MOST_CALLS, round(BATCH_S / once_s)))):
        call()
    stopwatch.wait(stopwatch.mark())


def _certain(times_s: list[float], target: float) -> bool:
    interval = confidence_interval(times_s) if len(times_s) >= LEAST_BATCHES else None
    return interval is not None and (interval[1] - interval[0]) / 2 <= target * fmean(times_s)
