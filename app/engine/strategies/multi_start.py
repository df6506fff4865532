"""Multi-start local search: descend, and start anew elsewhere at every local minimum."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ..space.search_space import SearchSpace
from .base import Evaluations, Search, strategy
from .descent import Step, descend
from .moves import check_least


@dataclass(frozen=True)
class MultiStartOptions:
    """Options of every strategy here."""

    starts: int = field(default=16, metadata={"help": "random configurations before each descent"})

    def __post_init__(self) -> None:
        check_least("starts", self.starts, 1)


class _MultiStart:
    step: ClassVar[Step]
    Options = MultiStartOptions

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: MultiStartOptions) -> Search:
        known = Evaluations(space)
        while not known.exhausted:
            starts = known.draw(rng, options.starts)
            costs = yield from known.ask(starts)
            yield from descend(space, known, rng, batch, starts[int(np.argmin(costs))], self.step)


@strategy
class Mls(_MultiStart):
    """Goes to the best of all neighbours until none is better, then starts anew."""

    name: ClassVar[str] = "mls"
    label: ClassVar[str] = "Multi-start local search"
    step = "best"


@strategy
class GreedyMls(_MultiStart):
    """Goes to the first better neighbour, in random order, until there is none, then starts anew."""

    name: ClassVar[str] = "greedy_mls"
    label: ClassVar[str] = "Greedy multi-start local search"
    step = "first"


@strategy
class OrderedGreedyMls(_MultiStart):
    """Goes to the first better neighbour, parameter by parameter as they were written, then starts anew."""

    name: ClassVar[str] = "ordered_greedy_mls"
    label: ClassVar[str] = "Ordered greedy multi-start local search"
    step = "ordered"
