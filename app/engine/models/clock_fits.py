"""Frequency models of a board with the power limits beside them: of files, of sessions, and of a clock sweep."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...base.errors import InputError, WattridgeError
from ...sensors.gpu import LIVE, Gpu, Load
from ..control.guard import DeviceGuard
from ..space.result_table import ResultTable
from ..store.record import LoadedSession
from .fit.caps import CapFit, CapsAgainstClocks, compare, fit_caps, most_telling
from .fit.frequency import FrequencyFit, fit_memory_clocks
from .fit.points import Points, choose
from .fit_documents import latest_fit
from .series import caps_of_table, read_caps, read_series, series_of_table
from .sweep import sweep_clocks, sweep_limits

if TYPE_CHECKING:
    from ..specification.plan import SessionFacts
    from ..store.database import Store

_MOST = 6  # series of a file that are fitted one by one; of more, the best of each board


@dataclass(frozen=True, slots=True)
class ClockFit:
    """Of one load on one board; at least one of the two is there."""

    fit: FrequencyFit | None
    caps: CapFit | None
    origin: str  # file, session or sweep
    words: tuple[str, ...] = ()  # of the command `fit` that gives the same; empty if there is none

    @property
    def _either(self) -> FrequencyFit | CapFit:
        result = self.fit if self.fit is not None else self.caps
        assert result is not None
        return result

    @property
    def gpu(self) -> str:
        """Name of the board."""
        return self._either.gpu

    @property
    def simulated(self) -> bool:
        """Whether the board is simulated."""
        return self._either.simulated

    @property
    def label(self) -> str:
        """Board and load; '(simulated)' wherever it is shown."""
        marked = " (simulated)" if self.simulated else ""
        series = "" if self._either.series == self.origin else f" · {self._either.series}"
        return f"{self.gpu or 'unnamed board'}{marked}{series}"

    @property
    def key(self) -> tuple[str, str, str]:
        """What makes two the same: a later one replaces an earlier one."""
        return self.gpu, self._either.series, self.origin

    @property
    def reasons(self) -> tuple[str, ...]:
        """What limits the fits, of the clocks first."""
        return tuple(reason for part in (self.fit, self.caps) if part is not None for reason in part.reasons)

    @property
    def comparison(self) -> CapsAgainstClocks | None:
        """Clocks against power limits, where both are known for the same load."""
        return compare(self.fit, self.caps) if self.fit is not None and self.caps is not None else None


def fits_of_file(path: Path) -> list[ClockFit]:
    """Fit the clocks and power limits in a file.

    Parameters
    ----------
    path : Path
        A CSV, a log or a recording.

    Returns
    -------
    list of ClockFit
        At least one: one for each load; of many loads, or of several series of power limits, the best of each board.

    Raises
    ------
    InputError
        If there is none, or the file cannot be read.
    """
    return _worded(_found(lambda: read_series(path), read_caps(path), path.name), str(path.resolve()))


def fits_of_table(table: ResultTable, gpu: str, origin: str, *, simulated: bool) -> list[ClockFit]:
    """Fit the clocks and power limits of a table of measurements.

    Parameters
    ----------
    table : ResultTable
        The measurements.
    gpu : str
        Name of the board.
    origin : str
        The file, session or sweep that they are from, in words.
    simulated : bool
        Whether the board is simulated.

    Returns
    -------
    list of ClockFit
        At least one: one for each load; of many loads, or of several series of power limits, the best.

    Raises
    ------
    InputError
        If there is none.
    """
    caps = caps_of_table(table, gpu, simulated=simulated)
    return _found(lambda: series_of_table(table, gpu=gpu, simulated=simulated), caps, origin)


def clock_fit(table: ResultTable, plan: SessionFacts, words: tuple[str, ...] = ()) -> ClockFit:
    """Fit the configuration of a session that was measured at the most clocks, and its power limits.

    Parameters
    ----------
    table : ResultTable
        The measurements.
    plan : SessionFacts
        The session's board and title.
    words : tuple of str, optional
        Those of the command `fit` that give the same.

    Returns
    -------
    ClockFit
        With power limits, where it was measured under three or more.

    Raises
    ------
    InputError
        If they determine no model, and hold no power limits.
    """
    fit, origin = fit_of_table(table, plan.title, plan.gpu, plan.source)
    caps = caps_of_table(table, plan.gpu, simulated=plan.source == "simulated")
    if not fit.identifiable and not caps:
        raise InputError(fit.reasons[0] if fit.reasons else "the points do not determine it", origin)
    return ClockFit(fit, most_telling(caps) if caps else None, origin, words)


def fits_of_store(store: Store, session: int) -> list[ClockFit]:
    """Fit the clocks and power limits of a stored session.

    Parameters
    ----------
    store : Store
        Where it is kept.
    session : int
        Its id.

    Returns
    -------
    list of ClockFit
        As `fits_of_table` returns them.

    Raises
    ------
    InputError
        If there is no fit, or no such session.
    """
    loaded = store.load(session)
    record = loaded.record
    origin = f"session {session}, {record.title}"
    fits = fits_of_table(loaded.table, record.gpu, origin, simulated=record.source == "simulated")
    return _worded(fits, str(session))


def newest_fit(store: Store, gpu: str) -> list[ClockFit]:
    """Return the newest fit of a board of that name that was made here.

    Parameters
    ----------
    store : Store
        Where fits are kept.
    gpu : str
        Name of the board.

    Returns
    -------
    list of ClockFit
        One; empty if there is none.
    """
    newest = latest_fit(store, gpu)
    return [] if newest is None else [ClockFit(newest[0], None, newest[1])]


def _worded(clock_fits: list[ClockFit], source: str) -> list[ClockFit]:
    """Of several the command takes one, whichever that is."""
    return [replace(fit, words=(source,)) for fit in clock_fits] if len(clock_fits) == 1 else clock_fits


def _found(read: Callable[[], list[Points]], caps: Sequence[CapFit], origin: str) -> list[ClockFit]:
    """Raises the InputError of `read` where there are no power limits either."""
    try:
        return _paired(read(), caps, origin)
    except InputError:
        if not caps:
            raise
        return _paired([], caps, origin)


def _paired(series: Sequence[Points], caps: Sequence[CapFit], origin: str) -> list[ClockFit]:
    """One entry per load, its memory clocks in one; of many loads, or of power limits, the best of each board."""
    loads: dict[tuple[str, tuple[str, ...]], list[Points]] = {}
    for points in series:
        loads.setdefault((points.gpu, points.others), []).append(points)
    if len(loads) > _MOST:
        boards: dict[str, list[Points]] = {}
        for points in series:
            boards.setdefault(points.gpu, []).append(points)
        chosen = {gpu: choose(board) for gpu, board in boards.items()}
        loads = {(gpu, points.others): [points] for gpu, points in chosen.items()}
    kept = list(loads.values())[:_MOST]
    results = [ClockFit(fit_memory_clocks(entry), None, origin) for entry in kept]
    for gpu in dict.fromkeys(cap.gpu for cap in caps):
        best = most_telling([cap for cap in caps if cap.gpu == gpu])
        beside = _least_limited([(index, item[0].limit_w) for index, item in enumerate(kept) if item[0].gpu == gpu])
        if beside is None:
            results.append(ClockFit(None, best, origin))
        else:
            results[beside] = ClockFit(results[beside].fit, best, origin)
    return results


def _least_limited(loads: Sequence[tuple[int, float | None]]) -> int | None:
    """Of loads with the power limit each was measured under, the one that stands beside power limits, if any does.

    The only one, or the one under the highest limit where all others were measured under lower ones.
    """
    if len(loads) == 1:
        return loads[0][0]
    limits = [limit for _, limit in loads if limit is not None]
    highest = [at for at, limit in loads if limit is not None and limit == max(limits)]
    return highest[0] if len(limits) == len(loads) and len(highest) == 1 else None


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
    """Sweep the clocks under full load and fit.

    Parameters
    ----------
    gpu : Gpu
        The board.
    points : int, optional
        The most clocks to measure, at each memory clock.
    steered : bool, optional
        Whether each clock is the one that adds most; else they are evenly spread.
    memory_clocks : bool, optional
        Whether to sweep at each memory clock of the board; else at the one it has.
    on_progress : callable or None, optional
        Called after each clock with the number measured and the number in all; it starts again at each memory clock.
    stop : threading.Event or None, optional
        Ends the sweep when set.
    guard : DeviceGuard or None, optional
        Sets the board; None makes a guard that can set a simulated board only.

    Returns
    -------
    tuple of FrequencyFit and str
        The fit, and what it was fitted to in words.

    Raises
    ------
    InputError
        If the board reports no clocks of the kind to sweep.
    WattridgeError
        If the board cannot run or be set, or where `stop` ended the sweep.
    """
    series = []
    memories = gpu.memory_clocks_mhz() if memory_clocks else [None]
    if not memories:
        raise InputError("the board reports no memory clocks", gpu.info.label, "sweep at the memory clock that it has")
    if guard is not None:
        guard.require_unlocked(("graphics_clock_mhz", "memory_clock_mhz")[: 1 + memory_clocks])
    with running_board(gpu, guard) as (board, inside, load):
        for memory in memories:
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
    count = sum(len(item.clock_mhz) for item in series)
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
    """Sweep power limits under the same load as `fit_of_sweep`, and fit.

    Parameters
    ----------
    gpu : Gpu
        The board.
    points : int, optional
        How many power limits to measure.
    on_progress : callable or None, optional
        Called after each limit with the number measured and the number in all.
    stop : threading.Event or None, optional
        Ends the sweep when set.
    guard : DeviceGuard or None, optional
        Sets the board; None makes a guard that can set a simulated board only.

    Returns
    -------
    CapFit
        The fit.

    Raises
    ------
    WattridgeError
        If the board cannot run or be set, or where fewer than three limits were measured.
    """
    with running_board(gpu, guard) as (board, inside, load):
        sweep = sweep_limits(board, inside, points=points, load=load, on_progress=on_progress, stop=stop)
    swept = sweep.points
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
        effects=sweep.effects,
    )
    if fit is None and stop is not None and stop.is_set():
        raise WattridgeError("the sweep of power limits was stopped", gpu.info.label)
    if fit is None:
        what = "the sweep measured fewer than three different power limits"
        raise WattridgeError(what, gpu.info.label, "sweep more points, or compare clocks alone")
    return fit


@contextmanager
def running_board(gpu: Gpu, guard: DeviceGuard | None) -> Iterator[tuple[Gpu, DeviceGuard, Load | None]]:
    """Make a board ready to run a load. A real one runs multiply-adds on all its multiprocessors.

    Parameters
    ----------
    gpu : Gpu
        The board.
    guard : DeviceGuard or None
        Sets the board; None makes a guard that can set a simulated board only.

    Yields
    ------
    tuple of Gpu, DeviceGuard and Load or None
        The board, its guard, and the load; None is the one that `sweep_clocks` runs by default.

    Raises
    ------
    WattridgeError
        If the board may not be set, or no kernel can run on it from here.
    """
    guard = guard if guard is not None else DeviceGuard(gpu)
    if not gpu.info.live:
        yield gpu, guard, None
        return
    from ..runner.cuda.language import require_cuda
    from ..runner.cuda.square_wave import WaveGpu

    guard.open()
    require_cuda(gpu)
    with closing(WaveGpu(gpu)) as board:
        yield board, guard, board.wave_loads()[0]


def fit_of_session(session: LoadedSession) -> tuple[FrequencyFit, str]:
    """Fit to a stored session's measurements.

    Parameters
    ----------
    session : LoadedSession
        The session.

    Returns
    -------
    tuple of FrequencyFit and str
        As `fit_of_table` returns them.

    Raises
    ------
    InputError
        If no measurement has a clock and a power.
    """
    record = session.record
    return fit_of_table(session.table, record.title, record.gpu, record.source)


def caps_of_session(session: LoadedSession) -> list[CapFit]:
    """Fit the power limits of a stored session.

    Parameters
    ----------
    session : LoadedSession
        The session.

    Returns
    -------
    list of CapFit
        One per configuration with three limits or more; empty if it has none.
    """
    return caps_of_table(session.table, session.record.gpu, simulated=session.record.source == "simulated")


def fit_of_table(table: ResultTable, title: str, gpu: str, source: str) -> tuple[FrequencyFit, str]:
    """Fit to a session's measurements on a board.

    Parameters
    ----------
    table : ResultTable
        The measurements.
    title : str
        Title of the session.
    gpu : str
        Name of the board.
    source : str
        Where the readings are from, such as 'nvml' or 'simulated'; named in the words unless that is a real board.

    Returns
    -------
    tuple of FrequencyFit and str
        The fit, not identifiable where they hold too few clocks; and what it was fitted to in words.

    Raises
    ------
    InputError
        If no measurement has a clock and a power.
    """
    fit = fit_memory_clocks(series_of_table(table, gpu=gpu, simulated=source == "simulated"))
    return fit, f"session of {title}, {fit.series}{'' if source in LIVE else f', {source}'}"
