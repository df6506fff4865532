"""`FunctionRunner`: calls a Python function for each configuration, and measures the board that it uses meanwhile.

The function runs in this process: what it does to it, a fault included, is not isolated. It is called until its time is
known well enough. Calls that return before their work is done are timed by events of the library whose device does the
work: two batches are in its queue at any time, so that the device does not wait for Python.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any, ClassVar, Final, Protocol

from ...sensors.throttling import throttled_figures
from ..metering.confidence import Interval, confidence_interval, not_negative
from ..metering.meter import RISE_S, least_window_s
from ..metering.span import Span, read_span
from ..metering.watching import Watch
from ..results.measurement import Configuration, Measurement, State
from ..space.search_space import SearchSpace
from .base import RowByRow

BATCH_S: Final = 0.012  # of calls between two marks
AHEAD: Final = 2  # batches in the queue
MOST_CALLS: Final = 20_000  # in one batch
SHORT_S: Final = 5e-4  # a call this long is launched well ahead of its turn
GRAPH_S: Final = 2e-3  # of calls in one graph
MOST_RECORDED: Final = 256
FEWEST: Final = 4  # calls that are issued to see whether the device waits, and ...
MANY: Final = 50  # ... most: fewer than a queue takes
HOST_SHARE: Final = 0.9
LEAST_BATCHES: Final = 3  # before their scatter says anything


class CallTimer(Protocol):
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


class HostTimer:
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


class _EventTimer:
    """Events of a library for CUDA; `options` make one that has a time."""

    options: ClassVar[dict[str, bool]] = {}

    def __init__(self, library: Any) -> None:
        self._cuda = library.cuda

    def mark(self) -> Any:
        event = self._cuda.Event(**self.options)
        event.record()
        return event

    def wait(self, mark: Any) -> None:
        mark.synchronize()


class TorchTimer(_EventTimer):
    """PyTorch's CUDA events."""

    words = "CUDA events of PyTorch"
    options: ClassVar[dict[str, bool]] = {"enable_timing": True}

    def seconds(self, first: Any, last: Any) -> float:
        return float(first.elapsed_time(last)) / 1e3

    def record(self, call: Callable[[], object], times: int) -> Callable[[], object] | None:
        """A function that launches so many calls at once, as a CUDA graph; None if they cannot be recorded."""
        cuda = self._cuda
        try:
            stream = cuda.Stream()
            stream.wait_stream(cuda.current_stream())
            with cuda.stream(stream):  # what a first call on a stream allocates is no part of the graph
                call()
            cuda.current_stream().wait_stream(stream)
            graph = cuda.CUDAGraph()
            with cuda.graph(graph):
                for _ in range(times):
                    call()
        except RuntimeError:  # what it calls cannot be captured
            cuda.synchronize()
            return None
        replay: Callable[[], object] = graph.replay
        return replay


class CupyTimer(_EventTimer):
    """CuPy's CUDA events."""

    words = "CUDA events of CuPy"

    def seconds(self, first: Any, last: Any) -> float:
        return float(self._cuda.get_elapsed_time(first, last)) / 1e3


def find_timer(synchronise: Callable[[], object] | None = None) -> CallTimer:
    """By `synchronise` where it is given, else the events of a library that is in use; nothing is imported for it."""
    if synchronise is not None:
        return HostTimer(synchronise)
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        return TorchTimer(torch)
    if cupy is not None and cupy.cuda.is_available():
        return CupyTimer(cupy)
    return HostTimer()


def recorded(call: Callable[[], object], timer: CallTimer) -> tuple[Callable[[], object], int]:
    """The call, or as many of it at once as keep a device busy that Python cannot; and how many those are.

    A kernel of microseconds is over before Python launches the next one: the device idles between them, and what it
    draws is not the kernel's.
    """
    record = getattr(timer, "record", None)
    once_s = _once(call, timer)
    if record is None or (once_s >= SHORT_S and not waits_for_host(call, timer)):
        return call, 1
    times = max(2, min(MOST_RECORDED, round(GRAPH_S / once_s)))
    recording = record(call, times)
    return (call, 1) if recording is None else (recording, times)


def waits_for_host(call: Callable[[], object], timer: CallTimer) -> bool:
    """Whether a device waits for Python between calls that return before it is done.

    Issuing them takes as long then as they take on the device; else the device is behind, and its queue never empty.
    """
    calls = max(FEWEST, min(MANY, round(BATCH_S / _once(call, timer))))
    first = timer.mark()
    timer.wait(first)
    began = time.perf_counter()
    for _ in range(calls):
        call()
    issued_s = time.perf_counter() - began
    last = timer.mark()
    timer.wait(last)
    return issued_s > HOST_SHARE * timer.seconds(first, last)


