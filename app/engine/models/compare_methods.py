"""The ways to tune for energy side by side, on a stored session, a recording or measurements.

The model-steered way gets its clocks near the ridge from a sweep of the board or of one recorded configuration
(`Steering`).
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ...base.errors import InputError, WattridgeError
from ...base.formatting import change
from ...base.records import Count, Source
from ...sensors.gpu import Gpu
from ..control.guard import DeviceGuard
from ..results.measurement import Configuration, Measurement, State
from ..results.settings import HIGHEST_CLOCK, OWN_STATE, UNTOUCHED
from ..space.result_table import ResultTable
from ..space.search_space import SearchSpace
from .boards_file import base_clock_named
from .clock_fits import running_board
from .fit.design import next_clock
from .fit.frequency import MINIMUM_CLOCKS, FrequencyFit, fit_frequency_model, fit_points
from .fit.points import Points
from .sweep import FIRST_CLOCKS, spread_clocks, sweep_clocks
from .tuning_methods import (
    AT_BASE_CLOCK,
    METHODS,
    RACE_TO_IDLE,
    Clocks,
    Recipe,
    Seen,
    energy_of,
    needs_base_clock,
    recipe,
    seen_of,
)

if TYPE_CHECKING:
    from ..store.database import Store


@dataclass(frozen=True, slots=True)
class Steering:
    """The model of the clocks, and what it took to find it."""

    fit: FrequencyFit
    measurements: int
    seconds: float
    swept: str  # in words

    @property
    def words(self) -> str:
        """The optimum and where it is from, in a phrase."""
        edge = "" if self.fit.optimum_bracketed else " (not bracketed)"
        return f"model: optimum {self.fit.optimum_mhz:.0f} MHz{edge} from {self.swept}"


@dataclass(frozen=True, slots=True)
class MethodResult:
    """What a method chose and what it took; a change is over race to idle, a share (0.1 is 10 % more)."""

    method: str
    label: str
    configuration: Configuration
    clock_mhz: float
    energy_j: float
    time_s: float
    efficiency: float  # work per energy, in the unit of `efficiency_name`
    speed: float
    efficiency_change: float
    speed_change: float
    energy_change: float
    measurements: Count  # of configurations, the sweep of the model counted
    seconds: float
    reduction: float  # of the measurements over the whole space

    def against(self, race: MethodResult) -> MethodResult:
        """State the changes over race to idle.

        Parameters
        ----------
        race : MethodResult
            What race to idle chose on the same measurements.

        Returns
        -------
        MethodResult
            The same result with the changes of efficiency, speed and energy, as shares.
        """
        return replace(
            self,
            efficiency_change=self.efficiency / race.efficiency - 1,
            speed_change=self.speed / race.speed - 1,
            energy_change=self.energy_j / race.energy_j - 1,
        )


@dataclass(frozen=True, slots=True)
class Methods:
    """All methods side by side."""

    IN_JSON: ClassVar = ("simulated",)

    gpu: str
    title: str
    source: Source
    clocks_mhz: tuple[float, ...]
    base_mhz: float | None  # None where it is not known
    size: Count  # of the whole space
    efficiency_name: str
    speed_name: str
    results: tuple[MethodResult, ...]
    notes: tuple[str, ...] = ()

    @property
    def simulated(self) -> bool:
        """Whether the measurements are simulated."""
        return self.source == "simulated"


def compare_methods(
    space: SearchSpace,
    measured: Mapping[int, Measurement],
    *,
    gpu: str,
    title: str,
    source: str,
    steering: Steering | None,
    base_mhz: float | None = None,
    methods: Sequence[str] = tuple(METHODS),
) -> Methods:
    """Compare methods on the same measurements of a space: each is answered from them, and counted as if alone.

    Parameters
    ----------
    space : SearchSpace
        The space, with several graphics clocks.
    measured : mapping of Measurement
        The measurements by their row of the space.
    gpu : str
        Name of the board.
    title : str
        Title of the session or recording.
    source : str
        Where the measurements are from, such as 'nvml' or 'simulated'.
    steering : Steering or None
        The model of the clocks. Without one the model-steered method is left out, with a note.
    base_mhz : float or None, optional
        The base clock, MHz; the nearest clock of the space counts. None for that of the
        board's data sheet; the method that begins there is left out, with a note, where none is known.
    methods : sequence of str, optional
        Which of `METHODS` to show. Race to idle is followed in any case, for the changes over it.

    Returns
    -------
    compared : Methods
        One result per method, in the given order; race to idle first, if it is among them.

    Raises
    ------
    InputError
        If the space does not have several graphics clocks, a method is unknown, a row that a method asks for was not
        measured, or nothing worked.
    """
    clocks = Clocks(space)
    known_mhz = base_clock_named(gpu) if base_mhz is None else base_mhz
    base = None if known_mhz is None else clocks.nearest(known_mhz)
    near = clocks.near(steering.fit) if steering is not None else None
    names = _figures(measured)
    notes = [] if known_mhz is None else [f"base clock {known_mhz:.0f} MHz, the nearest clock {base:.0f} MHz"]
    if base is None and AT_BASE_CLOCK in methods:
        notes.append(f"{METHODS[AT_BASE_CLOCK].lower()} is left out: {needs_base_clock(gpu).what} (--base-clock)")
        methods = [method for method in methods if method != AT_BASE_CLOCK]
    if steering is not None:
        notes.append(f"{steering.words}; searched {', '.join(f'{clock:.0f}' for clock in near or ())} MHz")
    elif "model_steered" in methods:
        notes.append("model-steered is left out: no model of the clocks")
        methods = [method for method in methods if method != "model_steered"]
    results: dict[str, MethodResult] = {}
    for method in dict.fromkeys((RACE_TO_IDLE, *methods)):
        row, asked = _follow(recipe(method, clocks, base_mhz=base, near_mhz=near), measured)
        swept = steering if method == "model_steered" else None
        results[method] = _result(method, clocks, measured, row, asked, names, swept)
    race = results[RACE_TO_IDLE]
    notes.append(_against_untouched(race, space, measured))
    return Methods(
        gpu=gpu,
        title=title,
        source=source,
        clocks_mhz=tuple(clocks.values.tolist()),
        base_mhz=base,
        size=len(clocks.rows),
        efficiency_name=names[0],
        speed_name=names[1],
        results=tuple(item.against(race) for method, item in results.items() if method in methods),
        notes=tuple(notes),
    )


def _against_untouched(race: MethodResult, space: SearchSpace, measured: Mapping[int, Measurement]) -> str:
    """What race to idle, which the others are compared with, costs against the board's own state."""
    settings = {parameter.name: UNTOUCHED for parameter in space.parameters if parameter.device_setting}
    own = measured.get(-1 if (row := space.row_of({**race.configuration, **settings})) is None else row)
    if own is None or own.state is not State.OK:
        return f"race to idle is at {HIGHEST_CLOCK}"
    energy = change(race.energy_j / energy_of(own.values))
    return f"race to idle has {energy} energy and {change(race.time_s / own.values['time_s'])} time against {OWN_STATE}"


