"""The energies of a board whose clock is not the same in all points: a limit held it back, or other clocks were set.

At a limit, time is the energy above idle over the power that the limit leaves [Choi2014], so that the points there
obey P = W/T eps_flop + Q/T eps_mem + pi_0 as all others do. With energies that no clock changes this fails: a GPU gives
in by its clock, with which the voltage falls. On simulated boards at a limit that plain model is off by 13 to 83 % of
eps_flop, and misses power by 5 to 12 % (`tests/benchmarks/roofline.txt`). So the energies follow the observed clock
here, as `ClockLaw` has it:

P = u W/T eps_flop + Q/T eps_mem + pi_0 (1 - clocked + clocked g u)

For each voltage of a grid the rest is linear: generalised least squares of relative residuals. The answer is the mean
over the grid by likelihood, with its deviation, so what the points do not tell of the voltage widens the errors. Points
at a limit are off together: they draw less than at the same clock locked [Schoonhoven2024, section 6.5.3], and are
warmer or cooler. That is a smooth error over the clock, of 2 %, which many points at the limit do not make smaller.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from ..arrays import Floats, Mask
from .energy_roofline import ClockLaw

_LIMIT_ERROR, _ALIKE = 0.02, 0.15  # of power at a limit; the difference of clocks over which it is alike
_LEAST_NOISE, _NOISE = 0.004, 0.01  # of power: what is supposed at least, and before anything is known
_SLOPES: Final = np.linspace(0.0, 1.6, 81)
_RIDGES: Final = 41
_LEAST_VOLTAGE: Final = 0.4  # of that at the highest clock
_MOST_POINTS: Final = 400  # more of them are thinned out
FLOP, MEM, CONSTANT = 0, 1, 2  # columns of a design; what follows are bytes of caches


@dataclass(frozen=True, slots=True)
class ClockFit:
    """Energies at the highest clock, in the order of the design's columns, and how they follow the clock."""

    figures: Floats
    standard_errors: Floats
    law: ClockLaw


def at_clocks(design: Floats, clock: Floats, law: ClockLaw) -> Floats:
    """The design of power with the energies of the clock of each point.

    Parameters
    ----------
    design : array, shape (n, k)
        Power of each point per unit of each energy: flops, device memory, constant, caches.
    clock : array, shape (n,)
        Observed clock over the highest.
    law : ClockLaw
        How the energies follow the clock.

    Returns
    -------
    array, shape (n, k)
        With which the energies at the highest clock give the power.
    """
    result = design * law.switching(clock)[:, None]
    result[:, MEM], result[:, CONSTANT] = design[:, MEM], law.constant(clock) * design[:, CONSTANT]
    return result


def fit_clocks(design: Floats, power_w: Floats, clock: Floats, held: Mask) -> ClockFit | None:
    """Fit energies and the law of the clock to points of at least two clocks.

    Parameters
    ----------
    design : array, shape (n, k)
        As for `at_clocks`.
    power_w : array, shape (n,)
        Power, W.
    clock : array, shape (n,)
        Observed clock over the highest.
    held : array of bool, shape (n,)
        Where a limit held the clock below the one that was set.

    Returns
    -------
    ClockFit or None
        None if no voltage makes all energies positive.
    """
    every = slice(None, None, -(-len(power_w) // _MOST_POINTS))
    clock, held = clock[every], held[every]
    weighted = design[every] / power_w[every, None]
    slopes, ridges = (
        each.ravel()[:, None]
        for each in np.meshgrid(_SLOPES, np.linspace(clock.min(), 1.0, _RIDGES, endpoint=False), indexing="ij")
    )
    voltage = 1 - slopes * (1 - np.maximum(clock, ridges))
    high = voltage.min(axis=1) > _LEAST_VOLTAGE
    slopes, ridges, switching = slopes[high], ridges[high], voltage[high, :, None] ** 2
    still = weighted[:, [MEM, CONSTANT]]
    moving = np.delete(weighted, [MEM, CONSTANT], axis=1) * switching
    tree = still[:, 1:] * clock[:, None] * switching  # the part of pi_0 that switches
    columns = np.concatenate([np.broadcast_to(still, (len(moving), *still.shape)), tree, moving], axis=2)
    ramp = held * np.minimum(1.0, 0.2 + (1 - clock) / 0.05)
    alike = np.exp(-0.5 * ((clock[:, None] - clock) / _ALIKE) ** 2) * ramp[:, None] * ramp
    variance, degrees = _NOISE**2, max(1, len(clock) - columns.shape[2] - 2)
    for _ in range(2):
        white = np.linalg.inv(np.linalg.cholesky(variance * np.eye(len(clock)) + _LIMIT_ERROR**2 * alike))
        inner, target = white @ columns, white.sum(axis=1)
        scale = np.linalg.norm(inner, axis=1, keepdims=True)
        inner /= scale
        normal = inner.transpose(0, 2, 1) @ inner + 1e-9 * np.eye(columns.shape[2])
        scaled = np.linalg.solve(normal, (target @ inner)[..., None])
        squares = ((inner @ scaled)[..., 0] - target) ** 2
        chi2 = np.where((scaled >= 0).all(axis=(1, 2)), squares.sum(axis=1), np.inf)
        if not np.isfinite(chi2.min()):
            return None
        variance = max(variance * chi2.min() / degrees, _LEAST_NOISE**2)
    likely = np.exp(-0.5 * (chi2 - chi2.min()))
    likely /= likely.sum()
    found, covariance = scaled[..., 0] / scale[:, 0], np.linalg.inv(normal) / scale / scale.transpose(0, 2, 1)
    order = np.zeros((design.shape[1], columns.shape[2]))  # of still, tree, moving: the figures in the design's order
    order[MEM, 0] = order[CONSTANT, 1] = order[CONSTANT, 2] = order[FLOP, 3] = 1
    order[3:, 4:] = np.eye(design.shape[1] - 3)
    each = found @ order.T
    mean = likely @ each
    spread = np.einsum("ki,gij,kj->gk", order, covariance, order) + (each - mean) ** 2
    slope, ridge, clocked = (float(likely @ of) for of in (slopes[:, 0], ridges[:, 0], found[:, 2] / each[:, CONSTANT]))
    return ClockFit(mean, np.sqrt(likely @ spread), ClockLaw(slope, ridge, clocked, float(clock.min())))
