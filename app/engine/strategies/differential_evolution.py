"""Differential evolution, SciPy's, over whole numbers: a generation is measured as one batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from app.engine.space.search_space import SearchSpace
from app.engine.strategies.base import Search, strategy
from app.engine.strategies.blocking import Landscape, restarted, scipy_optimize
from app.engine.strategies.box import Reals
from app.engine.strategies.moves import check_least, check_share

_FOREVER = 1_000_000
_STUCK = 20  # generations that bring nothing new
_LEAST = 5  # SciPy's smallest population


@strategy
class DifferentialEvolution:
    """SciPy's: steps along the differences of a population; starts anew when it learns nothing new."""

    name: ClassVar[str] = "differential_evolution"
    label: ClassVar[str] = "Differential evolution"

    @dataclass(frozen=True)
    class Options:
        population_size: int = field(default=15, metadata={"help": "configurations per generation, at least 5"})
        recombination: float = field(default=0.7, metadata={"help": "chance that a value comes from the mutant, 0..1"})

        def __post_init__(self) -> None:
            check_least("population_size", self.population_size, 5)
            check_share("recombination", self.recombination)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        def evolve(landscape: Landscape, points: Reals) -> None:
            def costs(generation: Reals) -> Reals:
                return landscape.costs(generation.T)  # one column each

            scipy_optimize().differential_evolution(
                costs,
                landscape.bounds,
                maxiter=_FOREVER,
                tol=0.0,
                atol=-1.0,  # never converged: what learns nothing new is ended elsewhere
                init=np.resize(points, (max(_LEAST, len(points)), points.shape[1])),
                recombination=options.recombination,
                seed=rng,
                polish=False,
                updating="deferred",
                vectorized=True,
            )

        return restarted(space, rng, options.population_size, evolve, patience=_STUCK)
