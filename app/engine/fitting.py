"""The frequency model of a board, from a clock sweep or from a session's measurements."""

from __future__ import annotations

import threading
from collections.abc import Callable

from app.engine.control.guard import DeviceGuard
from app.engine.models.frequency import FrequencyFit
from app.engine.results import ResultTable
from app.engine.session_record import LoadedSession
from app.engine.sweep import sweep_clocks
from app.errors import WattridgeError
from app.sensors.gpu import Gpu


def fit_of_sweep(
    gpu: Gpu,
    *,
    points: int = 10,
    on_progress: Callable[[int, int], None] | None = None,
    stop: threading.Event | None = None,
    guard: DeviceGuard | None = None,
) -> tuple[FrequencyFit, str]:
    """Sweep the clocks under full load and fit; the fit, and what it was fitted to in words.

    Raises WattridgeError where the board cannot run or be set, or where `stop` ended the sweep.
    """
    from app.engine.models.points import Points, fit_points

    sweep = sweep_clocks(
        gpu, guard if guard is not None else DeviceGuard(gpu), points=points, on_progress=on_progress, stop=stop
    )
    if stop is not None and stop.is_set():
        raise WattridgeError("the clock sweep was stopped", gpu.info.label)
    simulated = gpu.info.source == "simulated"
    fit = fit_points(
        Points(
            clock_mhz=sweep.clock_mhz,
            power_w=sweep.power_w,
            rate=sweep.rate,
            limited=sweep.limited,
            limit_w=sweep.limit_w,
            supported_mhz=tuple(float(clock) for clock in gpu.graphics_clocks_mhz()),
            gpu=gpu.info.name,
            series=sweep.series,
            simulated=simulated,
        )
    )
    return fit, f"sweep of {len(sweep.clock_mhz)} clocks, {sweep.series}{', simulated' if simulated else ''}"


def fit_of_session(session: LoadedSession) -> tuple[FrequencyFit, str]:
    """Fit to a stored session's measurements; as `fit_of_table`."""
    record = session.record
    return fit_of_table(session.table, record.title, record.gpu, record.source)


def fit_of_table(table: ResultTable, title: str, gpu: str, source: str) -> tuple[FrequencyFit, str]:
    """Fit to a session's measurements on a board; the fit, and what it was fitted to in words.

    Raises InputError where they hold too few clocks.
    """
    from app.engine.models.points import fit_points, points_of_table

    fit = fit_points(points_of_table(table, gpu=gpu, simulated=source == "simulated"))
    return fit, f"session of {title}, {fit.series}{'' if source == 'nvml' else f', {source}'}"
