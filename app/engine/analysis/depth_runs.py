"""Running a strategy at two depths on a recorded space: every look has its price in board time."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..measurement import Depth
from ..strategies import base
from ..strategies.base import Batch, Outcome
from .score_runs import Recorded


@dataclass(frozen=True, slots=True)
class Prices:
    """Board time in s of a look at one configuration.

    As measured on an H200 in the middle of a session: a window of 0.19 s, and 0.06 s before it, in which the kernel is
    loaded and verified. Timing needs that too, and a few launches. A row that is timed and then measured costs both.
    """

    time_s: float = 0.07
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
    """What a strategy looks at until it ends or the board time is over.

    It ends sooner once one of the rows of `enough` is measured. Where `can_time` is False it is answered as by a board
    that cannot time rows: with their energy, at its price.
    """
    chosen = base.get(strategy)
    search = chosen.search(on.space, rng, batch, base.make_options(chosen, dict(options)))
    looked: list[Looked] = []
    after_s = 0.0
    try:
        asked = Batch.of(next(search))
        while True:
            depth = asked.depth if can_time else Depth.ENERGY
            for row in asked:
                after_s += prices.of(depth)
                looked.append(Looked(row, depth, after_s))
            if after_s >= until_s or (depth is Depth.ENERGY and any(row in enough for row in asked)):
                return looked
            asked = Batch.of(search.send(_answer(on, asked, depth)))
    except StopIteration:
        return looked
    finally:
        search.close()


def _answer(on: Recorded, rows: Sequence[int], depth: Depth) -> list[Outcome]:
    of = on.outcomes if depth is Depth.ENERGY else on.timed
    return [of[row] for row in rows]
