"""Latin-hypercube samples of a restricted space."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from .neighbours import Rows

_ROUNDS = 8


class Snapping(Protocol):
    """What a sample needs of a space."""

    @property
    def size(self) -> int: ...

    @property
    def axis_sizes(self) -> tuple[int, ...]: ...

    def nearest_rows(self, points: npt.NDArray[np.floating], rng: np.random.Generator | None = None) -> Rows: ...


def latin_hypercube(space: Snapping, rng: np.random.Generator, count: int) -> Rows:
    """`count` different rows, at most a quarter of the space, in random order.

    Every axis is cut into `count` strata of which each holds one point, over the values as if all were equally likely;
    the points are snapped to the nearest valid rows. Points that snap to a row already taken are drawn anew as a
    hypercube of their own, and what still lacks after some rounds is drawn uniformly.
    """
    chosen: dict[int, None] = {}
    for _ in range(_ROUNDS):
        lacking = count - len(chosen)
        if not lacking:
            break
        for row in space.nearest_rows(_points(space.axis_sizes, rng, lacking), rng).tolist():
            chosen[row] = None
    while len(chosen) < count:
        for row in rng.integers(space.size, size=count - len(chosen)).tolist():
            chosen[row] = None
    return rng.permutation(np.fromiter(chosen, dtype=np.int64))


def _points(sizes: tuple[int, ...], rng: np.random.Generator, count: int) -> npt.NDArray[np.float64]:
    """A Latin hypercube in code space, shape (count, axes): code c owns the interval c - 0.5 to c + 0.5."""
    strata = np.stack([rng.permutation(count) for _ in sizes], axis=1)
    share = (strata + rng.random(strata.shape)) / count
    points: npt.NDArray[np.float64] = share * np.asarray(sizes) - 0.5
    return points
