"""What every strategy must do on any space, at both depths: run by `test_strategies.py` over all registered ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from app.engine.results.measurement import Depth, State
from app.engine.space.build import build_space, space_of_table
from app.engine.space.search_space import SearchSpace
from app.engine.strategies.base import Batch, Outcome, Strategy
from app.sensors.limits import limits_of

Cost = Callable[[int], float]


@dataclass(frozen=True)
class Problem:
    """A space and what its rows cost; inf is a failed configuration."""

    space: SearchSpace
    cost: Cost
    budget: int  # evaluations after which the generator is closed
    time: Cost | None = None  # seconds of a launch, where the runner can time rows and the cost needs their energy too

    def outcomes(self, rows: Sequence[int]) -> list[Outcome]:
        """What the session sends of a batch: deeper than it asked for where rows cannot be timed."""
        timed = Batch.of(rows).depth is Depth.TIME and self.time is not None
        return [self._outcome(row, timed) for row in rows]

    def _outcome(self, row: int, timed: bool) -> Outcome:
        cost, depth = self.cost(row), Depth.TIME if timed else Depth.ENERGY
        if cost == math.inf:
            return Outcome(row, cost, State.RUNTIME, depth=depth)
        values = {} if self.time is None else {"time_s": self.time(row)}
        return Outcome(row, math.nan if timed else cost, State.OK, values=values, depth=depth)


@dataclass(frozen=True)
class Run:
    """The rows a strategy proposed, batch by batch, what it heard of them, and whether it ended by itself."""

    batches: list[Batch] = field(default_factory=list)
    heard: dict[int, Outcome] = field(default_factory=dict)  # row -> the latest; in the order in which rows were final
    ended: bool = False

    @property
    def rows(self) -> list[int]:
        """Those of which nothing more could be asked, in the order in which that was so."""
        return [row for row, outcome in self.heard.items() if outcome.final]

    @property
    def timed(self) -> list[int]:
        """Those that were only timed in the end."""
        return [row for row, outcome in self.heard.items() if not outcome.final]

    def hear(self, batch: Batch, outcomes: Sequence[Outcome]) -> None:
        self.batches.append(batch)
        for outcome in outcomes:
            self.heard.pop(outcome.row, None)
            self.heard[outcome.row] = outcome


def run(strategy: Strategy, problem: Problem, seed: int = 1, batch: int = 8) -> Run:
    """Drive a strategy as the tuner does, and check at every batch what must hold for it."""
    search = strategy.search(problem.space, np.random.default_rng(seed), batch, strategy.Options())
    found = Run()
    try:
        rows = next(search)
        while True:
            batch = Batch.of(rows)
            assert batch, "an empty batch"
            assert all(type(row) is int for row in batch), "rows are plain integers"
            assert all(0 <= row < problem.space.size for row in batch), "a row outside the space"
            assert len(set(batch)) == len(batch), "a row twice in one batch"
            known = {row: found.heard[row] for row in batch if row in found.heard}
            assert not any(each.final for each in known.values()), "a row that failed or was measured before"
            assert not known or batch.depth is Depth.ENERGY, "a row that was timed before"
            outcomes = problem.outcomes(batch)
            found.hear(batch, outcomes)
            if len(found.rows) >= problem.budget:
                search.close()
                return found
            rows = search.send(outcomes)
    except StopIteration:
        return replace(found, ended=True)


def _space(restrictions: Sequence[str] = (), **parameters: object) -> SearchSpace:
    return build_space(parameters, list(restrictions), {}, limits_of((8, 0)))  # type: ignore[arg-type]


def _bowl(space: SearchSpace) -> Cost:
    centre = np.array([len(p.values) / 3 for p in space.parameters])
    return lambda row: float(((space.codes[row] - centre) ** 2).sum())


def _noisy(row: int) -> float:
    return float(np.random.default_rng(row).normal())


def _every_second(row: int) -> float:
    return math.inf if row % 2 else _noisy(row)


def problems() -> dict[str, Problem]:
    """Spaces that are small, odd or hostile, and large ones of which only a little is looked at."""
    tiny = _space(a=[1, 2], b=[1, 2])
    line = _space(a=list(range(40)))
    words = _space(layout=["row", "column", "tiled"], mode=["x", "y"], n=[4, 1, 2])
    cube = _space(a=list(range(5)), b=list(range(4)), c=list(range(2)))
    lonely = space_of_table({"a": list(range(20)), "b": list(range(20))}, [(i, i) for i in range(20)])
    large = _space(a=list(range(100)), b=list(range(100)), c=list(range(10)))
    thinned = _space(["(a + 2 * b + c) % 3 != 0"], a=list(range(150)), b=list(range(100)), c=list(range(35)))
    return {
        "tiny": Problem(tiny, _bowl(tiny), 100),
        "one row": Problem(_space(a=7), lambda row: 1.0, 100),
        "one parameter": Problem(line, _bowl(line), 100),
        "categorical": Problem(words, _bowl(words), 100),
        "all failing": Problem(cube, lambda row: math.inf, 100),
        "half failing": Problem(cube, _every_second, 100),
        "tied": Problem(cube, lambda row: 1.0, 100),
        "timed": Problem(line, _bowl(line), 100, time=lambda row: 1e-3 + _bowl(line)(row) / 1e4),
        "timed, and that says nothing": Problem(cube, _noisy, 100, time=lambda row: 2.0 ** _noisy(row + 1000)),
        "timed, half failing": Problem(cube, _every_second, 100, time=lambda row: 1.0 + row),
        "timed, 100,000 rows": Problem(large, _bowl(large), 60, time=lambda row: 1.0 + _bowl(large)(row)),
        "noisy": Problem(cube, _noisy, 100),
        "huge and tiny costs": Problem(cube, lambda row: 10.0 ** (300 - 15 * row), 100),
        "without neighbours": Problem(lonely, _bowl(lonely), 100),
        "100,000 rows": Problem(large, _bowl(large), 60),
        "350,000 rows": Problem(thinned, _bowl(thinned), 60),
    }