def _result(
    method: str,
    clocks: Clocks,
    measured: Mapping[int, Measurement],
    row: int,
    asked: set[int],
    names: tuple[str, str],
    steering: Steering | None,
) -> MethodResult:
    """What one method chose, and what it took with the sweep of the model."""
    values, measurements = measured[row].values, len(asked) + (steering.measurements if steering else 0)
    energy, time_s = energy_of(values), values["time_s"]
    return MethodResult(
        method=method,
        label=METHODS[method],
        configuration=measured[row].configuration,
        clock_mhz=float(clocks.of_row[row]),
        energy_j=energy,
        time_s=time_s,
        efficiency=values.get(names[0], 1 / energy),
        speed=values.get(names[1], 1 / time_s),
        efficiency_change=0.0,
        speed_change=0.0,
        energy_change=0.0,
        measurements=measurements,
        seconds=math.fsum(measured[row].cost_s for row in asked) + (steering.seconds if steering else 0),
        reduction=1 - measurements / len(clocks.rows),
    )


def _follow(steps: Recipe, measured: Mapping[int, Measurement]) -> tuple[int, set[int]]:
    """The row a recipe chooses, and every row it asked for."""
    asked: set[int] = set()
    try:
        rows = next(steps)
        while True:
            missing = [row for row in rows if row not in measured]
            if missing:
                what = f"{len(missing)} of {len(rows)} configurations that a method needs were not measured"
                raise InputError(what, "methods", "measure the whole space: strategy brute_force, no budget")
            asked.update(rows)
            rows = steps.send([seen_of(row, measured[row].state is State.OK, measured[row].values) for row in rows])
    except StopIteration as end:
        if end.value is None:
            raise InputError("no configuration worked", "methods", "see the failures") from None
        return int(end.value), asked


