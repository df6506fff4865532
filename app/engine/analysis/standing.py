"""Where a choice stands in its session: its rank, and what it costs and saves against the fastest and the own state."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from ...base.records import Count, figure
from ..models.arrays import Floats, Indices
from ..results.objectives import BY_HAND, Objective
from ..runner.stating import Statement
from ..space.repeats import mean_of_readings, readings_beside
from ..space.result_table import ResultTable
from ..space.within_limits import feasible
from .choosers import fastest
from .costs import Costs, costs_of, values_of, within_limits
from .difference import Difference, Versus, difference, relative_half_width
from .finals import Finals
from .iso_lines import Role
from .own_state import OwnState, own_state

# whose interval stands for that of the other
_INVERSE: Final[Mapping[Role | None, Role]] = {Role.TIME: Role.SPEED, Role.ENERGY: Role.EFFICIENCY}


def chosen_words(rule: str) -> str:
    """Describe how a measurement was chosen.

    Parameters
    ----------
    rule : str
        The rule, 'max:GFLOPS/W' or 'fastest', else 'by hand'.

    Returns
    -------
    str
        'chosen for max:GFLOPS/W', or 'chosen by hand'.
    """
    return f"chosen {rule}" if rule == BY_HAND else f"chosen for {rule}"


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a measurement stands among those of its session that keep the limits."""

    measurement: int  # its number, from 1
    objective: str
    rank: int | None  # by the objective, 1 is the best; None if it failed, breaks a limit or lacks the figure
    of: Count  # measurements that have a rank
    against_fastest: Versus | None  # None if it is the fastest itself, or no time is known
    against_own_state: Versus | None  # None if it was measured there, or that state was not
    is_fastest: bool
    own_state: OwnState | None = field(metadata=figure(key=None))  # None if no device setting was varied

    @property
    def rank_words(self) -> str:
        """'rank 3 of 150'."""
        return f"no rank of {self.of}" if self.rank is None else f"rank {self.rank} of {self.of}"

    @property
    def short(self) -> tuple[str, ...]:
        """What it costs and saves, as phrases."""
        parts = ["fastest"] if self.is_fastest else []
        if self.against_fastest is not None:
            parts.append(f"vs fastest: {self.against_fastest.words}")
        if self.own_state is not None:
            state = "untouched" if self.own_state.untouched else "highest settings"
            versus = self.against_own_state.words if self.against_own_state is not None else "not measured"
            parts.append(
                state if versus == "not measured" and self.own_state.index is not None else f"vs {state}: {versus}"
            )
        return tuple(parts)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The same, each with a stop and the number of the measurement that it is compared with."""
        lines = ["This is the fastest."] if self.is_fastest else []
        if self.against_fastest is not None:
            lines.append(_sentence("the fastest", self.against_fastest))
        elif not self.is_fastest:
            lines.append("What it costs and gains against the fastest is not known.")
        if self.own_state is not None:
            versus = self.against_own_state
            lines += self.own_state.sentences if versus is None else [_sentence(self.own_state.baseline, versus)]
        return tuple(lines)


def standing(table: ResultTable, objective: Objective, index: int) -> Standing:
    """Find where a measurement stands; takes a few passes over the columns of the table.

    Parameters
    ----------
    table : ResultTable
        The measurements so far.
    objective : Objective
        The objective of the session, which the rank is by.
    index : int
        The measurement. Where a parameter only repeats the configurations, the mean over its repeats is compared.

    Returns
    -------
    Standing
        Its rank, and what it costs and saves.
    """
    table = table.so_far()
    goal, within = objective.goal, feasible(table, objective.limits)[: len(table)]
    values = np.where(within, values_of(table, goal.name), np.nan) * (-1 if goal.maximise else 1)
    costs, readings = costs_of(table), readings_beside(table, index)
    kept, value = within_limits(costs, within), _first(values, readings)
    first = fastest(kept.time_s, kept.energy_j)
    known = bool(np.isfinite(_first(costs.time_s, readings)))
    state = own_state(table, costs, int(readings[0]), with_locks=False) if known else None
    own = state.index if state is not None and state.gain is not None else None
    return Standing(
        measurement=index + 1,
        objective=str(goal),
        rank=1 + int((values < value).sum()) if np.isfinite(value) else None,
        of=int(np.isfinite(values).sum()),
        against_fastest=None
        if not known or first is None or first in readings
        else _versus(table, costs, first, readings),
        against_own_state=None if own is None else _versus(table, costs, own, readings),
        is_fastest=first in readings,
        own_state=state,
    )


def ratio(
    table: ResultTable, pair: tuple[Indices, Indices], values: tuple[float, float], name: str, role: Role | None
) -> Difference:
    """Compare a figure of two configurations of one session.

    Where both were measured in turns at its end, the turns say how they differ. Else their own intervals do, without
    what all of the session is off by, which their ratio has no part of.

    Parameters
    ----------
    table : ResultTable
        The measurements of the session.
    pair : tuple of array of int
        The readings of each configuration, of which the second is compared with the first.
    values : tuple of float
        The figure of each; NaN if it is not known.
    name : str
        The figure.
    role : Role or None
        What kind of figure it is.

    Returns
    -------
    Difference
        Of the second, relative to the first.
    """
    finals = Finals.of_origin(table.origin)
    if finals is not None:
        before, after = (int(table.rows()[indices[0]]) for indices in pair)
        known = finals.ratio(before, after, role)
        if known is not None and known.interval is not None:
            return known  # unless the turns were too few to say how far it holds
    statement = Statement.of_origin(table.origin)
    measured = [mean_of_readings(table, indices) for indices in pair]
    halves = [relative_half_width(each, name, _INVERSE.get(role, role)) for each in measured]
    if statement is None or role in (Role.TIME, Role.SPEED, None):
        return difference(*values, math.hypot(*halves))
    return difference(*values, statement.half_width_of_ratio(measured, halves))


def distinguishable(table: ResultTable, index: int, other: int) -> bool:
    """Return whether the energies of two measurements of one session differ by more than their ratio is known to.

    Parameters
    ----------
    table : ResultTable
        The measurements of the session.
    index, other : int
        The two.

    Returns
    -------
    bool
        False where an interval is not known.
    """
    values = table.values("energy_j")
    pair = np.array([index]), np.array([other])
    return bool(ratio(table, pair, (values[index], values[other]), "energy_j", Role.ENERGY).distinguishable)


# --- inside -----------------------------------------------------------------------------------------------------------


def _first(column: Floats, readings: Indices) -> float:
    """The value of a configuration: that of the first of its readings that has one, which is their mean."""
    finite = column[readings][np.isfinite(column[readings])]
    return float(finite[0]) if len(finite) else math.nan


def _versus(table: ResultTable, costs: Costs, other: int, readings: Indices) -> Versus:
    pair = readings_beside(table, other), readings
    time, energy = (
        ratio(table, pair, (_first(column, pair[0]), _first(column, pair[1])), name, role)
        for column, name, role in ((costs.time_s, "time_s", Role.TIME), (costs.energy_j, "energy_j", Role.ENERGY))
    )
    return Versus(other + 1, time, energy)


def _sentence(other: str, versus: Versus) -> str:
    return f"Against {other} (measurement {versus.measurement}): {versus.words}."
