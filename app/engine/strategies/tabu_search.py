"""Tabu search: always on to the best neighbour that was not visited lately, also where it is worse."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from ..space.search_space import SearchSpace
from .base import CheckedOptions, Search, Strategy, option
from .evaluations import Evaluations


class TabuSearch(Strategy, name="tabu_search", label="Tabu search"):
    """Goes to the best of a few neighbours, worse or not, never back; restarts after a while without success."""

    @dataclass(frozen=True)
    class Options(CheckedOptions):
        first_samples: int = option(24, "random configurations before each start", least=1)
        candidates: int = option(8, "new neighbours measured in each step", least=1)
        tenure: int = option(20, "steps for which a visited configuration is tabu", least=1)
        patience: int = option(5, "steps without a better one before a new start", least=1)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        known = Evaluations(space, rng)
        while not known.exhausted:
            here, best = yield from known.best_of_random(options.first_samples)
            stale = 0
            tabu: deque[int] = deque([here], maxlen=options.tenure)
            while stale < options.patience and not known.exhausted:
                near = [row for row in rng.permutation(space.neighbours(here)).tolist() if row not in tabu]
                fresh = [row for row in near if row not in known][: options.candidates]
                around = [*fresh, *(row for row in near if row in known)]
                if not around:
                    break
                costs = yield from known.ask(around)
                at = int(np.argmin(costs))
                here = around[at]
                tabu.append(here)
                best, stale = (costs[at], 0) if costs[at] < best else (best, stale + 1)
