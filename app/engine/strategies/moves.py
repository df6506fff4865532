"""Steps that several strategies take through a space: to rows nobody has measured yet."""

from __future__ import annotations

import numpy as np

from ..space.search_space import Neighbourhood, SearchSpace
from .base import Evaluations


def unseen_neighbours(
    space: SearchSpace, known: Evaluations, rng: np.random.Generator, row: int, kind: Neighbourhood
) -> list[int]:
    """The neighbours of a row that are not evaluated, in random order."""
    return [near for near in rng.permutation(space.neighbours(row, kind)).tolist() if near not in known]


def fresh_near(space: SearchSpace, known: Evaluations, rng: np.random.Generator, row: int) -> int:
    """The row itself where it is new, else a random neighbour that is, else any new row; the row where none is left."""
    if row not in known or known.exhausted:
        return row
    near = unseen_neighbours(space, known, rng, row, "hamming")
    return near[0] if near else known.draw(rng, 1)[0]


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


def check_within(name: str, value: float, least: float, most: float) -> None:
    """Raise ValueError where an option is too small, or so large that its work never ends."""
    if not least <= value <= most:
        raise ValueError(f"{name} must lie between {least} and {most}, not {value}")
