"""The arms of an operator's search on one runner: what one has measured of a row, the next is told, and is charged for.

So the arms differ in what they ask for and not in how a row's figures scattered, and a board's time is spent once.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from app.engine.results.measurement import Depth, Measurement, State
from app.engine.results.objectives import Goal, Objective
from app.engine.runner.base import PreparationFailed, Runner
from app.engine.runner.boards import InProcess
from app.engine.session.run import run_session
from app.engine.specification.plan import SessionPlan
from app.engine.store.database import Store

Measure = Callable[..., Iterator[Measurement]]


@dataclass
class Spent:
    """By one arm, as if it had been alone: rows, and the board's seconds for them."""

    timed: int = 0
    timing_s: float = 0.0
    energies: int = 0
    energy_s: float = 0.0
    reused_s: float = 0.0  # of these, what an earlier arm has spent

    @property
    def board_s(self) -> float:
        return self.timing_s + self.energy_s


class Shared:
    """A runner for several sessions, one after the other, that asks the board for each row and depth once."""

    def __init__(self, runner: Any) -> None:
        self.runner = runner
        self.spent = Spent()
        self.known: dict[tuple[int, Depth], Measurement] = {}
        self._charged: set[tuple[int, Depth]] = set()
        self._close: Callable[[], None] = runner.close
        self.measure_now: Measure = runner.measure
        runner.measure = self._look
        runner.close = lambda: None

    def lend(self) -> Runner:
        """To the next session, which owes nothing yet."""
        self.spent, self._charged = Spent(), set()
        lent: Runner = self.runner
        return lent

    def start(self, rows: Sequence[int]) -> float:
        """Have the board prepared and these rows timed, or measured where nothing is cheaper; the seconds it took."""
        began, stop = time.monotonic(), threading.Event()
        with suppress(PreparationFailed):  # as in a session: it can measure all the same
            self.runner.prepare(rows, stop, lambda *step: None)
        for _ in self.runner.measure(list(rows), stop, Depth.TIME if self.runner.timed else Depth.ENERGY):
            pass
        return time.monotonic() - began

    def close(self) -> None:
        self._close()

    def _look(self, rows: Sequence[int], stop: threading.Event, depth: Depth = Depth.ENERGY) -> Iterator[Measurement]:
        for row in rows:
            if (kept := self.known.get((row, depth))) is not None:
                self._charge(row, depth, kept, reused=True)
                yield kept
        for found in self.measure_now([row for row in rows if (row, depth) not in self.known], stop, depth):
            self.known[found.row, depth] = found
            self._charge(found.row, depth, found, reused=False)
            yield found

    def _charge(self, row: int, depth: Depth, found: Measurement, *, reused: bool) -> None:
        """Once for each row and depth: a session looks at its first rows again at its end."""
        if (row, depth) in self._charged:
            return
        self._charged.add((row, depth))
        spent = self.spent
        if depth is Depth.TIME:
            spent.timed, spent.timing_s = spent.timed + 1, spent.timing_s + found.cost_s
        else:
            spent.energies, spent.energy_s = spent.energies + 1, spent.energy_s + found.cost_s
        spent.reused_s += found.cost_s * reused


@dataclass
class Searched:
    """What came of an arm."""

    session: int
    ended: str
    spent: Spent
    wall_s: float
    best: dict[int, tuple[float, float]]  # row -> (time, energy) of all that was measured in full
    fastest: int | None  # the row of least time, of all that was timed or measured
    fastest_s: float
    origin: Mapping[str, str]  # with the log of the search


def run_arm(
    plan: SessionPlan,
    options: Mapping[str, Any],
    goal: str,
    shared: Shared,
    store: Store,
    until_s: float,
) -> Searched:
    """One session of `energy_aware`, which ends at the latest at `until_s` of the monotonic clock."""
    stop = threading.Event()
    timer = threading.Timer(max(0.1, until_s - time.monotonic()), stop.set)
    front = (Goal("time_s", False), Goal("energy_j", False))
    asked = replace(
        plan,
        strategy="energy_aware",
        strategy_options=dict(options),
        objective=Objective(Goal(goal, False), front),
        max_evaluations=None,
        boards=InProcess(lambda _: shared.lend()),
    )
    began = time.monotonic()
    timer.start()
    try:
        result = run_session(asked, store, lambda event: None, stop)
    finally:
        timer.cancel()
    worked = [m for m in map(result.table.measurement, range(len(result.table))) if m.state is State.OK]
    fastest = min(worked, key=lambda m: m.values["time_s"], default=None)
    return Searched(
        session=result.session,
        ended=result.reason,
        spent=shared.spent,
        wall_s=time.monotonic() - began,
        best={m.row: (m.values["time_s"], m.values["energy_j"]) for m in worked if "energy_j" in m.values},
        fastest=fastest.row if fastest is not None else None,
        fastest_s=fastest.values["time_s"] if fastest is not None else math.nan,
        origin=result.plan.origin,
    )
