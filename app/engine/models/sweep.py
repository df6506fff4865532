"""A sweep: power and speed of one load at several locked clocks or limits, measured through the board's own sensors.

The board cools from one clock to the next: power is stated for one thermal condition, by what sessions have shown of
the board and the first clock, measured again at the end (`metering/thermal.py`).
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ...base.errors import InputError
from ...base.formatting import percent
from ...sensors.event_reasons import LIMITING
from ...sensors.gpu import Gpu, Load
from ..control.guard import DeviceGuard
from ..metering.launching import require_launching
from ..metering.limit_effect import LimitEffect, effects_of
from ..metering.meter import Meter
from ..metering.thermal import BoardLearning
from ..metering.window import Window
from .arrays import Floats
from .fit.points import Points

Progress = Callable[[int, int], None]  # settings measured, and of how many
Swept = Literal["graphics_clock_mhz", "power_limit_w"]

LOWEST_SHARE = 0.4  # of the highest clock; the lowest ridge measured yet is at 0.49 (H200), the others near 0.7
FEWEST_LIMITS = 3  # measured, of which caps can be fitted
FIRST_CLOCKS = 4  # of a steered sweep, evenly spread
CORRECTED = 0.001  # the largest share of its power that a point may be corrected by without a word


@dataclass(frozen=True, slots=True)
class Sweep:
    """One point per setting, ascending by the requested one."""

    points: Points  # `requested_mhz` is what was set: the clock in MHz, or the power limit in W
    time_s: Floats  # of one launch, shape (n,)
    seconds: float  # on the board's clock, from the first setting to the last window
    effects: tuple[LimitEffect, ...] = ()  # of power limits, those too that were left out

    def __len__(self) -> int:
        return len(self.time_s)


def sweep_clocks(
    gpu: Gpu,
    guard: DeviceGuard,
    *,
    points: int = 10,
    steered: bool = False,
    load: Load | None = None,
    memory_clock_mhz: float | None = None,
    on_progress: Progress | None = None,
    stop: threading.Event | None = None,
) -> Sweep:
    """Measure a load at each of several clocks, and restore the prior clock.

    The clocks are spread evenly from 0.4 of the highest. A steered sweep measures four of them, then each next one
    where it narrows the optimum most, and ends after `points` clocks, or once the optimum is known to within one step
    of the supported clocks.

    Parameters
    ----------
    gpu : Gpu
        The board.
    guard : DeviceGuard
        Sets it.
    points : int, optional
        About how many clocks to measure; the most of a steered sweep.
    steered : bool, optional
        Whether the sweep is steered.
    load : Load or None, optional
        What runs; None is a load that fully loads the board.
    memory_clock_mhz : float or None, optional
        The memory clock in MHz to set for the sweep; None leaves it as it is.
    on_progress : callable or None, optional
        Called after each clock with the number measured and the number in all.
    stop : threading.Event or None, optional
        Ends the sweep early when set, with what it has.

    Returns
    -------
    Sweep
        One point per clock, ascending.

    Raises
    ------
    InputError
        If the board reports no supported clocks.
    WattridgeError
        If the board cannot run or be set.
    """
    from .fit.design import next_clock

    clocks = spread_clocks(gpu.graphics_clocks_mhz(), min(FIRST_CLOCKS, points) if steered else points)
    if not clocks:
        raise InputError("the board reports no supported clocks", gpu.info.label, "fit a file or a session instead")
    with guard.nested("clock sweep") as settings:
        series = _Series(gpu, settings, load, stop, on_progress)
        if memory_clock_mhz is not None:
            series.set_memory_clock(memory_clock_mhz)
        series.measure_untouched()
        # from the hottest: the board cools along, and needs no second warm-up
        more = series.measure("graphics_clock_mhz", clocks[::-1], points if steered else len(clocks))
        while more and steered and len(series) < points:
            clock = next_clock(series.sweep().points)
            more = clock is not None and series.measure("graphics_clock_mhz", [int(clock)], points)
        series.look_again("graphics_clock_mhz")
        series.measure_untouched()
        if steered and on_progress is not None:
            on_progress(len(series), len(series))
        return series.sweep()


def sweep_limits(
    gpu: Gpu,
    guard: DeviceGuard,
    *,
    points: int = 10,
    load: Load | None = None,
    on_progress: Progress | None = None,
    stop: threading.Event | None = None,
) -> Sweep:
    """Measure a load under power limits spread evenly over what the board takes. The clock is left to the board.

    The highest limit is measured first. Those below it that the load cannot reach are left out, but for the lowest of
    them, and so that three are measured.

    Parameters
    ----------
    gpu : Gpu
        The board.
    guard : DeviceGuard
        Sets it.
    points : int, optional
        How many limits to measure, in whole watts; at least two are.
    load : Load or None, optional
        What runs; None is a load that fully loads the board.
    on_progress : callable or None, optional
        Called after each limit with the number measured and the number in all.
    stop : threading.Event or None, optional
        Ends the sweep early when set, with what it has.

    Returns
    -------
    Sweep
        One point per limit, ascending; `requested_mhz` of its points are the limits in W.

    Raises
    ------
    InputError
        If the board reports no range of power limits.
    WattridgeError
        If the board cannot run or be set.
    """
    limit = gpu.info.power_limit
    if limit.minimum_w is None or limit.maximum_w is None:
        raise InputError("the board reports no range of power limits", gpu.info.label, "compare clocks alone")
    limits = np.unique(np.rint(np.linspace(limit.minimum_w, limit.maximum_w, max(2, points))))[::-1].tolist()
    with guard.nested("power limit sweep") as settings:
        series = _Series(gpu, settings, load, stop, on_progress)
        if series.measure("power_limit_w", limits[:1], len(limits)):
            spared = [effect.limit_w for effect in series.effects(limits) if effect.without_effect]
            left_out = spared[1:-1][: len(limits) - FEWEST_LIMITS]
            rest = [limit_w for limit_w in limits[1:] if limit_w not in left_out]
            series.measure("power_limit_w", rest, 1 + len(rest))
        return replace(series.sweep(), effects=series.effects(limits[::-1]))


def spread_clocks(supported: Sequence[int], points: int, lowest_share: float = LOWEST_SHARE) -> list[int]:
    """Select evenly spread supported clocks up to the highest.

    Parameters
    ----------
    supported : sequence of int
        Supported clocks in MHz.
    points : int
        About how many to select.
    lowest_share : float, optional
        The lowest clock, as a share of the highest.

    Returns
    -------
    list of int
        Clocks in MHz, ascending.
    """
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
        stop: threading.Event | None,
        on_progress: Progress | None,
    ) -> None:
        if load is None:
            from ...sensors.simulated.profiles import full_load

            load = full_load()
        self._gpu = require_launching(gpu)
        self._settings = settings
        self._load = load
        self._stop = stop
        self._on_progress = on_progress
        self._memory_clock_mhz: float | None = None
        self._meter = Meter(self._gpu, needs=("core_voltage_mv",))
        places = [i for i, channel in enumerate(gpu.channels) if channel.name == "temperature_c" and channel.available]
        self._temperature = places[0] if places else None
        self._board = BoardLearning(gpu.info)
        self._measured: list[tuple[float, Window, float]] = []
        self._untouched: list[Window] = []
        self._began_ns = self._gpu.clock.now_ns()

    def __len__(self) -> int:
        return len(self._measured)

    def set_memory_clock(self, memory_clock_mhz: float) -> None:
        self._settings.apply(memory_clock_mhz=memory_clock_mhz)
        self._memory_clock_mhz = float(memory_clock_mhz)

    def measure(self, setting: Swept, values: Sequence[float], most: int) -> bool:
        """Measure at each of these values, of at most so many in all; False when stopped."""
        for value in values:
            self._settings.apply(**{setting: value})
            if not self._meter.warm(self._load, self._stop):
                return False
            window = self._meter.measure(self._load, stop=self._stop, settle_s=1.0, window_s=1.0)
            if window is None:
                return False
            self._measured.append((float(value), window, self._temperature_c()))
            self._note(setting, value, window)
            if self._on_progress is not None:
                self._on_progress(len(self), most)
        return True

    def effects(self, limits_w: Sequence[float]) -> tuple[LimitEffect, ...]:
        """The effects of power limits, by what was measured under some of them so far."""
        shown = [(w, window.peak_power_w, window.throttled_share) for w, window, _ in self._measured]
        return effects_of(limits_w, *np.array(shown, dtype=np.float64).reshape(-1, 3).T)

    def measure_untouched(self) -> None:
        """The load on the untouched board, before and after the others: savings are against that."""
        self._settings.hold()
        if self._meter.warm(self._load, self._stop):
            window = self._meter.measure(self._load, stop=self._stop, settle_s=1.0, window_s=1.0)
            self._untouched += [] if window is None else [window]
        if self._memory_clock_mhz is not None:
            self._settings.apply(memory_clock_mhz=self._memory_clock_mhz)

    def look_again(self, setting: Swept) -> None:
        """The first that no limit held back once more, on a board as it is by now; not when stopped."""
        first = next((value for value, window, _ in self._measured if not window.limited), None)
        if first is not None and not (self._stop is not None and self._stop.is_set()):
            self._settings.apply(**{setting: first})
            window = self._meter.measure(self._load, stop=self._stop, settle_s=1.0, window_s=1.0)
            if window is not None:
                self._note(setting, first, window)
        self._board.keep(fix_condition=False)  # a sweep is no usual work

    def _note(self, setting: Swept, value: float, window: Window) -> None:
        self._board.note(f"{self._load.name}, {setting} {value:g}, memory {self._memory_clock_mhz}", window)

    def sweep(self) -> Sweep:
        """What was measured so far."""
        rows = sorted(self._measured, key=lambda row: row[0])
        windows = [window for _, window, _ in rows]
        power_w = np.asarray([self._board.stated_w(window) for window in windows])
        time_s = np.asarray([window.time_s for window in windows])
        work = self._load.work_flop / 1e9 or 1.0  # GFLOP; launches where it is not known
        own = [self._board.stated_w(window) * window.time_s / work for window in self._untouched]
        own_time_s = float(np.mean([window.time_s for window in self._untouched])) if own else math.nan
        info, memory = self._gpu.info, self._memory_clock_mhz
        points = Points(
            clock_mhz=np.asarray([window.observed_clock_mhz for window in windows]),
            power_w=power_w,
            rate=work / time_s,
            limited=np.asarray([bool(window.event_reasons & LIMITING) for window in windows], dtype=np.bool_),
            limit_w=info.power_limit.current_w,
            supported_mhz=tuple(float(clock) for clock in self._gpu.graphics_clocks_mhz()),
            gpu=info.name,
            series=self._load.name if memory is None else f"{self._load.name}, memory_clock_mhz={memory:.0f}",
            simulated=info.source == "simulated",
            voltage_mv=np.asarray([window.core_voltage_mv for window in windows]),
            temperature_c=np.asarray([temperature for *_, temperature in rows]),
            memory_clock_mhz=memory,
            notes=self._corrected(windows, power_w),
            others=(self._load.name,),
            requested_mhz=np.asarray([requested for requested, *_ in rows]),
            untouched_energy=float(np.mean(own)) if own else None,
            untouched_rate=work / own_time_s if own else None,
        )
        return Sweep(points, time_s, (self._gpu.clock.now_ns() - self._began_ns) / 1e9)

    def _corrected(self, windows: Sequence[Window], stated_w: Floats) -> tuple[str, ...]:
        """What is to be said of powers that differ from what was drawn."""
        drawn_w = np.asarray([window.power_w for window in windows])
        most = float(np.abs(stated_w / drawn_w - 1.0).max()) if len(windows) else 0.0
        if not most > CORRECTED:
            return ()
        return (f"power is stated for {self._board.condition.words}: by up to {percent(most, 1)} not what was drawn",)

    def _temperature_c(self) -> float:
        """Right after a window, when the chip is as warm as the load makes it; NaN if the board reports none."""
        return math.nan if self._temperature is None else float(self._gpu.read().values[self._temperature])
