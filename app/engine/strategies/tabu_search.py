"""Tabu search: always on to the best neighbour that was not visited lately, also where it is worse."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ..space.search_space import SearchSpace
from .base import Evaluations, Search, strategy
from .moves import check_least


@strategy
class TabuSearch:
    """Goes to the best of a few neighbours, worse or not, never back; starts anew after a while without success."""

    name: ClassVar[str] = "tabu_search"
    label: ClassVar[str] = "Tabu search"

    @dataclass(frozen=True)
    class Options:
        first_samples: int = field(default=24, metadata={"help": "random configurations before each start"})
        candidates: int = field(default=8, metadata={"help": "new neighbours looked at in each step"})
        tenure: int = field(default=20, metadata={"help": "steps for which a visited configuration is tabu"})
        patience: int = field(default=5, metadata={"help": "steps without a better one before a new start"})

        def __post_init__(self) -> None:
            check_least("first_samples", self.first_samples, 1)
            check_least("candidates", self.candidates, 1)
            check_least("tenure", self.tenure, 1)
            check_least("patience", self.patience, 1)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        known = Evaluations(space)
        while not known.exhausted:
            starts = known.draw(rng, options.first_samples)
            costs = yield from known.ask(starts)
            here = starts[int(np.argmin(costs))]
            best, stale = min(costs), 0
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
