"""Multi-start local search: descend, and restart elsewhere at every local minimum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..space.search_space import SearchSpace
from .base import CheckedOptions, Search, Strategy, option
from .evaluations import MOST_TOGETHER, Evaluations, Step


class _MultiStart(Strategy):
    step: ClassVar[Step]

    def __init_subclass__(cls, *, step: Step, **shown: str) -> None:
        super().__init_subclass__(**shown)
        cls.step = step

    @dataclass(frozen=True)
    class Options(CheckedOptions):
        starts: int = option(16, "random configurations before each descent", least=1)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        known = Evaluations(space, rng)
        while not known.exhausted:
            start, _ = yield from known.best_of_random(options.starts)
            yield from known.descend(start, self.step, self.at_once(batch, MOST_TOGETHER))


class Mls(_MultiStart, name="mls", label="Multi-start local search", step="best"):
    """Goes to the best of all neighbours until none is better, then restarts elsewhere."""


class GreedyMls(_MultiStart, name="greedy_mls", label="Greedy multi-start local search", step="first"):
    """Goes to the first better neighbour, in random order, until there is none, then restarts elsewhere."""


class OrderedGreedyMls(
    _MultiStart, name="ordered_greedy_mls", label="Ordered greedy multi-start local search", step="ordered"
):
    """Goes to the first better neighbour, parameter by parameter as they were written, then restarts elsewhere."""
