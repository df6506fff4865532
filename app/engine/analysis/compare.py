"""Several sessions or boards side by side: fronts, the gain of tuning for energy (S1 table 6.2), configurations
carried from one to the others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ..measurement import Configuration, Value
from ..objectives import Goal
from ..pareto import front, hypervolume, reference_point
from ..space.result_table import ResultTable
from .choosers import fastest, least_energy
from .costs import Costs, Floats, costs_of, values_of
from .iso_lines import Role, role_of

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Compared:
    """One session that takes part."""

    name: str
    gpu: str
    source: str  # nvml, simulated or recorded
    table: ResultTable


@dataclass(frozen=True, slots=True)
class Pick:
    """One configuration of one session. Speed and efficiency in the units of the comparison; NaN where unknown."""

    configuration: Configuration
    speed: float
    efficiency: float
    clock_mhz: float  # observed, else requested


@dataclass(frozen=True, slots=True)
class Side:
    """One session in the comparison. Changes are shares, from the fastest to the one of least energy."""

    name: str
    gpu: str
    source: str
    measured: int
    fastest: Pick
    frugal: Pick
    speed_change: float
    efficiency_change: float
    front_x: Floats  # the front, from the worst of the first goal to its best
    front_y: Floats
    hypervolume: float  # over the reference of all together
    share_of_joint: int  # points of the front of all together that are this session's


@dataclass(frozen=True, slots=True)
class Carried:
    """The kernel parameters that are best in one session, in another one at its own best clocks and caps.

    Ratios are over the least time and the least energy there: 1.05 is 5 % more.
    """

    origin: str
    chosen_for: str  # time or energy
    on: str
    parameters: Configuration
    time_ratio: float
    energy_ratio: float

    @property
    def words(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.parameters.items())


@dataclass(frozen=True, slots=True)
class MeanChange:
    """A change averaged over kernels and boards, as S1 sums up its table 6.2: each session counts once."""

    mean: float  # a share, NaN where no session has one
    deviation: float  # sample standard deviation of the sessions, a share; NaN below two
    count: int  # sessions whose change is known

    @classmethod
    def over(cls, changes: Sequence[float]) -> MeanChange:
        """Of the changes that are known."""
        known = np.asarray([change for change in changes if math.isfinite(change)])
        with np.errstate(all="ignore"):
            deviation = float(known.std(ddof=1)) if len(known) > 1 else math.nan
            return cls(float(known.mean()) if len(known) else math.nan, deviation, len(known))

    @property
    def words(self) -> str:
        """'+42.0 ± 24.1 %'; a dash where it is unknown."""
        if not math.isfinite(self.mean):
            return "–"
        return f"{100 * self.mean:+.1f} ± {100 * self.deviation:.1f} %".replace("± nan", "± –")


@dataclass(frozen=True, slots=True)
class Comparison:
    """All of them."""

    goals: tuple[Goal, Goal]
    speed_name: str
    efficiency_name: str
    sides: tuple[Side, ...]
    carried: tuple[Carried, ...]
    mean_speed_change: MeanChange
    mean_efficiency_change: MeanChange

    @property
    def over(self) -> str:
        """What the means are over: '4 sessions on 2 boards, 1 of them simulated'."""
        boards = len({(side.gpu, side.source == "simulated") for side in self.sides})
        simulated = sum(side.source == "simulated" for side in self.sides)
        said = f"{len(self.sides)} sessions on {boards} board{'s' if boards > 1 else ''}"
        if simulated == len(self.sides):
            return f"{said}, all simulated"
        return f"{said}, {simulated} of them simulated" if simulated else said


def compare_sessions(sessions: Sequence[Compared], goals: Sequence[Goal] = ()) -> Comparison:
    """Put sessions side by side. The goals of the fronts are those given, else figures that all of them have.

    Raises InputError with fewer than two sessions, without common figures, or where one has nothing that worked.
    """
    if len(sessions) < 2:
        raise InputError("one session has nothing to be compared with", "compare", "name two or more")
    common = [name for name in sessions[0].table.value_names if all(name in s.table.value_names for s in sessions)]
    speed_name = next((name for name in common if role_of(name) is Role.SPEED), "1/s")
    efficiency_name = next((name for name in common if role_of(name) is Role.EFFICIENCY), "1/J")
    both = _goals(common, speed_name, efficiency_name, goals)
    costs = [costs_of(session.table) for session in sessions]
    picked = [(fastest(each.time_s, each.energy_j), least_energy(each.time_s, each.energy_j)) for each in costs]
    clouds = [np.column_stack([values_of(s.table, goal.name) for goal in both]) for s in sessions]
    maximise = [goal.maximise for goal in both]
    reference = reference_point(np.concatenate(clouds), maximise)
    owner = np.repeat(np.arange(len(clouds)), [len(cloud) for cloud in clouds])
    joint = owner[front(np.concatenate(clouds), maximise)]
    sides = []
    for at, (session, cost, cloud, (first, frugal)) in enumerate(zip(sessions, costs, clouds, picked, strict=True)):
        if first is None or frugal is None:
            raise InputError(
                f"{session.name} has no time and energy", session.gpu, "compare sessions that measured both"
            )
        speed, efficiency = (
            _figure(session, speed_name, 1 / cost.time_s),
            _figure(session, efficiency_name, 1 / cost.energy_j),
        )
        picks = [_pick(session.table, index, speed, efficiency) for index in (first, frugal)]
        own = front(cloud, maximise)
        sides.append(
            Side(
                name=session.name,
                gpu=session.gpu,
                source=session.source,
                measured=len(session.table),
                fastest=picks[0],
                frugal=picks[1],
                speed_change=_change(picks[0].speed, picks[1].speed),
                efficiency_change=_change(picks[0].efficiency, picks[1].efficiency),
                front_x=cloud[own, 0],
                front_y=cloud[own, 1],
                hypervolume=hypervolume(cloud, maximise, reference),
                share_of_joint=int((joint == at).sum()),
            )
        )
    return Comparison(
        both,
        speed_name,
        efficiency_name,
        tuple(sides),
        tuple(_carried(sessions, costs, picked)),
        MeanChange.over([side.speed_change for side in sides]),
        MeanChange.over([side.efficiency_change for side in sides]),
    )


def _goals(common: Sequence[str], speed: str, efficiency: str, given: Sequence[Goal]) -> tuple[Goal, Goal]:
    if len(given) >= 2:
        missing = next((goal.name for goal in given if goal.name not in common), None)
        if missing is not None:
            raise InputError(f"not every session has '{missing}'", "compare", f"common: {', '.join(common)}")
        return given[0], given[1]
    if speed in common and efficiency in common:
        return Goal(speed, True), Goal(efficiency, True)
    if "time_s" in common and "energy_j" in common:
        return Goal("time_s", False), Goal("energy_j", False)
    raise InputError("the sessions have no two figures in common", "compare", "name two that they have: --front")


def _figure(session: Compared, name: str, instead: Floats) -> Floats:
    return values_of(session.table, name) if name in session.table.value_names else instead


def _pick(table: ResultTable, index: int, speed: Floats, efficiency: Floats) -> Pick:
    measurement = table.measurement(index)
    told = [measurement.observed_clock_mhz, measurement.values.get("observed_clock_mhz", math.nan)]
    told += [
        float(value)
        for name, value in measurement.configuration.items()
        if name in ("graphics_clock_mhz", "nvml_gr_clock") and isinstance(value, int | float)
    ]
    clock = next((value for value in told if math.isfinite(value)), math.nan)
    return Pick(dict(measurement.configuration), float(speed[index]), float(efficiency[index]), clock)


def _carried(
    sessions: Sequence[Compared], costs: Sequence[Costs], picked: Sequence[tuple[int | None, int | None]]
) -> list[Carried]:
    found = []
    best = [(float(np.nanmin(cost.time_s)), float(np.nanmin(cost.energy_j))) for cost in costs]
    for origin, (first, frugal) in zip(sessions, picked, strict=True):
        for chosen_for, index in (("time", first), ("energy", frugal)):
            assert index is not None
            wanted = _parameters(origin.table, index)
            for other, cost, (least_s, least_j) in zip(sessions, costs, best, strict=True):
                rows = None if other is origin else _rows_with(other.table, wanted)
                if rows is None or not np.isfinite(cost.time_s[rows] + cost.energy_j[rows]).any():
                    continue
                time_ratio = float(np.nanmin(cost.time_s[rows])) / least_s
                energy_ratio = float(np.nanmin(cost.energy_j[rows])) / least_j
                found.append(Carried(_label(origin), chosen_for, _label(other), wanted, time_ratio, energy_ratio))
    return found


def _change(before: float, after: float) -> float:
    return after / before - 1 if before else math.nan


def _label(session: Compared) -> str:
    return f"{session.gpu}, {session.name}"


def _parameters(table: ResultTable, index: int) -> dict[str, Value]:
    """What the kernel is compiled with: the configuration without clocks and caps."""
    settings = {parameter.name for parameter in table.space.parameters if parameter.device_setting}
    return {name: value for name, value in table.measurement(index).configuration.items() if name not in settings}


def _rows_with(table: ResultTable, wanted: Configuration) -> Indices | None:
    """Which measurements have those kernel parameters, at whatever clock; None where none can."""
    kernel = {parameter.name: parameter for parameter in table.space.parameters if not parameter.device_setting}
    if set(kernel) != set(wanted):
        return None
    rows = table.rows()[: len(table)]
    same = np.ones(len(rows), dtype=np.bool_)
    for axis, parameter in enumerate(table.space.parameters):
        if parameter.device_setting:
            continue
        code = next((at for at, value in enumerate(parameter.values) if value == wanted[parameter.name]), None)
        if code is None:
            return None
        same &= table.space.codes[rows, axis] == code
    return np.flatnonzero(same) if same.any() else None
