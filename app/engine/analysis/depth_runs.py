"""Running a strategy at two depths on a recorded space: every look has its price in board time."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..measurement import Depth
from .score_runs import Recorded, run


@dataclass(frozen=True, slots=True)
class Prices:
    """Board time in s of a look at one configuration.

    As measured on an H200 in a session of `auto` over the example's matrix product, without what compilers were waited
    for: medians of 144 rows that were timed (mean 0.067 s: one of 0.1 s per launch takes 0.3 s) and of 60 that were
    measured (mean 0.29 s). A row that is timed and then measured costs both.
    """

    time_s: float = 0.04
    energy_s: float = 0.25

    def of(self, depth: Depth) -> float:
        return self.time_s if depth is Depth.TIME else self.energy_s


@dataclass(frozen=True, slots=True)
class Looked:
    """A row that a strategy looked at, and the board time in s that had passed then."""

    row: int
    depth: Depth
    after_s: float


def run_at_depths(
    strategy: str,
    options: Mapping[str, Any],
    on: Recorded,
    prices: Prices,
    rng: np.random.Generator,
    *,
    until_s: float = math.inf,
    batch: int = 1,
    can_time: bool = True,
    enough: Container[int] = (),
) -> list[Looked]:
    """Return the rows that a strategy measures until it ends or the board time is used up.

    It ends sooner once one of the rows of `enough` is measured. `can_time` is that of `run`.
    """
    allowance = _BoardTime(until_s, prices, enough)
    looked: list[Looked] = []
    after_s = 0.0
    for row, depth in run(strategy, options, on, allowance, rng, batch, can_time=can_time):
        after_s += prices.of(depth)
        looked.append(Looked(row, depth, after_s))
    return looked


@dataclass(frozen=True, slots=True)
class _BoardTime:
    """Implements `Allowance`: used up once one of the rows of `enough` is measured."""

    budget: float
    prices: Prices
    enough: Container[int]

    def spent(self, rows: Sequence[int], depth: Depth) -> float:
        if depth is Depth.ENERGY and any(row in self.enough for row in rows):
            return math.inf
        return len(rows) * self.prices.of(depth)
