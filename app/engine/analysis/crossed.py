"""Kernels by boards: what tuning for energy gains, with means and deviations [Schoonhoven2024, table 6.2].

A column is a model of board. Several sessions of a kernel on boards of one model are averaged in their cell, so that a
laboratory's many boards weigh no more than one board of another model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from ...numbers import UNKNOWN
from ..description import Cell, Description, Listing
from ..measurement import FEWEST
from .compare import Comparison, MeanChange, Side


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
    clock_mhz: float  # of the configuration of least energy; NaN where unknown

    @classmethod
    def of(cls, sides: Sequence[Side]) -> Crossing:
        """The figures of one session, or the means over several; NaN over fewer than FEWEST."""
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
        """Average over cells, each given as its sessions and counted once."""
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
    """The whole table. A cell is None where that kernel was not tuned on that board."""

    kernels: tuple[str, ...]
    boards: tuple[str, ...]
    cells: tuple[tuple[Crossing | None, ...], ...]  # a row for each kernel
    of_kernels: tuple[Margin, ...]
    of_boards: tuple[Margin, ...]
    of_all: Margin


def kernels_by_boards(found: Comparison) -> KernelsByBoards | None:
    """The table of a comparison; None where it has one kernel on one model of board."""
    sides: dict[tuple[str, str], list[Side]] = {}
    for side in found.sides:
        sides.setdefault((side.kernel or side.name, _board(side)), []).append(side)
    kernels, boards = (tuple(dict.fromkeys(names)) for names in zip(*sides, strict=True))
    if len(kernels) * len(boards) < 2:
        return None
    cells = {place: Crossing.of(each) for place, each in sides.items()}
    return KernelsByBoards(
        kernels,
        boards,
        tuple(tuple(cells.get((kernel, board)) for board in boards) for kernel in kernels),
        tuple(Margin.over([sides[kernel, b] for b in boards if (kernel, b) in sides]) for kernel in kernels),
        tuple(Margin.over([sides[k, board] for k in kernels if (k, board) in sides]) for board in boards),
        Margin.over(list(sides.values())),
    )


def describe_kernels_by_boards(found: KernelsByBoards | None) -> Iterator[Description]:
    """Changes in efficiency and in speed of every kernel on every board, and their means."""
    if found is None:
        return
    rows: list[list[Cell]] = []
    for kernel, cells, margin in zip(found.kernels, found.cells, found.of_kernels, strict=True):
        rows.append([kernel, *(UNKNOWN if cell is None else _words(cell) for cell in cells), margin.words])
    rows.append(["mean ± deviation", *(margin.words for margin in found.of_boards), found.of_all.words])
    header = ("kernel", *found.boards, "mean ± deviation")
    yield Description(
        "Kernels by boards: efficiency and speed, from the fastest to the least energy",
        listings=[Listing("", header, rows)],
        remarks=[
            f"every cell counts once; ± is the standard deviation, in a cell over its sessions; too few: below {FEWEST}"
        ],
    )


def _mean(values: Sequence[float]) -> float:
    return math.nan if 1 < len(values) < FEWEST else fmean(values)


def _words(cell: Crossing) -> str:
    """Changes in efficiency and speed; with their deviations over several sessions."""
    if cell.sessions > 1:
        return f"{Margin(cell.efficiency_change, cell.speed_change).words} ({cell.sessions})"
    return f"{100 * cell.efficiency_change.mean:+.1f} %, {100 * cell.speed_change.mean:+.1f} %"


def _board(side: Side) -> str:
    return f"{side.gpu} ({side.source})" if side.source == "simulated" else side.gpu
