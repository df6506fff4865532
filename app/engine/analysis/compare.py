"""Several sessions side by side: fronts, the gain of tuning for energy, configurations carried over."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

import numpy as np

from ...base.errors import InputError
from ...base.formatting import UNKNOWN
from ...base.records import Count, Source
from ..formats.table_columns import KERNELS
from ..models.arrays import Floats, Indices
from ..models.fit.points import CLOCK_SETTINGS
from ..results.measurement import FEWEST, Configuration, Measurement, Value
from ..results.objectives import Goal, Limit
from ..results.pareto import front, hypervolume, reference_point
from ..space.repeats import fold
from ..space.result_table import ResultTable
from ..space.within_limits import feasible
from .choosers import fastest, least_energy
from .costs import Costs, costs_of, values_of, within_limits
from .iso_lines import Role, role_of
from .plane import customary_goals
from .tradeoff import relative_change


@dataclass(frozen=True, slots=True)
class Compared:
    """One session of a comparison."""

    name: str
    gpu: str
    source: Source
    table: ResultTable
    kernel: str = ""  # what was tuned
    board: str = ""  # UUID of the board; empty if it is not known, or several shared the session
    work: str = ""  # the problem size, where it is known
    condition: str = ""  # thermal, that its energies are stated for; empty if they are as drawn
    limits: tuple[Limit, ...] = ()  # of its objective: what breaks one is not compared
    of_table: bool = False  # of another tool, where a parameter named 'kernel' is what ran

    def by_kernel(self) -> list[Compared]:
        """Split the table of another tool by its column of kernels; a list of this alone if it has none."""
        name = next((name for name in self.table.space.names if self.of_table and name in KERNELS), None)
        parts: dict[str, list[Measurement]] = {}
        for measurement in map(self.table.measurement, range(len(self.table) if name else 0)):
            parts.setdefault(str(measurement.configuration[name or ""]), []).append(measurement)
        return [self._part(kernel, measured) for kernel, measured in parts.items()] or [self]

    def _part(self, kernel: str, measured: Sequence[Measurement]) -> Compared:
        """Return the part of one kernel: its measurements in a space of only its configurations."""
        rows = np.unique([measurement.row for measurement in measured])
        table = ResultTable(self.table.space.subset(rows))
        table.extend(replace(measurement, row=int(np.searchsorted(rows, measurement.row))) for measurement in measured)
        return replace(self, name=f"{self.name}, {kernel}", kernel=kernel, table=table)


@dataclass(frozen=True, slots=True)
class Pick:
    """One configuration of one session. Speed and efficiency in the units of the comparison; NaN if unknown."""

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
    kernel: str
    board: str
    measured: Count
    fastest: Pick
    frugal: Pick
    speed_change: float
    efficiency_change: float
    front_x: Floats  # the front, from the worst of the first goal to its best
    front_y: Floats
    hypervolume: float  # over the reference of all together
    share_of_joint: int  # points of the front of all together that are this session's
    limits: tuple[str, ...]  # that all of these keep

    @property
    def label(self) -> str:
        """Its board, with where the figures come from unless they were measured on it."""
        return _marked(self.gpu, self.source)


@dataclass(frozen=True, slots=True)
class Carried:
    """The kernel parameters that are best in one session, in another one at the best clocks and caps measured there.

    Ratios are over the least time and the least energy there: 1.05 is 5 % more.
    """

    origin: str
    chosen_for: str  # time or energy
    on: str
    parameters: Configuration
    time_ratio: float
    energy_ratio: float
    at_most: bool  # others of that session were measured at clocks and caps at which these were not

    @property
    def words(self) -> str:
        """The parameters in one line: 'tile=4, unroll=2'."""
        return ", ".join(f"{name}={value}" for name, value in self.parameters.items())


@dataclass(frozen=True, slots=True)
class MeanChange:
    """A change averaged over kernels and boards, where each session counts once."""

    mean: float  # a share; NaN, as the deviation, of fewer than FEWEST sessions
    deviation: float  # sample standard deviation of the sessions, a share
    count: Count  # sessions with a known change

    @classmethod
    def over(cls, changes: Sequence[float], fewest: int = FEWEST) -> MeanChange:
        """Average the changes that are known.

        Parameters
        ----------
        changes : sequence of float
            Changes as shares, one for each session; NaN if unknown.
        fewest : int, optional
            Number of known changes below which there is no mean.

        Returns
        -------
        MeanChange
            Mean and deviation are NaN for fewer than `fewest` known changes, the deviation also for a single one.
        """
        finite = [change for change in changes if math.isfinite(change)]
        mean = fmean(finite) if len(finite) >= fewest else math.nan
        return cls(mean, stdev(finite) if len(finite) >= max(2, fewest) else math.nan, len(finite))

    @property
    def words(self) -> str:
        """'+42.0 ± 24.1 %', or 'too few'; a dash if no change is known."""
        if self.count < FEWEST:
            return "too few" if self.count else UNKNOWN
        return f"{100 * self.mean:+.1f} ± {100 * self.deviation:.1f} %"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The sessions side by side, their common goals, and the means over them."""

    goals: tuple[Goal, Goal]
    speed_name: str
    efficiency_name: str
    sides: tuple[Side, ...]
    carried: tuple[Carried, ...]
    mean_speed_change: MeanChange
    mean_efficiency_change: MeanChange
    conditions: tuple[str, ...] = ()  # thermal ones that the energies are stated for, each once

    @property
    def over(self) -> str:
        """What the means are over: '4 sessions on 2 boards, 1 of them simulated'."""
        boards = len({(side.gpu, side.board, side.source == "simulated") for side in self.sides})
        simulated = sum(side.source == "simulated" for side in self.sides)
        some = "all" if simulated == len(self.sides) else f"{simulated} of them"
        mark = f", {some} simulated" if simulated else ""
        return f"{len(self.sides)} sessions on {boards} board{'s' if boards > 1 else ''}{mark}"


