"""Particle swarm: points that move on, drawn to the best that each has seen and to the best of all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..space.search_space import SearchSpace
from .base import CheckedOptions, Search, Strategy, option
from .box import Box
from .evaluations import Evaluations


class ParticleSwarm(Strategy, name="particle_swarm", label="Particle swarm"):
    """Points that move on, drawn to the best that each has seen and to the best of all."""

    @dataclass(frozen=True)
    class Options(CheckedOptions):
        particles: int = option(20, "points that move together", least=1)
        inertia: float = option(0.5, "share of its velocity that a particle keeps, 0..1", least=0, most=1)
        own_pull: float = option(2.0, "pull of the best that the particle has seen", least=0.0)
        swarm_pull: float = option(1.0, "pull of the best that any particle has seen", least=0.0)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        known, box = Evaluations(space, rng), Box(space)
        rows = known.draw(options.particles)
        place = box.points(rows)
        velocity = rng.uniform(-0.2, 0.2, place.shape)
        own, own_cost = place.copy(), np.asarray((yield from known.ask(rows)))
        while not known.exhausted:
            best = own[int(own_cost.argmin())]
            to_own, to_best = rng.random(place.shape), rng.random(place.shape)
            velocity = (
                options.inertia * velocity
                + options.own_pull * to_own * (own - place)
                + options.swarm_pull * to_best * (best - place)
            )
            rows = [known.fresh_near(row) for row in box.rows(place + velocity)]
            place = box.points(rows)
            costs = np.asarray((yield from known.ask(rows)))
            better = costs < own_cost
            own[better], own_cost[better] = place[better], costs[better]
