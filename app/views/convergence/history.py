"""`History`: the course of a session: the objective of every evaluation, and the improvements among them. No Qt."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...engine.analysis.quantities import parameter_text, quantities_of, quantity
from ...engine.session.plan import SessionPlan
from ...engine.space.result_table import ResultTable
from ...engine.space.within_limits import feasible
from ...numbers import duration, percent

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Improvement:
    """An evaluation that was better than all before it."""

    place: int  # among the evaluations, from 0
    index: int  # into the table
    value: float  # of the objective


class History:
    """Read from a growing table by `refresh`; what was read once is not looked at again.

    What was timed before it was measured has its place where it was measured; what was only timed is no evaluation.
    """

    def __init__(self, table: ResultTable, plan: SessionPlan) -> None:
        self.table, self.plan = table, plan
        self.quantity = quantity(plan.objective.goal.name, units=plan.units)
        self.improvements: list[Improvement] = []
        self._sign = -1.0 if plan.objective.goal.maximise else 1.0
        self._length = 0
        self._cost_s: Floats = np.empty(0)  # of each entry of the table, as far as it was asked for
        self._deepened = table.deepened
        self.refresh()

    def __len__(self) -> int:
        return self._length

    def refresh(self) -> None:
        """Read what is new in the table."""
        start, length = self._length, len(self.table.evaluated())
        costs = self.values(start, length) * self._sign
        best = self.improvements[-1].value * self._sign if self.improvements else math.inf
        so_far = np.fmin.accumulate(np.concatenate([[best], costs]))
        for at in np.flatnonzero(so_far[1:] < so_far[:-1]).tolist():
            index = int(self.table.evaluated()[start + at])
            self.improvements.append(Improvement(start + at, index, float(so_far[at + 1]) * self._sign))
        self._length = length

    @property
    def indices(self) -> npt.NDArray[np.int64]:
        """Of the evaluations, into the table."""
        return self.table.evaluated()[: self._length]

    def place(self, index: int) -> int:
        """Of the evaluation that an index into the table means; -1 where it is none."""
        found = np.flatnonzero(self.indices == index)
        return int(found[0]) if len(found) else -1

    def values(self, start: int = 0, end: int | None = None) -> Floats:
        """The objective of each evaluation, shape (n,); NaN where it failed or breaks a limit."""
        at = self.table.evaluated()[start : self._length if end is None else end]
        found = self.table.values(self.plan.objective.goal.name)[at]
        ok = feasible(self.table, self.plan.objective.limits)[at]
        return np.where(ok & np.isfinite(found), found, np.nan)

    @property
    def timed(self) -> bool:
        """What the evaluations took is known."""
        return any(self.table.measurement(each.index).cost_s > 0 for each in self.improvements)

    def seconds(self, start: int = 0) -> Floats:
        """What was spent on measuring up to the end of each evaluation, shape (n,), in s on the board's clock.

        What is only timed counts where it comes first in the table; what was timed before it was measured, as measured.
        """
        if self._deepened != self.table.deepened:
            self._deepened, self._cost_s = self.table.deepened, np.empty(0)
        known, length = len(self._cost_s), len(self.table)
        fresh_s = np.nan_to_num([self.table.measurement(index).cost_s for index in range(known, length)])
        self._cost_s = np.append(self._cost_s, fresh_s)
        timed_s = np.cumsum(np.where(self.table.timed()[:length], self._cost_s, 0.0))
        at = self.indices
        spent_s = np.cumsum(self._cost_s[at]) + timed_s[np.maximum.accumulate(at)] if len(at) else np.empty(0)
        return np.asarray(spent_s[start:], dtype=np.float64)

    def words(self, improvement: Improvement) -> str:
        """Which evaluation it was, what it gave, and what it changed in the best until then."""
        spent = f" ({duration(self.seconds()[improvement.place])})" if self.timed else ""
        text = f"Evaluation {improvement.place + 1}{spent}: {self.quantity.text(improvement.value)}"
        place = self.improvements.index(improvement)
        if place == 0:
            return f"{text}, the first that succeeded"
        before = self.improvements[place - 1]
        if before.value:
            gain = abs(improvement.value - before.value) / abs(before.value)
            text += f", {percent(gain)} better than evaluation {before.place + 1}"
        return f"{text} by {self._changes(before, improvement)}"

    def _changes(self, before: Improvement, after: Improvement) -> str:
        old = self.table.measurement(before.index).configuration
        new = self.table.measurement(after.index).configuration
        changed = [
            f"{shown.label} {parameter_text(old[name])} → {parameter_text(new[name])} {shown.unit}".rstrip()
            for name, shown in quantities_of(self.plan).items()
            if old.get(name) != new.get(name)
        ]
        return ", ".join(changed) or "measuring it again"