def named_by_work(sessions: Sequence[Compared]) -> list[Compared]:
    """Name the kernels with the problem size where those of one name have different ones.

    Times and energies of different work are neither repeats nor those of several machines.

    Parameters
    ----------
    sessions : sequence of Compared
        The sessions.

    Returns
    -------
    list of Compared
        The sessions in the same order, as they were where the kernel has a single problem size or theirs is not known.
    """
    works: dict[str, set[str]] = {}
    for session in sessions:
        works.setdefault(session.kernel, set()).add(session.work)
    return [
        replace(session, kernel=f"{session.kernel} ({session.work})")
        if session.work and len(works[session.kernel] - {""}) > 1
        else session
        for session in sessions
    ]


def compare_sessions(sessions: Sequence[Compared], goals: Sequence[Goal] = ()) -> Comparison:
    """Put sessions side by side: their fronts, the gain of tuning for energy, and configurations carried over.

    Parameters
    ----------
    sessions : sequence of Compared
        The sessions, at least two after tables of another tool are split by kernel.
    goals : sequence of Goal, optional
        The goals of the fronts, of which the first two count; fewer than two are replaced by figures that all sessions
        have.

    Returns
    -------
    Comparison
        The sessions in the order given, with the means over them.

    Raises
    ------
    InputError
        With fewer than two sessions, without common figures, if a session lacks the figure of a goal, or where one has
        nothing that worked or nothing within its limits.
    """
    sessions = [part for element in sessions for part in element.by_kernel()]
    if len(sessions) < 2:
        raise InputError("one session has nothing to be compared with", "compare", "name two or more")
    sessions = [replace(session, table=_averaged(session.table)) for session in named_by_work(sessions)]
    common = [name for name in sessions[0].table.value_names if all(name in s.table.value_names for s in sessions)]
    speed_name = next((name for name in common if role_of(name) is Role.SPEED), "1/s")
    efficiency_name = next((name for name in common if role_of(name) is Role.EFFICIENCY), "1/J")
    both = _goals(common, goals)
    measured = [_Measured.of(session) for session in sessions]
    clouds = [_cloud(session, both) for session in sessions]
    maximise = [goal.maximise for goal in both]
    reference = reference_point(np.concatenate(clouds), maximise)
    owner = np.repeat(np.arange(len(clouds)), [len(cloud) for cloud in clouds])
    joint = owner[front(np.concatenate(clouds), maximise)]
    sides = []
    for place, (item, cloud) in enumerate(zip(measured, clouds, strict=True)):
        first, frugal = (item.pick(index, speed_name, efficiency_name) for index in (item.first, item.frugal))
        side_front = front(cloud, maximise)
        sides.append(
            Side(
                name=item.session.name,
                gpu=item.session.gpu,
                source=item.session.source,
                kernel=item.session.kernel,
                board=item.session.board,
                measured=len(item.session.table),
                fastest=first,
                frugal=frugal,
                speed_change=relative_change(first.speed, frugal.speed),
                efficiency_change=relative_change(first.efficiency, frugal.efficiency),
                front_x=cloud[side_front, 0],
                front_y=cloud[side_front, 1],
                hypervolume=hypervolume(cloud, maximise, reference),
                share_of_joint=int((joint == place).sum()),
                limits=tuple(map(str, item.session.limits)),
            )
        )
    return Comparison(
        both,
        speed_name,
        efficiency_name,
        tuple(sides),
        tuple(_carried(measured)),
        MeanChange.over([side.speed_change for side in sides]),
        MeanChange.over([side.efficiency_change for side in sides]),
        tuple(dict.fromkeys(session.condition or "as drawn" for session in sessions)),
    )


