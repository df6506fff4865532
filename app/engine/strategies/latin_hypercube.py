"""Latin-hypercube sampling: configurations that spread over the values of every parameter, one design after another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..space.search_space import SearchSpace
from .base import CheckedOptions, Search, Strategy, option
from .evaluations import Evaluations


class LatinHypercube(Strategy, name="latin_hypercube", label="Latin hypercube"):
    """Spreads over the values of every parameter, one design after another."""

    @dataclass(frozen=True)
    class Options(CheckedOptions):
        samples: int = option(100, "configurations of one design", least=1)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        known, step = Evaluations(space, rng), max(1, batch)
        while not known.exhausted:
            design = [row for row in space.sample_latin_hypercube(rng, options.samples).tolist() if row not in known]
            design = list(dict.fromkeys([*design, *known.draw(options.samples)]))[: options.samples]
            for start in range(0, len(design), step):
                yield from known.ask(design[start : start + step])
