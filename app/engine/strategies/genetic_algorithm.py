"""Genetic algorithm over valid configurations: tournament selection, uniform crossover, mutation to a neighbour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..space.search_space import SearchSpace
from .base import CheckedOptions, Search, Strategy, option
from .evaluations import Evaluations


class GeneticAlgorithm(Strategy, name="genetic_algorithm", label="Genetic algorithm"):
    """Crosses and mutates the better configurations; the best of parents and children survive."""

    @dataclass(frozen=True)
    class Options(CheckedOptions):
        population_size: int = option(20, "configurations per generation, at least 2", least=2)
        tournament_size: int = option(3, "candidates from which a parent is chosen, 1..1000", least=1, most=1000)
        mutation_chance: float = option(0.3, "chance that a child moves to a neighbour, 0..1", least=0, most=1)
        newcomers: float = option(0.1, "share of each generation drawn at random, 0..1", least=0, most=1)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        known = Evaluations(space, rng)
        population = known.draw(options.population_size)
        costs = yield from known.ask(population)
        while not known.exhausted:
            children = next_generation(known, options, population, costs)
            child_costs = yield from known.ask(children)
            everyone, every_cost = [*population, *children], [*costs, *child_costs]
            best = np.argsort(every_cost, kind="stable")[: options.population_size].tolist()
            population, costs = [everyone[at] for at in best], [every_cost[at] for at in best]


def next_generation(
    known: Evaluations, options: GeneticAlgorithm.Options, population: Sequence[int], fitness: Sequence[float]
) -> list[int]:
    """Children of a population whose fitness is better where smaller: different rows, none of them evaluated before."""
    wanted = min(options.population_size, known.space.size - len(known))
    born = round(wanted * (1 - options.newcomers))
    children: dict[int, None] = {}
    for _ in range(born):
        mother, father = (_tournament(known.rng, options, population, fitness) for _ in range(2))
        child = _crossover(known, mother, father)
        if known.rng.random() < options.mutation_chance or child in known or child in children:
            child = next((row for row in known.unseen_neighbours(child) if row not in children), child)
        if child not in known:
            children[child] = None
    while len(children) < wanted:
        for row in known.draw(wanted):
            if len(children) < wanted:
                children[row] = None
    return list(children)


def _tournament(
    rng: np.random.Generator, options: GeneticAlgorithm.Options, population: Sequence[int], fitness: Sequence[float]
) -> int:
    entrants: list[int] = rng.integers(len(population), size=options.tournament_size).tolist()
    return population[min(entrants, key=lambda at: fitness[at])]


def _crossover(known: Evaluations, mother: int, father: int) -> int:
    """A valid row between two: the mother, with about half of the father's values, which replace hers one by one.

    A value that would make the configuration invalid is tried again after the others, and left out if it still does.
    """
    space, rng = known.space, known.rng
    codes = space.codes[mother].astype(np.int64)
    other = space.codes[father].astype(np.int64)
    axes = np.flatnonzero((codes != other) & (rng.random(len(codes)) < 0.5))
    child = mother
    for axis in (*rng.permutation(axes).tolist(), *axes.tolist()):
        if codes[axis] == other[axis]:
            continue
        trial = codes.copy()
        trial[axis] = other[axis]
        row = int(space.rows_of_codes(trial[None, :])[0])
        if row >= 0:
            codes, child = trial, row
    return child
