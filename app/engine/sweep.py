"""A clock sweep: power and speed of one load at several locked clocks, measured through the board's own sensors."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.engine.control.guard import DeviceGuard
from app.engine.runner.launching import require_launching
from app.engine.runner.meter import Meter, Window
from app.errors import InputError
from app.sensors.event_reasons import LIMITING
from app.sensors.gpu import Gpu
from app.sensors.load import Load

Floats = npt.NDArray[np.float64]
LOWEST_SHARE = 0.4  # of the highest clock; the lowest ridge measured yet is at 0.49 (H200), the others near 0.7


@dataclass(frozen=True, slots=True)
class Sweep:
    """One entry per clock, ascending by requested clock; shape (n,)."""

    series: str  # the load's name
    clock_mhz: Floats  # observed
    requested_mhz: Floats
    power_w: Floats
    time_s: Floats  # of one launch
    rate: Floats  # GFLOP/s
    limited: npt.NDArray[np.bool_]  # a power or thermal limit acted
    limit_w: float | None  # the power limit in force


def sweep_clocks(
    gpu: Gpu,
    guard: DeviceGuard,
    *,
    clocks: Sequence[int] | None = None,
    points: int = 10,
    load: Load | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    stop: threading.Event | None = None,
) -> Sweep:
    """Measure `load` (by default one that fully loads the board) at each clock, and put the prior clock back.

    `clocks` are supported clocks in MHz; by default `points` of them, spread evenly from 0.4 of the highest.
    Stops early, with what it has, when `stop` is set. Raises WattridgeError where the board cannot run or be set.
    """
    if load is None:
        from app.sensors.simulated.profiles import full_load

        load = full_load()
    chosen = sorted(clocks) if clocks is not None else spread_clocks(gpu.graphics_clocks_mhz(), points)
    if not chosen:
        raise InputError("the board tells no supported clocks", gpu.info.label, "name the clocks")
    meter = Meter(require_launching(gpu))
    measured: list[tuple[int, Window]] = []
    with guard.nested() as settings:
        for clock in reversed(chosen):  # from the hottest: the board cools along, and needs no second warm-up
            settings.apply(graphics_clock_mhz=clock)
            window = meter.measure(load, stop=stop, settle_s=1.0, window_s=1.0)
            if window is None:
                break
            measured.append((clock, window))
            if on_progress is not None:
                on_progress(len(measured), len(chosen))
    measured.reverse()
    time_s = np.asarray([w.time_s for _, w in measured])
    requested = np.asarray([float(clock) for clock, _ in measured])
    return Sweep(
        series=load.name,
        clock_mhz=np.asarray([w.observed_clock_mhz for _, w in measured]),
        requested_mhz=requested,
        power_w=np.asarray([w.power_w for _, w in measured]),
        time_s=time_s,
        rate=load.work_flop / time_s / 1e9,
        limited=np.asarray([bool(w.event_reasons & LIMITING) for _, w in measured], dtype=np.bool_),
        limit_w=gpu.info.power_limit.current_w,
    )


def spread_clocks(supported: Sequence[int], points: int, lowest_share: float = LOWEST_SHARE) -> list[int]:
    """About `points` supported clocks, ascending, evenly spread from `lowest_share` of the highest to the highest."""
    if not supported:
        return []
    table = np.sort(np.asarray(supported))
    wanted = np.linspace(max(table[0], lowest_share * table[-1]), table[-1], max(2, points))
    return sorted({int(table[np.argmin(np.abs(table - clock))]) for clock in wanted})
