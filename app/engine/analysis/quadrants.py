"""The four quadrants of a cloud, cut by its fastest and by its most efficient configuration (S2 3.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..pareto import front


@dataclass(frozen=True, slots=True)
class Quadrants:
    """How many configurations lie where. 'Better' is strictly better than the corner of the other figure.

    The first figure is x (a speed), the second y (an efficiency). The best in x itself counts as better in x, the best
    in y as better in y, unless one is both.
    """

    best_x: int  # index of the point that is best in x, of those best in y
    best_y: int
    x_line: float  # x of the best in y: the vertical line
    y_line: float  # y of the best in x: the horizontal line
    both: int  # better in x than the best in y and in y than the best in x: where trading off pays
    x_only: int
    y_only: int
    neither: int

    @property
    def total(self) -> int:
        return self.both + self.x_only + self.y_only + self.neither

    @property
    def better_x(self) -> int:
        """Points beyond the vertical line."""
        return self.both + self.x_only

    @property
    def better_y(self) -> int:
        """Points beyond the horizontal line."""
        return self.both + self.y_only

    def percent(self, count: int) -> float:
        return 100 * count / self.total


def quadrants(values: npt.ArrayLike, maximise: Sequence[bool]) -> Quadrants | None:
    """Cut the cloud. `values` has shape (n, 2); a point with a NaN takes no part; None where none is left."""
    points = np.asarray(values, dtype=np.float64)
    ends = front(points, maximise)
    if not len(ends):
        return None
    best_y, best_x = int(ends[0]), int(ends[-1])
    better = np.where(np.asarray(maximise, dtype=np.bool_), 1.0, -1.0) * points
    better = better[~np.isnan(better).any(axis=1)]
    sign_x, sign_y = (1.0 if up else -1.0 for up in maximise)
    beyond_x = better[:, 0] > sign_x * points[best_y, 0]
    beyond_y = better[:, 1] > sign_y * points[best_x, 1]
    both = int((beyond_x & beyond_y).sum())
    x_only, y_only = int(beyond_x.sum()) - both, int(beyond_y.sum()) - both
    return Quadrants(
        best_x=best_x,
        best_y=best_y,
        x_line=float(points[best_y, 0]),
        y_line=float(points[best_x, 1]),
        both=both,
        x_only=x_only,
        y_only=y_only,
        neither=len(better) - both - x_only - y_only,
    )
