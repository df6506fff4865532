"""`History`: the course of a session: the objective of every evaluation, and the improvements among them. No Qt."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...engine.analysis.quantities import parameter_text, quantities_of, quantity
from ...engine.measurement import State
from ...engine.session.plan import SessionPlan
from ...engine.space.result_table import STATES, ResultTable
from ...numbers import duration, percent

Floats = npt.NDArray[np.float64]
_OK = STATES.index(State.OK)


@dataclass(frozen=True, slots=True)
class Improvement:
    """An evaluation that was better than all before it."""

    index: int  # into the table
    value: float  # of the objective


class History:
    """Read from a growing table by `refresh`; what was read once is not looked at again."""

    def __init__(self, table: ResultTable, plan: SessionPlan) -> None:
        self.table, self.plan = table, plan
        self.quantity = quantity(plan.objective.goal.name, units=plan.units)
        self.improvements: list[Improvement] = []
        self._sign = -1.0 if plan.objective.goal.maximise else 1.0
        self._length = 0
        self._spent_s: Floats = np.empty(0)  # as far as it was asked for
        self._deepened = table.deepened
        self.refresh()

    def __len__(self) -> int:
        return self._length

    def refresh(self) -> None:
        """Read what is new in the table; all of it where entries were measured that had only been timed."""
        if self._deepened != self.table.deepened:
            self._deepened, self._length, self._spent_s = self.table.deepened, 0, np.empty(0)
            self.improvements.clear()
        start, length = self._length, len(self.table)
        costs = self.values(start, length) * self._sign
        best = self.improvements[-1].value * self._sign if self.improvements else math.inf
        so_far = np.fmin.accumulate(np.concatenate([[best], costs]))
        for at in np.flatnonzero(so_far[1:] < so_far[:-1]).tolist():
            self.improvements.append(Improvement(start + at, float(so_far[at + 1]) * self._sign))
        self._length = length

    def values(self, start: int = 0, end: int | None = None) -> Floats:
        """The objective of each evaluation, shape (n,); NaN where it failed."""
        stop = self._length if end is None else end
        found = self.table.values(self.plan.objective.goal.name, start)[: stop - start]
        ok = self.table.states(start)[: stop - start] == _OK
        return np.where(ok & np.isfinite(found), found, np.nan)

    @property
    def timed(self) -> bool:
        """What the evaluations took is known."""
        return any(self.table.measurement(each.index).cost_s > 0 for each in self.improvements)

    def seconds(self, start: int = 0) -> Floats:
        """What was spent on measuring up to the end of each evaluation, shape (n,), in s on the board's clock."""
        known = len(self._spent_s)
        if known < self._length:
            fresh_s = np.nan_to_num([self.table.measurement(index).cost_s for index in range(known, self._length)])
            self._spent_s = np.append(self._spent_s, np.cumsum(fresh_s) + (self._spent_s[-1] if known else 0.0))
        return self._spent_s[start:]

    def words(self, improvement: Improvement) -> str:
        """Which evaluation it was, what it gave, and what it changed in the best until then."""
        spent = f" ({duration(self.seconds()[improvement.index])})" if self.timed else ""
        text = f"Evaluation {improvement.index + 1}{spent}: {self.quantity.text(improvement.value)}"
        place = self.improvements.index(improvement)
        if place == 0:
            return f"{text}, the first that succeeded"
        before = self.improvements[place - 1]
        if before.value:
            gain = abs(improvement.value - before.value) / abs(before.value)
            text += f", {percent(gain)} better than evaluation {before.index + 1}"
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