def _once(call: Callable[[], object], timer: CallTimer) -> float:
    """Seconds of one call alone."""
    first = timer.mark()
    timer.wait(first)
    call()
    last = timer.mark()
    timer.wait(last)
    return max(timer.seconds(first, last), 1e-7)


@dataclass(frozen=True, slots=True)
class Repeated:
    """How the calls of one stretch went."""

    time_s: float  # mean of one call
    interval_s: Interval | None  # 95 % confidence of the mean
    calls: int
    start_ns: int  # on the clock given
    end_ns: int
    busy: float  # share of the stretch that the timer saw, 1 where the device never waited

    def divided(self, calls: int) -> Repeated:
        """The same where each call was so many."""
        interval = self.interval_s and (self.interval_s[0] / calls, self.interval_s[1] / calls)
        return replace(self, time_s=self.time_s / calls, interval_s=interval, calls=self.calls * calls)


def call_repeatedly(
    call: Callable[[], object],
    timer: CallTimer,
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
    once_s = _once(call, timer)
    opens_ns = now_ns() + round(rise_s * 1e9)
    while now_ns() < opens_ns:
        _batch(call, timer, once_s)
        if stop is not None and stop.is_set():
            return None
    base = previous = timer.mark()
    timer.wait(base)
    start_ns = now_ns()
    times_s: list[float] = []
    marks: deque[tuple[Any, int]] = deque()
    calls = 0

    def pass_mark() -> None:
        nonlocal previous
        mark, size = marks.popleft()
        timer.wait(mark)
        times_s.append(timer.seconds(previous, mark) / size)
        previous = mark

    enough = False
    while not enough:
        size = max(1, min(MOST_CALLS, round(BATCH_S / (times_s[-1] if times_s and times_s[-1] > 0 else once_s))))
        for _ in range(size):
            call()
        calls += size
        marks.append((timer.mark(), size))
        if len(marks) >= AHEAD:
            pass_mark()
        seconds = (now_ns() - start_ns) / 1e9
        if stop is not None and stop.is_set():
            return None
        enough = seconds >= least_s and (seconds >= most_s or _certain(times_s, target))
    while marks:
        pass_mark()
    end_ns = now_ns()
    time_s = timer.seconds(base, previous) / calls
    busy = min(1.0, time_s * calls / max(1e-9, (end_ns - start_ns) / 1e9))
    interval_s = confidence_interval(times_s)
    return Repeated(time_s, interval_s and not_negative(interval_s), calls, start_ns, end_ns, busy)


def _batch(call: Callable[[], object], timer: CallTimer, once_s: float) -> None:
    for _ in range(max(1, min(MOST_CALLS, round(BATCH_S / once_s)))):
        call()
    timer.wait(timer.mark())


def _certain(times_s: list[float], target: float) -> bool:
    interval = confidence_interval(times_s) if len(times_s) >= LEAST_BATCHES else None
    return interval is not None and (interval[1] - interval[0]) / 2 <= target * fmean(times_s)


UNMETERED: Final = "unmetered"  # the source of figures where no board is watched
ENERGY_MOST_S: Final = 2.0  # beyond the least window
TIME_LEAST_S: Final = 0.05
TIME_MOST_S: Final = 1.0
_LONGEST_MESSAGE: Final = 2000


@dataclass(frozen=True, slots=True)
class FunctionWork:
    """What is called, and what must hold of what it returns."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    keywords: Mapping[str, Any] = field(default_factory=dict)
    verify: Callable[[Any], object] | None = None
    synchronise: Callable[[], object] | None = None
    launches_only: bool = False  # nothing but launches of kernels: short ones are recorded, so that no gap is counted
    limits: Callable[[Mapping[str, Any]], str] = lambda _: ""  # which limit a measurement does not keep, in words


class FunctionRunner(RowByRow):
    """Calls a function of this process; one that raises is a failed configuration. Gives the watch back at the end."""

    batch = 1  # a strategy learns from every one

    def __init__(self, work: FunctionWork, space: SearchSpace, watch: Watch | None, target: float) -> None:
        """`watch` None: time only. `target` is half of the interval of the mean time, relative."""
        self.source: str = UNMETERED if watch is None else watch.gpu.info.source
        self._work = work
        self._space = space
        self._watch = watch
        self._target = target
        self.timer: CallTimer | None = None  # once something has run

    def close(self) -> None:
        if self._watch is not None:
            self._watch.release()
            self._watch = None

    # --- inside -----------------------------------------------------------------------------------------------------

    def _measure(self, row: int, stop: threading.Event) -> Measurement | None:
        configuration, began = self._space.configuration(row), time.monotonic()
        work = self._work

        def call() -> Any:
            return work.function(*work.arguments, **{**work.keywords, **configuration})

        try:
            returned = call()  # compiles, allocates, fills caches
            if work.synchronise is not None:
                work.synchronise()
            if work.verify is not None and not work.verify(returned):
                return self._failed(row, configuration, State.CORRECTNESS, "verify says that it is wrong", began)
            self.timer = find_timer(work.synchronise)
            repeated = self._repeat(call, self.timer, stop)
        except Exception as error:  # noqa: BLE001  (the function's own: it costs this configuration)
            message = f"{type(error).__name__}: {error}"[:_LONGEST_MESSAGE]
            return self._failed(row, configuration, State.RUNTIME, message, began)
        if repeated is None:
            return None
        span = None if self._watch is None else read_span(self._watch, repeated.start_ns, repeated.end_ns)
        values, intervals = figures_of_calls(repeated, span)
        broken = work.limits({**configuration, **values})
        return Measurement(
            row=row,
            configuration=configuration,
            state=State.CONSTRAINTS if broken else State.OK,
            values=values,
            intervals=intervals,
            error=broken,
            message="" if span is None or not span.unknown else f"energy is not known: {span.unknown}",
            window_ns=(repeated.start_ns, repeated.end_ns),
            observed_clock_mhz=math.nan if span is None else span.clock_mhz.mean,
            event_reasons=0 if span is None else span.event_reasons,
            power_source="" if span is None else span.power_source,
            source=self.source,
            timestamp_s=time.time(),
            cost_s=time.monotonic() - began,
            evidence=span.evidence.pack() if span is not None and span.evidence is not None else b"",
        )

    def _repeat(self, call: Callable[[], Any], timer: CallTimer, stop: threading.Event) -> Repeated | None:
        call, calls = recorded(call, timer) if self._work.launches_only else (call, 1)
        repeated = repeat_watched(call, timer, self._watch, self._target, stop)
        return None if repeated is None else repeated.divided(calls)

    def _failed(self, row: int, configuration: Configuration, state: State, error: str, began: float) -> Measurement:
        cost_s = time.monotonic() - began
        return Measurement.failed(row, configuration, state, error, source=self.source, cost_s=cost_s)


def repeat_watched(
    call: Callable[[], Any],
    timer: CallTimer,
    watch: Watch | None,
    target: float,
    stop: threading.Event | None = None,
) -> Repeated | None:
    """Call until the time is known, and for as long as the board's power source needs; None when `stop` was set."""
    if watch is None:
        now_ns, times = time.monotonic_ns, {"least_s": TIME_LEAST_S, "most_s": TIME_MOST_S}
    else:
        watch.mark()
        sensor = watch.sensor()
        least_s = TIME_LEAST_S if sensor is None else least_window_s(sensor)
        now_ns, times = (
            watch.gpu.clock.now_ns,
            {"rise_s": RISE_S, "least_s": least_s, "most_s": least_s + ENERGY_MOST_S},
        )
    return call_repeatedly(call, timer, now_ns, **times, target=target, stop=stop)


def figures_of_calls(repeated: Repeated, span: Span | None) -> tuple[dict[str, float], dict[str, Interval]]:
    """Figures of one call, and their 95 % intervals: its time, and its share of what the board drew meanwhile."""
    values, intervals = {"time_s": repeated.time_s}, {}
    if repeated.interval_s is not None:
        intervals["time_s"] = repeated.interval_s
    if span is None:
        return values, intervals
    values |= {
        "energy_j": span.mean_power_w * repeated.time_s,
        "power_w": span.mean_power_w,
        "observed_clock_mhz": span.clock_mhz.mean,
        "temperature_c": span.temperature_c,
        "core_voltage_mv": span.core_voltage_mv,
        "observed_memory_clock_mhz": span.memory_clock_mhz,
        "busy_share": repeated.busy,
        **throttled_figures(span.throttled),
    }
    if span.power_interval_w is not None:
        low, high = span.power_interval_w
        intervals |= {"power_w": (low, high), "energy_j": (low * repeated.time_s, high * repeated.time_s)}
    return {name: value for name, value in values.items() if not math.isnan(value)}, intervals
