"""NSGA-II [Deb2002]: a genetic algorithm for a front, over valid configurations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..space.search_space import SearchSpace
from .base import Outcome, Search, Strategy, option
from .evaluations import Evaluations
from .genetic_algorithm import GeneticAlgorithm, next_generation

Floats = npt.NDArray[np.float64]

NO_FRONT = "the session has no front: the objective alone is searched"


class Nsga2(Strategy, name="nsga2", label="Genetic algorithm for the front (NSGA-II)"):
    """NSGA-II: of parents and children survive those nearest to the front, of equals those farthest from others."""

    of_front = True

    @dataclass(frozen=True)
    class Options(GeneticAlgorithm.Options):
        population_size: int = option(40, "configurations per generation, at least 2", least=2)
        tournament_size: int = option(2, "candidates from which a parent is chosen, 1..1000", least=1, most=1000)
        newcomers: float = option(0.0, "share of each generation drawn at random, 0..1", least=0, most=1)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        known = Evaluations(space, rng)
        yield from known.ask(known.draw(options.population_size))
        yield from self.proceed(known, options)

    def proceed(self, known: Evaluations, options: Options) -> Search:
        """Continue with the known rows, at least one, as the first generation."""
        everyone = list(known)
        remark = "" if known.outcome(everyone[0]).front else NO_FRONT
        while True:
            best = crowded_order(np.array([costs_of(known.outcome(row)) for row in everyone]))
            population = [everyone[at] for at in best[: options.population_size].tolist()]
            children = next_generation(known, options, population, range(len(population)))
            if not children:
                return
            yield from known.ask(children, remark)
            remark = ""
            everyone = list(dict.fromkeys([*population, *children]))


def costs_of(outcome: Outcome) -> tuple[float, ...]:
    """The cost of each goal of the front; that of the objective where the session has no front."""
    return outcome.front or (outcome.cost,)


def unlimited_costs_of(outcome: Outcome) -> tuple[float, ...]:
    """The same as if there were no limits."""
    if not outcome.unlimited:
        return costs_of(outcome)
    return outcome.unlimited[1:] if outcome.front else outcome.unlimited[:1]


def crowded_order(costs: Floats) -> npt.NDArray[np.intp]:
    """Points, shape (n, goals), from the one that a parent should be first to the last: by front, then by crowding."""
    return np.lexsort((-crowding(costs, rank := ranks(costs)), rank))


def ranks(costs: Floats) -> npt.NDArray[np.intp]:
    """The number of the front each point lies on: 0 where nothing beats it, 1 where only points of front 0 do, ..."""
    one, other = costs[:, None, :], costs[None, :, :]
    beats = np.asarray((one <= other).all(axis=2) & (one < other).any(axis=2))
    rank = np.zeros(len(costs), dtype=np.intp)
    left = np.ones(len(costs), dtype=bool)
    level = 0
    while left.any():
        on_front = left & ~beats[left].any(axis=0)
        rank[on_front] = level
        left &= ~on_front
        level += 1
    return rank


def crowding(costs: Floats, rank: npt.NDArray[np.intp]) -> Floats:
    """The distance between a point's two neighbours on its front, summed over the goals; inf at a front's ends."""
    finite = np.where(np.isfinite(costs), costs, np.nan)
    distance = np.zeros(len(costs))
    for level in range(int(rank.max(initial=-1)) + 1):
        members = np.flatnonzero(rank == level)
        for column in finite[members].T:
            order = np.argsort(column, kind="stable")
            extent = np.nanmax(column) - np.nanmin(column) if np.isfinite(column).any() else 0.0
            distance[members[order[[0, -1]]]] = np.inf
            if extent > 0:
                gaps = (column[order[2:]] - column[order[:-2]]) / extent
                distance[members[order[1:-1]]] += np.nan_to_num(gaps)
    return distance