def _figures(measured: Mapping[int, Measurement]) -> tuple[str, str]:
    """The names of a figure of efficiency and one of speed that were measured; of plain ones if there is none."""
    values: Mapping[str, float] = next((m.values for m in measured.values() if m.state is State.OK), {})
    efficient = next((n for n in values if n.endswith(("/W", "/J"))), "1/J")
    fast = next((n for n in values if n.endswith("/s") or n in ("GFLOPS", "TFLOPS", "GOPS", "TOPS")), "1/s")
    return efficient, fast


SWEEP_CLOCKS = 8
SAMPLE = 16  # configurations of a recording, of which the best is swept


def steer_by_sweep(
    gpu: Gpu,
    *,
    points: int = SWEEP_CLOCKS,
    guard: DeviceGuard | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    stop: threading.Event | None = None,
) -> Steering | None:
    """Fit the model of the clocks to a sweep of the board under full load.

    Parameters
    ----------
    gpu : Gpu
        The board.
    points : int, optional
        Most clocks to measure.
    guard : DeviceGuard or None, optional
        Sets the clocks and restores them; None for one of its own.
    on_progress : callable or None, optional
        Called with the number of clocks measured, and of how many.
    stop : threading.Event or None, optional
        Ends the sweep when it is set.

    Returns
    -------
    Steering or None
        None if the points show no optimum.

    Raises
    ------
    WattridgeError
        If the board cannot run or be set, or the sweep was stopped.
    """
    with running_board(gpu, guard) as (board, inside, load):
        sweep = sweep_clocks(board, inside, points=points, steered=True, load=load, on_progress=on_progress, stop=stop)
    if stop is not None and stop.is_set():
        raise WattridgeError("the clock sweep was stopped", gpu.info.label)
    fit = fit_points(sweep.points)
    if fit.range_mhz is None:
        return None
    return Steering(fit, len(sweep), sweep.seconds, f"a sweep of {len(sweep)} clocks, {sweep.points.series}")


def steer_by_measurements(
    space: SearchSpace, measured: Mapping[int, Measurement], *, points: int = SWEEP_CLOCKS, seed: int = 0
) -> Steering | None:
    """Fit the model of the clocks to existing measurements: one good configuration at a few clocks.

    The good one is the most efficient of a sample at the highest clock, which counts as measured.

    Parameters
    ----------
    space : SearchSpace
        The space, with several graphics clocks.
    measured : mapping of Measurement
        The measurements by their row of the space.
    points : int, optional
        Most clocks to use.
    seed : int, optional
        Seed of the sample.

    Returns
    -------
    Steering or None
        None if the measurements show no optimum, nothing in the sample worked, or the space has too few clocks for the
        model.

    Raises
    ------
    InputError
        If the space does not have several graphics clocks.
    """
    clocks = Clocks(space)
    if len(clocks.values) < MINIMUM_CLOCKS:
        return None
    at_top = np.random.default_rng(seed).permutation(clocks.at(clocks.highest))[:SAMPLE].tolist()
    sample = [_seen(row, measured) for row in at_top]
    best = min(sample, key=lambda seen: seen.energy_j, default=None)
    if best is None or best.energy_j == math.inf:
        return None
    row_at = {float(clocks.of_row[row]): int(row) for row in clocks.alike(best.row)}
    waiting: list[float] = [float(c) for c in spread_clocks([int(c) for c in row_at], FIRST_CLOCKS)]
    swept: dict[float, Measurement] = {}
    while waiting:
        clock = waiting.pop()
        measurement = measured.get(row_at.get(clock, -1))
        if measurement is not None and measurement.state is State.OK and math.isfinite(energy_of(measurement.values)):
            swept[clock] = measurement
        if not waiting and FIRST_CLOCKS <= len(swept) < points:
            chosen = next_clock(_series(swept, row_at))
            waiting = [] if chosen is None or chosen in swept or chosen not in row_at else [chosen]
    fit = fit_frequency_model(_series(swept, row_at))
    if fit.range_mhz is None:
        return None
    used = {*at_top, *(row_at[clock] for clock in swept)}
    seconds = sum(measured[row].cost_s for row in used if row in measured)
    return Steering(fit, len(used), seconds, f"{len(swept)} clocks of one configuration, the best of {len(at_top)}")


