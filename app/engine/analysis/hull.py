"""The convex hull of a cloud of configurations, and how far it spreads where one figure is held (S2 3.3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

_BLOCK = 64  # points along x of which only the lowest and the highest are looked at first
_ROUNDING = 1e-13


def convex_hull(x: npt.ArrayLike, y: npt.ArrayLike) -> Indices:
    """Indices of the corners of the convex hull, counterclockwise, from the largest y (of equals the largest x).

    `x` and `y` have shape (n,); a point with a NaN takes no part, points within an edge are no corners, of equal points
    the first stays. Monotone chain, O(n log n): first over a few points, then over what lies outside their hull.
    """
    along, up = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    known = np.flatnonzero(np.isfinite(along) & np.isfinite(up))
    if not len(known):
        return np.empty(0, dtype=np.int64)
    points = np.column_stack([_unit(along[known]), _unit(up[known])])
    order = np.lexsort((known, points[:, 1], points[:, 0]))
    order = order[np.concatenate([[True], (np.diff(points[order], axis=0) != 0).any(axis=1)])]
    order = order[_candidates(points[order])]
    corners = _around(points[order])
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


def _candidates(points: Floats) -> Indices:
    """Positions of points, sorted along x, among which every corner is: those not below and above the hull of a few."""
    if len(points) <= 4 * _BLOCK:
        return np.arange(len(points), dtype=np.int64)
    x, y = points[:, 0], points[:, 1]
    whole = len(points) // _BLOCK * _BLOCK
    blocks, first = y[:whole].reshape(-1, _BLOCK), np.arange(0, whole, _BLOCK)
    few = np.concatenate(
        [first + blocks.argmin(axis=1), first + blocks.argmax(axis=1), [0], np.arange(whole - 1, len(y))]
    )
    few = np.unique(few)
    lower, upper = _chain(points[few].tolist()), _chain(points[few][::-1].tolist())[::-1]
    low = few[lower]
    high = few[len(few) - 1 - np.array(upper)]
    outside = (y <= np.interp(x, x[low], y[low]) + 1e-9) | (y >= np.interp(x, x[high], y[high]) - 1e-9)
    return np.flatnonzero(outside).astype(np.int64)


def _around(points: Floats) -> list[int]:
    """Positions of the corners of points sorted along x, then y, counterclockwise."""
    if len(points) == 1:
        return [0]
    lower, upper = _chain(points.tolist()), _chain(points[::-1].tolist())
    return [*lower[:-1], *(len(points) - 1 - at for at in upper[:-1])]


def _chain(points: list[list[float]]) -> list[int]:
    """Positions of the corners that turn left, of points sorted along the first axis."""
    kept: list[int] = []
    for at, (x, y) in enumerate(points):
        while len(kept) > 1:
            (x0, y0), (x1, y1) = points[kept[-2]], points[kept[-1]]
            left, right = (x1 - x0) * (y - y0), (y1 - y0) * (x - x0)
            if left - right > _ROUNDING * (abs(left) + abs(right)):  # else within the edge, but for rounding
                break
            kept.pop()
        kept.append(at)
    return kept
