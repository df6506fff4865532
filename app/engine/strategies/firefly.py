"""Firefly search: each point moves to one that is better, the nearer the faster, and wanders a little."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..space.search_space import SearchSpace
from .base import CheckedOptions, Search, Strategy, option
from .box import Box
from .evaluations import Evaluations


class Firefly(Strategy, name="firefly", label="Firefly"):
    """Points of which each moves to a better one, the nearer the faster, and wanders a little."""

    @dataclass(frozen=True)
    class Options(CheckedOptions):
        fireflies: int = option(20, "points that move together", least=1)
        attraction: float = option(1.0, "share of the way to a better one, 0..1", least=0, most=1)
        absorption: float = option(0.1, "how fast attraction fades with distance", least=0.0)
        wandering: float = option(0.1, "length of random steps, as a share of the range", least=0, most=1)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        known, box = Evaluations(space, rng), Box(space)
        rows = known.draw(options.fireflies)
        costs = yield from known.ask(rows)
        place = box.points(rows)
        while not known.exhausted:
            order = np.argsort(costs, kind="stable")
            place, costs = place[order], [costs[at] for at in order]
            moved = place.copy()
            for at in range(1, len(place)):
                way = place[int(rng.integers(at))] - place[at]
                moved[at] += options.attraction * np.exp(-options.absorption * (way @ way)) * way
            moved += options.wandering * rng.uniform(-0.5, 0.5, moved.shape)
            rows = [known.fresh_near(row) for row in box.rows(moved)]
            new = yield from known.ask(rows)
            points = box.points(rows)
            for at, cost in enumerate(new):  # a move to a worse place is undone
                if cost <= costs[at]:
                    place[at], costs[at] = points[at], cost
