"""Simulated annealing: a walk that takes worse steps less and less often as it cools, then restarts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..space.search_space import SearchSpace
from .base import CheckedOptions, Search, Strategy, option
from .evaluations import Evaluations


class SimulatedAnnealing(Strategy, name="simulated_annealing", label="Simulated annealing"):
    """Steps to the best of a few neighbours, to a worse one less and less often as it cools; then restarts."""

    @dataclass(frozen=True)
    class Options(CheckedOptions):
        first_samples: int = option(16, "random configurations before each walk", least=1)
        neighbours: int = option(8, "measured as one batch; the best of them is the step", least=1)
        start_temperature: float = option(0.1, "in units of the median's distance to the best")
        end_temperature: float = option(0.005, "below it the walk restarts", least=1e-9)
        cooling: float = option(0.95, "temperature after a step over before, between 0 and 1")

        def __post_init__(self) -> None:
            super().__post_init__()
            if not self.start_temperature >= self.end_temperature:
                raise ValueError(
                    f"start_temperature must be at least {self.end_temperature}, not {self.start_temperature}"
                )
            if not 0 < self.cooling < 1:
                raise ValueError(f"cooling must lie between 0 and 1, not {self.cooling}")

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        known = Evaluations(space, rng)
        while not known.exhausted:
            here, cost = yield from known.best_of_random(options.first_samples)
            temperature, spread = options.start_temperature, _spread(known)
            while temperature >= options.end_temperature:
                steps = known.unseen_neighbours(here)[: options.neighbours]
                if not steps:
                    break
                costs = yield from known.ask(steps)
                at = int(np.argmin(costs))
                if rng.random() < _chance(cost, costs[at], temperature * spread):
                    here, cost = steps[at], costs[at]
                temperature *= options.cooling


def _spread(known: Evaluations) -> float:
    """The distance of the median from the best, without failed configurations; 1 where there is none."""
    finite = [cost for cost in known.costs() if math.isfinite(cost)]
    spread = float(np.median(finite)) - min(finite) if finite else 0.0
    return spread if 0 < spread < math.inf else 1.0


def _chance(here: float, there: float, temperature: float) -> float:
    """Metropolis: 1 for a better or equal step, exp(-rise / temperature) for a worse one."""
    if there <= here:
        return 1.0
    rise = there - here  # inf where the step failed
    return math.exp(-rise / temperature)
