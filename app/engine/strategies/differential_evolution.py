"""Differential evolution: children lie off the best of a population by the difference of two others.

SciPy's over the same box did worse on recorded spaces: it keeps asking for what is known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..space.search_space import SearchSpace
from .base import CheckedOptions, Search, Strategy, option
from .box import Box, Reals
from .evaluations import Evaluations


class DifferentialEvolution(Strategy, name="differential_evolution", label="Differential evolution"):
    """Steps off the best along the differences of a population; a child replaces the parent it is better than."""

    @dataclass(frozen=True)
    class Options(CheckedOptions):
        first_samples: int = option(24, "random configurations; the best are the population", least=3)
        population_size: int = option(8, "configurations per generation, at least 3", least=3)
        recombination: float = option(0.9, "chance that a value comes from the step, 0..1", least=0, most=1)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        known, box = Evaluations(space, rng), Box(space)
        first = known.draw(options.first_samples)
        first_costs = np.asarray((yield from known.ask(first)))
        best = np.argsort(first_costs, kind="stable")[: options.population_size]
        place, costs = box.points(first)[best], first_costs[best]
        while not known.exhausted:
            children = box.rows(_children(place, int(costs.argmin()), rng, options.recombination))
            rows = [known.fresh_near(row) for row in children]
            child_costs = np.asarray((yield from known.ask(rows)))
            better = child_costs <= costs
            place[better], costs[better] = box.points(rows)[better], child_costs[better]


def _children(place: Reals, best: int, rng: np.random.Generator, recombination: float) -> Reals:
    """One child of each: best/1/bin with a factor drawn from 0.5 to 1; values outside the box are drawn at random."""
    count, dimensions = place.shape
    one, other = rng.integers(count, size=(2, count))
    steps = place[best] + rng.uniform(0.5, 1.0, (count, 1)) * (place[one] - place[other])
    crossed = rng.random(place.shape) < recombination
    crossed[np.arange(count), rng.integers(dimensions, size=count)] = True
    child = np.where(crossed, steps, place)
    return np.where((child < 0) | (child > 1), rng.random(place.shape), child)
