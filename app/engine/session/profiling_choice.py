"""Which of a session's configurations are profiled."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

USUAL_COUNT: Final = 20  # of the best, or at random


class Which(StrEnum):
    """Which measured configurations are profiled."""

    FRONT = "front"
    BEST = "best"
    RANDOM = "random"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A choice of them: so many of the best by the objective, or at random; the front has its own number."""

    which: Which
    count: int = USUAL_COUNT
    seed: int = 0

    @property
    def words(self) -> tuple[str, ...]:
        """As options of `wattridge counters`."""
        return ("--front",) if self.which is Which.FRONT else (f"--{self.which}", str(self.count))
