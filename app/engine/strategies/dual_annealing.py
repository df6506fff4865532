"""Dual annealing, SciPy's: generalised annealing over the whole box, with a local search from what it finds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ..space.search_space import SearchSpace
from .base import Search, strategy
from .blocking import Landscape, restarted, scipy_optimize
from .box import Reals
from .moves import check_least

_FOREVER = 1_000_000


@strategy
class DualAnnealing:
    """SciPy's: jumps over the whole space, long ones less and less often; starts anew when it learns nothing new."""

    name: ClassVar[str] = "dual_annealing"
    label: ClassVar[str] = "Dual annealing"

    @dataclass(frozen=True)
    class Options:
        starts: int = field(default=16, metadata={"help": "random configurations at first; the best is the start"})
        local_search: bool = field(default=True, metadata={"help": "descend to a local minimum from what it finds"})

        def __post_init__(self) -> None:
            check_least("starts", self.starts, 1)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        def anneal(landscape: Landscape, points: Reals) -> None:
            scipy_optimize().dual_annealing(
                landscape.cost,
                landscape.bounds,
                maxiter=_FOREVER,
                maxfun=_FOREVER,
                x0=points[0],
                seed=rng,
                no_local_search=not options.local_search,
                minimizer_kwargs={"method": landscape.descent("adjacent")},
            )

        return restarted(space, rng, options.starts, anneal)
