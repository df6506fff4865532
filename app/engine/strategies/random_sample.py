"""Random sampling: uniform over the valid configurations, without repeats. The baseline of every comparison."""

from __future__ import annotations

import numpy as np

from ..space.search_space import SearchSpace
from .base import CheckedOptions, Search, Strategy


class RandomSample(Strategy, name="random_sample", label="Random sampling"):
    """Every configuration once, in random order."""

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: CheckedOptions) -> Search:
        order = np.arange(space.size, dtype=np.uint32)
        rng.shuffle(order)
        step = max(1, batch)
        for start in range(0, space.size, step):
            yield order[start : start + step].tolist()
