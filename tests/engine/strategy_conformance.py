"""What every strategy must do on any space: run by `test_strategies.py` over all that are registered."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from app.engine.measurement import State
from app.engine.space.build import build_space, space_of_table
from app.engine.space.search_space import SearchSpace
from app.engine.strategies.base import Outcome, Strategy
from app.sensors.device_limits import limits_of

Cost = Callable[[int], float]


@dataclass(frozen=True)
class Problem:
    """A space and what its rows cost; inf is a failed configuration."""

    space: SearchSpace
    cost: Cost
    budget: int  # evaluations after which the generator is closed

    def outcomes(self, rows: Sequence[int]) -> list[Outcome]:
        costs = [self.cost(row) for row in rows]
        return [
            Outcome(row, c, State.OK if c < math.inf else State.RUNTIME) for row, c in zip(rows, costs, strict=True)
        ]


@dataclass(frozen=True)
class Run:
    """The rows a strategy proposed, batch by batch, and whether it ended by itself."""

    batches: list[list[int]]
    ended: bool

    @property
    def rows(self) -> list[int]:
        return [row for batch in self.batches for row in batch]


def run(strategy: Strategy, problem: Problem, seed: int = 1, batch: int = 8) -> Run:
    """Drive a strategy as the tuner does, and check at every batch what must hold for it."""
    search = strategy.search(problem.space, np.random.default_rng(seed), batch, strategy.Options())
    batches: list[list[int]] = []
    seen: set[int] = set()
    try:
        rows = next(search)
        while True:
            assert rows, "an empty batch"
            assert all(type(row) is int for row in rows), "rows are plain integers"
            assert all(0 <= row < problem.space.size for row in rows), "a row outside the space"
            assert len(set(rows)) == len(rows), "a row twice in one batch"
            assert not seen.intersection(rows), "a row that was measured before"
            seen.update(rows)
            batches.append(list(rows))
            if len(seen) >= problem.budget:
                search.close()
                return Run(batches, ended=False)
            rows = search.send(problem.outcomes(rows))
    except StopIteration:
        return Run(batches, ended=True)


def _space(restrictions: Sequence[str] = (), **parameters: object) -> SearchSpace:
    return build_space(parameters, list(restrictions), {}, limits_of((8, 0)))  # type: ignore[arg-type]


def _bowl(space: SearchSpace) -> Cost:
    centre = np.array([len(p.values) / 3 for p in space.parameters])
    return lambda row: float(((space.codes[row] - centre) ** 2).sum())


def _noisy(row: int) -> float:
    return float(np.random.default_rng(row).normal())


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
        "half failing": Problem(cube, lambda row: math.inf if row % 2 else _noisy(row), 100),
        "tied": Problem(cube, lambda row: 1.0, 100),
        "noisy": Problem(cube, _noisy, 100),
        "huge and tiny costs": Problem(cube, lambda row: 10.0 ** (300 - 15 * row), 100),
        "without neighbours": Problem(lonely, _bowl(lonely), 100),
        "100,000 rows": Problem(large, _bowl(large), 60),
        "350,000 rows": Problem(thinned, _bowl(thinned), 60),
    }
