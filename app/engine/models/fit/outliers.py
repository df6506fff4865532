"""Readings that cannot belong to the curve: at a wrong clock, or while something else ran."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arrays import Floats, Mask, Rows
from .bends import closest_power_w

_LEAST_POINTS = 8  # fewer cannot distinguish a wrong reading from a wrong model
_SUSPICIOUS = 0.03  # relative residual below which nothing is looked for
_FAR = 0.05  # relative residual, from the curve through the others, that a wrong reading has at least
_GAIN = 8.0  # how much smaller the squared residuals of the others must become
_FLOOR = 1e-3  # relative: no reading is better than this
_MOST = 0.1  # share of the points that may be left out
_FALL = 0.15  # relative: power, and speed, never fall so far where the clock rises, whatever runs
_MOST_FALLS = 0.2  # share of the points that may be left out for that


def relative_weights(power_w: Floats) -> Floats:
    """Compute weights of squared residuals.

    The variance is proportional to the power: between a fixed error in W (steps of the reading, drift) and an error
    proportional to the power (noise, gain).

    Parameters
    ----------
    power_w : array, shape (n,)
        Power of each point in W.

    Returns
    -------
    array, shape (n,)
        Weights without a unit.
    """
    return np.asarray(power_w.mean() / power_w)


def without_outliers(clock_mhz: Floats, power_w: Floats, rate: Floats | None, free: Mask) -> tuple[Mask, str]:
    """Remove the points that do not belong to the curve.

    Parameters
    ----------
    clock_mhz : array, shape (n,)
        Clocks in MHz, ascending.
    power_w : array, shape (n,)
        Power in W.
    rate : array, shape (n,), or None
        Speed in any unit; None if unknown.
    free : array of bool, shape (n,)
        The points that no limit held.

    Returns
    -------
    tuple of array of bool and str
        `free` without those points, shape (n,), and the reason; empty if all stay.
    """
    removed = _impossible(clock_mhz, power_w, rate, np.flatnonzero(free))
    used = free.copy()
    used[removed] = False
    allowed = max(1, int(_MOST * used.sum())) if used.sum() >= _LEAST_POINTS else 0
    for _ in range(allowed):
        index = _worst(clock_mhz, power_w, used)
        if index is None:
            break
        used[index] = False
        removed.append(index)
    if not removed:
        return used, ""
    listed = ", ".join(f"{power_w[i]:.1f} W at {clock_mhz[i]:.0f} MHz" for i in sorted(removed))
    return used, f"left out as wrong readings, at odds with all others: {listed}"


def _impossible(clock_mhz: Floats, power_w: Floats, rate: Floats | None, rows: Rows) -> list[int]:
    """The fewest of `rows`, ascending by clock, that contradict a rising clock.

    Without them power nowhere falls and the same work nowhere takes longer as the clock rises. Empty where too many
    would have to go: then the load was not the same.
    """

    def misfit(kept: Rows) -> float:
        return _fit(clock_mhz, power_w, kept, kept)[0]

    removed = _against_order(1.0 / power_w, rows, misfit)
    if rate is None:
        return removed

    def time_misfit(kept: Rows) -> float:
        inverse = 1.0 / clock_mhz[kept]
        line = np.polynomial.Polynomial.fit(inverse, 1.0 / rate[kept], 1)
        return float(((line(inverse) * rate[kept] - 1) ** 2).sum())

    return removed + _against_order(1.0 / rate, np.setdiff1d(rows, removed), time_misfit)


def _against_order(falling: Floats, rows: Rows, misfit: Callable[[Rows], float]) -> list[int]:
    """The fewest of `rows` without which `falling` rises nowhere by more than _FALL.

    Among equals, the row without which the others fit best.
    """
    removed: list[int] = []
    most = int(_MOST_FALLS * len(rows)) if len(rows) >= _LEAST_POINTS else 0
    for _ in range(most + 1):
        values = falling[rows]
        rises = np.triu((1 - _FALL) * values[None, :] > values[:, None], 1)
        counts = rises.sum(axis=0) + rises.sum(axis=1)  # of pairs of which one must be wrong
        if not counts.any():
            return removed
        suspects = np.flatnonzero(counts == counts.max())
        rests = [np.delete(rows, suspect) for suspect in suspects]
        best = int(np.argmin([misfit(rest) for rest in rests]))
        removed.append(int(rows[suspects[best]]))
        rows = rests[best]
    return []


def _worst(clock_mhz: Floats, power_w: Floats, used: Mask) -> int | None:
    rows = np.flatnonzero(used)
    rss, residual = _fit(clock_mhz, power_w, rows, rows)
    if np.abs(residual).max() < _SUSPICIOUS:
        return None
    inner = (clock_mhz[rows] > clock_mhz[rows].min()) & (clock_mhz[rows] < clock_mhz[rows].max())
    # not at the ends, where a steep curve looks like a wrong reading
    suspects = rows[inner][np.argsort(np.abs(residual[inner]))[::-1][:4]]
    best: tuple[float, int] | None = None
    for suspect in suspects:
        others = rows[rows != suspect]
        rest, away = _fit(clock_mhz, power_w, others, np.asarray([suspect]))
        if abs(float(away[0])) > _FAR and rest * _GAIN < rss and (best is None or rest < best[0]):
            best = rest, int(suspect)
    return best[1] if best else None


def _fit(clock_mhz: Floats, power_w: Floats, rows: Rows, members: Rows) -> tuple[float, Floats]:
    """Sum of squared relative residuals of the best bend through `rows`, and the relative residuals of `members`."""
    power = power_w[rows]
    both = np.concatenate([clock_mhz[rows], clock_mhz[members]])
    model = closest_power_w(clock_mhz[rows], power, 1.0 / relative_weights(power), both)
    rss = float(((power / model[: len(rows)] - 1) ** 2).sum())
    return rss + _FLOOR**2 * len(rows), power_w[members] / model[len(rows) :] - 1
