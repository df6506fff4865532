"""Genetic algorithm over valid configurations: tournament selection, uniform crossover, mutation to a neighbour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ..space.search_space import SearchSpace
from .base import Evaluations, Search, strategy
from .moves import check_least, check_share, check_within, unseen_neighbours


@strategy
class GeneticAlgorithm:
    """Crosses and mutates the better configurations; the best of parents and children live on."""

    name: ClassVar[str] = "genetic_algorithm"
    label: ClassVar[str] = "Genetic algorithm"

    @dataclass(frozen=True)
    class Options:
        population_size: int = field(default=20, metadata={"help": "configurations per generation, at least 2"})
        tournament_size: int = field(default=3, metadata={"help": "candidates from which a parent is chosen, 1..1000"})
        mutation_chance: float = field(default=0.3, metadata={"help": "chance that a child moves to a neighbour, 0..1"})
        newcomers: float = field(default=0.1, metadata={"help": "share of each generation drawn at random, 0..1"})

        def __post_init__(self) -> None:
            check_least("population_size", self.population_size, 2)
            check_within("tournament_size", self.tournament_size, 1, 1000)
            check_share("mutation_chance", self.mutation_chance)
            check_share("newcomers", self.newcomers)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        known = Evaluations(space)
        population = known.draw(rng, options.population_size)
        costs = yield from known.ask(population)
        while not known.exhausted:
            children = next_generation(space, known, rng, options, population, costs)
            child_costs = yield from known.ask(children)
            everyone, every_cost = [*population, *children], [*costs, *child_costs]
            best = np.argsort(every_cost, kind="stable")[: options.population_size].tolist()
            population, costs = [everyone[at] for at in best], [every_cost[at] for at in best]


def next_generation(
    space: SearchSpace,
    known: Evaluations,
    rng: np.random.Generator,
    options: GeneticAlgorithm.Options,
    population: Sequence[int],
    fitness: Sequence[float],
) -> list[int]:
    """Children of a population whose fitness is better where smaller: different rows, none of them evaluated before."""
    wanted = min(options.population_size, space.size - len(known))
    born = round(wanted * (1 - options.newcomers))
    children: dict[int, None] = {}
    for _ in range(born):
        mother, father = (_tournament(rng, options, population, fitness) for _ in range(2))
        child = crossover(space, rng, mother, father)
        if rng.random() < options.mutation_chance or child in known or child in children:
            near = [row for row in unseen_neighbours(space, known, rng, child, "hamming") if row not in children]
            child = near[0] if near else child
        if child not in known:
            children[child] = None
    while len(children) < wanted:
        for row in known.draw(rng, wanted):
            if len(children) < wanted:
                children[row] = None
    return list(children)


def _tournament(
    rng: np.random.Generator, options: GeneticAlgorithm.Options, population: Sequence[int], fitness: Sequence[float]
) -> int:
    entrants: list[int] = rng.integers(len(population), size=options.tournament_size).tolist()
    return population[min(entrants, key=lambda at: fitness[at])]


def crossover(space: SearchSpace, rng: np.random.Generator, mother: int, father: int) -> int:
    """A valid row between two: the mother, with about half of the father's values put in one after another.

    A value that would make the configuration invalid is tried again after the others, and left out if it still does.
    """
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
