"""The finals of a session: those that contend for the best are measured in turns, until it is known who it is.

One window of each tells two configurations apart from a difference of 2 % on; a choice needs less. What the session has
measured so far decides how many take part and for how long, so that a session of a few rows has none, nor has one of
programs that run for seconds. It is the board's time that counts: a session goes the same way on a slow host.
"""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from ..analysis.finals import ENERGY_ROLES, Finals, Round, finals_of, in_proportion
from ..analysis.iso_lines import Role, role_of
from ..analysis.standing import distinguishable
from ..results.measurement import Measurement, State
from ..results.objectives import Objective
from ..runner.base import Runner
from ..runner.stating import at_other_power
from ..space.repeats import repeat_names
from ..space.result_table import ResultTable
from ..specification.model import Specification
from ..specification.plan import SessionPlan
from .summary import by_goal, library_index

MOST: Final = 4  # contend
SECONDS: Final = 30.0  # at most, on the board
LEAST_S: Final = 5.0  # that a session of MANY measurements may take at least
WITH_LIBRARY_S: Final = 10.0  # where the vendor's library is one of them: a recommendation against it has to be certain
MANY: Final = 20  # measurements: `auto` never ends by itself with fewer
KNOWN: Final = 0.01  # half of the interval of the library's energy against the best that is wanted
SHARE: Final = 0.4  # of the seconds that the session has measured, at most
ROUNDS: Final = 9  # that there has to be time for
FIRST: Final = 8  # rounds: there is no interval before
_BETWEEN_S: Final = 0.1  # two windows, where one row is asked for after the other: kernels on a board
_AT_LEAST: Final = 2  # times the seconds, where the rounds are not enough yet


def contenders(table: ResultTable, objective: Objective, apart: Collection[int] = ()) -> list[int]:
    """The indices of what may be the best by its own intervals, the best so far first; one alone if nothing else may.

    Whoever ranks before one of them is among them, so that none is overtaken by who took no part. Rows `apart` have no
    rank. Empty where the objective is none of energy.
    """
    if role_of(objective.goal.name) not in ENERGY_ROLES or repeat_names(table):
        return []
    rows = table.rows()
    ranked = [index for index in by_goal(table, objective.goal, objective.limits) if int(rows[index]) not in apart]
    ranked = [index for index in ranked if table.comparable[index] and _measured(table.measurement(index))][:MOST]
    near = [place for place, index in enumerate(ranked) if not distinguishable(table, ranked[0], index)]
    return ranked[: max(near, default=-1) + 1]


def kept_for_turns_s(plan: SessionPlan, table: ResultTable) -> float:
    """Seconds of a session's limit that its search leaves for the turns with the vendor's library; 0 without one.

    A round takes as long as a window of the library and one of the best of the others so far: at the board's limit, a
    second each. Before them come the end of the search, later than it should by a measurement, and a last look at the
    reference.
    """
    library = library_index(table, plan.space) if plan.max_seconds is not None else None
    if plan.max_seconds is None or library is None:
        return 0.0
    ranked = by_goal(table, plan.objective.goal, plan.objective.limits)
    other = next((index for index in ranked if index != library), library)
    turns_s = (ROUNDS + 1) * _round_s(table, (other, library))
    return min(max(WITH_LIBRARY_S, turns_s), plan.max_seconds / 2)


def play(
    runner: Runner,
    table: ResultTable,
    plan: SessionPlan,
    stop: threading.Event,
    apart: Collection[int],
    tell: Callable[[str], object],
    left_s: float = math.inf,
) -> Finals | None:
    """Measure the contenders in turns; None where there are none, or no time for it, and where `stop` is set.

    `tell` hears what is done and what came of it; `left_s` are the seconds that the user's limit leaves.
    """
    if runner.board_count > 1 or len(table.boards) > 1 or stop.is_set():
        return None  # one of several boards decides already
    indices, library, most_s = _who_plays(table, plan, apart, left_s)
    if len(indices) < 2:
        return None
    rows = [int(table.rows()[index]) for index in indices]
    by_library = None if library is None else int(table.rows()[library])
    tell(f"Measuring {len(rows)} configurations in turns, until it is known which is best")
    rounds: list[Round] = []
    found: Finals | None = None
    order = random.Random(plan.seed)
    while len(rows) > 1:
        turn = _turn(runner, order.sample(rows, len(rows)), stop)
        if turn is None:
            tell("The turns were broken off: which of them is best by less than their intervals is not known")
            return None
        rounds.append(turn)
        found = finals_of(rounds, plan.objective.goal.name)
        if found.seconds >= (most_s if len(rounds) >= ROUNDS else min(left_s, _AT_LEAST * most_s)):
            break  # what windows take is a guess: with a few turns less nothing could be said
        going_on = {found.winner, *_unsettled(found, by_library)}
        if by_library is not None and len(rounds) < ROUNDS:
            left = min(left_s, _AT_LEAST * most_s) - found.seconds
            going_on &= set(_in_time(found, by_library, rounds, left))
        rows = [row for row in rows if row in going_on]
    if found is not None:  # of who took part in a single round nothing is known
        found = replace(found, others=tuple(each for each in found.others if math.isfinite(each.energy)))
        if not found.others:
            return None
        against = "; ".join(beaten.of(Role.ENERGY).words("energy") for beaten in found.others)
        tell(f"Against the best, measured in turns: {against}")
    return found


