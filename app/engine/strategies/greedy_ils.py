"""Greedy iterated local search: descend by the first better neighbour, then leap from the best and descend again."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from app.engine.space.search_space import SearchSpace
from app.engine.strategies.base import Evaluations, Outcome, Search, strategy
from app.engine.strategies.moves import check_least, check_share, random_walk, unseen_neighbours, unseen_rows


@strategy
class GreedyIls:
    """Local minima one after another; the better of two neighbouring ones is where the next leap starts."""

    name: ClassVar[str] = "greedy_ils"
    label: ClassVar[str] = "Greedy iterated local search"

    @dataclass(frozen=True)
    class Options:
        first_samples: int = field(
            default=10, metadata={"help": "random configurations at first; the best is the start"}
        )
        leap: int = field(default=2, metadata={"help": "random steps of a leap away from a local minimum, at least 1"})
        restart_chance: float = field(default=0.1, metadata={"help": "chance to leap to a random configuration, 0..1"})

        def __post_init__(self) -> None:
            check_least("first_samples", self.first_samples, 1)
            check_least("leap", self.leap, 1)
            check_share("restart_chance", self.restart_chance)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        known = Evaluations(space)
        first = unseen_rows(space, known, rng, options.first_samples)
        costs = yield from known.ask(first)
        here = first[int(np.argmin(costs))]
        home, home_cost = yield from self._descend(space, known, rng, batch, here)
        while not known.exhausted:
            if rng.random() < options.restart_chance:
                home = unseen_rows(space, known, rng, 1)[0]
                home, home_cost = yield from self._descend(space, known, rng, batch, home)
                continue
            start = random_walk(space, rng, home, options.leap)
            if start in known:
                near = unseen_neighbours(space, known, rng, start, "hamming")
                start = near[0] if near else unseen_rows(space, known, rng, 1)[0]
            found, cost = yield from self._descend(space, known, rng, batch, start)
            if cost <= home_cost:
                home, home_cost = found, cost

    def _descend(
        self, space: SearchSpace, known: Evaluations, rng: np.random.Generator, batch: int, row: int
    ) -> Generator[list[int], Sequence[Outcome], tuple[int, float]]:
        """Follow better neighbours, a few looked at together, until there is none; the local minimum and its cost."""
        (cost,) = yield from known.ask([row])
        together = max(1, min(batch, 4))
        improved = True
        while improved:
            improved = False
            neighbours = rng.permutation(space.neighbours(row)).tolist()
            neighbours.sort(key=lambda near: near not in known)  # what is known costs nothing
            for start in range(0, len(neighbours), together):
                group = neighbours[start : start + together]
                costs = yield from known.ask(group)
                best = int(np.argmin(costs))
                if costs[best] < cost:
                    row, cost, improved = group[best], costs[best], True
                    break
        return row, cost
