"""What random search may expect of a front of two goals: the hypervolume after so many rows drawn at random."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...errors import InputError
from ..pareto import hypervolume, reference_point
from .scoring import Floats, Indices, chance_to_miss, first_below

_ENOUGH = 0.95  # of the whole hypervolume: where the budget ends


@dataclass(frozen=True)
class FrontBaseline:
    """Two goals: the figure is the hypervolume of what was found, negative so that smaller is better.

    `values` has shape (rows, 2), NaN where a row failed. The hypervolume is relative to the whole front's, -1 is all of
    it; its reference is 0 where larger is better, else the worst value. The budget is the smallest number of draws from
    which random search may expect 95 % of it. Raises InputError where there is no front.
    """

    values: Floats
    maximise: Sequence[bool]

    def __post_init__(self) -> None:
        if np.isnan(self.values).any(axis=1).all() or self._whole <= 0:
            raise InputError("there is no front: no configuration is better than the reference", "score")

    @property
    def optimum(self) -> float:
        return -1.0

    @property
    def rows(self) -> int:
        return len(self.values)

    @cached_property
    def budget(self) -> int:
        return first_below(self.expected, -_ENOUGH, self.rows)

    def expected(self, draws: int) -> float:
        """The whole plane cut into cells: each counts unless none of the rows that dominate it is drawn."""
        area = self._area_dominated_by
        missed = chance_to_miss(np.arange(len(area)), draws, self.rows)
        return float(-(area @ (1 - missed)) / self._whole)

    def reached(self, evaluated: Indices, after: Indices) -> Floats:
        found = [hypervolume(self.values[evaluated[:count]], self.maximise, self._reference) for count in after]
        return -np.array(found) / self._whole

    @cached_property
    def _reference(self) -> tuple[float, ...]:
        return reference_point(self.values, self.maximise)

    @cached_property
    def _whole(self) -> float:
        return hypervolume(self.values, self.maximise, self._reference)

    @cached_property
    def _area_dominated_by(self) -> Floats:
        """The area that exactly k rows dominate, shape (rows + 1,), by the index k. O(n^2) for n rows, memory O(n)."""
        sign = np.where(self.maximise, -1.0, 1.0)
        points = self.values[~np.isnan(self.values).any(axis=1)] * sign
        corner = np.array(self._reference) * sign
        points = points[(points < corner).all(axis=1)]
        points = points[np.argsort(points[:, 0], kind="stable")]
        widths = np.append(points[1:, 0], corner[0]) - points[:, 0]
        heights, place = np.unique(points[:, 1], return_inverse=True)
        spans = np.append(heights[1:], corner[1]) - heights
        area = np.zeros(self.rows + 1)
        above = np.zeros(len(heights), dtype=np.int64)  # in each strip of the second goal: rows that dominate it
        for width, at in zip(widths.tolist(), place.tolist(), strict=True):
            above[at:] += 1
            if width > 0:
                area[: len(points) + 1] += width * np.bincount(above, weights=spans, minlength=len(points) + 1)
        return area
