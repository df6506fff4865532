"""Genetic algorithm over valid configurations: tournament selection, uniform crossover, mutation to a neighbour.

NSGA-II [Deb2002]: a genetic algorithm for a front, over valid configurations.

Differential evolution: children lie off the best of a population by the difference of two others.

SciPy's over the same box did worse on recorded spaces: it keeps asking for what is known.

Firefly search: each point moves to one that is better, the nearer the faster, and wanders a little.

Particle swarm: points that move on, drawn to the best that each has seen and to the best of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..space.search_space import SearchSpace
from .base import CheckedOptions, Outcome, Search, Strategy, option
from .box import Box, Reals
from .evaluations import Evaluations

_CROSSOVERS = ("uniform", "single_point", "two_point", "disruptive_uniform")


class GeneticAlgorithm(Strategy, name="genetic_algorithm", label="Genetic algorithm"):
    """Crosses and mutates the better configurations; the best of parents and children survive."""

    @dataclass(frozen=True)
    class Options(CheckedOptions):
        population_size: int = option(20, "configurations per generation, at least 2", least=2)
        tournament_size: int = option(3, "candidates from which a parent is chosen, 1..1000", least=1, most=1000)
        mutation_chance: float = option(0.3, "chance that a child moves to a neighbour, 0..1", least=0, most=1)
        newcomers: float = option(0.1, "share of each generation drawn at random, 0..1", least=0, most=1)
        crossover: str = option("uniform", "which values a child has of the second parent", choices=_CROSSOVERS)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        evaluations = Evaluations(space, rng)
        population = evaluations.draw(options.population_size)
        costs = yield from evaluations.ask(population)
        while not evaluations.exhausted:
            children = next_generation(evaluations, options, population, costs)
            child_costs = yield from evaluations.ask(children)
            everyone, every_cost = [*population, *children], [*costs, *child_costs]
            best = np.argsort(every_cost, kind="stable")[: options.population_size].tolist()
            population, costs = [everyone[index] for index in best], [every_cost[index] for index in best]


def next_generation(
    evaluations: Evaluations, options: GeneticAlgorithm.Options, population: Sequence[int], fitness: Sequence[float]
) -> list[int]:
    """The children of a population: different rows, none of them evaluated before.

    Parameters
    ----------
    evaluations : Evaluations
        What is known of the space, with the random generator that breeds them.
    options : GeneticAlgorithm.Options
        How many children there are, and how they are bred.
    population : sequence of int
        The rows of the parents, at least one.
    fitness : sequence of float
        That of each parent; smaller is better.

    Returns
    -------
    list of int
        As many as `population_size` of the options; fewer only where fewer rows are left.
    """
    wanted = min(options.population_size, evaluations.space.size - len(evaluations))
    born = round(wanted * (1 - options.newcomers))
    children: dict[int, None] = {}
    for _ in range(born):
        mother, father = (_tournament(evaluations.rng, options, population, fitness) for _ in range(2))
        child = _crossover(evaluations, mother, father, options.crossover)
        if evaluations.rng.random() < options.mutation_chance or child in evaluations or child in children:
            child = next((row for row in evaluations.unseen_neighbours(child) if row not in children), child)
        if child not in evaluations:
            children[child] = None
    while len(children) < wanted:
        for row in evaluations.draw(wanted):
            if len(children) < wanted:
                children[row] = None
    return list(children)


def _tournament(
    rng: np.random.Generator, options: GeneticAlgorithm.Options, population: Sequence[int], fitness: Sequence[float]
) -> int:
    entrants: list[int] = rng.integers(len(population), size=options.tournament_size).tolist()
    return population[min(entrants, key=lambda at: fitness[at])]


def _taken(rng: np.random.Generator, differs: npt.NDArray[np.bool_], crossover: str) -> npt.NDArray[np.bool_]:
    """Which values the child has of the father: about half, those behind a cut or between two, or half that differ."""
    count = len(differs)
    place = np.arange(count)
    if crossover == "single_point":
        return np.asarray(place >= rng.integers(count))
    if crossover == "two_point":
        low, high = np.sort(rng.integers(count + 1, size=2))
        return np.asarray((place >= low) & (place < high))
    if crossover == "disruptive_uniform":
        half = rng.permutation(np.flatnonzero(differs))[: -(-int(differs.sum()) // 2)]
        return np.isin(place, half)
    return np.asarray(rng.random(count) < 0.5)


def _crossover(evaluations: Evaluations, mother: int, father: int, crossover: str = "uniform") -> int:
    """A valid row between two: the mother, with some of the father's values, which replace hers one by one.

    A value that would make the configuration invalid is tried again after the others, and left out if it still does.
    """
    space, rng = evaluations.space, evaluations.rng
    codes = space.codes[mother].astype(np.int64)
    other = space.codes[father].astype(np.int64)
    axes = np.flatnonzero((codes != other) & _taken(rng, codes != other, crossover))
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
        evaluations = Evaluations(space, rng)
        yield from evaluations.ask(evaluations.draw(options.population_size))
        yield from self.proceed(evaluations, options)

    def proceed(self, evaluations: Evaluations, options: Options) -> Search:
        """Continue with the known rows, at least one, as the first generation.

        Parameters
        ----------
        evaluations : Evaluations
            What is known of the space; outcomes are added to it.
        options : Nsga2.Options
            The options of the search.

        Yields
        ------
        Batch
            The rows to measure next.
        """
        everyone = list(evaluations)
        remark = "" if evaluations.outcome(everyone[0]).front else NO_FRONT
        while True:
            best = crowded_order(np.array([costs_of(evaluations.outcome(row)) for row in everyone]))
            population = [everyone[index] for index in best[: options.population_size].tolist()]
            children = next_generation(evaluations, options, population, range(len(population)))
            if not children:
                return
            yield from evaluations.ask(children, remark)
            remark = ""
            everyone = list(dict.fromkeys([*population, *children]))


def costs_of(outcome: Outcome) -> tuple[float, ...]:
    """The cost of each goal of the front.

    Parameters
    ----------
    outcome : Outcome
        The outcome of a row.

    Returns
    -------
    tuple of float
        That of the objective alone where the session has no front.
    """
    return outcome.front or (outcome.cost,)


def unlimited_costs_of(outcome: Outcome) -> tuple[float, ...]:
    """The cost of each goal of the front as if there were no limits.

    Parameters
    ----------
    outcome : Outcome
        The outcome of a row.

    Returns
    -------
    tuple of float
        That of the objective alone where the session has no front; inf if the configuration failed.
    """
    if not outcome.unlimited:
        return costs_of(outcome)
    return outcome.unlimited[1:] if outcome.front else outcome.unlimited[:1]


def crowded_order(costs: Floats) -> npt.NDArray[np.intp]:
    """Order points from the most to the least suitable parent: by front, then by crowding.

    Parameters
    ----------
    costs : array, shape (n, goals)
        Smaller is better.

    Returns
    -------
    array of int, shape (n,)
        Indices of points.
    """
    return np.lexsort((-crowding(costs, rank := ranks(costs)), rank))


def ranks(costs: Floats) -> npt.NDArray[np.intp]:
    """The number of the front on which each point lies: 0 if no point dominates it, 1 if only points of front 0 do, ...

    Parameters
    ----------
    costs : array, shape (n, goals)
        Smaller is better.

    Returns
    -------
    array of int, shape (n,)
    """
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
    """The distance between a point's two neighbours on its front, summed over the goals; inf at a front's ends.

    Parameters
    ----------
    costs : array, shape (n, goals)
        Smaller is better.
    rank : array of int, shape (n,)
        The front of each point, as of `ranks`.

    Returns
    -------
    array, shape (n,)
        Each goal in units of its range on the front.
    """
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


_BASES = ("best1", "rand1", "best2", "rand2", "currenttobest1", "randtobest1")
_SCHEMES = tuple(f"{base}{crossing}" for crossing in ("bin", "exp") for base in _BASES)


class DifferentialEvolution(Strategy, name="differential_evolution", label="Differential evolution"):
    """Steps off the best along the differences of a population; a child replaces the parent it is better than."""

    @dataclass(frozen=True)
    class Options(CheckedOptions):
        first_samples: int = option(24, "random configurations; the best are the population", least=3)
        population_size: int = option(8, "configurations per generation, at least 3", least=3)
        recombination: float = option(0.9, "chance that a value comes from the step, 0..1", least=0, most=1)
        factor: float = option(0.0, "length of the step; 0: drawn from 0.5 to 1 for each child", least=0, most=10)
        scheme: str = option("best1bin", "from where a step leads, over how many differences", choices=_SCHEMES)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        evaluations, box = Evaluations(space, rng), Box(space)
        first = evaluations.draw(max(options.first_samples, options.population_size))
        first_costs = np.asarray((yield from evaluations.ask(first)))
        best = np.argsort(first_costs, kind="stable")[: options.population_size]
        place, costs = box.points(first)[best], first_costs[best]
        while not evaluations.exhausted:
            children = box.rows(_children(place, int(costs.argmin()), rng, options))
            rows = [evaluations.fresh_near(row) for row in children]
            child_costs = np.asarray((yield from evaluations.ask(rows)))
            better = child_costs <= costs
            place[better], costs[better] = box.points(rows)[better], child_costs[better]


def _children(place: Reals, best: int, rng: np.random.Generator, options: DifferentialEvolution.Options) -> Reals:
    """One child of each, by the scheme, named as SciPy does; values outside the box are drawn at random."""
    count, dimensions = place.shape
    base, exponential = options.scheme[:-3], options.scheme.endswith("exp")
    pairs = 2 if base.endswith("2") else 1
    drawn = rng.integers(count, size=(2 * pairs, count))
    factor = options.factor or rng.uniform(0.5, 1.0, (count, 1))
    start = place[best] if base.startswith("best") else place
    if base.startswith("rand"):
        start = place[rng.integers(count, size=count)]
    if "tobest" in base:
        start = start + factor * (place[best] - start)
    steps = start + factor * (place[drawn[::2]] - place[drawn[1::2]]).sum(axis=0)
    crossed = rng.random(place.shape) < options.recombination
    first = np.asarray(rng.integers(dimensions, size=count))
    if exponential:  # a run of values from the first on, which ends at the first draw that fails
        runs = np.cumprod(np.hstack([np.ones((count, 1), dtype=bool), crossed[:, 1:]]), axis=1).astype(bool)
        crossed = runs[np.arange(count)[:, None], (np.arange(dimensions) - first[:, None]) % dimensions]
    crossed[np.arange(count), first] = True
    child = np.where(crossed, steps, place)
    return np.where((child < 0) | (child > 1), rng.random(place.shape), child)


class Firefly(Strategy, name="firefly", label="Firefly"):
    """Points of which each moves to a better one, the nearer the faster, and wanders a little."""

    @dataclass(frozen=True)
    class Options(CheckedOptions):
        fireflies: int = option(20, "points that move together", least=1)
        attraction: float = option(1.0, "share of the way to a better one, 0..1", least=0, most=1)
        absorption: float = option(0.1, "how fast attraction fades with distance", least=0.0)
        wandering: float = option(0.1, "length of random steps, as a share of the range", least=0, most=1)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        evaluations, box = Evaluations(space, rng), Box(space)
        rows = evaluations.draw(options.fireflies)
        costs = yield from evaluations.ask(rows)
        place = box.points(rows)
        while not evaluations.exhausted:
            order = np.argsort(costs, kind="stable")
            place, costs = place[order], [costs[at] for at in order]
            moved = place.copy()
            for index in range(1, len(place)):
                way = place[int(rng.integers(index))] - place[index]
                moved[index] += options.attraction * np.exp(-options.absorption * (way @ way)) * way
            moved += options.wandering * rng.uniform(-0.5, 0.5, moved.shape)
            rows = [evaluations.fresh_near(row) for row in box.rows(moved)]
            new = yield from evaluations.ask(rows)
            points = box.points(rows)
            for position, cost in enumerate(new):  # a move to a worse place is undone
                if cost <= costs[position]:
                    place[position], costs[position] = points[position], cost


class ParticleSwarm(Strategy, name="particle_swarm", label="Particle swarm"):
    """Points that move on, drawn to the best that each has seen and to the best of all."""

    @dataclass(frozen=True)
    class Options(CheckedOptions):
        particles: int = option(20, "points that move together", least=1)
        inertia: float = option(0.5, "share of its velocity that a particle keeps, 0..1", least=0, most=1)
        own_pull: float = option(2.0, "pull of the best that the particle has seen", least=0.0)
        swarm_pull: float = option(1.0, "pull of the best that any particle has seen", least=0.0)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        evaluations, box = Evaluations(space, rng), Box(space)
        rows = evaluations.draw(options.particles)
        place = box.points(rows)
        velocity = rng.uniform(-0.2, 0.2, place.shape)
        best_place, own_cost = place.copy(), np.asarray((yield from evaluations.ask(rows)))
        while not evaluations.exhausted:
            best = best_place[int(own_cost.argmin())]
            to_own, to_best = rng.random(place.shape), rng.random(place.shape)
            velocity = (
                options.inertia * velocity
                + options.own_pull * to_own * (best_place - place)
                + options.swarm_pull * to_best * (best - place)
            )
            rows = [evaluations.fresh_near(row) for row in box.rows(place + velocity)]
            place = box.points(rows)
            costs = np.asarray((yield from evaluations.ask(rows)))
            better = costs < own_cost
            best_place[better], own_cost[better] = place[better], costs[better]
