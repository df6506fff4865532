"""Descending to a local minimum: the steps that every local search here is made of."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Literal

import numpy as np

from ..space.search_space import Neighbourhood, SearchSpace
from .base import Evaluations, Outcome

Step = Literal["best", "first", "ordered"]
Descent = Generator[list[int], Sequence[Outcome], tuple[int, float]]
MOST_TOGETHER = 4  # neighbours that a greedy descent looks at before it decides


def descend(
    space: SearchSpace,
    known: Evaluations,
    rng: np.random.Generator,
    batch: int,
    row: int,
    step: Step,
    kind: Neighbourhood = "hamming",
) -> Descent:
    """Go to a better neighbour until there is none; the local minimum and its cost.

    `step` says to which: the 'best' of all, or the 'first' better one: of those known already the best, else of the
    others in random order, or 'ordered' parameter by parameter as the person wrote them; of these a few are looked at
    together where the runner prepares a batch ahead.
    """
    (cost,) = yield from known.ask([row])
    together = max(1, min(batch, MOST_TOGETHER))
    while True:
        near = space.neighbours(row, kind)
        order = near.tolist() if step == "ordered" else rng.permutation(near).tolist()
        seen = min((other for other in order if other in known), key=known.cost, default=row)
        if step != "best" and known.cost(seen) < cost:  # what is known costs nothing
            row, cost = seen, known.cost(seen)
            continue
        fresh = [other for other in order if other not in known]
        groups = [fresh[at : at + together] for at in range(0, len(fresh), together)]
        if step == "best":
            groups = [[seen, *fresh]]
        for group in groups:
            costs = yield from known.ask(group)
            best = int(np.argmin(costs))
            if costs[best] < cost:
                row, cost = group[best], costs[best]
                break
        else:
            return row, cost
