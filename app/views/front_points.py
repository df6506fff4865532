"""What the scatter shows: two figures and a colour of every measurement that has them, and the Pareto front so far."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from app.engine.analysis.pareto import front
from app.engine.measurement import State
from app.engine.objectives import Goal
from app.engine.results import STATES, ResultTable

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
_OK = STATES.index(State.OK)


class FrontPoints:
    """Successful measurements with both figures known, as measured. `update` takes in what was added."""

    def __init__(self, table: ResultTable, x: Goal, y: Goal) -> None:
        self.table = table
        self.goals = (x, y)
        self.index: Indices = np.empty(0, dtype=np.int64)  # point -> index into the table
        self.x: Floats = np.empty(0)
        self.y: Floats = np.empty(0)
        self.front: Indices = np.empty(0, dtype=np.int64)  # points on the front, from the worst x to the best
        self._seen = 0

    def __len__(self) -> int:
        return len(self.index)

    def update(self) -> int:
        """Take in new measurements; how many new points there are.

        The front of the old front and the new points is the front of all, so the old points are not looked at again.
        """
        length = len(self.table)
        if length == self._seen:
            return 0
        x = self.table.values(self.goals[0].name, self._seen)[: length - self._seen]
        y = self.table.values(self.goals[1].name, self._seen)[: length - self._seen]
        ok = self.table.states(self._seen)[: length - self._seen] == _OK
        known = np.flatnonzero(ok & np.isfinite(x) & np.isfinite(y))
        start = len(self.index)
        self.index = np.concatenate([self.index, known + self._seen])
        self.x, self.y = np.concatenate([self.x, x[known]]), np.concatenate([self.y, y[known]])
        self._seen = length
        if len(known):
            candidates = np.concatenate([self.front, np.arange(start, len(self.index))])
            values = np.column_stack([self.x[candidates], self.y[candidates]])
            self.front = candidates[front(values, [goal.maximise for goal in self.goals])]
        return len(known)

    def colour_values(self, name: str, start: int = 0) -> Floats:
        """A column for the points from `start` on."""
        wanted = self.index[start:]
        return self.table.values(name, int(wanted[0]))[wanted - wanted[0]] if len(wanted) else np.empty(0)

    @property
    def best_x(self) -> int | None:
        """The point that is best in x, and of those the best in y: one end of the front."""
        return int(self.front[-1]) if len(self.front) else None

    @property
    def best_y(self) -> int | None:
        """The point that is best in y, and of those the best in x: the other end."""
        return int(self.front[0]) if len(self.front) else None

    def point_of(self, index: int) -> int | None:
        """The point of a measurement, None where it has none (failed, or a figure is missing)."""
        at = int(np.searchsorted(self.index, index))
        return at if at < len(self.index) and int(self.index[at]) == index else None
