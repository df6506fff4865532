"""What the strategies that learn a model of the costs share: their options, and the first sample they learn from."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..space.search_space import SearchSpace
from .base import Evaluations, Search
from .moves import check_least


@dataclass(frozen=True)
class LearningOptions:
    """Options of every strategy that learns."""

    first_samples: int = field(
        default=10, metadata={"help": "configurations of the first Latin-hypercube sample, at least 2"}
    )
    together: int = field(
        default=4, metadata={"help": "most configurations proposed at once, at least 1; fewer learn more each"}
    )

    def __post_init__(self) -> None:
        check_least("first_samples", self.first_samples, 2)
        check_least("together", self.together, 1)


class Learning(ABC):
    """Measures a Latin hypercube first, then goes on with what it learnt."""

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Any) -> Search:
        known = Evaluations(space)
        yield from known.ask(space.sample_latin_hypercube(rng, options.first_samples).tolist())
        yield from self.go_on(space, known, rng, batch, options)

    @abstractmethod
    def go_on(
        self,
        space: SearchSpace,
        known: Evaluations,
        rng: np.random.Generator,
        batch: int,
        options: Any,
        until: float = math.inf,
    ) -> Search:
        """With what is known, one row at least, until so many rows are, or all."""
