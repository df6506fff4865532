"""Simulated annealing: a walk that takes worse steps less and less often as it cools, then starts anew."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ..space.search_space import SearchSpace
from .base import Evaluations, Search, strategy
from .moves import check_least, unseen_neighbours


@strategy
class SimulatedAnnealing:
    """Steps to the best of a few neighbours, to a worse one less and less often as it cools; then starts anew."""

    name: ClassVar[str] = "simulated_annealing"
    label: ClassVar[str] = "Simulated annealing"

    @dataclass(frozen=True)
    class Options:
        first_samples: int = field(default=16, metadata={"help": "random configurations before each walk"})
        neighbours: int = field(default=8, metadata={"help": "measured as one batch; the best of them is the step"})
        start_temperature: float = field(
            default=0.1, metadata={"help": "in units of the median's distance to the best"}
        )
        end_temperature: float = field(default=0.005, metadata={"help": "below it the walk starts anew"})
        cooling: float = field(default=0.95, metadata={"help": "temperature after a step over before, between 0 and 1"})

        def __post_init__(self) -> None:
            check_least("first_samples", self.first_samples, 1)
            check_least("neighbours", self.neighbours, 1)
            check_least("end_temperature", self.end_temperature, 1e-9)
            check_least("start_temperature", self.start_temperature, self.end_temperature)
            if not 0 < self.cooling < 1:
                raise ValueError(f"cooling must lie between 0 and 1, not {self.cooling}")

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        known = Evaluations(space)
        while not known.exhausted:
            first = known.draw(rng, options.first_samples)
            costs = yield from known.ask(first)
            here, cost = first[int(np.argmin(costs))], min(costs)
            temperature, spread = options.start_temperature, _spread(known)
            while temperature >= options.end_temperature:
                steps = unseen_neighbours(space, known, rng, here, "hamming")[: options.neighbours]
                if not steps:
                    break
                costs = yield from known.ask(steps)
                at = int(np.argmin(costs))
                if rng.random() < _chance(cost, costs[at], temperature * spread):
                    here, cost = steps[at], costs[at]
                temperature *= options.cooling


def _spread(known: Evaluations) -> float:
    """How far the median lies from the best, failed configurations left out; 1 where nothing tells."""
    finite = [cost for cost in known.costs() if math.isfinite(cost)]
    spread = float(np.median(finite)) - min(finite) if finite else 0.0
    return spread if 0 < spread < math.inf else 1.0


def _chance(here: float, there: float, temperature: float) -> float:
    """Metropolis: 1 for a better or equal step, exp(-rise / temperature) for a worse one."""
    if there <= here:
        return 1.0
    rise = there - here  # inf where the step failed
    return math.exp(-rise / temperature)