def as_in_turns(finals: Finals, measurements: Sequence[Measurement], specification: Specification) -> list[Measurement]:
    """The measurements, those that took part with the ratios of the turns."""
    energies = {each.row: each.values["energy_j"] for each in measurements if each.row in finals.rows}
    factors: Mapping[int, float] = in_proportion(finals, energies)
    return [at_other_power(each, specification, factors.get(each.row, 1.0)) for each in measurements]


# --- inside -----------------------------------------------------------------------------------------------------------


def _who_plays(
    table: ResultTable, plan: SessionPlan, apart: Collection[int], left_s: float
) -> tuple[list[int], int | None, float]:
    """The indices of those for whose turns there is time, that of the library among them, and the seconds for it all.

    The vendor's library takes part whatever its rank, and is the last but one to be left out.
    """
    indices = contenders(table, plan.objective, apart)
    library = library_index(table, plan.space) if indices else None
    if library is not None and library not in indices:
        indices.append(library)

    spans_s = [_seconds(table.measurement(index)) for index in range(len(table))]
    least_s = LEAST_S if np.count_nonzero(spans_s) >= MANY else 0.0
    if library is not None:
        other = next((index for index in indices if index != library), library)
        least_s = max(WITH_LIBRARY_S, ROUNDS * _round_s(table, (other, library)))
    most_s = min(left_s, SECONDS, max(least_s, SHARE * sum(spans_s)))

    def least_rounds() -> int:
        return FIRST if library is not None and len(indices) == 2 else ROUNDS

    while len(indices) > 1 and least_rounds() * _round_s(table, indices) > most_s:
        indices.pop(-1 if indices[-1] != library or len(indices) == 2 else -2)
    return indices, library, most_s


def _in_time(found: Finals, by_library: int, rounds: Sequence[Round], left_s: float) -> list[int]:
    """The winner, the library, and of the others the best for whose turns there is time, by what windows really take.

    Windows of the turns may be longer than those before, and an answer against the library needs an interval.
    """
    each_s = found.seconds / sum(map(len, rounds))
    rows = list(dict.fromkeys((found.winner, by_library, *found.rows)))
    return rows[: max(2, int(left_s / ((ROUNDS - len(rounds)) * max(each_s, 1e-9))))]


def _turn(runner: Runner, rows: Sequence[int], stop: threading.Event) -> Round | None:
    """One measurement of each; None where it was stopped, or one that worked before fails now."""
    turn: dict[int, Measurement] = {}
    for row in rows:
        measured = next(iter(runner.measure([row], stop)), None)
        if measured is None or not _measured(measured):
            return None
        turn[row] = measured
    return turn


def _unsettled(found: Finals, by_library: int | None) -> set[int]:
    """Who goes on against the winner. Whoever wins is compared with the library, which stays as long as anyone does.

    How much the library is beaten by is an answer, too: it goes on until that is known.
    """
    wide = {each.row for each in found.others if each.row == by_library and not each.energy_half <= KNOWN}
    unsettled = {each.row for each in found.others if not each.settled} | wide
    return unsettled | ({by_library} if by_library is not None and unsettled else set())


def _measured(measurement: Measurement) -> bool:
    figures = (measurement.values.get(name, 0.0) for name in ("time_s", "energy_j"))
    return measurement.state is State.OK and measurement.window_ns is not None and all(value > 0 for value in figures)


def _round_s(table: ResultTable, indices: Collection[int]) -> float:
    return sum(_seconds(table.measurement(index)) + _BETWEEN_S for index in indices)


def _seconds(measurement: Measurement) -> float:
    start_ns, end_ns = measurement.window_ns or (0, 0)
    return (end_ns - start_ns) / 1e9
