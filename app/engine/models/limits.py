"""Where a cap acted, and what clock the board really ran at there."""

from __future__ import annotations

import numpy as np

from .arrays import Floats, Mask
from .clock_following import where_held
from .duration import fit_duration
from .points import Points

_FLAT_POWER = 0.015  # relative: readings at a cap lie this close together
_FLAT_SPAN = 0.04  # relative: the least span of clocks over which flatness is significant
_LAG = 0.02  # relative: how far the clock that the speed shows lies below the requested one that was not reached
_ENOUGH_CLOCKS = 5  # needed to fit how the speed follows the clock
_AT_CAP = 0.994  # of the level of the flat top
_NEAR_LIMIT = 0.985  # of the power limit
_CLOCK_ERROR = 0.03  # relative: a clock that the speed tells no better than this is not derived from it


def limited_points(points: Points) -> Mask:
    """Points at which a limit acted, shape (n,): by the event reasons (`limited`) where known, else by the points.

    Those show it as power at the limit, as neither power nor speed nor observed clock growing with the requested one
    over the highest ones, or as a speed at the highest ones that belongs to a lower clock.
    """
    if points.limited is not None:
        return points.limited.copy()
    clock_mhz, power_w, rate = points.clock_mhz, points.power_w, points.rate
    seen = np.zeros(len(clock_mhz), dtype=np.bool_)
    if points.limit_w is not None and points.limit_w > 0:
        seen |= power_w >= _NEAR_LIMIT * points.limit_w
    seen |= _flat_top(clock_mhz, power_w, rate)
    held = where_held(points)
    if held is not None:
        seen |= held.points
    return seen if rate is None else seen | _held_top(clock_mhz, power_w, rate, seen)


def _held_top(clock_mhz: Floats, power_w: Floats, rate: Floats, seen: Mask) -> Mask:
    """The highest clock, and the next where that one is held too, if speed and power lag behind the others."""
    held = seen.copy()
    clocks = np.unique(clock_mhz[~seen])[::-1]
    if len(clocks) <= _ENOUGH_CLOCKS:
        return held
    for count in (2, 1):
        rest = ~seen & (clock_mhz < clocks[count - 1])
        top = ~seen & ~rest
        if len(np.unique(clock_mhz[rest])) < _ENOUGH_CLOCKS:
            continue
        duration = fit_duration(clock_mhz[rest], rate[rest])
        spread = float(np.std(np.log(duration.relative(clock_mhz[rest]) * rate[rest])))
        lag = 1 - duration.clock_of(rate[top]) / clock_mhz[top]
        if (lag > max(_LAG, 4 * spread)).all() and _power_lags(clock_mhz, power_w, rest, top, lag):
            held |= top
            break
    return held


def _power_lags(clock_mhz: Floats, power_w: Floats, rest: Mask, top: Mask, lag: Floats) -> bool:
    """Power at the highest clocks stays as far below the line through the two below as the speed does, at least.

    With the clock it would run above that line. Where work waits for memory, speed lags as well, but power goes on.
    """
    clocks = np.unique(clock_mhz[rest])[-2:]
    below = [float(power_w[rest & (clock_mhz == clock)].mean()) for clock in clocks]
    line = below[1] + (below[1] - below[0]) / (clocks[1] - clocks[0]) * (clock_mhz[top] - clocks[1])
    return bool((power_w[top] < (1 - lag) * line).all())


def _flat_top(clock_mhz: Floats, power_w: Floats, rate: Floats | None) -> Mask:
    order = np.argsort(clock_mhz, kind="stable")[::-1]
    flat = np.zeros(len(order), dtype=np.bool_)
    level = float(power_w[order[0]])
    count = 0
    for index in order:
        if abs(power_w[index] / level - 1) > _FLAT_POWER:
            break
        if rate is not None and rate[index] < rate[order[0]] * (1 - 2 * _FLAT_POWER):
            break  # power stands but speed still grows: that is no cap
        count += 1
        level += (float(power_w[index]) - level) / count
    top = order[:count]
    distinct = np.unique(clock_mhz[top])
    needed = 2 if rate is not None else 3
    if len(distinct) >= needed and distinct[0] < (1 - _FLAT_SPAN) * distinct[-1] and count < len(order):
        cap_w = float(np.median(power_w[top[: (count + 1) // 2]]))
        approach = np.flatnonzero(power_w[top] > _AT_CAP * cap_w)  # the lowest ones may still be on their way to it
        flat[top[: approach.max() + 1]] = True
    return flat


def effective_clocks(points: Points, limited: Mask) -> Floats:
    """The clock each point ran at: as given, but from the speed where a limit held it below the requested one.

    Speed that hardly follows the clock does not tell it, and its scatter would look like a clock that was never set.
    """
    effective = points.clock_mhz.astype(np.float64).copy()
    free = ~limited
    if points.rate is None or not limited.any() or free.sum() < 3:
        return effective
    clock_mhz, rate = points.clock_mhz[free], points.rate[free]
    duration = fit_duration(clock_mhz, rate)
    scatter = float(np.std(np.log(duration.relative(clock_mhz) * rate)))
    follows = 1.0 - duration.fixed_share(float(clock_mhz.max()))  # per cent of speed for each per cent of clock
    if scatter > _CLOCK_ERROR * follows:
        return effective
    reached = duration.clock_of(points.rate)
    lower = limited & (reached < 0.99 * points.clock_mhz)
    effective[lower] = reached[lower]
    return effective
