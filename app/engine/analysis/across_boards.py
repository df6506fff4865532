"""Sessions on several boards: kernels by boards, and one kernel on several boards of a model.

Kernels by boards [Schoonhoven2024, table 6.2]: the changes in efficiency and speed with their means and deviations. A
column is a model of board: several sessions of a kernel on boards of one model are averaged in their cell, so that a
laboratory's many boards weigh no more than one board of another model.

The same kernel on several boards or machines of one model [Holtmann2024]: averages with their deviations of every
configuration that at least two of them measured. Sessions are compared as they are, by the sensor of their own board,
so a deviation includes what boards differ by and what their sensors do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev
from typing import Final

from ...base.formatting import UNKNOWN, number, percent
from ...base.records import Count
from ..metering.confidence import Interval, confidence_interval
from ..results.description import Cell, Description, Figure, Listing
from ..results.measurement import FEWEST, Configuration, Depth, State, Value
from .compare import Compared, Comparison, MeanChange, Side, named_by_work
from .quantities import quantity


@dataclass(frozen=True, slots=True)
class Crossing:
    """One kernel on one model of board, from the fastest configuration to the one of least energy."""

    sessions: int
    efficiency_before: float
    efficiency: float
    efficiency_change: MeanChange
    speed_before: float
    speed: float
    speed_change: MeanChange
    clock_mhz: float  # of the configuration of least energy; NaN if unknown

    @classmethod
    def of(cls, sides: Sequence[Side]) -> Crossing:
        """Summarise one kernel on one model of board.

        Parameters
        ----------
        sides : sequence of Side
            Its sessions, at least one.

        Returns
        -------
        Crossing
            The figures of one session, or the means over several; NaN over fewer than FEWEST.
        """
        fewest = FEWEST if len(sides) > 1 else 1
        return cls(
            len(sides),
            _mean([side.fastest.efficiency for side in sides]),
            _mean([side.frugal.efficiency for side in sides]),
            MeanChange.over([side.efficiency_change for side in sides], fewest),
            _mean([side.fastest.speed for side in sides]),
            _mean([side.frugal.speed for side in sides]),
            MeanChange.over([side.speed_change for side in sides], fewest),
            _mean([side.frugal.clock_mhz for side in sides]),
        )


@dataclass(frozen=True, slots=True)
class Margin:
    """The means over a row, a column, or all."""

    efficiency: MeanChange
    speed: MeanChange

    @classmethod
    def over(cls, cells: Sequence[Sequence[Side]]) -> Margin:
        """Average over cells, each counted once.

        Parameters
        ----------
        cells : sequence of sequence of Side
            The sessions of each cell.

        Returns
        -------
        Margin
            The means and deviations over the cells; NaN over fewer than FEWEST.
        """
        return cls(
            MeanChange.over([MeanChange.over([side.efficiency_change for side in cell], 1).mean for cell in cells]),
            MeanChange.over([MeanChange.over([side.speed_change for side in cell], 1).mean for cell in cells]),
        )

    @property
    def words(self) -> str:
        """Efficiency, then speed; once where neither has a mean."""
        return ", ".join(dict.fromkeys((self.efficiency.words, self.speed.words)))


@dataclass(frozen=True, slots=True)
class KernelsByBoards:
    """The whole table. A cell is None if that kernel was not tuned on that board."""

    kernels: tuple[str, ...]
    boards: tuple[str, ...]
    cells: tuple[tuple[Crossing | None, ...], ...]  # a row for each kernel
    of_kernels: tuple[Margin, ...]
    of_boards: tuple[Margin, ...]
    of_all: Margin


def kernels_by_boards(comparison: Comparison) -> KernelsByBoards | None:
    """Arrange a comparison as a table of kernels by models of board.

    Parameters
    ----------
    comparison : Comparison
        The sessions side by side.

    Returns
    -------
    KernelsByBoards or None
        None if it has one kernel on one model of board.
    """
    sides: dict[tuple[str, str], list[Side]] = {}
    for side in comparison.sides:
        sides.setdefault((side.kernel or "not named", _board(side.gpu, side.source)), []).append(side)
    kernels, boards = (tuple(dict.fromkeys(names)) for names in zip(*sides, strict=True))
    if len(kernels) * len(boards) < 2:
        return None
    cells = {place: Crossing.of(value) for place, value in sides.items()}
    return KernelsByBoards(
        kernels,
        boards,
        tuple(tuple(cells.get((kernel, board)) for board in boards) for kernel in kernels),
        tuple(Margin.over([sides[kernel, b] for b in boards if (kernel, b) in sides]) for kernel in kernels),
        tuple(Margin.over([sides[k, board] for k in kernels if (k, board) in sides]) for board in boards),
        Margin.over(list(sides.values())),
    )


def describe_kernels_by_boards(boards: KernelsByBoards | None) -> Iterator[Description]:
    """Describe the changes in efficiency and in speed of every kernel on every board, and their means.

    Parameters
    ----------
    boards : KernelsByBoards or None
        The table; None if there is none to describe.

    Yields
    ------
    Description
        The table as one listing; nothing where it is None.
    """
    if boards is None:
        return
    rows: list[list[Cell]] = []
    for kernel, cells, margin in zip(boards.kernels, boards.cells, boards.of_kernels, strict=True):
        rows.append([kernel, *(UNKNOWN if cell is None else _crossing_text(cell) for cell in cells), margin.words])
    rows.append(["mean ± deviation", *(margin.words for margin in boards.of_boards), boards.of_all.words])
    header = ("kernel", *boards.boards, "mean ± deviation")
    yield Description(
        "Kernels by boards: efficiency and speed, from the fastest to the least energy",
        listings=[Listing("", header, rows)],
        remarks=[
            f"every cell counts once; ± is the standard deviation, in a cell over its sessions; too few: below {FEWEST}"
        ],
    )


def _mean(values: Sequence[float]) -> float:
    return math.nan if 1 < len(values) < FEWEST else fmean(values)


def _crossing_text(cell: Crossing) -> str:
    """Changes in efficiency and speed; with their deviations over several sessions."""
    if cell.sessions > 1:
        return f"{Margin(cell.efficiency_change, cell.speed_change).words} ({cell.sessions})"
    return f"{100 * cell.efficiency_change.mean:+.1f} %, {100 * cell.speed_change.mean:+.1f} %"


def _board(gpu: str, source: str) -> str:
    return f"{gpu} ({source})" if source == "simulated" else gpu


MOST_SHOWN: Final = 12  # configurations in a table

_USUAL: Final = ("time_s", "energy_j", "power_w")


@dataclass(frozen=True, slots=True)
class Averaged:
    """A figure over several machines."""

    mean: float
    deviation: float  # sample standard deviation over the machines
    interval: Interval | None  # 95 % of the mean, by Student's t
    count: Count

    @classmethod
    def over(cls, values: Sequence[float]) -> Averaged:
        """Average a figure over machines.

        Parameters
        ----------
        values : sequence of float
            The figure of each machine, at least two, all of them known.

        Returns
        -------
        Averaged
            The mean with its deviation and 95 % interval, in the unit of the values.
        """
        return cls(fmean(values), stdev(values), confidence_interval(values), len(values))

    @property
    def share(self) -> float:
        """The deviation over the mean."""
        return self.deviation / abs(self.mean) if self.mean else math.nan


@dataclass(frozen=True, slots=True)
class Point:
    """One configuration."""

    configuration: Configuration
    figures: Mapping[str, Averaged]  # of those that at least two machines report


@dataclass(frozen=True, slots=True)
class OverMachines:
    """One kernel on the boards of one model."""

    kernel: str
    gpu: str
    source: str
    sessions: tuple[str, ...]
    boards: Count  # that are known to be different ones
    figures: tuple[str, ...]
    points: tuple[Point, ...]  # the least energy, or time, first

    @property
    def spreads(self) -> dict[str, float]:
        """By how much machines differ: the median over the configurations of each figure's relative deviation.

        NaN over fewer than FEWEST configurations.
        """
        shares = {name: [p.figures[name].share for p in self.points if name in p.figures] for name in self.figures}
        finite = {name: [value for value in share if math.isfinite(value)] for name, share in shares.items()}
        return {name: median(match) if len(match) >= FEWEST else math.nan for name, match in finite.items() if match}


def over_machines(sessions: Sequence[Compared], figures: Sequence[str] = ()) -> tuple[OverMachines, ...]:
    """Average every kernel and model of board that several of the sessions are of.

    Parameters
    ----------
    sessions : sequence of Compared
        The sessions, simulated and recorded ones apart from those that were measured on a board.
    figures : sequence of str, optional
        Figures to average besides time, energy and power.

    Returns
    -------
    tuple of OverMachines
        One for each kernel and model of board of which at least two sessions measured the same configuration in full.
    """
    groups: dict[tuple[str, str, str], list[Compared]] = {}
    for session in named_by_work(sessions):
        groups.setdefault((session.kernel, session.gpu, session.source), []).append(session)
    results = []
    for (kernel, gpu, source), members in groups.items():
        if len(members) < 2:
            continue
        names = tuple(dict.fromkeys((*_USUAL, *figures)))
        points = _points(members, names)
        if points:
            known = tuple(name for name in names if any(name in point.figures for point in points))
            labels = tuple(member.name for member in members)
            boards = len({member.board or member.name for member in members})
            results.append(OverMachines(kernel, gpu, source, labels, boards, known, tuple(points)))
    return tuple(results)


def describe_machines(machines: OverMachines) -> Iterator[Description]:
    """Describe the averages of the configurations of least energy, and by how much machines differ in general.

    Parameters
    ----------
    machines : OverMachines
        The averages of one kernel.

    Yields
    ------
    Description
        One, with at most MOST_SHOWN configurations.
    """
    differ = "Machines" if machines.boards > 1 else "Sessions"
    spreads = []
    for name, share in machines.spreads.items():
        words = percent(share, 2) if math.isfinite(share) else "too few configurations"
        spreads.append(
            Figure(f"{differ} differ in {quantity(name).label.lower()} by", words, note="median over them, 1 σ")
        )
    shown = machines.points[:MOST_SHOWN]
    titles = [quantity(name).title for name in machines.figures]
    names = list(shown[0].configuration)
    rows: list[list[Cell]] = [
        [*(_averaged_cell(name, point.figures.get(name)) for name in machines.figures), *point.configuration.values()]
        for point in shown
    ]
    some = f", the first {len(shown)} of {len(machines.points)}" if len(shown) < len(machines.points) else ""
    listing = Listing(f"Mean ± standard deviation, and of how many{some}", (*titles, *names), rows)
    over = f"{len(machines.sessions)} sessions on {machines.boards} board{'s' if machines.boards > 1 else ''}"
    title = f"{machines.kernel or 'The same kernel'}: averages over {over}"
    yield Description(title, _board(machines.gpu, machines.source), spreads, [listing])


def _points(members: Sequence[Compared], names: Sequence[str]) -> list[Point]:
    """Every configuration that at least two of the sessions measured in full."""
    seen: dict[tuple[tuple[str, Value], ...], list[Mapping[str, float]]] = {}
    for member in members:
        table = member.table
        for index in range(len(table)):
            measurement = table.measurement(index)
            if measurement.state is State.OK and measurement.depth is Depth.ENERGY:
                key = tuple(sorted(measurement.configuration.items()))
                seen.setdefault(key, []).append({**measurement.values})
    points = []
    order = [parameter.name for parameter in members[0].table.space.parameters]
    for key, runs in seen.items():
        columns = {name: [r[name] for r in runs if math.isfinite(r.get(name, math.nan))] for name in names}
        averaged = {name: Averaged.over(values) for name, values in columns.items() if len(values) > 1}
        if averaged:
            configuration = dict(key)
            points.append(Point({name: configuration[name] for name in order if name in configuration}, averaged))
    first = "energy_j" if any("energy_j" in point.figures for point in points) else "time_s"
    return sorted(points, key=lambda point: point.figures[first].mean if first in point.figures else math.inf)


def _averaged_cell(name: str, averaged: Averaged | None) -> Cell:
    if averaged is None:
        return None
    factor = quantity(name).factor
    return f"{number(averaged.mean * factor, 4)} ± {number(averaged.deviation * factor, 2)} ({averaged.count})"
