"""Which clock to measure next: the one with the most information on the energy in its valley."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..arrays import Floats
from .clock_limits import effective_clocks, limited_points
from .curve import Duration, fit_duration
from .frequency import MINIMUM_CLOCKS
from .points import Points
from .posterior import Posterior, posterior_of
from .recommend import survey

LEAST_POINTS = 4  # before anything can be estimated
_LIKELY = 0.05  # share of the curves with their optimum at the lowest clock, from which on a lower one is tried
_LOWER = 0.75  # of the lowest clock
_VALLEY = 0.01  # of energy: what is lost at a clock that counts a third


def next_clock(points: Points) -> float | None:
    """Choose the supported clock to measure next.

    Parameters
    ----------
    points : Points
        At least LEAST_POINTS points, with their `supported_mhz`.

    Returns
    -------
    float or None
        The clock in MHz; None if another would add nothing. That is once there are enough clocks for a fit and the
        95 % interval of the optimum is under one step of the supported clocks, or where none that could help is left
        untried.
    """
    supported = np.unique(np.asarray(points.supported_mhz, dtype=np.float64))
    asked = points.asked_mhz
    acted = limited_points(points)
    effective = effective_clocks(points, acted)
    free = replace(points, clock_mhz=effective, voltage_mv=None).at(~acted)
    if free.clocks < LEAST_POINTS:
        return _between(free.clock_mhz, asked, supported, float(effective.max()))
    duration = fit_duration(free.clock_mhz, free.rate) if free.rate is not None else Duration()
    posterior = posterior_of(free, duration)
    low, high = survey(posterior.clock_mhz, posterior.energy).interval_mhz
    step = float(np.median(np.diff(supported))) if len(supported) > 1 else np.inf
    if high - low < step and free.clocks >= MINIMUM_CLOCKS:
        return None
    left = supported[~np.isin(supported, asked)]
    lowest, highest = float(posterior.clock_mhz[0]), float(posterior.clock_mhz[-1])
    at_edge = float((posterior.energy.argmin(axis=1) == 0).mean())
    lower = left[left < lowest]
    if at_edge > _LIKELY and len(lower):
        return float(lower[np.abs(lower - _LOWER * lowest).argmin()])
    inside = left[(left >= lowest) & (left <= highest)]
    if not len(inside):
        return None
    return float(inside[_information(posterior, inside).argmax()])


def _information(posterior: Posterior, clocks_mhz: Floats) -> Floats:
    """How much a reading at each clock, shape (n,), is expected to add on the energy in the valley; in any unit.

    That is by how much it reduces the variance of the energy at the clocks that may be the best one, each counted by
    how little is lost there.
    """
    energy = posterior.energy
    lost = (energy / energy.min(axis=1)[:, None] - 1.0).mean(axis=0)
    weight = np.exp(-lost / _VALLEY)
    log_energy = np.log(energy)
    log_energy -= (log_energy @ weight / weight.sum())[:, None]  # what all clocks share does not rank them
    log_energy -= log_energy.mean(axis=0)
    place = np.abs(posterior.clock_mhz[:, None] - clocks_mhz).argmin(axis=0)
    log_power = np.log(posterior.power_w[:, place])
    log_power -= log_power.mean(axis=0)
    shared = log_power.T @ log_energy / len(log_energy)
    return np.asarray(shared**2 @ weight / ((log_power**2).mean(axis=0) + posterior.noise**2))


def _between(free_mhz: Floats, asked_mhz: Floats, supported: Floats, highest: float) -> float | None:
    """Too few below a limit: the middle of the widest gap below it that holds an untried clock."""
    left = supported[~np.isin(supported, asked_mhz) & (supported < highest)]
    if not len(left):
        return None
    tried = np.unique(np.concatenate([free_mhz, asked_mhz]))
    return float(left[np.abs(left[:, None] - tried[None, :]).min(axis=1).argmax()])
