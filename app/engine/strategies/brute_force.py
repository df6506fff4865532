"""Brute force: every valid configuration, in the order of the table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from app.engine.space.search_space import SearchSpace
from app.engine.strategies.base import Search, strategy


@strategy
class BruteForce:
    """Looks at all rows, first to last."""

    name: ClassVar[str] = "brute_force"
    label: ClassVar[str] = "Brute force"

    @dataclass(frozen=True)
    class Options:
        pass

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        step = max(1, batch)
        for start in range(0, space.size, step):
            yield list(range(start, min(start + step, space.size)))
