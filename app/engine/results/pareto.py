"""The Pareto front of measurements, its hypervolume, and the best of one goal; the finalists of several boards."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

import numpy as np
import numpy.typing as npt

from .measurement import Measurement, State
from .objectives import Goal, Objective

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
BEST: Final = 6  # finalists by the goal,
MOST_BEST: Final = 16  # ... or one of each board, where there are more,
FRONT: Final = 8  # ... and from the fronts


def front(values: npt.ArrayLike, maximise: Sequence[bool]) -> Indices:
    """Indices of the points that no other point beats, sorted by the first goal from its worst to its best.

    `values` has shape (n, m), one column per goal; a point with a NaN takes no part. A point is beaten by one that is
    at least as good in every goal and better in one; of equal points the first stays. O(n log n) for two goals, O(n k)
    with k points on the front for more. Raises ValueError if the shapes disagree.
    """
    points = _smaller_better(values, maximise)
    indices = np.flatnonzero(_unbeaten_by_one(np.ascontiguousarray(points.T)))
    if not len(indices):
        return np.empty(0, dtype=np.int64)
    points = points[indices]
    order = np.lexsort(points.T[::-1])  # by the first goal, then the next ones, then (as it is stable) the index
    chosen = _front_of_two(points[order, 1]) if points.shape[1] == 2 else _front_of_many(points[order])
    return indices[order[chosen]][::-1].astype(np.int64)


def hypervolume(values: npt.ArrayLike, maximise: Sequence[bool], reference: Sequence[float]) -> float:
    """The area that the front of two goals dominates, up to the reference point; in the product of the two units.

    `values` has shape (n, 2). Points no better than the reference in a goal add nothing. Raises ValueError for other
    shapes.
    """
    if len(maximise) != 2:
        raise ValueError("the hypervolume is defined here for two goals")
    points = _smaller_better(values, maximise)
    corner = _smaller_better([reference], maximise)[0]
    points = points[~np.isnan(points).any(axis=1)]
    points = points[(points < corner).all(axis=1)]
    if not len(points):
        return 0.0
    points = points[np.lexsort((points[:, 1], points[:, 0]))]
    points = points[_front_of_two(points[:, 1])]
    widths = np.append(points[1:, 0], corner[0]) - points[:, 0]
    return float(widths @ (corner[1] - points[:, 1]))


def best(values: npt.ArrayLike, maximise: bool) -> int | None:
    """Index of the best value, the first of equals; None if all are NaN."""
    column = np.asarray(values, dtype=np.float64)
    if not len(column) or np.isnan(column).all():
        return None
    return int(np.nanargmax(column) if maximise else np.nanargmin(column))


def reference_point(values: npt.ArrayLike, maximise: Sequence[bool]) -> tuple[float, ...]:
    """The customary reference of the hypervolume: 0 where larger is better, the worst value where smaller is."""
    array = np.asarray(values, dtype=np.float64)
    worst = [np.nanmax(c) if len(c) and not np.isnan(c).all() else 0.0 for c in array.T]
    return tuple(0.0 if up else float(w) for up, w in zip(maximise, worst, strict=True))


def _smaller_better(values: npt.ArrayLike, maximise: Sequence[bool]) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != len(maximise) or not len(maximise):
        raise ValueError(f"values of shape {array.shape} do not fit {len(maximise)} goals")
    return np.where(np.asarray(maximise, dtype=bool), -array, array)


def _unbeaten_by_one(goals: Floats) -> npt.NDArray[np.bool_]:
    """Mask of the points without a NaN that one good in all goals leaves: often few, so there is little to sort.

    `goals` has shape (m, n).
    """
    left = ~np.isnan(goals).any(axis=0)
    if left.any():
        with np.errstate(all="ignore"):
            low, high = np.nanmin(goals, axis=1)[:, None], np.nanmax(goals, axis=1)[:, None]
            worst = ((goals - low) / (high - low)).max(axis=0)  # NaN if a goal is infinite, or the same for all
        worst[~left | np.isnan(worst)] = np.inf
        left &= ~(goals > goals[:, [np.argmin(worst)]]).all(axis=0)
    return np.asarray(left)


def _front_of_two(second: Floats) -> npt.NDArray[np.bool_]:
    """Mask of the front, the points sorted by both goals: a point is on it if the second goal is a new minimum."""
    best_before = np.minimum.accumulate(second)
    mask = np.ones(len(second), dtype=bool)
    mask[1:] = second[1:] < best_before[:-1]
    return mask


def _front_of_many(points: Floats) -> Indices:
    """Positions of the front for any number of goals, the points sorted: what beats a point comes before it."""
    chosen: list[int] = []
    kept = np.empty_like(points)
    for position, point in enumerate(points):
        if not (kept[: len(chosen)] <= point).all(axis=1).any():
            kept[len(chosen)] = point
            chosen.append(position)
    return np.asarray(chosen, dtype=np.int64)


def finalists(measurements: Sequence[Measurement], objective: Objective) -> list[Measurement]:
    """What may be the best, or on the front, whatever the boards differ by: within a board figures compare.

    Parameters
    ----------
    measurements
        Of several boards, one of each row.
    objective
        Whose goal, front and limits count.

    Returns
    -------
    The best of each board, then the second best of each and so on, BEST in all, or one of each of as many as MOST_BEST
    boards; and FRONT points that lie evenly on the boards' own fronts. Each once.
    """
    of_boards: dict[str, list[Measurement]] = {}
    for each in measurements:
        if each.state is State.OK and each.board and objective.feasible(each.values):
            of_boards.setdefault(each.board, []).append(each)
    chosen: dict[int, Measurement] = {}

    def choose(of_each: Sequence[Sequence[Measurement]], most: int) -> None:
        """The first of each board, the best of them first, then the second of each."""
        for rank in zip_longest(*of_each):
            for each in sorted(filter(None, rank), key=lambda each: objective.goal.cost(each.values)):
                if each.row not in chosen and most > 0:
                    chosen[each.row] = each
                    most -= 1

    candidates = [
        [item for item in board if objective.goal.cost(item.values) < math.inf] for board in of_boards.values()
    ]
    ranked = [sorted(own, key=lambda each: objective.goal.cost(each.values))[:BEST] for own in candidates]
    choose(ranked, min(MOST_BEST, max(BEST, len(ranked))))
    if objective.front:
        share = max(1, FRONT // max(1, len(of_boards)))
        choose([_front_of(board, objective.front, share) for board in of_boards.values()], FRONT)
    return list(chosen.values())


def _front_of(measurements: Sequence[Measurement], goals: Sequence[Goal], most: int) -> list[Measurement]:
    """So many points of a board's front, evenly spaced."""
    values = [[item.values.get(goal.name, math.nan) for goal in goals] for item in measurements]
    points = front(values, [goal.maximise for goal in goals])
    places = np.unique(np.linspace(0, len(points) - 1, min(most, len(points))).round().astype(int))
    return [measurements[points[place]] for place in places]
