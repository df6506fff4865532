"""`Meter`: time, power and energy of one load on one board, through nothing but its sensors.

Time and power come from the same window of back-to-back launches, which opens after the sensor has settled. Where the
driver's buffer answers, samples are attributed by their time stamps after the fact (DOMAIN 2), while launches go on.
While a limit acts, windows follow each other until clock, time and power stand still.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Final
from weakref import WeakKeyDictionary

from app.engine.runner.launching import LaunchingGpu
from app.engine.runner.power_source import PowerSource, find_power_source
from app.errors import WattridgeError
from app.sensors.channel import Reading
from app.sensors.event_reasons import LIMITING
from app.sensors.load import Execution, Load

RISE_S: Final = 0.1  # clock and power after a launch or a new clock, before a window opens
BUFFER_WINDOW_S: Final = 0.3
POLLED_WINDOW_S: Final = 1.0  # and at least ten refreshes
LOOK_S: Final = 0.05  # between looks at clock and temperature
BUFFER_PATIENCE_S: Final = 0.5  # the buffer's newest sample is about 0.1 s old
CAPPED_MOST_S: Final = 6.0  # windows under a limit, in all
STEADY: Final = 0.005  # change of clock and time between two windows that counts as standing still
STEADY_POWER: Final = 0.01
MEMORY_POWER_S: Final = 1.1  # its averaging window, and a refresh
WARM_STEP_S: Final = 2.0
WARM_MOST_S: Final = 30.0
COLD_AFTER_S: Final = 3.0  # idle for longer: warm up again

_sources: WeakKeyDictionary[object, PowerSource] = WeakKeyDictionary()  # one look per board and run of the program


@dataclass(frozen=True, slots=True)
class Window:
    """What was measured in one window."""

    time_s: float  # mean time of one launch
    power_w: float
    power_interval_w: tuple[float, float] | None  # 95 % confidence of the mean
    observed_clock_mhz: float
    memory_power_w: float  # NaN where not told or the window is shorter than its average
    temperature_c: float
    event_reasons: int  # every reason seen
    window_ns: tuple[int, int]
    power_source: str
    settled: bool = True  # False: a limit acted and the board had not come to rest

    @property
    def energy_j(self) -> float:
        """Of one launch."""
        return self.power_w * self.time_s


class Meter:
    """Measures loads on one board. Not thread-safe; other threads may read the board meanwhile."""

    def __init__(self, gpu: LaunchingGpu, *, memory_power: bool = False) -> None:
        """`memory_power` makes windows long enough for the memory's power, where the board tells it."""
        self._gpu = gpu
        self._channel = {channel.name: i for i, channel in enumerate(gpu.channels) if channel.available}
        self._wants_memory_power = memory_power and "memory_power_w" in self._channel
        self._last_end_ns: int | None = None

    def measure(
        self,
        load: Load,
        *,
        stop: threading.Event | None = None,
        settle_s: float = 0.0,
        window_s: float = 0.0,
    ) -> Window | None:
        """Run and measure `load`; None when `stop` was set first. Both times are lower bounds, on the board's clock."""
        source = self._source(load, stop)
        if source is None or not self._warm(load, stop):
            return None
        settle_s = max(settle_s, RISE_S, 0.0 if source.buffered else source.settle_s)
        if self._wants_memory_power:
            settle_s = max(settle_s, MEMORY_POWER_S)
        least = BUFFER_WINDOW_S if source.buffered else max(POLLED_WINDOW_S, 10 * source.refresh_s)
        if not self._run(load, settle_s, stop):
            return None
        window = self._until_steady(load, source, max(window_s, least), stop)
        self._last_end_ns = self._gpu.clock.now_ns()
        return window

    # --- inside -----------------------------------------------------------------------------------------------------

    def _source(self, load: Load, stop: threading.Event | None) -> PowerSource | None:
        source = _sources.get(self._gpu)
        if source is None:
            source = find_power_source(self._gpu, load, stop)
            if source is not None:
                _sources[self._gpu] = source
        return source

    def _warm(self, load: Load, stop: threading.Event | None) -> bool:
        """Run until temperature and time per launch stand still; False when stopped. Nothing to do on a warm board."""
        last, now = self._last_end_ns, self._gpu.clock.now_ns()
        if last is not None and now - last < COLD_AFTER_S * 1e9:
            return True
        before = math.nan
        for _ in range(round(WARM_MOST_S / WARM_STEP_S)):
            if not self._run(load, WARM_STEP_S, stop):
                return False
            temperature = self._value(self._gpu.read(), "temperature_c")
            if math.isnan(temperature) or abs(temperature - before) < 0.5:
                break
            before = temperature
        return True

    def _run(self, load: Load, seconds: float, stop: threading.Event | None) -> bool:
        """Launch for that long; False when stopped."""
        self._gpu.begin(load)
        try:
            return not self._gpu.clock.wait(seconds, stop)
        finally:
            self._gpu.end()

    def _until_steady(
        self, load: Load, source: PowerSource, window_s: float, stop: threading.Event | None
    ) -> Window | None:
        before: Window | None = None
        for _ in range(max(2, math.ceil(CAPPED_MOST_S / window_s))):
            window = self._window(load, source, window_s, stop)
            if window is None or not window.event_reasons & LIMITING:
                return window
            if before is not None and _steady(before, window):
                return window
            before = window
        return None if before is None else replace(before, settled=False)

    def _window(self, load: Load, source: PowerSource, window_s: float, stop: threading.Event | None) -> Window | None:
        readings: list[Reading] = []
        step_s = LOOK_S if source.buffered else source.refresh_s
        self._gpu.begin(load)
        try:
            for _ in range(math.ceil(window_s / step_s - 1e-9)):
                if self._gpu.clock.wait(step_s, stop):
                    return None
                readings.append(self._gpu.read())
        finally:
            execution = self._gpu.end()
        if source.buffered:
            powers = self._buffered_powers(load, execution)
            independent = len(powers)
        else:
            at = self._channel[source.channel or ""]
            powers = [r.values[at] for r in readings if not math.isnan(r.values[at])]
            independent = round(len(powers) * min(1.0, source.refresh_s / source.settle_s))
        if not powers:
            raise WattridgeError(
                "no power reading fell into the window", self._gpu.info.label, "look at it with: wattridge monitor"
            )
        return self._describe(execution, readings, powers, independent, source)

    def _buffered_powers(self, load: Load, execution: Execution) -> list[float]:
        """Samples that lie wholly in the window; launches go on until the buffer has told them."""
        deadline_ns = execution.end_ns + round(BUFFER_PATIENCE_S * 1e9)
        first_ns = execution.start_ns + 20_000_000
        self._gpu.begin(load)
        try:
            while True:
                samples = self._gpu.power_samples(first_ns - 1)
                complete = bool(samples) and samples[-1].time_ns >= execution.end_ns
                if complete or self._gpu.clock.now_ns() >= deadline_ns:
                    return [s.power_w for s in samples if first_ns <= s.time_ns <= execution.end_ns]
                self._gpu.clock.wait(LOOK_S)
        finally:
            self._gpu.end()

    def _describe(
        self,
        execution: Execution,
        readings: Sequence[Reading],
        powers: Sequence[float],
        independent: int,
        source: PowerSource,
    ) -> Window:
        reasons = 0
        for reading in readings:
            bits = self._value(reading, "event_reasons")
            reasons |= 0 if math.isnan(bits) else int(bits)
        return Window(
            time_s=execution.time_s,
            power_w=fmean(powers),
            power_interval_w=confidence_interval(powers, independent),
            observed_clock_mhz=self._mean(readings, "graphics_clock_mhz"),
            memory_power_w=self._value(readings[-1], "memory_power_w") if self._wants_memory_power else math.nan,
            temperature_c=self._mean(readings, "temperature_c"),
            event_reasons=reasons,
            window_ns=(execution.start_ns, execution.end_ns),
            power_source=source.name,
        )

    def _value(self, reading: Reading, name: str) -> float:
        at = self._channel.get(name)
        return math.nan if at is None else reading.values[at]

    def _mean(self, readings: Sequence[Reading], name: str) -> float:
        known = [value for value in (self._value(r, name) for r in readings) if not math.isnan(value)]
        return fmean(known) if known else math.nan


def _steady(before: Window, after: Window) -> bool:
    """Two windows in a row tell the same: the controller of the limit has come to rest."""
    pairs = (
        (before.observed_clock_mhz, after.observed_clock_mhz, STEADY),
        (before.time_s, after.time_s, STEADY),
        (before.power_w, after.power_w, STEADY_POWER),
    )
    return all(math.isnan(b) or abs(b - a) <= share * abs(b) for a, b, share in pairs)


def confidence_interval(values: Sequence[float], independent: int) -> tuple[float, float] | None:
    """95 % confidence of the mean by Student's t, of which `independent` values count; None below two."""
    if len(values) < 2 or independent < 2:
        return None
    from scipy.special import stdtrit  # imported late: the window opens without it

    half = float(stdtrit(independent - 1, 0.975)) * stdev(values) / math.sqrt(independent)
    mean = fmean(values)
    return mean - half, mean + half
