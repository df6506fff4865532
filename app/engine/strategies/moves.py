"""Steps that several strategies take through a space: to rows nobody has measured yet."""

from __future__ import annotations

import numpy as np

from app.engine.space.search_space import Neighbourhood, SearchSpace
from app.engine.strategies.base import Evaluations


def unseen_rows(space: SearchSpace, known: Evaluations, rng: np.random.Generator, count: int) -> list[int]:
    """Up to `count` different rows drawn uniformly from those not evaluated; fewer only where fewer are left."""
    count = min(count, space.size - len(known))
    if len(known) * 2 > space.size:
        left = [row for row in range(space.size) if row not in known]
        return [int(row) for row in rng.permutation(left)[:count]]
    found: dict[int, None] = {}
    while len(found) < count:
        for row in rng.integers(space.size, size=2 * (count - len(found)) + 2).tolist():
            if row not in known and len(found) < count:
                found[row] = None
    return list(found)


def unseen_neighbours(
    space: SearchSpace, known: Evaluations, rng: np.random.Generator, row: int, kind: Neighbourhood
) -> list[int]:
    """The neighbours of a row that are not evaluated, in random order."""
    return [near for near in rng.permutation(space.neighbours(row, kind)).tolist() if near not in known]


def random_walk(space: SearchSpace, rng: np.random.Generator, row: int, steps: int) -> int:
    """Where so many random steps to Hamming neighbours lead; the row itself where it has none."""
    for _ in range(steps):
        near = space.neighbours(row)
        if not len(near):
            break
        row = int(rng.choice(near))
    return row


def check_share(name: str, value: float) -> None:
    """Raise ValueError where an option is not between 0 and 1."""
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must lie between 0 and 1, not {value}")


def check_least(name: str, value: float, least: float) -> None:
    """Raise ValueError where an option is too small."""
    if not value >= least:
        raise ValueError(f"{name} must be at least {least}, not {value}")
