"""`RowFilter`: which values of each parameter are looked at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from ...engine.space.search_space import SearchSpace


@dataclass(frozen=True, slots=True)
class RowFilter:
    """The values that are hidden, as their places in the parameter's list, by the parameter's name."""

    hidden: Mapping[str, frozenset[int]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return any(self.hidden.values())

    def hides(self, name: str, codes: Iterable[int]) -> bool:
        """All of these values are hidden."""
        return set(codes) <= self.hidden.get(name, frozenset())

    def toggled(self, name: str, codes: Iterable[int]) -> RowFilter:
        """With these values hidden, or shown again where all of them are hidden."""
        before, wanted = self.hidden.get(name, frozenset()), frozenset(codes)
        after = before - wanted if wanted <= before else before | wanted
        return RowFilter({**self.hidden, name: after})

    def passes(self, space: SearchSpace, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which of these rows of the space hold no hidden value."""
        passed = np.ones(len(rows), dtype=np.bool_)
        for place, parameter in enumerate(space.parameters):
            hidden = self.hidden.get(parameter.name)
            if hidden:
                shown = np.ones(len(parameter.values), dtype=np.bool_)
                shown[list(hidden)] = False
                passed &= shown[space.codes[rows, place]]
        return passed


EVERYTHING = RowFilter()
