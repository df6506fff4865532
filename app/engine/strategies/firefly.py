"""Firefly search: each point flies to one that is brighter, the nearer the faster, and wanders a little."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ..space.search_space import SearchSpace
from .base import Evaluations, Search, strategy
from .box import Box
from .moves import check_least, check_share, fresh_near


@strategy
class Firefly:
    """Points of which each flies to a better one, the nearer the faster, and wanders a little."""

    name: ClassVar[str] = "firefly"
    label: ClassVar[str] = "Firefly"

    @dataclass(frozen=True)
    class Options:
        fireflies: int = field(default=20, metadata={"help": "points that fly together"})
        attraction: float = field(default=1.0, metadata={"help": "share of the way to a brighter one, 0..1"})
        absorption: float = field(default=0.1, metadata={"help": "how fast attraction fades with distance"})
        wandering: float = field(default=0.1, metadata={"help": "length of random steps, as a share of the range"})

        def __post_init__(self) -> None:
            check_least("fireflies", self.fireflies, 1)
            check_share("attraction", self.attraction)
            check_least("absorption", self.absorption, 0.0)
            check_share("wandering", self.wandering)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        known, box = Evaluations(space), Box(space)
        rows = known.draw(rng, options.fireflies)
        costs = yield from known.ask(rows)
        place = box.points(rows)
        while not known.exhausted:
            order = np.argsort(costs, kind="stable")
            place, costs = place[order], [costs[at] for at in order]
            flown = place.copy()
            for at in range(1, len(place)):
                brighter = int(rng.integers(at))
                way = place[brighter] - place[at]
                flown[at] += options.attraction * np.exp(-options.absorption * (way @ way)) * way
            flown += options.wandering * rng.uniform(-0.5, 0.5, flown.shape)
            rows = [fresh_near(space, known, rng, row) for row in box.rows(np.clip(flown, 0, 1))]
            new = yield from known.ask(rows)
            points = box.points(rows)
            for at, cost in enumerate(new):  # a flight to a darker place is taken back
                if cost <= costs[at]:
                    place[at], costs[at] = points[at], cost
