"""Clocks that a board follows: where a cap acted, the clock it ran at there, and which clocks can be set.

Beyond the highest clock that a board follows, power, speed and observed clock stand still. The clocks that can be set
are those on the board's grid between the sampled ones, as far as the board follows them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import Floats, Mask, Rows
from .curve import fit_duration
from .points import Points

_FLAT = 0.015  # relative: medians that stand still lie this close to their level, or within four of their scatter
_SPAN = 0.04  # relative: the least span of requested clocks over which standing still is significant
_STILL = 0.2  # per cent of a figure for each per cent of requested clock: less is standing still
_ROSE = 0.05  # relative: what power rises by, at least, below the clocks at which it stands
_ROBUST = 1.48  # standard deviation of a normal distribution over its median distance from the middle
_MANY = 24  # clocks close enough together to show the scatter
_MOST_SCATTER = 0.02
_REACHED_LAG = 0.006  # relative: how far a clock that was reached may lie below the line through those under it


@dataclass(frozen=True, slots=True)
class Held:
    """A board that was held back."""

    followed_mhz: float  # the highest requested clock that it followed
    requested_mhz: float  # the highest requested clock
    ran_at_mhz: float | None  # beyond, where the clock was observed
    power_w: float  # beyond
    points: Mask  # shape (n,): those beyond

    @property
    def words(self) -> str:
        """In one line."""
        ran = "" if self.ran_at_mhz is None else f" ran at about {self.ran_at_mhz:.0f} MHz and"
        return (
            f"the board follows the requested clock up to {self.followed_mhz:.0f} MHz: beyond, up to "
            f"{self.requested_mhz:.0f} MHz, it{ran} drew about {self.power_w:.0f} W whatever was requested"
        )


def where_held(points: Points) -> Held | None:
    """Find where neither power nor observed clock nor speed rises with the requested clock any more.

    The clocks count as requested where no requests are given. Repeats of a clock count by their median.

    Parameters
    ----------
    points : Points
        One series in any order, arrays of shape (n,).

    Returns
    -------
    Held or None
        None if the board follows throughout, where neither the clock nor the speed was observed, or where fewer than
        four clocks were requested.
    """
    power_w, rate = points.power_w, points.rate
    observed_mhz = None if points.requested_mhz is None else points.clock_mhz
    requested_mhz = points.asked_mhz
    finite = np.isfinite(requested_mhz) & (requested_mhz > 0) & (power_w > 0)
    followers = [value for value in (observed_mhz, rate) if value is not None]
    for follower in followers:
        finite &= follower > 0  # false for NaN
    clocks = np.unique(requested_mhz[finite])
    if not followers or len(clocks) < 4:
        return None
    rows = [np.flatnonzero(finite & (requested_mhz == clock)) for clock in clocks]
    signals = [_Signal.of(item, rows) for item in (power_w, *followers)]
    x = np.log(clocks)
    for first in range(2, len(clocks) - 1):
        if clocks[-1] < (1 + _SPAN) * clocks[first]:
            return None
        if all(signal.stands(x, first) for signal in signals) and signals[0].rose_before(first):
            break
    else:
        return None
    last = _last_followed(x, signals[0], signals[1:], first)
    if last >= len(clocks) - 1:
        return None
    beyond = finite & (requested_mhz > clocks[last])
    ran_at = None if observed_mhz is None else float(np.median(observed_mhz[beyond]))
    power = float(np.median(power_w[beyond]))
    return Held(float(clocks[last]), float(clocks[-1]), ran_at, power, beyond)


@dataclass(frozen=True, slots=True)
class _Signal:
    """The logarithm of a figure: its median at each clock, and how far such a median may be off."""

    median: Floats
    scatter: float

    @classmethod
    def of(cls, values: Floats, rows: list[Rows]) -> _Signal:
        log = [np.log(values[row]) for row in rows]
        median = np.asarray([float(np.median(value)) for value in log])
        deviations = [float(item.std(ddof=1)) for item in log if len(item) > 1]
        if deviations:  # the median one: of a few clocks a reading may be wrong
            scatter = float(np.median(deviations))
        elif len(median) >= _MANY:  # second differences scatter 6^0.5 times as much as readings
            scatter = _ROBUST * float(np.median(np.abs(np.diff(median, 2)))) / 6**0.5
        else:
            scatter = 0.0
        return cls(median, min(scatter, _MOST_SCATTER))

    def stands(self, x: Floats, first: int) -> bool:
        """Whether it stands still from the clock `first` on."""
        top = self.median[first:]
        if np.abs(top - np.median(top)).max() > max(_FLAT, 4 * self.scatter):
            return False
        slope = np.polynomial.polynomial.polyfit(x[first:], top, 1)[1]
        return bool(abs(slope) <= _STILL)

    def spread(self, first: int) -> float:
        """The standard deviation of its medians from the clock `first` on, where it stands still; 0 where too few."""
        top = self.median[first:]
        return _ROBUST * float(np.median(np.abs(top - np.median(top)))) if len(top) > 2 else 0.0

    def is_near(self, index: int, first: int) -> bool:
        """Whether the clock `index` comes near the level at which it stands from the clock `first` on."""
        return bool(abs(self.median[index] - np.median(self.median[first:])) < 2 * max(_FLAT, 3 * self.scatter))

    def rose_before(self, first: int) -> bool:
        """Whether it rose up to the clock `first`."""
        return bool(np.median(self.median[first:]) - self.median[0] > max(_ROSE, 3 * self.scatter))


def _last_followed(x: Floats, power: _Signal, followers: list[_Signal], first: int) -> int:
    """The highest clock that was reached: each one keeps to the line through the two below it.

    It is looked for around the clock `first`, from which on everything stands still within the scatter.
    """

    def lags(index: int, last: int, below: int) -> bool:
        """The clock `index` against the line through `below` and the clock before it, moved to the clock `last`."""
        step = (x[index] - x[last]) / (x[below] - x[below - 1])
        return any(
            signal.median[last] + (signal.median[below] - signal.median[below - 1]) * step - signal.median[index]
            > tolerance
            for signal, tolerance in zip(followers, tolerances, strict=True)
        )

    tolerances = [max(_REACHED_LAG, 3 * max(signal.scatter, signal.spread(first))) for signal in followers]
    if first > 2 and power.is_near(first - 1, first) and lags(first - 1, first - 2, first - 2):
        first -= 1  # the observed clock still creeps up, but the board is held back
    last = first - 1
    while last + 1 < len(x) and not lags(last + 1, last, first - 1):
        last += 1
    return last


_FLAT_POWER = 0.015  # relative: readings at a cap lie this close together
_FLAT_SPAN = 0.04  # relative: the least span of clocks over which flatness is significant
_LAG = 0.02  # relative: how far the clock that the speed shows lies below the requested one that was not reached
_ENOUGH_CLOCKS = 5  # needed to fit how the speed follows the clock
_AT_CAP = 0.994  # of the level of the flat top
_NEAR_LIMIT = 0.985  # of the power limit
_CLOCK_ERROR = 0.03  # relative: a clock that the speed tells no better than this is not derived from it


def limited_points(points: Points) -> Mask:
    """Mark the points at which a limit acted: by the event reasons (`limited`) where known, else by the points.

    The points show it as power at the limit, as neither power nor speed nor observed clock growing with the requested
    one over the highest ones, or as a speed at the highest ones that belongs to a lower clock.

    Parameters
    ----------
    points : Points
        One series, arrays of shape (n,).

    Returns
    -------
    array of bool, shape (n,)
        True if a limit acted.
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
    """Compute the clock each point ran at: from the speed where a limit held it below the requested one.

    Speed that hardly follows the clock does not tell it, and its scatter would look like a clock that was never set.

    Parameters
    ----------
    points : Points
        One series, arrays of shape (n,).
    limited : array of bool, shape (n,)
        The points at which a limit acted.

    Returns
    -------
    array, shape (n,)
        Clocks in MHz; as given where no limit acted.
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


# Boards from Turing on, whose clocks go in steps of 15 MHz; on Volta in steps of 7.5 MHz, reported in whole ones.
_STEPS_OF_15 = re.compile(r"\b(RTX|T4|A\d{1,3}|A\d000|L\d{1,2}S?|H\d{3}|GH\d{3}|B\d{3}|GB\d{3})\b", re.IGNORECASE)
_STEPS_MHZ = (15.0, 7.5)
_ENOUGH_ON_GRID = 5  # hardly on a grid by chance
_HIGHEST_MHZ = 100_000.0  # beyond any board: a figure in another unit, of which no grid is made


def settable_clocks(gpu: str, clock_mhz: Floats) -> tuple[tuple[float, ...] | None, tuple[str, ...]]:
    """Find the settable clocks between sampled ones, where these lie on a regular grid as that of NVIDIA's boards.

    Sampled clocks may be means of readings, off the grid by a fraction of a MHz.

    Parameters
    ----------
    gpu : str
        Name of the board.
    clock_mhz : array, shape (n,)
        Sampled clocks in MHz; NaN if unknown.

    Returns
    -------
    tuple of tuple of float or None, and tuple of str
        The clocks in MHz, None if there is no grid; and notes on what is assumed.
    """
    finite = np.unique(np.round(clock_mhz[np.isfinite(clock_mhz)]))
    if not len(finite) or finite[0] <= 0 or finite[-1] > _HIGHEST_MHZ:
        return None, ()
    named = bool(_STEPS_OF_15.search(gpu))
    for step in _STEPS_MHZ:
        grid = np.floor(np.arange(0.0, finite[-1] + 1.0, step))
        if np.isin(finite, grid).all() and (named or len(finite) >= _ENOUGH_ON_GRID):
            between = tuple(grid[(grid >= finite[0]) & (grid <= finite[-1])].tolist())
            of = f" of {gpu}" if gpu else ""
            return between, (f"clocks{of} assumed to go in steps of {step:g} MHz, as the given ones do",)
    return None, ()


def how_settable(clock_mhz: float) -> str:
    """Describe whether a recommended clock can be set.

    Boards are set to whole MHz; a mean of readings that is not whole lies between clocks that can be set.

    Parameters
    ----------
    clock_mhz : float
        The clock in MHz.

    Returns
    -------
    str
        A few words, for the user.
    """
    return "can be set" if clock_mhz == round(clock_mhz) else "a mean of readings, between clocks that can be set"


def only_followed(points: Points) -> Points:
    """Leave only the clocks that the board follows as those that can be set.

    Parameters
    ----------
    points : Points
        One series, arrays of shape (n,).

    Returns
    -------
    Points
        The series without the supported clocks beyond those that the board follows, and with a note that names where it
        does not; unchanged if it follows throughout.
    """
    held = where_held(points)
    if held is None:
        return points
    supported = points.supported_mhz
    if supported is not None:
        supported = tuple(clock for clock in supported if clock <= held.followed_mhz)
    return replace(points, supported_mhz=supported, notes=(held.words, *points.notes))
