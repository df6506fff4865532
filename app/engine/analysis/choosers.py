"""Ways to choose a configuration by its time and energy: fastest, least energy, a limit, the knee, a weight.

Every function takes columns of shape (n,), NaN where a configuration failed or the figure is unknown, and returns the
index of its choice, None where there is none. Of equals the one that is better in the other figure is chosen. Only
ratios count, so the columns may be in any unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..pareto import front

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
_ROUNDING = 1e-12  # a limit is met by what lies this share beyond it


def fastest(time_s: Floats, energy_j: Floats) -> int | None:
    """The least time; it needs no energy."""
    return _least(time_s, energy_j)


def least_energy(time_s: Floats, energy_j: Floats) -> int | None:
    """The least energy; it needs no time."""
    return _least(energy_j, time_s)


def least_edp(time_s: Floats, energy_j: Floats, exponent: float = 1.0) -> int | None:
    """The least energy-delay product E t, or E t^exponent (E t^2 with 2)."""
    return _least(energy_j * time_s**exponent, time_s)


def at_most_slower(time_s: Floats, energy_j: Floats, share: float) -> int | None:
    """The least energy among those at most `share` slower than the fastest: 0.05 is 5 % more time."""
    if np.isnan(time_s).all():
        return None
    return _least(energy_j, time_s, time_s <= np.nanmin(time_s) * (1 + share) * (1 + _ROUNDING))


def at_most_power(time_s: Floats, energy_j: Floats, power_w: Floats, limit_w: float) -> int | None:
    """The fastest of those that draw at most `limit_w`."""
    return _least(time_s, energy_j, power_w <= limit_w * (1 + _ROUNDING))


def knee(time_s: Floats, energy_j: Floats) -> int | None:
    """The point of the front farthest below the line between its ends, both figures scaled to their span on it.

    None where the front has fewer than three points or none of them lies below that line.
    """
    at, t, e = _scaled_front(time_s, energy_j)
    if len(at) < 3:
        return None
    below = 1 - t - e  # the ends are (0, 1) and (1, 0)
    best = int(below.argmax())
    return int(at[best]) if below[best] > _ROUNDING else None


def weighted(time_s: Floats, energy_j: Floats, a: float) -> int | None:
    """The front point with the least M = a t + (1 - a) e (S2 eq 2); a = 1 is the fastest, a = 0 the least energy.

    t and e are scaled to 0..1 between the two ends of the front. Raises ValueError for an `a` outside 0..1.
    """
    if not 0 <= a <= 1:
        raise ValueError(f"the weight of time is between 0 and 1, not {a}")
    at, t, e = _scaled_front(time_s, energy_j)
    if not len(at):
        return None
    if a in (0, 1):  # the other figure still tells which of equals is better
        return int(at[0] if a == 1 else at[-1])
    return int(at[(a * t + (1 - a) * e).argmin()])


@dataclass(frozen=True, slots=True)
class WeightRange:
    """Between which weights of time a point is the choice."""

    low: float
    high: float
    index: int


def weight_ranges(time_s: Floats, energy_j: Floats) -> list[WeightRange]:
    """For every a in 0..1 the choice of `weighted`, exactly: ranges from a = 0 to a = 1 without gaps.

    They are the corners of the front's convex hull, from the least energy to the fastest.
    """
    at, t, e = _scaled_front(time_s, energy_j)
    if not len(at):
        return []
    corners = _lower_hull(t, e)[::-1]
    t, e, at = t[corners], e[corners], at[corners]
    # equal M at two neighbours: a (t1 - t2) = (1 - a) (e2 - e1)
    slower, dearer = -np.diff(t), np.diff(e)
    turns = [0.0, *(dearer / (slower + dearer)).tolist(), 1.0]
    return [WeightRange(turns[i], turns[i + 1], int(index)) for i, index in enumerate(at)]


def front_of_costs(time_s: Floats, energy_j: Floats) -> npt.NDArray[np.int64]:
    """Indices of the front of time and energy, both small, from the fastest to the least energy."""
    return front(np.column_stack([time_s, energy_j]), [False, False])[::-1]


def _scaled_front(time_s: Floats, energy_j: Floats) -> tuple[npt.NDArray[np.int64], Floats, Floats]:
    """The front from the fastest on, and both figures of it, 0 at the better end and 1 at the worse one."""
    at = front_of_costs(time_s, energy_j)
    if len(at) < 2:
        return at, np.zeros(len(at)), np.zeros(len(at))
    t, e = time_s[at], energy_j[at]
    return at, (t - t[0]) / (t[-1] - t[0]), (e - e[-1]) / (e[0] - e[-1])


def _lower_hull(t: Sequence[float] | Floats, e: Sequence[float] | Floats) -> list[int]:
    """Positions of the corners of a front, t rising and e falling, that some straight line touches from below."""
    kept: list[int] = []
    for i in range(len(t)):
        while len(kept) > 1:
            a, b = kept[-2], kept[-1]
            if (t[b] - t[a]) * (e[i] - e[a]) - (e[b] - e[a]) * (t[i] - t[a]) > _ROUNDING:
                break
            kept.pop()
        kept.append(i)
    return kept


def _least(first: Floats, then: Floats, allowed: Mask | None = None) -> int | None:
    """The index of the least `first` among the allowed, of equals the least `then`."""
    known = np.isfinite(first) if allowed is None else np.isfinite(first) & allowed
    if not known.any():
        return None
    least = first[known].min()
    equals = np.flatnonzero(known & (first == least))
    return int(equals[np.where(np.isnan(then[equals]), np.inf, then[equals]).argmin()])
