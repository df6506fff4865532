"""Latin-hypercube sampling: configurations that spread over the values of every parameter, one design after another."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ..space.search_space import SearchSpace
from .base import Evaluations, Search, strategy
from .moves import check_least


@strategy
class LatinHypercube:
    """Spreads over the values of every parameter, one design after another."""

    name: ClassVar[str] = "latin_hypercube"
    label: ClassVar[str] = "Latin hypercube"

    @dataclass(frozen=True)
    class Options:
        samples: int = field(default=100, metadata={"help": "configurations of one design"})

        def __post_init__(self) -> None:
            check_least("samples", self.samples, 1)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        known, step = Evaluations(space), max(1, batch)
        while not known.exhausted:
            design = [row for row in space.sample_latin_hypercube(rng, options.samples).tolist() if row not in known]
            design = list(dict.fromkeys([*design, *known.draw(rng, options.samples)]))[: options.samples]
            for start in range(0, len(design), step):
                yield from known.ask(design[start : start + step])
