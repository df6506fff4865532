"""`Opened`: a session to analyse, compare and report, with its plan, its measurements and its objective."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..space.repeats import Folded, fold

if TYPE_CHECKING:
    from ..analysis.compare import Compared
    from ..results.objectives import Objective
    from ..space.result_table import ResultTable
    from ..specification.plan import SessionPlan
    from ..store.database import Store
    from ..store.record import SessionRecord


@dataclass(frozen=True, slots=True)
class Opened:
    """A session to look at."""

    plan: SessionPlan
    table: ResultTable
    objective: Objective  # its front is empty if the session itself named none
    record: SessionRecord | None  # None: it comes from a file
    repeats: Folded | None = None  # its table holds means over the values of a parameter that only repeats

    @classmethod
    def of(cls, plan: SessionPlan, table: ResultTable, objective: Objective, record: SessionRecord | None) -> Opened:
        """Open a session, with the repeats of a configuration averaged where it has any."""
        repeats = fold(table)
        if repeats is None:
            return cls(plan, table, objective, record)
        repeats.table.space = space = replace(repeats.table.space, notes=(*plan.space.notes, repeats.words))
        return cls(replace(plan, space=space), repeats.table, objective, record, repeats)

    @property
    def name(self) -> str:
        return f"session {self.record.id}" if self.record else str(self.plan.origin.get("file", self.plan.title))

    @property
    def side(self) -> Compared:
        """The session as one side of a comparison."""
        from ..analysis.compare import Compared

        plan = self.plan
        board = plan.origin.get("gpu", "") if plan.source != "recorded" else ""
        work, condition = plan.origin.get("problem_size", ""), plan.origin.get("condition", "")
        limits = self.objective.limits
        named = self.name, plan.gpu, plan.source
        of_table = self.record is None and "parameters" in plan.origin
        kernel = plan.origin.get("kernel", plan.title)
        return Compared(*named, self.table, kernel, board, work, condition, limits, of_table)

    @property
    def seconds(self) -> float:
        return self.record.elapsed_s if self.record else math.nan


def stored_session(store: Store, session: int) -> Opened:
    """A stored session by its number. Raises InputError if there is none."""
    from .planning import plan_of
    from .references import with_floor

    loaded = store.load(session)
    plan = with_floor(plan_of(loaded), store)
    return Opened.of(plan, loaded.table, plan.objective, loaded.record)
