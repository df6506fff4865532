"""The ways to tune for energy [Schoonhoven2024, section 6.5.1]: which rows each measures, and which one it chooses.

Each is a recipe, a generator over the rows of a space of parameters and graphics clocks: it yields rows, is sent their
results, and returns the row it chooses. It measures nothing: a session runs one (strategy `staged`), and a session
that measured every row answers all of them at once (`compare_methods`).

Here they are also compared side by side, on a stored session, a recording or measurements, and the model-steered way
gets its clocks near the ridge, from a sweep of the board or of one recorded configuration (`Steering`).
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

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
from .arrays import Floats, Indices
from .clock_fits import running_board
from .fit.design import next_clock
from .fit.frequency import MINIMUM_CLOCKS, FrequencyFit, fit_frequency_model, fit_points
from .fit.points import CLOCK_SETTINGS, Points
from .sweep import FIRST_CLOCKS, spread_clocks, sweep_clocks

if TYPE_CHECKING:
    from ..store.database import Store


@dataclass(frozen=True, slots=True)
class Seen:
    """The result of one row: time s and energy J of one launch; inf if it failed."""

    row: int
    time_s: float
    energy_j: float


Recipe = Generator[list[int], Sequence[Seen], int | None]
Key = Callable[[Seen], float]
Search = Callable[[Indices, Key], Generator[list[int], Sequence[Seen], list[Seen]]]

RACE_TO_IDLE: Final = "race_to_idle"
METHODS: Final[Mapping[str, str]] = {
    RACE_TO_IDLE: "Race to idle",
    "energy_at_max_clock": "Energy to solution, highest clock",
    "race_to_idle_then_clocks": "Race to idle, then clocks",
    "energy_at_base_clock_then_clocks": "Energy to solution at base clock, then clocks",
    "global_energy": "Global energy to solution",
    "model_steered": "Model-steered",
}
# Base clocks of data sheets, MHz, by a part of the board's name. NVML does not report them.
_BASE_CLOCKS: Final = {
    "A100": 765,
    "A4000": 735,
    "A6000": 1410,
    "V100": 1230,
    "TITAN RTX": 1350,
    "H200": 1365,
    "K20X": 732,
    "RTX 4000 ADA": 1500,
}


def energy_of(values: Mapping[str, float]) -> float:
    """Energy of a launch in J, measured or from power and time; inf if neither is known."""
    energy = values.get("energy_j", math.nan)
    if math.isnan(energy):
        energy = values.get("power_w", math.nan) * values.get("time_s", math.nan)
    return math.inf if math.isnan(energy) else energy


def seen_of(row: int, ok: bool, values: Mapping[str, float]) -> Seen:
    """What a recipe is sent of a row."""
    time_s = values.get("time_s", math.nan)
    if not ok or math.isnan(time_s):
        return Seen(row, math.inf, math.inf)
    return Seen(row, time_s, energy_of(values))


class Clocks:
    """The rows of a space by their graphics clock. Raises InputError if it has no such dimension, or one value."""

    def __init__(self, space: SearchSpace) -> None:
        setting = next((name for name in CLOCK_SETTINGS if name in space.names), None)
        if setting is None:
            raise InputError(
                "the space has no graphics clocks", "methods", "add graphics_clock_mhz to [device_settings]"
            )
        self.setting = setting
        self.of_row: Floats = space.numbers(setting)  # NaN where it is untouched
        self.rows: Indices = np.flatnonzero(np.isfinite(self.of_row))  # that have a clock
        self.values: Floats = np.unique(self.of_row[self.rows])
        if len(self.values) < 2:
            raise InputError("the space has one graphics clock", "methods", "give it several")
        self._others = np.delete(space.codes, space.names.index(setting), axis=1)

    @property
    def highest(self) -> float:
        """The highest clock in MHz."""
        return float(self.values[-1])

    def nearest(self, clock_mhz: float) -> float:
        """The clock of the space nearest to that."""
        return float(self.values[np.abs(self.values - clock_mhz).argmin()])

    def at(self, clock_mhz: float) -> Indices:
        """Every row at that clock."""
        return np.flatnonzero(self.of_row == clock_mhz)

    def near(self, fit: FrequencyFit) -> tuple[float, ...]:
        """The clocks within 10 % of the model's optimum, and the one of its least energy [Schoonhoven2024, 6.5.4]."""
        assert fit.range_mhz is not None
        low, high = fit.range_mhz
        inside = {float(clock) for clock in self.values if low <= clock <= high}
        sampled = fit.clock_mhz[fit.used]
        clipped = np.clip(self.values, sampled.min(), sampled.max())
        least = float(self.values[fit.energy(clipped).argmin()])
        return tuple(sorted(inside | {least}))

    def alike(self, row: int) -> Indices:
        """The rows of a clock that differ from one in nothing but the clock, itself among them."""
        return np.flatnonzero((self._others == self._others[row]).all(axis=1) & np.isfinite(self.of_row))


