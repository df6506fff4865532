"""Differential evolution: children lie off the best of a population by the difference of two others.

SciPy's over the same box did worse on recorded spaces: it keeps asking for what is known.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ..space.search_space import SearchSpace
from .base import Evaluations, Search, strategy
from .box import Box, Reals
from .moves import check_least, check_share, fresh_near


@strategy
class DifferentialEvolution:
    """Steps off the best along the differences of a population; a child replaces the parent it is better than."""

    name: ClassVar[str] = "differential_evolution"
    label: ClassVar[str] = "Differential evolution"

    @dataclass(frozen=True)
    class Options:
        first_samples: int = field(default=24, metadata={"help": "random configurations; the best are the population"})
        population_size: int = field(default=8, metadata={"help": "configurations per generation, at least 3"})
        recombination: float = field(default=0.9, metadata={"help": "chance that a value comes from the step, 0..1"})

        def __post_init__(self) -> None:
            check_least("first_samples", self.first_samples, 3)
            check_least("population_size", self.population_size, 3)
            check_share("recombination", self.recombination)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        known, box = Evaluations(space), Box(space)
        first = known.draw(rng, options.first_samples)
        first_costs = np.asarray((yield from known.ask(first)))
        best = np.argsort(first_costs, kind="stable")[: options.population_size]
        place, costs = box.points(first)[best], first_costs[best]
        while not known.exhausted:
            children = box.rows(_children(place, int(costs.argmin()), rng, options.recombination))
            rows = [fresh_near(space, known, rng, row) for row in children]
            child_costs = np.asarray((yield from known.ask(rows)))
            better = child_costs <= costs
            place[better], costs[better] = box.points(rows)[better], child_costs[better]


def _children(place: Reals, best: int, rng: np.random.Generator, recombination: float) -> Reals:
    """One child of each: best/1/bin with a factor drawn from 0.5 to 1; values that leave the box are drawn anew."""
    count, dimensions = place.shape
    one, other = rng.integers(count, size=(2, count))
    steps = place[best] + rng.uniform(0.5, 1.0, (count, 1)) * (place[one] - place[other])
    taken = rng.random(place.shape) < recombination
    taken[np.arange(count), rng.integers(dimensions, size=count)] = True
    child = np.where(taken, steps, place)
    return np.where((child < 0) | (child > 1), rng.random(place.shape), child)
