"""A clock sweep: power and speed of one load at several locked clocks, measured through the board's own sensors."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ...sensors.event_reasons import LIMITING
from ...sensors.gpu import Gpu
from ...sensors.load import Load
from ..control.guard import DeviceGuard
from ..metering.launching import LaunchingGpu, require_launching
from ..metering.meter import Meter
from ..metering.window import Window

Floats = npt.NDArray[np.float64]
LOWEST_SHARE = 0.4  # of the highest clock; the lowest ridge measured yet is at 0.49 (H200), the others near 0.7
FIRST_CLOCKS = 4  # of a steered sweep, evenly spread


@dataclass(frozen=True, slots=True)
class Sweep:
    """One entry per setting, ascending by requested clock; shape (n,)."""

    series: str  # the load's name
    clock_mhz: Floats  # observed
    requested: Floats  # what was set: the clock in MHz, or the power limit in W
    power_w: Floats
    time_s: Floats  # of one launch
    rate: Floats  # GFLOP/s, or launches per second where the load's work is not known
    limited: npt.NDArray[np.bool_]  # a power or thermal limit acted
    limit_w: float | None  # the power limit in force
    voltage_mv: Floats  # NaN where the board does not tell it
    temperature_c: Floats
    seconds: float  # on the board's clock, from the first setting to the last window
    memory_clock_mhz: float | None = None  # where it was set


def sweep_clocks(
    gpu: Gpu,
    guard: DeviceGuard,
    *,
    clocks: Sequence[int] | None = None,
    points: int = 10,
    load: Load | None = None,
    memory_clock_mhz: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    stop: threading.Event | None = None,
) -> Sweep:
    """Measure `load` (by default one that fully loads the board) at each clock, and put the prior clock back.

    `clocks` are supported clocks in MHz; by default `points` of them, spread evenly from 0.4 of the highest.
    Stops early, with what it has, when `stop` is set. Raises WattridgeError where the board cannot run or be set.
    """
    chosen = sorted(clocks) if clocks is not None else spread_clocks(gpu.graphics_clocks_mhz(), points)
    if not chosen:
        raise InputError("the board tells no supported clocks", gpu.info.label, "name the clocks")
    with guard.nested() as settings:
        series = _Series(gpu, settings, load, memory_clock_mhz, stop)
        for clock in reversed(chosen):  # from the hottest: the board cools along, and needs no second warm-up
            if not series.measure(clock):
                break
            if on_progress is not None:
                on_progress(len(series), len(chosen))
        return series.sweep()


def steered_sweep(
    gpu: Gpu,
    guard: DeviceGuard,
    *,
    points: int = 10,
    load: Load | None = None,
    memory_clock_mhz: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    stop: threading.Event | None = None,
) -> Sweep:
    """As `sweep_clocks`, but after four clocks each next one is where it narrows the optimum most.

    Ends after `points` clocks, or once the optimum is known to within one step of the supported clocks.
    """
    from ..models.design import next_clock

    supported = gpu.graphics_clocks_mhz()
    first = spread_clocks(supported, min(FIRST_CLOCKS, points))
    if not first:
        raise InputError("the board tells no supported clocks", gpu.info.label, "name the clocks of a plain sweep")
    with guard.nested() as settings:
        series = _Series(gpu, settings, load, memory_clock_mhz, stop)
        waiting = first
        while waiting and series.measure(waiting.pop()):
            if on_progress is not None:
                on_progress(len(series), points)
            if not waiting and len(series) < points:
                done = series.sweep()
                clock = next_clock(done.clock_mhz, done.power_w, done.rate, done.limited, supported, done.requested)
                waiting = [] if clock is None else [int(clock)]
        if on_progress is not None:
            on_progress(len(series), len(series))
        return series.sweep()


def sweep_limits(
    gpu: Gpu,
    guard: DeviceGuard,
    *,
    points: int = 10,
    load: Load | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    stop: threading.Event | None = None,
) -> Sweep:
    """The same load under power limits spread evenly over what the board takes, `requested` in W.

    The clock is left to the board. Raises WattridgeError where the board cannot run or be set.
    """
    limit = gpu.info.power_limit
    if limit.minimum_w is None or limit.maximum_w is None:
        raise InputError("the board tells no range of power limits", gpu.info.label, "compare clocks alone")
    limits = np.unique(np.rint(np.linspace(limit.minimum_w, limit.maximum_w, max(2, points))))
    with guard.nested() as settings:
        series = _Series(gpu, settings, load, None, stop)
        for each in limits[::-1]:
            if not series.measure_at_limit(float(each)):
                break
            if on_progress is not None:
                on_progress(len(series), len(limits))
        return series.sweep()


def spread_clocks(supported: Sequence[int], points: int, lowest_share: float = LOWEST_SHARE) -> list[int]:
    """About `points` supported clocks, ascending, evenly spread from `lowest_share` of the highest to the highest."""
    if not supported:
        return []
    table = np.sort(np.asarray(supported))
    wanted = np.linspace(max(table[0], lowest_share * table[-1]), table[-1], max(2, points))
    return sorted({int(table[np.argmin(np.abs(table - clock))]) for clock in wanted})


class _Series:
    """Measures one load at one setting after the other."""

    def __init__(
        self,
        gpu: Gpu,
        settings: DeviceGuard,
        load: Load | None,
        memory_clock_mhz: int | None,
        stop: threading.Event | None,
    ) -> None:
        if load is None:
            from ...sensors.simulated.profiles import full_load

            load = full_load()
        self._gpu: LaunchingGpu = require_launching(gpu)
        self._settings = settings
        self._load = load
        self._memory_clock_mhz = memory_clock_mhz
        self._stop = stop
        self._meter = Meter(self._gpu)
        self._place = {channel.name: i for i, channel in enumerate(gpu.channels) if channel.available}
        self._measured: list[tuple[float, Window, float, float]] = []
        self._began_ns = self._gpu.clock.now_ns()
        if memory_clock_mhz is not None:
            settings.apply(memory_clock_mhz=memory_clock_mhz)

    def __len__(self) -> int:
        return len(self._measured)

    def measure(self, clock_mhz: int) -> bool:
        """One more clock; False when stopped."""
        self._settings.apply(graphics_clock_mhz=clock_mhz)
        return self._measure(float(clock_mhz))

    def measure_at_limit(self, limit_w: float) -> bool:
        """One more power limit; False when stopped."""
        self._settings.apply(power_limit_w=limit_w)
        return self._measure(limit_w)

    def _measure(self, asked: float) -> bool:
        window = self._meter.measure(self._load, stop=self._stop, settle_s=1.0, window_s=1.0)
        if window is None:
            return False
        self._measured.append((asked, window, self._now("core_voltage_mv"), self._now("temperature_c")))
        return True

    def sweep(self) -> Sweep:
        """What was measured so far."""
        rows = sorted(self._measured, key=lambda row: row[0])
        windows = [window for _, window, _, _ in rows]
        time_s = np.asarray([w.time_s for w in windows])
        return Sweep(
            series=self._load.name,
            clock_mhz=np.asarray([w.observed_clock_mhz for w in windows]),
            requested=np.asarray([asked for asked, *_ in rows]),
            power_w=np.asarray([w.power_w for w in windows]),
            time_s=time_s,
            rate=(self._load.work_flop / 1e9 or 1.0) / time_s,
            limited=np.asarray([bool(w.event_reasons & LIMITING) for w in windows], dtype=np.bool_),
            limit_w=self._gpu.info.power_limit.current_w,
            voltage_mv=np.asarray([voltage for _, _, voltage, _ in rows]),
            temperature_c=np.asarray([temperature for *_, temperature in rows]),
            seconds=(self._gpu.clock.now_ns() - self._began_ns) / 1e9,
            memory_clock_mhz=float(self._memory_clock_mhz) if self._memory_clock_mhz is not None else None,
        )

    def _now(self, channel: str) -> float:
        """A reading right after the window, while the clock still stands."""
        place = self._place.get(channel)
        return math.nan if place is None else float(self._gpu.read().values[place])