def base_clock_mhz(gpu: str, clocks: Clocks) -> float:
    """The clock of the space nearest to the board's base clock; to 60 % of the highest if that is not known."""
    clock_mhz = next((clock for name, clock in _BASE_CLOCKS.items() if name in gpu.upper()), None)
    return clocks.nearest(clock_mhz if clock_mhz is not None else 0.6 * clocks.highest)


def everything(rows: Indices, _key: Key) -> Generator[list[int], Sequence[Seen], list[Seen]]:
    """All of the rows: the search of a recipe that leaves nothing out."""
    return list((yield rows.tolist()))


def recipe(
    method: str,
    clocks: Clocks,
    *,
    base_mhz: float,
    near_mhz: Sequence[float] | None = None,
    search: Search = everything,
) -> Recipe:
    """The recipe of a method. `near_mhz` are the clocks near the ridge: the model-steered one needs them.

    `search` finds the best of some rows by time or energy. Raises InputError for an unknown method.
    """
    if method not in METHODS:
        raise InputError(f"unknown method '{method}'", "methods", f"one of {', '.join(METHODS)}")
    if method == "model_steered" and near_mhz is None:
        raise InputError("the model gives no clocks", "model_steered", "sweep the clocks first")
    highest = clocks.at(clocks.highest)
    rows, key, then_clocks = {  # what is searched, for what, and whether the clock of the best is chosen afterwards
        RACE_TO_IDLE: (highest, _time, False),
        "energy_at_max_clock": (highest, _energy, False),
        "race_to_idle_then_clocks": (highest, _time, True),
        "energy_at_base_clock_then_clocks": (clocks.at(base_mhz), _energy, True),
        "global_energy": (clocks.rows, _energy, False),
        "model_steered": (np.flatnonzero(np.isin(clocks.of_row, near_mhz or ())), _energy, False),
    }[method]
    first = _best((yield from search(rows, key)), key)
    if first is None or not then_clocks:
        return first
    return _best((yield clocks.alike(first).tolist()), _energy)


_time: Final[Key] = attrgetter("time_s")
_energy: Final[Key] = attrgetter("energy_j")


def _best(seen: Sequence[Seen], key: Key) -> int | None:
    best = min(seen, key=key, default=None)
    return None if best is None or math.isinf(key(best)) else best.row


# --- side by side -----------------------------------------------------------------------------------------------------


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
        """The same with the changes over race to idle."""
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
    base_mhz: float
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
    """Every method on the same measurements of a space: each is answered from them, and counted as if alone.

    Raises InputError if a row that a method asks for was not measured, or where nothing worked.
    """
    clocks = Clocks(space)
    base = base_clock_mhz(gpu, clocks) if base_mhz is None else clocks.nearest(base_mhz)
    near = clocks.near(steering.fit) if steering is not None else None
    names = _figures(measured)
    notes = [f"base clock {base:.0f} MHz"]
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
    """From a sweep of the board under full load; None if its points show no optimum. Raises WattridgeError."""
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
    """From existing measurements: one good configuration at a few clocks; None if they show no optimum.

    The good one is the most efficient of a sample at the highest clock, which counts as measured.
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
    """Of a stored session. Raises InputError if it did not measure what the methods ask for."""
    loaded = store.load(session)
    record = loaded.record
    return methods_of_table(
        loaded.table, gpu=record.gpu, title=record.title, source=record.source, base_mhz=base_mhz, methods=methods
    )


def methods_of_recording(
    path: Path, *, base_mhz: float | None = None, methods: Sequence[str] = tuple(METHODS)
) -> Methods:
    """Of a recording, whatever its format. Raises InputError as `methods_of_store` does."""
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
    """Of measurements; the model of the clocks is fitted to some of them, as if those alone had been measured."""
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
    """The measurements by their row of the space."""
    return {item.row: item for item in (table.measurement(index) for index in range(len(table)))}
