"""Greedy iterated local search: descend by the first better neighbour, then leap from the best and descend again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..space.search_space import SearchSpace
from .base import CheckedOptions, Search, Strategy, option
from .evaluations import MOST_TOGETHER, Evaluations, abreast


class GreedyIls(Strategy, name="greedy_ils", label="Greedy iterated local search"):
    """Descends, leaps a few random steps away, descends again; continues from the better of the two minima."""

    @dataclass(frozen=True)
    class Options(CheckedOptions):
        first_samples: int = option(20, "random configurations at first; the best is the start", least=1)
        leap: int = option(2, "random steps of a leap away from a local minimum, 1..1000", least=1, most=1000)
        restart_chance: float = option(0.1, "chance to leap to a random configuration, 0..1", least=0, most=1)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        known = Evaluations(space, rng)
        yield from known.ask(known.draw(max(options.first_samples, self.background.boards())))
        yield from self.proceed(known, batch, options)

    def proceed(self, known: Evaluations, batch: int, options: Options) -> Search:
        """Continue from the best known row. Where several boards measure, each has a walk of its own from there."""
        boards = self.background.boards()
        together = max(1, min(batch, MOST_TOGETHER)) if boards == 1 else 1
        yield from abreast([self._walk(known, together, options) for _ in range(boards)])

    def _walk(self, known: Evaluations, together: int, options: Options) -> Search:
        home, home_cost = yield from known.descend(min(known, key=known.cost), "first", together)
        while not known.exhausted:
            if known.rng.random() < options.restart_chance:
                home, home_cost = yield from known.descend(known.draw(1)[0], "first", together)
                continue
            start = known.fresh_near(known.random_walk(home, options.leap))
            found, cost = yield from known.descend(start, "first", together)
            if cost <= home_cost:
                home, home_cost = found, cost
