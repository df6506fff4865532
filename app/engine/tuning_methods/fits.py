"""The frequency model of a board, from a clock sweep or from a session's measurements."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from ...errors import WattridgeError
from ...sensors.gpu import LIVE, Gpu
from ...sensors.load import Load
from ..control.guard import DeviceGuard
from ..models.cap_series import caps_of_table
from ..models.caps import CapFit, fit_caps
from ..models.frequency import FrequencyFit
from ..models.point_fits import fit_memory_clocks
from ..models.series import series_of_table
from ..space.result_table import ResultTable
from ..store.record import LoadedSession
from .sweep import sweep_clocks, sweep_limits


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

    At most `points` clocks, each where it adds most, or evenly spread where not `steered`; with `memory_clocks` at
    each memory clock of the board. Raises WattridgeError where the board cannot run or be set, or where `stop` ended
    the sweep.
    """
    series = []
    with running_board(gpu, guard) as (board, inside, load):
        for memory in gpu.memory_clocks_mhz() if memory_clocks else [None]:
            sweep = sweep_clocks(
                board,
                inside,
                points=points,
                steered=steered,
                load=load,
                memory_clock_mhz=memory,
                on_progress=on_progress,
                stop=stop,
            )
            if stop is not None and stop.is_set():
                raise WattridgeError("the clock sweep was stopped", gpu.info.label)
            series.append(sweep.points)
    fit = fit_memory_clocks(series)
    count = sum(len(each.clock_mhz) for each in series)
    simulated = ", simulated" if gpu.info.source == "simulated" else ""
    return fit, f"sweep of {count} clocks, {fit.series}{simulated}"


def caps_of_sweep(
    gpu: Gpu,
    *,
    points: int = 10,
    on_progress: Callable[[int, int], None] | None = None,
    stop: threading.Event | None = None,
    guard: DeviceGuard | None = None,
) -> CapFit:
    """The same load as of `fit_of_sweep` under `points` power limits. Raises WattridgeError as that does."""
    with running_board(gpu, guard) as (board, inside, load):
        swept = sweep_limits(board, inside, points=points, load=load, on_progress=on_progress, stop=stop).points
    assert swept.requested_mhz is not None
    assert swept.rate is not None
    fit = fit_caps(
        swept.requested_mhz,
        swept.power_w,
        swept.rate,
        gpu=swept.gpu,
        series=swept.series,
        observed_clock_mhz=swept.clock_mhz,
        simulated=swept.simulated,
    )
    if fit is None:
        raise WattridgeError("the sweep of power limits was stopped", gpu.info.label)
    return fit


@contextmanager
def running_board(gpu: Gpu, guard: DeviceGuard | None) -> Iterator[tuple[Gpu, DeviceGuard, Load | None]]:
    """The board ready to run a load, its guard, and the load; None is the one that `sweep_clocks` runs by default.

    A real board runs multiply-adds on all its multiprocessors. Raises WattridgeError where it may not be set.
    """
    guard = guard if guard is not None else DeviceGuard(gpu)
    if not gpu.info.live:
        yield gpu, guard, None
        return
    from ..runner.cuda.open import require_cuda
    from ..runner.cuda.square_wave import WaveGpu

    guard.open()
    require_cuda(gpu)
    with closing(WaveGpu(gpu)) as board:
        yield board, guard, board.wave_loads()[0]


def fit_of_session(session: LoadedSession) -> tuple[FrequencyFit, str]:
    """Fit to a stored session's measurements; as `fit_of_table`."""
    record = session.record
    return fit_of_table(session.table, record.title, record.gpu, record.source)


def caps_of_session(session: LoadedSession) -> list[CapFit]:
    """The power limits of a stored session; empty where it has none."""
    return caps_of_table(session.table, session.record.gpu, simulated=session.record.source == "simulated")


def fit_of_table(table: ResultTable, title: str, gpu: str, source: str) -> tuple[FrequencyFit, str]:
    """Fit to a session's measurements on a board; the fit, and what it was fitted to in words.

    Raises InputError where they hold too few clocks.
    """
    from ..models.point_fits import fit_memory_clocks

    fit = fit_memory_clocks(series_of_table(table, gpu=gpu, simulated=source == "simulated"))
    return fit, f"session of {title}, {fit.series}{'' if source in LIVE else f', {source}'}"
