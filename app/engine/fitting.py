"""The frequency model of a board, from a clock sweep or from a session's measurements."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from app.engine.control.guard import DeviceGuard
from app.engine.models.frequency import FrequencyFit
from app.engine.results import ResultTable
from app.engine.session_record import LoadedSession
from app.engine.sweep import Sweep, steered_sweep, sweep_clocks
from app.errors import WattridgeError
from app.sensors.gpu import Gpu

if TYPE_CHECKING:
    from app.engine.models.points import Points


def fit_of_sweep(
    gpu: Gpu,
    *,
    points: int = 10,
    steered: bool = True,
    memory_clocks: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
    stop: threading.Event | None = None,
    guard: DeviceGuard | None = None,
) -> tuple[FrequencyFit, str]:
    """Sweep the clocks under full load and fit; the fit, and what it was fitted to in words.

    At most `points` clocks, each where it tells most, or evenly spread where not `steered`; with `memory_clocks` at
    each memory clock of the board. Raises WattridgeError where the board cannot run or be set, or where `stop` ended
    the sweep.
    """
    from app.engine.models.points import fit_memory_clocks

    inside = guard if guard is not None else DeviceGuard(gpu)
    series = []
    for memory in gpu.memory_clocks_mhz() if memory_clocks else [None]:
        if steered:
            sweep = steered_sweep(gpu, inside, most=points, memory_clock_mhz=memory, on_progress=on_progress, stop=stop)
        else:
            sweep = sweep_clocks(
                gpu, inside, points=points, memory_clock_mhz=memory, on_progress=on_progress, stop=stop
            )
        if stop is not None and stop.is_set():
            raise WattridgeError("the clock sweep was stopped", gpu.info.label)
        series.append(points_of_sweep(gpu, sweep))
    fit = fit_memory_clocks(series)
    count = sum(len(each.clock_mhz) for each in series)
    simulated = ", simulated" if gpu.info.source == "simulated" else ""
    return fit, f"sweep of {count} clocks, {fit.series}{simulated}"


def points_of_sweep(gpu: Gpu, sweep: Sweep) -> Points:
    """A sweep as one series for the frequency model."""
    from app.engine.models.points import Points

    memory = sweep.memory_clock_mhz
    return Points(
        clock_mhz=sweep.clock_mhz,
        power_w=sweep.power_w,
        rate=sweep.rate,
        limited=sweep.limited,
        limit_w=sweep.limit_w,
        supported_mhz=tuple(float(clock) for clock in gpu.graphics_clocks_mhz()),
        gpu=gpu.info.name,
        series=sweep.series if memory is None else f"{sweep.series}, memory_clock_mhz={memory:.0f}",
        simulated=gpu.info.source == "simulated",
        voltage_mv=sweep.voltage_mv,
        temperature_c=sweep.temperature_c,
        memory_clock_mhz=memory,
        others=(sweep.series,),
    )


def fit_of_session(session: LoadedSession) -> tuple[FrequencyFit, str]:
    """Fit to a stored session's measurements; as `fit_of_table`."""
    record = session.record
    return fit_of_table(session.table, record.title, record.gpu, record.source)


def fit_of_table(table: ResultTable, title: str, gpu: str, source: str) -> tuple[FrequencyFit, str]:
    """Fit to a session's measurements on a board; the fit, and what it was fitted to in words.

    Raises InputError where they hold too few clocks.
    """
    from app.engine.models.points import fit_memory_clocks
    from app.engine.models.series import series_of_table

    fit = fit_memory_clocks(series_of_table(table, gpu=gpu, simulated=source == "simulated"))
    return fit, f"session of {title}, {fit.series}{'' if source == 'nvml' else f', {source}'}"
