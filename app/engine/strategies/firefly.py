"""Firefly search: points that fly to the brighter ones they see, the nearer the faster, and wander a little."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from app.engine.space.search_space import SearchSpace
from app.engine.strategies.base import Evaluations, Search, strategy
from app.engine.strategies.box import Box
from app.engine.strategies.moves import check_least, check_share, fresh_near


@strategy
class Firefly:
    """Points that fly to the better ones, the nearer the faster, and wander a little."""

    name: ClassVar[str] = "firefly"
    label: ClassVar[str] = "Firefly"

    @dataclass(frozen=True)
    class Options:
        fireflies: int = field(default=20, metadata={"help": "points that fly together"})
        attraction: float = field(default=1.0, metadata={"help": "share of the way to a brighter one, 0..1"})
        absorption: float = field(default=1.0, metadata={"help": "how fast attraction fades with distance"})
        wandering: float = field(default=0.2, metadata={"help": "length of random steps, as a share of the range"})

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
                for brighter in range(at):
                    if costs[brighter] < costs[at]:
                        way = place[brighter] - flown[at]
                        flown[at] += options.attraction * np.exp(-options.absorption * (way @ way)) * way
            flown += options.wandering * rng.uniform(-0.5, 0.5, flown.shape)
            rows = [fresh_near(space, known, rng, row) for row in box.rows(np.clip(flown, 0, 1))]
            place = box.points(rows)
            costs = yield from known.ask(rows)
