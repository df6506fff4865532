"""The cloud of configurations over two figures: its front, convex hull, quadrants, and spread where one is held.

After [Anzt2015, sections 3.3 and 3.4].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..models.arrays import Floats, Indices
from ..results.objectives import Goal, Limit, Objective
from ..results.pareto import front, hypervolume, reference_point
from ..space.result_table import ResultTable
from ..space.within_limits import feasible
from .costs import values_of
from .iso_lines import Role, role_of

_BLOCK = 64  # points along x of which only the lowest and the highest are considered first
_ROUNDING = 1e-13


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
        """Number of all points."""
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
        """Compute the share of a count in all points.

        Parameters
        ----------
        count : int
            Number of points.

        Returns
        -------
        float
            Share in per cent.
        """
        return 100 * count / self.total


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


@dataclass(frozen=True, slots=True)
class Plane:
    """The cloud over two goals. Indices are those of the measurements."""

    goals: tuple[Goal, Goal]
    values: Floats  # shape (n, 2), NaN if one failed or breaks a limit
    front: Indices  # from the worst of the first goal to its best
    hull: Indices  # corners around the whole cloud, counterclockwise
    quadrants: Quadrants | None
    hypervolume: float
    reference: tuple[float, ...]
    spread_at_best_y: Spread | None  # of the second goal, where the first is held at the most efficient one's
    spread_at_best_x: Spread | None  # of the first goal, where the second is held at the fastest one's


def customary_goals(names: Sequence[str]) -> tuple[Goal, Goal] | None:
    """Choose two goals among figures: the first speed and the first efficiency, else time and energy.

    Parameters
    ----------
    names : sequence of str
        Names of the figures.

    Returns
    -------
    tuple of Goal or None
        Speed and efficiency to be maximised, or `time_s` and `energy_j` to be minimised; None without both of a pair.
    """
    first = {role: name for name in reversed(names) if (role := role_of(name)) is not None}
    if Role.SPEED in first and Role.EFFICIENCY in first:
        return Goal(first[Role.SPEED], True), Goal(first[Role.EFFICIENCY], True)
    if {"time_s", "energy_j"} <= set(names):
        return Goal("time_s", False), Goal("energy_j", False)
    return None


def goals_of(table: ResultTable, objective: Objective) -> tuple[Goal, Goal] | None:
    """Choose the two goals of the front: the first two of the objective's own, else the customary ones.

    Parameters
    ----------
    table : ResultTable
        The measurements, whose figures the customary goals are chosen from.
    objective : Objective
        The objective of the session.

    Returns
    -------
    tuple of Goal or None
        None if there are no two.
    """
    if len(objective.front) >= 2:
        return objective.front[0], objective.front[1]
    return customary_goals(table.value_names)


def plane_of(table: ResultTable, goals: tuple[Goal, Goal], limits: Sequence[Limit] = ()) -> Plane:
    """Compute the plane of two goals; only points within the limits count.

    Parameters
    ----------
    table : ResultTable
        The measurements, n of them.
    goals : tuple of Goal
        The figures along x and y.
    limits : sequence of Limit, optional
        Limits of the objective.

    Returns
    -------
    Plane
        Values of shape (n, 2) with front, hull, quadrants and spreads.
    """
    table = table.so_far()
    values = np.column_stack([values_of(table, goal.name) for goal in goals])
    values[~feasible(table, limits)] = np.nan
    maximise = [goal.maximise for goal in goals]
    hull = convex_hull(values[:, 0], values[:, 1])
    cut = quadrants(values, maximise)
    corners = values[hull]
    reference = reference_point(values, maximise)
    return Plane(
        goals=goals,
        values=values,
        front=front(values, maximise),
        hull=hull,
        quadrants=cut,
        hypervolume=hypervolume(values, maximise, reference),
        reference=reference,
        spread_at_best_y=spread_at(corners[:, 0], corners[:, 1], cut.x_line) if cut is not None else None,
        spread_at_best_x=spread_at(corners[:, 1], corners[:, 0], cut.y_line) if cut is not None else None,
    )


def quadrants(values: npt.ArrayLike, maximise: Sequence[bool]) -> Quadrants | None:
    """Cut the cloud at the best of each figure.

    Parameters
    ----------
    values : array_like, shape (n, 2)
        Both figures of each point; points with a NaN are ignored.
    maximise : sequence of bool
        For each figure, whether larger is better.

    Returns
    -------
    Quadrants or None
        None if no point is known.
    """
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


def convex_hull(x: npt.ArrayLike, y: npt.ArrayLike) -> Indices:
    """Find the corners of the convex hull by monotone chain, O(n log n).

    The chain runs over a few points first, then over those outside their hull.

    Parameters
    ----------
    x, y : array_like, shape (n,)
        Coordinates of the points; points with a NaN are ignored.

    Returns
    -------
    array of int, shape (k,)
        Indices counterclockwise, from the largest y (of equals the largest x). Points within an edge are no corners; of
        equal points the first counts.
    """
    along, up = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    indices = np.flatnonzero(np.isfinite(along) & np.isfinite(up))
    if not len(indices):
        return np.empty(0, dtype=np.int64)
    points = np.column_stack([_unit(along[indices]), _unit(up[indices])])
    order = np.lexsort((indices, points[:, 1], points[:, 0]))
    order = order[np.concatenate([[True], (np.diff(points[order], axis=0) != 0).any(axis=1)])]
    order = order[_candidates(points[order])]
    corners = _around(points[order])
    hull = indices[order[corners]]
    first = int(np.lexsort((-along[hull], -up[hull]))[0])
    return np.asarray(np.roll(hull, -first), dtype=np.int64)


def spread_at(held: npt.ArrayLike, other: npt.ArrayLike, height: float) -> Spread | None:
    """Cut the hull by a line on which one coordinate is constant.

    Parameters
    ----------
    held, other : array_like, shape (k,)
        Coordinates of the corners in order.
    height : float
        The value of `held` along the line.

    Returns
    -------
    Spread or None
        The least and the largest `other` on the line; None if the line misses the hull.
    """
    a, b = np.asarray(held, dtype=np.float64), np.asarray(other, dtype=np.float64)
    if not len(a) or not a.min() <= height <= a.max():
        return None
    a_next, b_next = np.roll(a, -1), np.roll(b, -1)
    crossed = (np.minimum(a, a_next) <= height) & (height <= np.maximum(a, a_next))
    level = crossed & (a == a_next)  # an edge within the line: both ends count
    along = np.where(level, 0.0, (height - a) / np.where(a == a_next, 1.0, a_next - a))
    met = np.concatenate([(b + along * (b_next - b))[crossed], b_next[level]])
    return Spread(height, float(met.min()), float(met.max()))


# --- inside the hull --------------------------------------------------------------------------------------------------


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
    lower, upper = lower_hull(points[few].tolist()), lower_hull(points[few][::-1].tolist())[::-1]
    low = few[lower]
    high = few[len(few) - 1 - np.array(upper)]
    outside = (y <= np.interp(x, x[low], y[low]) + 1e-9) | (y >= np.interp(x, x[high], y[high]) - 1e-9)
    return np.flatnonzero(outside).astype(np.int64)


def _around(points: Floats) -> list[int]:
    """Positions of the corners of points sorted along x, then y, counterclockwise."""
    if len(points) == 1:
        return [0]
    lower, upper = lower_hull(points.tolist()), lower_hull(points[::-1].tolist())
    return [*lower[:-1], *(len(points) - 1 - index for index in upper[:-1])]


def lower_hull(points: list[list[float]]) -> list[int]:
    """Find the lower hull of sorted points.

    Parameters
    ----------
    points : list of list of float
        Pairs of coordinates, sorted along the first axis.

    Returns
    -------
    list of int
        Positions of the corners that turn left.
    """
    kept: list[int] = []
    for index, (x, y) in enumerate(points):
        while len(kept) > 1:
            (x0, y0), (x1, y1) = points[kept[-2]], points[kept[-1]]
            left, right = (x1 - x0) * (y - y0), (y1 - y0) * (x - x0)
            if left - right > _ROUNDING * (abs(left) + abs(right)):  # else within the edge, but for rounding
                break
            kept.pop()
        kept.append(index)
    return kept
