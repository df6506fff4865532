"""What each restriction left of a space, in the order in which they were applied."""

from __future__ import annotations

from dataclasses import dataclass

from .search_space import SearchSpace


@dataclass(frozen=True, slots=True)
class PruningStep:
    """One restriction, and how many combinations there were before and after it."""

    restriction: str
    before: int
    after: int

    @property
    def removed(self) -> int:
        return self.before - self.after

    @property
    def share(self) -> float:
        """The share of what there was before that it removed, 0..1."""
        return self.removed / self.before if self.before else 0.0


def pruning_steps(space: SearchSpace) -> tuple[PruningStep, ...]:
    """From all combinations to the valid ones; empty where the space does not know, as that of a recording."""
    steps: list[PruningStep] = []
    left = space.cartesian
    for restriction, removed in space.removed_by.items():
        steps.append(PruningStep(restriction, left, left - removed))
        left -= removed
    return tuple(steps)
