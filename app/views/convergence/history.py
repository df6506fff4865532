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
    before: Improvement | None  # the best until then


class History:
    """Read from a growing table by `refresh`; what was read once is not looked at again."""

    def __init__(self, table: ResultTable, plan: SessionPlan) -> None:
        self.table, self.plan = table, plan
        self.quantity = quantity(plan.objective.goal.name, units=plan.units)
        self.improvements: list[Improvement] = []
        self._sign = -1.0 if plan.objective.goal.maximise else 1.0
        self._length = 0
        self._seconds: Floats = np.empty(0)
        self.refresh()

    def __len__(self) -> int:
        return self._length

    def refresh(self) -> None:
        """Read what is new in the table."""
        start, length = self._length, len(self.table)
        costs = self.values(start, length) * self._sign
        best = self.improvements[-1].value * self._sign if self.improvements else math.inf
        so_far = np.fmin.accumulate(np.concatenate([[best], costs]))
        for at in np.flatnonzero(so_far[1:] < so_far[:-1]).tolist():
            before = self.improvements[-1] if self.improvements else None
            self.improvements.append(Improvement(start + at, float(so_far[at + 1]) * self._sign, before))
        spent_s = np.nan_to_num([self.table.measurement(index).cost_s for index in range(start, length)])
        self._seconds = np.append(self._seconds, np.cumsum(spent_s) + (self._seconds[-1] if start else 0.0))
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
        return self._length > 0 and bool(self._seconds[-1] > 0)

    def seconds(self, start: int = 0) -> Floats:
        """What was spent on measuring up to the end of each evaluation, shape (n,), in s on the board's clock."""
        return self._seconds[start:]

    def words(self, improvement: Improvement) -> str:
        """Which evaluation it was, what it gave, and what it changed in the best until then."""
        spent = f" ({duration(self._seconds[improvement.index])})" if self.timed else ""
        text = f"Evaluation {improvement.index + 1}{spent}: {self.quantity.text(improvement.value)}"
        if improvement.before is None:
            return f"{text}, the first that succeeded"
        before = improvement.before.value
        if before:
            gain = abs(improvement.value - before) / abs(before)
            text += f", {percent(gain)} better than evaluation {improvement.before.index + 1}"
        return f"{text} by {self._changes(improvement)}"

    def _changes(self, improvement: Improvement) -> str:
        assert improvement.before is not None
        new = self.table.measurement(improvement.index).configuration
        old = self.table.measurement(improvement.before.index).configuration
        changed = [
            f"{shown.label} {parameter_text(old[name])} → {parameter_text(new[name])} {shown.unit}".rstrip()
            for name, shown in quantities_of(self.plan).items()
            if old.get(name) != new.get(name)
        ]
        return ", ".join(changed) or "measuring it again"
