"""The convex hull of a cloud of configurations, and how far it spreads where one figure is held (S2 3.3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

_DIRECTIONS = [(1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1)]  # counterclockwise


def convex_hull(x: npt.ArrayLike, y: npt.ArrayLike) -> Indices:
    """Indices of the corners of the convex hull, counterclockwise, from the largest y (of equals the largest x).

    `x` and `y` have shape (n,); a point with a NaN takes no part, points within an edge are no corners, of equal points
    the first stays. Monotone chain, O(n log n), over what lies outside the octagon of the extreme points.
    """
    along, up = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    known = np.flatnonzero(np.isfinite(along) & np.isfinite(up))
    if not len(known):
        return np.empty(0, dtype=np.int64)
    points = np.column_stack([_unit(along[known]), _unit(up[known])])
    outside = _outside_octagon(points)
    known, points = known[outside], points[outside]
    order = np.lexsort((known, points[:, 1], points[:, 0]))
    order = order[np.concatenate([[True], (np.diff(points[order], axis=0) != 0).any(axis=1)])]
    chain = points[order].tolist()
    lower, upper = _chain(chain), _chain(chain[::-1])
    corners = [*lower[:-1], *(len(chain) - 1 - at for at in upper[:-1])] if len(chain) > 1 else [0]
    hull = known[order[corners]]
    first = int(np.lexsort((-along[hull], -up[hull]))[0])
    return np.asarray(np.roll(hull, -first), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Spread:
    """What the hull leaves open where one figure is held: the other one's least and largest value."""

    at: float  # the figure that is held
    low: float
    high: float

    @property
    def share(self) -> float:
        """How far the low end lies below the high one: 0.25 is a quarter less."""
        return 1 - self.low / self.high if self.high > 0 else 0.0


def spread_at(held: npt.ArrayLike, other: npt.ArrayLike, at: float) -> Spread | None:
    """Where a line at `held` = `at` cuts the hull; `held` and `other` are the coordinates of its corners in order.

    None where the line misses the hull.
    """
    a, b = np.asarray(held, dtype=np.float64), np.asarray(other, dtype=np.float64)
    if not len(a) or not a.min() <= at <= a.max():
        return None
    a_next, b_next = np.roll(a, -1), np.roll(b, -1)
    crossed = (np.minimum(a, a_next) <= at) & (at <= np.maximum(a, a_next))
    level = crossed & (a == a_next)  # an edge within the line: both ends count
    along = np.where(level, 0.0, (at - a) / np.where(a == a_next, 1.0, a_next - a))
    met = np.concatenate([(b + along * (b_next - b))[crossed], b_next[level]])
    return Spread(at, float(met.min()), float(met.max()))


def _unit(values: Floats) -> Floats:
    """Between 0 and 1, so that products of differences of both axes compare."""
    low, span = float(values.min()), float(np.ptp(values))
    return np.asarray((values - low) / span if span > 0 else np.zeros(len(values)), dtype=np.float64)


def _outside_octagon(points: Floats) -> Indices:
    """Positions of the points that are not inside the polygon of the extremes in eight directions."""
    extreme = [int(np.argmax(points @ np.array(direction, dtype=np.float64))) for direction in _DIRECTIONS]
    corners = points[list(dict.fromkeys(extreme))]
    if len(corners) < 3:
        return np.arange(len(points), dtype=np.int64)
    inside = np.ones(len(points), dtype=np.bool_)
    for corner, after in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        edge, away = after - corner, points - corner
        inside &= edge[0] * away[:, 1] - edge[1] * away[:, 0] > 1e-12
    return np.flatnonzero(~inside).astype(np.int64)


def _chain(points: list[list[float]]) -> list[int]:
    """Positions of the corners that turn left, of points sorted along the first axis."""
    kept: list[int] = []
    for at, (x, y) in enumerate(points):
        while len(kept) > 1:
            (x0, y0), (x1, y1) = points[kept[-2]], points[kept[-1]]
            if (x1 - x0) * (y - y0) - (y1 - y0) * (x - x0) > 1e-12:  # else within the edge, but for rounding
                break
            kept.pop()
        kept.append(at)
    return kept