@dataclass(frozen=True, slots=True)
class _Measured:
    """A session with the costs of its measurements, and the indices of the fastest and of the one of least energy."""

    session: Compared
    costs: Costs
    first: int
    frugal: int

    @classmethod
    def of(cls, session: Compared) -> _Measured:
        measured = costs_of(session.table)
        costs = within_limits(measured, feasible(session.table, session.limits))
        first, frugal = fastest(costs.time_s, costs.energy_j), least_energy(costs.time_s, costs.energy_j)
        if first is None or frugal is None:
            if fastest(measured.time_s, measured.energy_j) is not None:
                what = f"no configuration of {session.name} keeps its limits ({'; '.join(map(str, session.limits))})"
                raise InputError(what, session.gpu, "compare sessions in which some do")
            what = f"{session.name} has no time and energy"
            raise InputError(what, session.gpu, "compare sessions that measured both")
        return cls(session, costs, first, frugal)

    def pick(self, index: int, speed_name: str, efficiency_name: str) -> Pick:
        """One measurement, with a figure of speed and one of efficiency."""
        table = self.session.table
        speed, efficiency = (
            values_of(table, name) if name in table.value_names else 1 / cost
            for name, cost in ((speed_name, self.costs.time_s), (efficiency_name, self.costs.energy_j))
        )
        measurement = table.measurement(index)
        configuration = measurement.configuration
        clocks = [measurement.observed_clock_mhz, measurement.values.get("observed_clock_mhz", math.nan)]
        clocks += [float(v) for name, v in configuration.items() if name in CLOCK_SETTINGS and not isinstance(v, str)]
        clock = next((value for value in clocks if math.isfinite(value)), math.nan)
        return Pick(dict(configuration), float(speed[index]), float(efficiency[index]), clock)


def _averaged(table: ResultTable) -> ResultTable:
    """What a session has measured so far, the repeats of a configuration as their mean, which keeps a limit or not."""
    table = table.so_far()
    repeats = fold(table)
    return table if repeats is None else repeats.table


def _cloud(session: Compared, goals: Sequence[Goal]) -> Floats:
    """Return the values of the goals, shape (n, goals); NaN if a measurement failed or breaks a limit."""
    cloud = np.column_stack([values_of(session.table, goal.name) for goal in goals])
    cloud[~feasible(session.table, session.limits)] = np.nan
    return cloud


