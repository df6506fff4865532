"""How a space is searched: strategy, budget and seed, of a specification, a script, a plan and a stored session."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The strategy of a search and when it ends."""

    strategy: str = "random_sample"
    strategy_options: Mapping[str, Any] = field(default_factory=dict)
    max_evaluations: int | None = None
    max_seconds: float | None = None
    patience: int | None = None  # evaluations without an improvement after which the session ends
    seed: int = 0

    def search(self) -> dict[str, Any]:
        """These fields by name, without those of subclasses."""
        return {each.name: getattr(self, each.name) for each in fields(Search)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOfAnySize(Search):
    """A search whose budget may be a share of the space."""

    max_fraction: float | None = None  # of the valid configurations

    def search_in(self, size: int) -> dict[str, Any]:
        """The fields of `Search` for a space of that many configurations."""
        if self.max_evaluations is not None or self.max_fraction is None:
            return self.search()
        return {**self.search(), "max_evaluations": max(1, min(size, math.ceil(self.max_fraction * size)))}
