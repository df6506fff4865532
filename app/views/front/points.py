"""What the scatter shows: two figures and a colour of every measurement that has them, and the Pareto front so far."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ...engine.results.measurement import State
from ...engine.results.objectives import Goal, Limit
from ...engine.results.pareto import front
from ...engine.space.result_table import STATES, ResultTable
from ...engine.space.within_limits import feasible
from ..shared.current_result import EVERYTHING, RowFilter

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
_OK = STATES.index(State.OK)


class FrontPoints:
    """Successful measurements with both figures known, as measured. `update` adds what is new in the table.

    What the filter hides takes no part, nor what has no place on a logarithmic axis.
    """

    def __init__(
        self,
        table: ResultTable,
        x: Goal,
        y: Goal,
        *,
        log: tuple[bool, bool] = (False, False),
        shown: RowFilter = EVERYTHING,
        limits: Sequence[Limit] = (),
    ) -> None:
        self.table = table
        self.goals = (x, y)
        self.log = log
        self.shown = shown
        self.limits = tuple(limits)
        self.within: Mask = np.empty(0, dtype=np.bool_)  # points that keep the limits: only these are on the front
        self.index: Indices = np.empty(0, dtype=np.int64)  # point -> index into the table
        self.x: Floats = np.empty(0)
        self.y: Floats = np.empty(0)
        self.plot_x: Floats = np.empty(0)  # where the point lies in the plot: x, or its logarithm to base ten
        self.plot_y: Floats = np.empty(0)
        self.front: Indices = np.empty(0, dtype=np.int64)  # points on the front, from the worst x to the best
        self.seen = 0  # of the table's measurements

    def __len__(self) -> int:
        return len(self.index)

    def update(self) -> int:
        """Add new measurements; returns how many new points there are.

        The front of the old front and the new points is the front of all, so the old points are not looked at again.
        """
        length = len(self.table)
        if length == self.seen:
            return 0
        x = self.table.values(self.goals[0].name, self.seen)[: length - self.seen]
        y = self.table.values(self.goals[1].name, self.seen)[: length - self.seen]
        ok = self.table.states(self.seen)[: length - self.seen] == _OK
        finite = ok & np.isfinite(x) & np.isfinite(y)
        for values, log in zip((x, y), self.log, strict=True):
            if log:
                finite &= values > 0
        finite = np.flatnonzero(finite)
        if self.shown:
            rows = self.table.rows(self.seen)[: length - self.seen]
            finite = finite[self.shown.passes(self.table.space, rows[finite])]
        start = len(self.index)
        self.index = np.concatenate([self.index, finite + self.seen])
        self.x, self.y = np.concatenate([self.x, x[finite]]), np.concatenate([self.y, y[finite]])
        self.plot_x, self.plot_y = (
            np.concatenate([before, np.log10(values[start:])]) if log else values
            for before, values, log in zip((self.plot_x, self.plot_y), (self.x, self.y), self.log, strict=True)
        )
        kept = feasible(self.table, self.limits)
        self.within = np.concatenate([self.within, kept[finite + self.seen]])
        self.seen = length
        if len(finite):
            candidates = np.concatenate([self.front, start + np.flatnonzero(self.within[start:])])
            values = np.column_stack([self.x[candidates], self.y[candidates]])
            self.front = candidates[front(values, [goal.maximise for goal in self.goals])]
        return len(finite)

    def colour_values(self, name: str, start: int = 0) -> Floats:
        """A column for the points from `start` on."""
        wanted = self.index[start:]
        return self.table.values(name, int(wanted[0]))[wanted - wanted[0]] if len(wanted) else np.empty(0)

    def marked(self, rows: Indices, start: int = 0) -> npt.NDArray[np.bool_]:
        """Which of the points from `start` on are among these measurements, ascending."""
        return among(rows, self.index[start:])

    def placed(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Any figures as places in the plot."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return (np.log10(x) if self.log[0] else x), (np.log10(y) if self.log[1] else y)

    @property
    def best_x(self) -> int | None:
        """The point that is best in x, and of those the best in y: one end of the front."""
        return int(self.front[-1]) if len(self.front) else None

    @property
    def best_y(self) -> int | None:
        """The point that is best in y, and of those the best in x: the other end."""
        return int(self.front[0]) if len(self.front) else None

    def point_of(self, index: int) -> int | None:
        """The point of a measurement, None if it has none (failed, or a figure is missing)."""
        return place_of(self.index, index)


def among(rows: Indices, wanted: Indices) -> npt.NDArray[np.bool_]:
    """Which of `wanted` are among `rows`; both ascend."""
    there = np.zeros(max((int(item[-1]) for item in (rows, wanted) if len(item)), default=-1) + 1, dtype=np.bool_)
    there[rows] = True
    return np.asarray(there[wanted])


def place_of(ascending: Indices, index: int) -> int | None:
    """Where an index stands among others, None if it is none of them."""
    position = int(np.searchsorted(ascending, index))
    return position if position < len(ascending) and int(ascending[position]) == index else None
