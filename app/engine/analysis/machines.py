"""The same kernel on several boards or machines of one model: averages of every configuration, with error bars.

As in [Holtmann2024], where every benchmark runs on several GPUs and machines and the averages are shown with their
deviations. Only configurations that at least two of them measured have an average; sessions are compared as they are,
each by its own board's sensor, so that a deviation holds what boards differ by and what their sensors do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev
from typing import Final

from ...numbers import number, percent
from ..description import Cell, Description, Figure, Listing
from ..measurement import FEWEST, Configuration, Depth, State, Value
from ..metering.confidence import Interval, confidence_interval
from .compare import Compared, Comparison, named_by_work
from .quantities import quantity

MOST_SHOWN: Final = 12  # configurations in a table
_USUAL: Final = ("time_s", "energy_j", "power_w")


@dataclass(frozen=True, slots=True)
class Averaged:
    """A figure over several machines."""

    mean: float
    deviation: float  # sample standard deviation over the machines
    interval: Interval | None  # 95 % of the mean, by Student's t
    count: int

    @classmethod
    def over(cls, values: Sequence[float]) -> Averaged:
        """Of at least two values."""
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
    boards: int  # that are known to be different ones
    figures: tuple[str, ...]
    points: tuple[Point, ...]  # the least energy, or time, first

    @property
    def spreads(self) -> dict[str, float]:
        """By how much machines differ: the median over the configurations of each figure's relative deviation.

        NaN over fewer than FEWEST configurations.
        """
        shares = {name: [p.figures[name].share for p in self.points if name in p.figures] for name in self.figures}
        known = {name: [each for each in found if math.isfinite(each)] for name, found in shares.items()}
        return {name: median(found) if len(found) >= FEWEST else math.nan for name, found in known.items() if found}


def over_machines(sessions: Sequence[Compared], figures: Sequence[str] = ()) -> tuple[OverMachines, ...]:
    """Averages for every kernel and model of board that several of the sessions are of.

    Of time, energy, power and the `figures` besides.
    """
    groups: dict[tuple[str, str, str], list[Compared]] = {}
    for session in named_by_work(sessions):
        groups.setdefault((session.kernel, session.gpu, session.source), []).append(session)
    found = []
    for (kernel, gpu, source), members in groups.items():
        if len(members) < 2:
            continue
        names = tuple(dict.fromkeys((*_USUAL, *figures)))
        points = _points(members, names)
        if points:
            known = tuple(name for name in names if any(name in point.figures for point in points))
            labels = tuple(member.name for member in members)
            boards = len({member.board or member.name for member in members})
            found.append(OverMachines(kernel, gpu, source, labels, boards, known, tuple(points)))
    return tuple(found)


def describe_machines(found: OverMachines) -> Iterator[Description]:
    """The averages of the configurations of least energy, and by how much machines differ in general."""
    board = f"{found.gpu} ({found.source})" if found.source == "simulated" else found.gpu
    differ = "Machines" if found.boards > 1 else "Sessions"
    spreads = []
    for name, share in found.spreads.items():
        words = percent(share, 2) if math.isfinite(share) else "too few configurations"
        spreads.append(
            Figure(f"{differ} differ in {quantity(name).label.lower()} by", words, note="median over them, 1 σ")
        )
    shown = found.points[:MOST_SHOWN]
    titles = [quantity(name).title for name in found.figures]
    names = list(shown[0].configuration)
    rows: list[list[Cell]] = [
        [*(_words(name, point.figures.get(name)) for name in found.figures), *point.configuration.values()]
        for point in shown
    ]
    some = f", the first {len(shown)} of {len(found.points)}" if len(shown) < len(found.points) else ""
    listing = Listing(f"Mean ± standard deviation, and of how many{some}", (*titles, *names), rows)
    over = f"{len(found.sessions)} sessions on {found.boards} board{'s' if found.boards > 1 else ''}"
    title = f"{found.kernel or 'The same kernel'}: averages over {over}"
    yield Description(title, board, spreads, [listing])


# --- inside -----------------------------------------------------------------------------------------------------------


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


def _words(name: str, averaged: Averaged | None) -> Cell:
    if averaged is None:
        return None
    factor = quantity(name).factor
    return f"{number(averaged.mean * factor, 4)} ± {number(averaged.deviation * factor, 2)} ({averaged.count})"


def figures_of(found: Comparison) -> tuple[str, ...]:
    """The figures of speed and efficiency that a comparison is by."""
    return tuple(name for name in (found.speed_name, found.efficiency_name) if not name.startswith("1/"))
