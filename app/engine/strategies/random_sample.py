"""Random sampling: uniform over the valid configurations, without repeats. The baseline of every comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..space.search_space import SearchSpace
from .base import Search, strategy


@strategy
class RandomSample:
    """Every configuration once, in random order."""

    name: ClassVar[str] = "random_sample"
    label: ClassVar[str] = "Random sampling"

    @dataclass(frozen=True)
    class Options:
        pass

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        order = np.arange(space.size, dtype=np.uint32)
        rng.shuffle(order)
        step = max(1, batch)
        for start in range(0, space.size, step):
            yield order[start : start + step].tolist()
