"""Whether the points of a fit bracket its optimum and its ridge, and the reasons that a fit states for its doubts."""

from __future__ import annotations

from typing import Final

import numpy as np

from ..arrays import Floats, Mask
from .curve import Duration
from .least_squares import Solution, is_bent
from .points import Points

_UNLIKELY = 0.05  # share of the curves with their bend on one side
_CLEAR = 3.0  # standard errors
_SPEED_SCATTER = 0.03  # relative
NO_SPEED: Final = "no speed was measured: energy is taken for power over clock, as of work that scales with the clock"


def optimum_flag(optimum: float, interval: tuple[float, float], clocks: Floats) -> tuple[bool, list[str]]:
    """Decide whether the optimum is bracketed: inside the samples, and unlikely to lie at their edge.

    Parameters
    ----------
    optimum : float
        The estimate in MHz.
    interval : tuple of float
        Its 95 % interval in MHz.
    clocks : array, shape (k,)
        The sampled clocks in MHz, ascending.

    Returns
    -------
    tuple of bool and list of str
        Whether it is bracketed, and why not.
    """
    low, high = float(clocks[0]), float(clocks[-1])
    if optimum <= low + 0.5 or interval[0] < 0.5 * (clocks[0] + clocks[1]):
        side, edge = "lower", low
    elif optimum >= high - 0.5 or interval[1] > 0.5 * (clocks[-1] + clocks[-2]):
        side, edge = "upper", high
    else:
        return True, []
    return False, [f"optimum not bracketed: it may lie at or beyond the {side} end of the points ({edge:.0f} MHz)"]


def ridge_flag(
    solution: Solution, straight: Solution, ridges_mhz: Floats, clocks: Floats
) -> tuple[float, bool, list[str]]:
    """Decide whether points on both sides show the ridge.

    Parameters
    ----------
    solution, straight : Solution
        The fitted form and the straight line.
    ridges_mhz : array, shape (k,)
        Ridges in MHz of curves that are each as likely as the next.
    clocks : array, shape (m,)
        The sampled clocks in MHz, ascending.

    Returns
    -------
    tuple of float, bool and list of str
        The ridge in MHz, or the edge that it lies beyond; whether it is bracketed; and why not.
    """
    lowest, highest = float(clocks[0]), float(clocks[-1])
    if solution is straight:
        return highest, False, ["ridge not bracketed: over these clocks power is a straight line"]
    if not is_bent(solution, straight):  # but with a negative P_idle: the line is a piece of the bend
        what = "over these clocks power is as well a straight line, and too steep for the voltage of low clocks"
        return lowest, False, [f"ridge not bracketed: {what}"]
    ridge = solution.curve.ridge_mhz
    if solution.aicc >= straight.aicc:  # few points: the prior of the curves would outweigh a form that is clear
        error = _CLEAR * solution.standard_errors["ridge_mhz"]
        ridges_mhz = np.asarray([lowest, highest]) if np.isnan(error) else ridge + error * np.asarray([-1.0, 0.0, 1.0])
    if ridge <= clocks[1] or float((ridges_mhz <= clocks[1]).mean()) > _UNLIKELY:
        return lowest, False, [f"ridge not bracketed: it may lie below the swept clocks ({lowest:.0f} MHz)"]
    if ridge >= clocks[-2] or float((ridges_mhz >= clocks[-2]).mean()) > _UNLIKELY:
        return highest, False, [f"ridge not bracketed: it may lie above the swept clocks ({highest:.0f} MHz)"]
    return ridge, True, []


def speed_reason(duration: Duration, clock: Floats, rate: Floats) -> list[str]:
    """Describe how the measured speed departs from the clock, where P/f is not the energy.

    Parameters
    ----------
    duration : Duration
        Time of the work over the clock, fitted to these points.
    clock : array, shape (n,)
        Clocks in MHz.
    rate : array, shape (n,)
        Speed at each in the unit that `duration` was fitted in.

    Returns
    -------
    list of str
        At most one sentence for the user; empty where speed follows the clock.
    """
    spread = float(np.std(np.log(duration.relative(clock) * rate)))
    if spread > _SPEED_SCATTER:
        return [f"speed follows the clock only to {100 * spread:.0f} %: time between the points is an estimate"]
    if duration.fixed_per_mhz > 0:
        share = 100 * duration.fixed_share(float(clock.max()))
        return [f"{share:.0f} % of the time at {clock.max():.0f} MHz does not shrink with the clock"]
    return []


def cap_reason(points: Points, acted: Mask) -> str:
    """Describe at which points a limit acted, and what shows it.

    Parameters
    ----------
    points : Points
        One series, arrays of shape (n,).
    acted : array of bool, shape (n,)
        Where a limit acted: at one point at least.

    Returns
    -------
    str
        One sentence for the user.
    """
    count, first = int(acted.sum()), float(points.clock_mhz[acted].min())
    level = float(np.median(points.power_w[acted]))
    source = "by the event reasons" if points.limited is not None else "as power or speed show"
    return f"a limit acted at {count} points from {first:.0f} MHz up, at about {level:.0f} W ({source})"
