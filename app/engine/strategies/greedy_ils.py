"""Greedy iterated local search: descend by the first better neighbour, then leap from the best and descend again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ..space.search_space import SearchSpace
from .base import Evaluations, Search, strategy
from .descent import descend
from .moves import check_least, check_share, check_within, fresh_near, random_walk


@strategy
class GreedyIls:
    """Descends, leaps a few random steps away, descends again; goes on from the better of the two minima."""

    name: ClassVar[str] = "greedy_ils"
    label: ClassVar[str] = "Greedy iterated local search"

    @dataclass(frozen=True)
    class Options:
        first_samples: int = field(
            default=20, metadata={"help": "random configurations at first; the best is the start"}
        )
        leap: int = field(default=2, metadata={"help": "random steps of a leap away from a local minimum, 1..1000"})
        restart_chance: float = field(default=0.1, metadata={"help": "chance to leap to a random configuration, 0..1"})

        def __post_init__(self) -> None:
            check_least("first_samples", self.first_samples, 1)
            check_within("leap", self.leap, 1, 1000)
            check_share("restart_chance", self.restart_chance)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        known = Evaluations(space)
        yield from known.ask(known.draw(rng, options.first_samples))
        yield from self.go_on(space, known, rng, batch, options)

    def go_on(
        self, space: SearchSpace, known: Evaluations, rng: np.random.Generator, batch: int, options: Options
    ) -> Search:
        """From the best that is known."""
        here = min(known, key=known.cost)
        home, home_cost = yield from descend(space, known, rng, batch, here, "first")
        while not known.exhausted:
            if rng.random() < options.restart_chance:
                home = known.draw(rng, 1)[0]
                home, home_cost = yield from descend(space, known, rng, batch, home, "first")
                continue
            start = fresh_near(space, known, rng, random_walk(space, rng, home, options.leap))
            found, cost = yield from descend(space, known, rng, batch, start, "first")
            if cost <= home_cost:
                home, home_cost = found, cost
