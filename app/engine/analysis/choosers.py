"""Ways to choose a configuration by its time and energy: fastest, least energy, a limit, the knee, a weight.

`choices` makes all of them at once, each with its cost and gain against the fastest. The functions take columns of
shape (n,), NaN if a configuration failed or the figure is unknown, and return the index of their choice, None where
there is none. Of equals the one that is better in the other figure is chosen. Only ratios count, so the columns may be
in any unit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ...base.errors import InputError
from ...base.records import Finite, figure
from ..models.arrays import Floats, Indices, Mask
from ..results.pareto import front
from .costs import Costs
from .plane import lower_hull
from .tradeoff import Load, Tradeoff, Yearly, percent_words, tradeoff, yearly

_ROUNDING = 1e-12  # a limit is met by what lies this share beyond it


def fastest(time_s: Floats, energy_j: Floats) -> int | None:
    """Choose the least time; a configuration needs no known energy.

    Parameters
    ----------
    time_s, energy_j : array, shape (n,)
        Time in s and energy in J of each configuration; NaN if unknown. Only ratios count.

    Returns
    -------
    int or None
        Index of the choice; None if there is none.
    """
    return _least(time_s, energy_j)


def least_energy(time_s: Floats, energy_j: Floats) -> int | None:
    """Choose the least energy; a configuration needs no known time.

    Parameters
    ----------
    time_s, energy_j : array, shape (n,)
        Time in s and energy in J of each configuration; NaN if unknown. Only ratios count.

    Returns
    -------
    int or None
        Index of the choice; None if there is none.
    """
    return _least(energy_j, time_s)


def least_edp(time_s: Floats, energy_j: Floats, exponent: float = 1.0) -> int | None:
    """Choose the least energy-delay product E t, or E t^exponent.

    Parameters
    ----------
    time_s, energy_j : array, shape (n,)
        Time in s and energy in J of each configuration; NaN if unknown. Only ratios count.
    exponent : float, optional
        Power of the time: 2 for E t^2.

    Returns
    -------
    int or None
        Index of the choice; None if there is none.
    """
    return _least(energy_j * time_s**exponent, time_s)


def at_most_slower(time_s: Floats, energy_j: Floats, share: float) -> int | None:
    """Choose the least energy among the configurations at most a share slower than the fastest.

    Parameters
    ----------
    time_s, energy_j : array, shape (n,)
        Time in s and energy in J of each configuration; NaN if unknown. Only ratios count.
    share : float
        Additional time over that of the fastest: 0.05 is 5 %.

    Returns
    -------
    int or None
        Index of the choice; None if there is none.
    """
    if np.isnan(time_s).all():
        return None
    return _least(energy_j, time_s, time_s <= np.nanmin(time_s) * (1 + share) * (1 + _ROUNDING))


def at_most_power(time_s: Floats, energy_j: Floats, power_w: Floats, limit_w: float) -> int | None:
    """Choose the fastest among the configurations within a power limit.

    Parameters
    ----------
    time_s, energy_j : array, shape (n,)
        Time in s and energy in J of each configuration; NaN if unknown. Only ratios count.
    power_w : array, shape (n,)
        Mean power of each configuration in W; NaN if unknown.
    limit_w : float
        The highest power allowed, in W.

    Returns
    -------
    int or None
        Index of the choice; None if there is none.
    """
    return _least(time_s, energy_j, power_w <= limit_w * (1 + _ROUNDING))


def knee(time_s: Floats, energy_j: Floats) -> int | None:
    """Choose the point of the front farthest below the line between its ends, both figures scaled to their span on it.

    Parameters
    ----------
    time_s, energy_j : array, shape (n,)
        Time in s and energy in J of each configuration; NaN if unknown. Only ratios count.

    Returns
    -------
    int or None
        Index of the choice; None if the front has fewer than three points or none of them lies below that line.
    """
    indices, t, e = _scaled_front(time_s, energy_j)
    if len(indices) < 3:
        return None
    below = 1 - t - e  # the ends are (0, 1) and (1, 0)
    best = int(below.argmax())
    return int(indices[best]) if below[best] > _ROUNDING else None


def weighted(time_s: Floats, energy_j: Floats, a: float) -> int | None:
    """Choose the front point with the least M = a t + (1 - a) e [Anzt2015, eq. 2].

    t and e are time and energy scaled to 0..1 between the two ends of the front.

    Parameters
    ----------
    time_s, energy_j : array, shape (n,)
        Time in s and energy in J of each configuration; NaN if unknown. Only ratios count.
    a : float
        Weight of the time, 0..1: 1 chooses the fastest, 0 the least energy.

    Returns
    -------
    int or None
        Index of the choice; None if there is none.

    Raises
    ------
    ValueError
        For an `a` outside 0..1.
    """
    if not 0 <= a <= 1:
        raise ValueError(f"the weight of time is between 0 and 1, not {a}")
    indices, t, e = _scaled_front(time_s, energy_j)
    if not len(indices):
        return None
    if a in (0, 1):  # of equals the one that is better in the other figure
        return int(indices[0] if a == 1 else indices[-1])
    return int(indices[(a * t + (1 - a) * e).argmin()])


@dataclass(frozen=True, slots=True)
class WeightRange:
    """Between which weights of time a point is the choice."""

    low: Finite = field(metadata=figure(key="a_from"))
    high: Finite = field(metadata=figure(key="a_to"))
    index: int


def weight_ranges(time_s: Floats, energy_j: Floats) -> list[WeightRange]:
    """Compute the choice of `weighted` for every a in 0..1, exactly.

    The choices are the corners of the front's convex hull, from the least energy to the fastest.

    Parameters
    ----------
    time_s, energy_j : array, shape (n,)
        Time in s and energy in J of each configuration; NaN if unknown. Only ratios count.

    Returns
    -------
    list of WeightRange
        Ranges from a = 0 to a = 1 without gaps; empty if there is no choice.
    """
    indices, t, e = _scaled_front(time_s, energy_j)
    if not len(indices):
        return []
    corners = lower_hull(np.column_stack([t, e]).tolist())[::-1]
    t, e, indices = t[corners], e[corners], indices[corners]
    # equal M at two neighbours: a (t1 - t2) = (1 - a) (e2 - e1)
    slower, dearer = -np.diff(t), np.diff(e)
    turns = [0.0, *(dearer / (slower + dearer)).tolist(), 1.0]
    return [WeightRange(turns[i], turns[i + 1], int(index)) for i, index in enumerate(indices)]


def front_of_costs(time_s: Floats, energy_j: Floats) -> Indices:
    """Find the front of time and energy, both small.

    Parameters
    ----------
    time_s, energy_j : array, shape (n,)
        Time in s and energy in J of each configuration; NaN if unknown. Only ratios count.

    Returns
    -------
    array of int, shape (k,)
        Indices from the fastest to the least energy.
    """
    return front(np.column_stack([time_s, energy_j]), [False, False])[::-1]


def _scaled_front(time_s: Floats, energy_j: Floats) -> tuple[Indices, Floats, Floats]:
    """The front from the fastest on, and both figures of it, 0 at the better end and 1 at the worse one."""
    indices = front_of_costs(time_s, energy_j)
    if len(indices) < 2:
        return indices, np.zeros(len(indices)), np.zeros(len(indices))
    t, e = time_s[indices], energy_j[indices]
    return indices, (t - t[0]) / (t[-1] - t[0]), (e - e[-1]) / (e[0] - e[-1])


def _least(first: Floats, then: Floats, allowed: Mask | None = None) -> int | None:
    """The index of the least `first` among the allowed, of equals the least `then`."""
    finite = np.isfinite(first) if allowed is None else np.isfinite(first) & allowed
    if not finite.any():
        return None
    least = first[finite].min()
    equals = np.flatnonzero(finite & (first == least))
    return int(equals[np.where(np.isnan(then[equals]), np.inf, then[equals]).argmin()])


# --- all at once ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Preferences:
    """The user's limits and weight of time."""

    slower: float = 0.05  # 5 % more time at most
    power_w: float | None = None  # None: halfway between those of the fastest and of the least energy
    weight: float = 0.5  # a in M = a t + (1 - a) e


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to choose. `index` is into the columns; None if it finds nothing."""

    name: str
    label: str
    rule: str  # as a receipt has it, after 'chosen for'
    index: int | None
    against_fastest: Tradeoff | None
    yearly: Yearly | None


def choices(costs: Costs, preferences: Preferences | None = None, load: Load | None = None) -> list[Choice]:
    """Make every choice from the same measurements, the fastest first.

    Parameters
    ----------
    costs : Costs
        Time, energy and power of the measurements, columns of shape (n,).
    preferences : Preferences or None, optional
        Limits and weight of the time; the defaults of `Preferences` where None.
    load : Load or None, optional
        Load of a year for `Choice.yearly`; the default of `Load` where None.

    Returns
    -------
    list of Choice
        Each with its cost and gain against the fastest.
    """
    preferences, load = preferences or Preferences(), load or Load()
    t, e, p = costs.time_s, costs.energy_j, costs.power_w
    first = fastest(t, e)
    frugal = least_energy(t, e)
    limit_w = preferences.power_w if preferences.power_w is not None else _between(costs, first, frugal)
    slower, a = percent_words(preferences.slower), preferences.weight
    picked: list[tuple[str, str, str, int | None]] = [
        ("fastest", "Fastest", "fastest", first),
        ("least_energy", "Least energy", "least energy", frugal),
        ("least_edp", "Least energy-delay product E t", "least E·t", least_edp(t, e)),
        ("least_ed2p", "Least E t²", "least E·t²", least_edp(t, e, 2)),
        (
            "at_most_slower",
            f"Least energy, at most {slower} slower",
            f"at most {slower} slower",
            at_most_slower(t, e, preferences.slower),
        ),
        ("knee", "Knee of the front", "knee", knee(t, e)),
        ("weighted", f"Least a t + (1 - a) e, a = {a:g}", f"least a t + (1 − a) e, a = {a:.2f}", weighted(t, e, a)),
    ]
    if math.isfinite(limit_w):
        watts = f"at most {limit_w:.0f} W"
        picked.insert(5, ("at_most_power", f"Fastest, {watts}", watts, at_most_power(t, e, p, limit_w)))
    return [
        Choice(name, label, rule, index, *against(costs, first, index, load)) for name, label, rule, index in picked
    ]


def chosen_by(name: str, among: Sequence[Choice]) -> Choice:
    """Find the choice of a rule that the user names.

    Parameters
    ----------
    name : str
        `Choice.name`.
    among : sequence of Choice
        As `choices` returns them.

    Returns
    -------
    Choice
        With an index.

    Raises
    ------
    InputError
        If no rule has that name, or the rule finds no configuration.
    """
    choice = next((choice for choice in among if choice.name == name), None)
    if choice is None:
        raise InputError(f"unknown choice '{name}'", "--choose", f"one of {', '.join(c.name for c in among)}")
    if choice.index is None:
        raise InputError(f"'{choice.label}' finds no configuration", "--choose", "choose another way")
    return choice


def against(
    costs: Costs, reference: int | None, index: int | None, load: Load | None = None
) -> tuple[Tradeoff | None, Yearly | None]:
    """Compare the choice `index` with `reference`, also over a year.

    Parameters
    ----------
    costs : Costs
        Time, energy and power of the measurements, columns of shape (n,).
    reference, index : int or None
        Indices into the columns; None if there is no such choice.
    load : Load or None, optional
        Load of the year; the default of `Load` where None.

    Returns
    -------
    tuple of Tradeoff or None, and Yearly or None
        Both None if an index is; the year None if the power of the reference is unknown.
    """
    if reference is None or index is None:
        return None, None
    change = tradeoff(
        float(costs.time_s[reference]),
        float(costs.energy_j[reference]),
        to_time_s=float(costs.time_s[index]),
        to_energy_j=float(costs.energy_j[index]),
    )
    power_w = float(costs.power_w[reference])
    if costs.energy_known:  # the energies that are compared, rather than the mean power reported beside them
        power_w = float(costs.energy_j[reference] / costs.time_s[reference])
    if not math.isfinite(power_w * change.energy_change):
        return change, None
    return change, yearly(power_w, change, load or Load())


def _between(costs: Costs, first: int | None, frugal: int | None) -> float:
    """A useful power limit if none is stated: halfway between the two ends, in whole watts."""
    if first is None or frugal is None or first == frugal:
        return math.nan
    middle = float(costs.power_w[first] + costs.power_w[frugal]) / 2
    return float(math.ceil(middle)) if math.isfinite(middle) else math.nan
