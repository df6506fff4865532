"""Simulated annealing: a few walkers that take worse steps less and less often as they cool, then start anew."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from app.engine.space.search_space import SearchSpace
from app.engine.strategies.base import Evaluations, Search, strategy
from app.engine.strategies.moves import check_least, unseen_neighbours, unseen_rows


@strategy
class SimulatedAnnealing:
    """Temperatures are relative to the spread of the first sample, so the unit of the objective does not matter."""

    name: ClassVar[str] = "simulated_annealing"
    label: ClassVar[str] = "Simulated annealing"

    @dataclass(frozen=True)
    class Options:
        walkers: int = field(default=4, metadata={"help": "walks side by side, measured as one batch"})
        first_samples: int = field(default=16, metadata={"help": "random configurations at first; the best are starts"})
        start_temperature: float = field(default=0.5, metadata={"help": "in units of the first sample's spread"})
        end_temperature: float = field(default=0.005, metadata={"help": "below it the walkers start anew"})
        cooling: float = field(default=0.95, metadata={"help": "temperature after a step over before, between 0 and 1"})

        def __post_init__(self) -> None:
            check_least("walkers", self.walkers, 1)
            check_least("first_samples", self.first_samples, 2)
            check_least("end_temperature", self.end_temperature, 1e-9)
            check_least("start_temperature", self.start_temperature, self.end_temperature)
            if not 0 < self.cooling < 1:
                raise ValueError(f"cooling must lie between 0 and 1, not {self.cooling}")

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        known = Evaluations(space)
        first = unseen_rows(space, known, rng, max(options.first_samples, options.walkers))
        costs = yield from known.ask(first)
        spread = _spread(costs)
        best_first = np.argsort(costs, kind="stable").tolist()
        walkers = [first[at] for at in best_first[: options.walkers]]
        at_cost = [costs[at] for at in best_first[: options.walkers]]
        temperature = options.start_temperature
        while not known.exhausted:
            steps = [self._step(space, known, rng, row) for row in walkers]
            step_costs = yield from known.ask(steps)
            for walker, (row, cost) in enumerate(zip(steps, step_costs, strict=True)):
                if rng.random() < _chance(at_cost[walker], cost, temperature * spread):
                    walkers[walker], at_cost[walker] = row, cost
            temperature *= options.cooling
            if temperature < options.end_temperature:  # reheat: the best walker stays, the others start anew
                temperature = options.start_temperature
                best = int(np.argmin(at_cost))
                fresh = unseen_rows(space, known, rng, len(walkers) - 1)
                fresh_costs = yield from known.ask(fresh)
                walkers, at_cost = [walkers[best], *fresh], [at_cost[best], *fresh_costs]

    def _step(self, space: SearchSpace, known: Evaluations, rng: np.random.Generator, row: int) -> int:
        """A random neighbour that is not evaluated yet, else any unseen row."""
        near = unseen_neighbours(space, known, rng, row, "hamming")
        return near[0] if near else unseen_rows(space, known, rng, 1)[0] if not known.exhausted else row


def _spread(costs: list[float]) -> float:
    """Standard deviation of the costs that are finite; 1 where there is none."""
    finite = [cost for cost in costs if math.isfinite(cost)]
    spread = float(np.std(finite)) if len(finite) > 1 else 0.0
    return spread if spread > 0 else 1.0


def _chance(here: float, there: float, temperature: float) -> float:
    """Metropolis: 1 for a better or equal step, exp(-rise / temperature) for a worse one."""
    if there <= here:
        return 1.0
    rise = there - here  # inf where the step failed
    return math.exp(-rise / temperature)