def _seen(row: int, measured: Mapping[int, Measurement]) -> Seen:
    measurement = measured.get(row)
    return seen_of(
        row,
        measurement is not None and measurement.state is State.OK,
        measurement.values if measurement is not None else {},
    )


def _series(swept: Mapping[float, Measurement], supported: Iterable[float]) -> Points:
    """The measurements by clock, ascending."""
    clock = np.asarray(sorted(swept))
    energy = np.asarray([energy_of(swept[c].values) for c in clock.tolist()])
    rate = 1.0 / np.asarray([swept[c].values["time_s"] for c in clock.tolist()])
    return Points(clock, energy * rate, rate, supported_mhz=tuple(supported))


def methods_of_store(
    store: Store, session: int, *, base_mhz: float | None = None, methods: Sequence[str] = tuple(METHODS)
) -> Methods:
    """Compare methods on a stored session.

    Parameters
    ----------
    store : Store
        The stored sessions.
    session : int
        Number of the session.
    base_mhz : float or None, optional
        As in `compare_methods`.
    methods : sequence of str, optional
        As in `compare_methods`.

    Returns
    -------
    compared : Methods
        As `compare_methods`.

    Raises
    ------
    InputError
        If there is no such session, or it did not measure what the methods ask for.
    """
    loaded = store.load(session)
    record = loaded.record
    return methods_of_table(
        loaded.table, gpu=record.gpu, title=record.title, source=record.source, base_mhz=base_mhz, methods=methods
    )


def methods_of_recording(
    path: Path, *, base_mhz: float | None = None, methods: Sequence[str] = tuple(METHODS)
) -> Methods:
    """Compare methods on a recording, whatever its format.

    Parameters
    ----------
    path : Path
        The recording.
    base_mhz : float or None, optional
        As in `compare_methods`.
    methods : sequence of str, optional
        As in `compare_methods`.

    Returns
    -------
    compared : Methods
        As `compare_methods`.

    Raises
    ------
    InputError
        If the file is no recording, or does not hold what the methods ask for.
    """
    from ..formats.read import read_recording

    recording = read_recording(path)
    return methods_of_table(
        recording.table(),
        gpu=recording.device,
        title=recording.kernel or path.name,
        source="simulated" if recording.simulated else "recorded",
        base_mhz=base_mhz,
        methods=methods,
    )


def methods_of_table(
    table: ResultTable,
    *,
    gpu: str,
    title: str,
    source: str,
    base_mhz: float | None = None,
    methods: Sequence[str] = tuple(METHODS),
) -> Methods:
    """Compare methods on measurements.

    The model of the clocks is fitted to some of them, as if those alone had been measured.

    Parameters
    ----------
    table : ResultTable
        The measurements, with their space.
    gpu : str
        Name of the board.
    title : str
        Title of the session or recording.
    source : str
        Where the measurements are from, such as 'nvml' or 'simulated'.
    base_mhz : float or None, optional
        As in `compare_methods`.
    methods : sequence of str, optional
        As in `compare_methods`.

    Returns
    -------
    compared : Methods
        As `compare_methods`.

    Raises
    ------
    InputError
        As `compare_methods`.
    """
    measured = measured_rows(table)
    return compare_methods(
        table.space,
        measured,
        gpu=gpu,
        title=title,
        source=source,
        steering=steer_by_measurements(table.space, measured) if "model_steered" in methods else None,
        base_mhz=base_mhz,
        methods=methods,
    )


def measured_rows(table: ResultTable) -> Mapping[int, Measurement]:
    """The measurements by their row of the space.

    Parameters
    ----------
    table : ResultTable
        The measurements.

    Returns
    -------
    mapping of Measurement
        Of a row that was measured twice, the last.
    """
    return {item.row: item for item in (table.measurement(index) for index in range(len(table)))}
