"""Greedy iterated local search: descend by the first better neighbour, then leap from the best and descend again.

Multi-start local search: descend, and restart elsewhere at every local minimum.

Simulated annealing: a walk that takes worse steps less and less often as it cools, then restarts.

Tabu search: always on to the best neighbour that was not visited lately, also where it is worse.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import ClassVar, cast, get_args

import numpy as np

from ..space.search_space import Neighbourhood, SearchSpace
from .base import CheckedOptions, Search, Strategy, option
from .evaluations import MOST_TOGETHER, Evaluations, Step, abreast

_KINDS = get_args(Neighbourhood)
_NEAR = "what a neighbour is: one other value, the next value, or the next values of several parameters"


class GreedyIls(Strategy, name="greedy_ils", label="Greedy iterated local search"):
    """Descends, leaps a few random steps away, descends again; continues from the better of the two minima."""

    @dataclass(frozen=True)
    class Options(CheckedOptions):
        first_samples: int = option(20, "random configurations at first; the best is the start", least=1)
        leap: int = option(2, "random steps of a leap away from a local minimum, 1..1000", least=1, most=1000)
        restart_chance: float = option(0.1, "chance to leap to a random configuration, 0..1", least=0, most=1)
        neighbourhood: str = option("hamming", _NEAR, choices=_KINDS)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        evaluations = Evaluations(space, rng)
        yield from evaluations.ask(evaluations.draw(max(options.first_samples, self.background.boards())))
        yield from self.proceed(evaluations, batch, options)

    def proceed(self, evaluations: Evaluations, batch: int, options: Options) -> Search:
        """Continue from the best known row. Where several boards measure, each has a walk of its own from there.

        Parameters
        ----------
        evaluations : Evaluations
            What is known of the space, at least one row; outcomes are added to it.
        batch : int
            How many rows the runner can prepare at once.
        options : GreedyIls.Options
            The options of the search, of which `first_samples` is not used.

        Yields
        ------
        list of int
            The rows to measure next.
        """
        boards = self.background.boards()
        together = max(1, min(batch, MOST_TOGETHER)) if boards == 1 else 1
        yield from abreast([self._walk(evaluations, together, options) for _ in range(boards)])

    def _walk(self, evaluations: Evaluations, together: int, options: Options) -> Search:
        kind = cast(Neighbourhood, options.neighbourhood)
        start = min(evaluations, key=evaluations.cost)
        home, home_cost = yield from evaluations.descend(start, "first", together, kind)
        while not evaluations.exhausted:
            if evaluations.rng.random() < options.restart_chance:
                home, home_cost = yield from evaluations.descend(evaluations.draw(1)[0], "first", together, kind)
                continue
            start = evaluations.fresh_near(evaluations.random_walk(home, options.leap))
            minimum, cost = yield from evaluations.descend(start, "first", together, kind)
            if cost <= home_cost:
                home, home_cost = minimum, cost


class _MultiStart(Strategy):
    step: ClassVar[Step]

    def __init_subclass__(cls, *, step: Step, **shown: str) -> None:
        super().__init_subclass__(**shown)
        cls.step = step

    @dataclass(frozen=True)
    class Options(CheckedOptions):
        starts: int = option(16, "random configurations before each descent", least=1)
        neighbourhood: str = option("hamming", _NEAR, choices=_KINDS)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        evaluations = Evaluations(space, rng)
        while not evaluations.exhausted:
            start, _ = yield from evaluations.best_of_random(options.starts)
            together, kind = self.at_once(batch, MOST_TOGETHER), cast(Neighbourhood, options.neighbourhood)
            yield from evaluations.descend(start, self.step, together, kind)


class Mls(_MultiStart, name="mls", label="Multi-start local search", step="best"):
    """Goes to the best of all neighbours until none is better, then restarts elsewhere."""


class GreedyMls(_MultiStart, name="greedy_mls", label="Greedy multi-start local search", step="first"):
    """Goes to the first better neighbour, in random order, until there is none, then restarts elsewhere."""


class OrderedGreedyMls(
    _MultiStart, name="ordered_greedy_mls", label="Ordered greedy multi-start local search", step="ordered"
):
    """Goes to the first better neighbour, parameter by parameter as they were written, then restarts elsewhere."""


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
        evaluations = Evaluations(space, rng)
        while not evaluations.exhausted:
            here, cost = yield from evaluations.best_of_random(options.first_samples)
            temperature, spread = options.start_temperature, _spread(evaluations)
            while temperature >= options.end_temperature:
                steps = evaluations.unseen_neighbours(here)[: options.neighbours]
                if not steps:
                    break
                costs = yield from evaluations.ask(steps)
                index = int(np.argmin(costs))
                if rng.random() < _chance(cost, costs[index], temperature * spread):
                    here, cost = steps[index], costs[index]
                temperature *= options.cooling


def _spread(evaluations: Evaluations) -> float:
    """The distance of the median from the best, without failed configurations; 1 if there is none."""
    finite = [cost for cost in evaluations.costs() if math.isfinite(cost)]
    spread = float(np.median(finite)) - min(finite) if finite else 0.0
    return spread if 0 < spread < math.inf else 1.0


def _chance(here: float, there: float, temperature: float) -> float:
    """Metropolis: 1 for a better or equal step, exp(-rise / temperature) for a worse one."""
    if there <= here:
        return 1.0
    rise = there - here  # inf if the step failed
    return math.exp(-rise / temperature)


class TabuSearch(Strategy, name="tabu_search", label="Tabu search"):
    """Goes to the best of a few neighbours, worse or not, never back; restarts after a while without success."""

    @dataclass(frozen=True)
    class Options(CheckedOptions):
        first_samples: int = option(24, "random configurations before each start", least=1)
        candidates: int = option(8, "new neighbours measured in each step", least=1)
        tenure: int = option(20, "steps for which a visited configuration is tabu", least=1)
        patience: int = option(5, "steps without a better one before a new start", least=1)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        evaluations = Evaluations(space, rng)
        while not evaluations.exhausted:
            here, best = yield from evaluations.best_of_random(options.first_samples)
            stale = 0
            tabu: deque[int] = deque([here], maxlen=options.tenure)
            while stale < options.patience and not evaluations.exhausted:
                near = [row for row in rng.permutation(space.neighbours(here)).tolist() if row not in tabu]
                fresh = [row for row in near if row not in evaluations][: options.candidates]
                around = [*fresh, *(row for row in near if row in evaluations)]
                if not around:
                    break
                costs = yield from evaluations.ask(around)
                index = int(np.argmin(costs))
                here = around[index]
                tabu.append(here)
                best, stale = (costs[index], 0) if costs[index] < best else (best, stale + 1)
