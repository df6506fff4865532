"""Particle swarm: points that fly on, drawn to the best that each has seen and to the best of all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ..space.search_space import SearchSpace
from .base import Evaluations, Search, strategy
from .box import Box
from .moves import check_least, check_share, fresh_near


@strategy
class ParticleSwarm:
    """Points that fly on, drawn to the best that each has seen and to the best of all."""

    name: ClassVar[str] = "particle_swarm"
    label: ClassVar[str] = "Particle swarm"

    @dataclass(frozen=True)
    class Options:
        particles: int = field(default=20, metadata={"help": "points that fly together"})
        inertia: float = field(default=0.5, metadata={"help": "share of its velocity that a particle keeps, 0..1"})
        own_pull: float = field(default=2.0, metadata={"help": "pull of the best that the particle has seen"})
        swarm_pull: float = field(default=1.0, metadata={"help": "pull of the best that any particle has seen"})

        def __post_init__(self) -> None:
            check_least("particles", self.particles, 1)
            check_share("inertia", self.inertia)
            check_least("own_pull", self.own_pull, 0.0)
            check_least("swarm_pull", self.swarm_pull, 0.0)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        known, box = Evaluations(space), Box(space)
        rows = known.draw(rng, options.particles)
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
            place = np.clip(place + velocity, 0.0, 1.0)
            rows = [fresh_near(space, known, rng, row) for row in box.rows(place)]
            place = box.points(rows)
            costs = np.asarray((yield from known.ask(rows)))
            better = costs < own_cost
            own[better], own_cost[better] = place[better], costs[better]
