"""Basin hopping, SciPy's: leaps from local minimum to local minimum, accepted as an annealer accepts steps."""

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
class BasinHopping:
    """SciPy's: leaps from local minimum to local minimum; starts anew when it learns nothing new."""

    name: ClassVar[str] = "basin_hopping"
    label: ClassVar[str] = "Basin hopping"

    @dataclass(frozen=True)
    class Options:
        starts: int = field(default=16, metadata={"help": "random configurations at first; the best is the start"})
        temperature: float = field(default=0.2, metadata={"help": "in units of the median's distance to the best"})
        leap: float = field(default=0.15, metadata={"help": "length of a leap, as a share of each parameter's range"})

        def __post_init__(self) -> None:
            check_least("starts", self.starts, 1)
            check_least("temperature", self.temperature, 0.0)
            check_least("leap", self.leap, 1e-3)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        def leap(point: Reals) -> Reals:
            return np.clip(point + rng.uniform(-options.leap, options.leap, len(point)), 0.0, 1.0)

        def hop(landscape: Landscape, points: Reals) -> None:
            scipy_optimize().basinhopping(
                landscape.cost,
                points[0],
                niter=_FOREVER,
                T=options.temperature,
                take_step=leap,
                seed=rng,
                minimizer_kwargs={"method": landscape.descent("hamming")},
            )

        return restarted(space, rng, options.starts, hop)
