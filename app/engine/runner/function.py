"""`FunctionRunner`: calls a Python function for each configuration, and measures the board that it uses meanwhile.

The function runs in this process: what it does to it, a fault included, is not isolated.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ..measurement import Configuration, Measurement, State
from ..metering.confidence import Interval
from ..metering.meter import RISE_S, least_window_s
from ..metering.repeating import CallTimer, Repeated, call_repeatedly, find_timer, recorded
from ..metering.span import Span, read_span
from ..metering.watching import Watch
from ..space.search_space import SearchSpace
from .each_row import each_row

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


class FunctionRunner:
    """Implements `Runner`. Gives the watch back when it is closed."""

    batch = 1  # a strategy learns from every one

    def __init__(self, work: FunctionWork, space: SearchSpace, watch: Watch | None, target: float) -> None:
        """`watch` None: time only. `target` is half of the interval of the mean time, relative."""
        self.source: str = UNMETERED if watch is None else watch.gpu.info.source
        self._work = work
        self._space = space
        self._watch = watch
        self._target = target
        self.timer: CallTimer | None = None  # once something has run

    def measure(self, rows: Sequence[int], stop: threading.Event) -> Iterator[Measurement]:
        """Measure the rows in their order. A function that raises is a failed configuration."""
        return each_row(rows, stop, self._measure)

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
    }
    if span.power_interval_w is not None:
        low, high = span.power_interval_w
        intervals |= {"power_w": (low, high), "energy_j": (low * repeated.time_s, high * repeated.time_s)}
    return {name: value for name, value in values.items() if not math.isnan(value)}, intervals