def _goals(common: Sequence[str], given: Sequence[Goal]) -> tuple[Goal, Goal]:
    if len(given) >= 2:
        missing = next((goal.name for goal in given if goal.name not in common), None)
        if missing is not None:
            raise InputError(f"not every session has '{missing}'", "compare", f"common: {', '.join(common)}")
        return given[0], given[1]
    goals = customary_goals(common)
    if goals is None:
        raise InputError("the sessions have no two figures in common", "compare", "name two that they have: --front")
    return goals


def _carried(measured: Sequence[_Measured]) -> Iterator[Carried]:
    """Yield what the fastest and the least-energy configuration of each session cost in the other sessions.

    Only sessions of the same kernel that measured the configuration are compared.
    """
    for origin in measured:
        for chosen_for, index in (("time", origin.first), ("energy", origin.frugal)):
            wanted = _parameters(origin.session.table, index)
            for other in measured:
                same = other is not origin and other.session.kernel == origin.session.kernel
                rows = _rows_with(other.session.table, wanted) if same else None
                time_s, energy_j = other.costs.time_s, other.costs.energy_j
                if rows is None or not np.isfinite(time_s[rows] + energy_j[rows]).any():
                    continue
                time_ratio = float(np.nanmin(time_s[rows])) / float(np.nanmin(time_s))
                energy_ratio = float(np.nanmin(energy_j[rows])) / float(np.nanmin(energy_j))
                names = _label(origin.session), _label(other.session)
                at_most = _settings(other, rows) < _settings(other, np.arange(len(time_s)))
                yield Carried(names[0], chosen_for, names[1], wanted, time_ratio, energy_ratio, at_most)


def _label(session: Compared) -> str:
    return f"{_marked(session.gpu, session.source)}, {session.name}"


def _marked(gpu: str, source: str) -> str:
    return f"{gpu} ({source})" if source in ("simulated", "recorded") else gpu


def _parameters(table: ResultTable, index: int) -> dict[str, Value]:
    """Return the configuration of a measurement without device settings (clocks and power limits)."""
    settings = {parameter.name for parameter in table.space.parameters if parameter.device_setting}
    return {name: value for name, value in table.measurement(index).configuration.items() if name not in settings}


def _settings(measured: _Measured, rows: Indices) -> int:
    """Count the different device settings at which these measurements have both a time and an energy."""
    table = measured.session.table
    axes = [axis for axis, parameter in enumerate(table.space.parameters) if parameter.device_setting]
    finite = rows[np.isfinite(measured.costs.time_s[rows] + measured.costs.energy_j[rows])]
    return len(np.unique(table.space.codes[table.rows()[finite]][:, axes], axis=0)) if axes else 1


def _rows_with(table: ResultTable, wanted: Configuration) -> Indices | None:
    """Return the indices of the measurements with these kernel parameters, at any clock; None if there are none."""
    kernel = {parameter.name: parameter for parameter in table.space.parameters if not parameter.device_setting}
    if set(kernel) != set(wanted):
        return None
    rows = table.rows()[: len(table)]
    same = np.ones(len(rows), dtype=np.bool_)
    for axis, parameter in enumerate(table.space.parameters):
        if parameter.device_setting:
            continue
        code = next((index for index, value in enumerate(parameter.values) if value == wanted[parameter.name]), None)
        if code is None:
            return None
        same &= table.space.codes[rows, axis] == code
    return np.flatnonzero(same) if same.any() else None


def figures_of(comparison: Comparison) -> tuple[str, ...]:
    """List the figures of speed and efficiency that a comparison is by.

    Parameters
    ----------
    comparison : Comparison
        The sessions side by side.

    Returns
    -------
    tuple of str
        Names of the speed and the efficiency, without one that is the inverse of a time or an energy.
    """
    return tuple(name for name in (comparison.speed_name, comparison.efficiency_name) if not name.startswith("1/"))
