"""The course of a session: the best figure and the hypervolume of the front after every evaluation."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..models.arrays import Floats, Indices, Mask

_BLOCK = 1024  # evaluations that are processed together


def best_so_far(figure: Floats, *, maximise: bool) -> Floats:
    """Compute the best figure after each evaluation.

    Parameters
    ----------
    figure : array, shape (n,)
        Of each evaluation; NaN if it failed.
    maximise : bool
        Whether larger figures are better.

    Returns
    -------
    array, shape (n,)
        NaN until an evaluation succeeded.
    """
    return (np.fmax if maximise else np.fmin).accumulate(figure)


def hypervolume_so_far(values: npt.ArrayLike, maximise: Sequence[bool], reference: Sequence[float]) -> Floats:
    """Compute the hypervolume of two goals after each evaluation, in O(n log k) with k points on the front.

    Parameters
    ----------
    values : array_like, shape (n, 2)
        Figures of the goals; NaN if an evaluation failed.
    maximise : sequence of bool
        For each goal, whether larger is better.
    reference : sequence of float
        The reference point, one figure for each goal.

    Returns
    -------
    array, shape (n,)
        After each evaluation what `pareto.hypervolume` gives for the evaluations up to it.
    """
    sign = np.where(np.asarray(maximise, dtype=np.bool_), -1.0, 1.0)
    points = np.asarray(values, dtype=np.float64).reshape(-1, 2) * sign
    corner_x, corner_y = (np.asarray(reference, dtype=np.float64) * sign).tolist()
    stairs: list[tuple[float, float]] = []  # the front: x rises, y falls
    added = np.zeros(len(points))
    for start in range(0, len(points), _BLOCK):
        block = points[start : start + _BLOCK]
        for index in (start + np.flatnonzero(_may_add(stairs, block, corner_x, corner_y))).tolist():
            x, y = points[index].tolist()
            added[index] = _added(stairs, x, y, corner_x, corner_y)
    return np.cumsum(added)


def _may_add(stairs: list[tuple[float, float]], points: Floats, corner_x: float, corner_y: float) -> Mask:
    """Return a mask of the points that the current front does not dominate; False for NaN."""
    x, y = points[:, 0], points[:, 1]
    front = np.array([(-np.inf, corner_y), *stairs])
    height = front[np.searchsorted(front[:, 0], x, side="right") - 1, 1]
    return np.asarray((x < corner_x) & (y < height), dtype=np.bool_)


def steps(curve: Floats) -> tuple[Indices, Floats]:
    """Find where a curve changes.

    Parameters
    ----------
    curve : array, shape (n,)
        A value after each evaluation; NaN before the first success.

    Returns
    -------
    tuple of array of int and array, shapes (k,)
        The number of evaluations from 1 at each change, and the value from there on; a NaN start is left out.
    """
    indices = np.flatnonzero(~np.isnan(curve))
    if not len(indices):
        return indices + 1, curve[:0]
    kept = curve[indices[0] :]
    changed = np.concatenate([[True], kept[1:] != kept[:-1]])
    places = np.flatnonzero(changed) + indices[0]
    return places + 1, curve[places]


def corners(places: Indices, values: Floats, end: int) -> tuple[Floats, Floats]:
    """Place the corners of a step curve.

    Parameters
    ----------
    places, values : array, shape (k,)
        Where the curve changes, and the value from there on, as `steps` returns them.
    end : int
        The last evaluation, to which the curve is extended.

    Returns
    -------
    x, y : array, shape (2 k,)
        The corners.
    """
    x = np.append(np.repeat(places, 2)[1:], end).astype(np.float64)
    return x, np.repeat(values, 2).astype(np.float64)


def near_the_end(places: Indices, values: Floats, *, maximise: bool) -> int:
    """Find the evaluation from which on a curve is within 1 % of its last value.

    Parameters
    ----------
    places, values : array, shape (k,)
        Where the curve changes, and the value from there on, as `steps` returns them; k is at least 1.
    maximise : bool
        Whether larger values are better.

    Returns
    -------
    int
        The number of the evaluation, from 1.
    """
    last = float(values[-1])
    near = values >= last - 0.01 * abs(last) if maximise else values <= last + 0.01 * abs(last)
    return int(places[int(np.argmax(near))])


def thinned(length: int, most: int) -> Indices:
    """Select evenly spread places of a curve.

    Parameters
    ----------
    length : int
        Number of points of the curve.
    most : int
        The most places to select.

    Returns
    -------
    array of int, shape (k,)
        At most `most` positions; the first and the last of the curve are among them.
    """
    return np.unique(np.linspace(0, length - 1, min(length, most)).round().astype(np.int64))


def _added(stairs: list[tuple[float, float]], x: float, y: float, corner_x: float, corner_y: float) -> float:
    """Add a point to the front, remove the points that it dominates, and return the hypervolume that it adds."""
    index = bisect_left(stairs, (x, y))
    height = stairs[index - 1][1] if index else corner_y
    if height <= y or (index < len(stairs) and stairs[index][0] == x and stairs[index][1] <= y):
        return 0.0
    end, area, left = index, 0.0, x
    while end < len(stairs) and stairs[end][1] >= y:
        area += (stairs[end][0] - left) * (height - y)
        left, height = stairs[end]
        end += 1
    right = stairs[end][0] if end < len(stairs) else corner_x
    area += (right - left) * (height - y)
    del stairs[index:end]
    insort(stairs, (x, y))
    return area
