"""Which clock to measure next: the one after whose reading the least energy is expected to be lost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from app.engine.models.belief import Belief, believe
from app.engine.models.duration import Duration, fit_duration
from app.engine.models.limits import effective_clocks, limited_points
from app.engine.models.recommend import survey

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

LEAST_POINTS = 4  # before anything can be said
_LIKELY = 0.05  # share of the curves with their optimum at the lowest clock, from which on a lower one is tried
_LOWER = 0.75  # of the lowest clock
_TRIED = 32  # clocks, at most, that are looked at: neighbours tell the same
_READINGS = 48  # drawn at each clock that could be next
_LEAST_NOISE = 0.003  # of a reading, relative
_COARSE = 2  # every so many of the belief's clocks, when it comes to what is lost
_SMALL = 1e-12


def next_clock(
    clock_mhz: Floats,
    power_w: Floats,
    rate: Floats | None,
    limited: Mask | None,
    supported_mhz: Sequence[float],
    requested_mhz: Floats | None = None,
) -> float | None:
    """The supported clock to measure next after points of shape (n,); None where another would tell nothing more.

    That is once the 95 % interval of the optimum is under one step of the supported clocks. `requested_mhz` are the
    clocks that were asked for, where others were observed. At least LEAST_POINTS points.
    """
    supported = np.unique(np.asarray(supported_mhz, dtype=np.float64))
    asked = clock_mhz if requested_mhz is None else requested_mhz
    acted = limited_points(clock_mhz, power_w, rate, limited, None)
    effective = effective_clocks(clock_mhz, rate, acted)
    free = ~acted
    if len(np.unique(effective[free])) < LEAST_POINTS:
        return _between(effective[free], asked, supported, float(effective.max()))
    speed = rate[free] if rate is not None else None
    duration = fit_duration(effective[free], speed) if speed is not None else Duration()
    belief = believe(effective[free], power_w[free], speed, duration)
    valley = survey(belief.clock_mhz, belief.energy)
    low, high = valley.interval_mhz
    step = float(np.median(np.diff(supported))) if len(supported) > 1 else np.inf
    if high - low < step:
        return None
    left = supported[~np.isin(supported, asked)]
    lowest, highest = float(belief.clock_mhz[0]), float(belief.clock_mhz[-1])
    at_edge = float((belief.energy.argmin(axis=1) == 0).mean())
    lower = left[left < lowest]
    if at_edge > _LIKELY and len(lower):
        return float(lower[np.abs(lower - _LOWER * lowest).argmin()])
    inside = left[(left >= lowest) & (left <= highest)]
    if not len(inside):
        return None
    inside = inside[np.unique(np.linspace(0, len(inside) - 1, _TRIED).round().astype(int))]
    return float(inside[_expected_loss(belief, inside).argmin()])


def _expected_loss(belief: Belief, clocks_mhz: Floats) -> Floats:
    """Energy lost to not knowing the optimum that is left, on average, after one more reading at each clock; (n,).

    What the reading will be is drawn from the belief; each drawn one gives the curves new weights, and with them
    another clock of the least expected loss (the knowledge gradient, on regret).
    """
    loss = (belief.energy / belief.energy.min(axis=1)[:, None] - 1.0)[:, ::_COARSE]
    count = len(loss)
    rng = np.random.default_rng(0)
    drawn, deviate = rng.permutation(count)[:_READINGS], rng.standard_normal(min(_READINGS, count))
    noise = max(belief.noise, _LEAST_NOISE)
    log_power = np.log(belief.power_w)
    left = np.empty(len(clocks_mhz))
    for at, clock in enumerate(clocks_mhz.tolist()):
        place = int(np.abs(belief.clock_mhz - clock).argmin())
        power = log_power[:, place]
        reading = power[drawn] + noise * deviate
        weight = np.exp(-0.5 * ((power[None, :] - reading[:, None]) / noise) ** 2)
        weight /= weight.sum(axis=1)[:, None] + _SMALL
        left[at] = (weight @ loss).min(axis=1).mean()
    return left


def _between(free_mhz: Floats, asked_mhz: Floats, supported: Floats, highest: float) -> float | None:
    """Too few below a limit: the middle of the widest gap below it that holds an untried clock."""
    left = supported[~np.isin(supported, asked_mhz) & (supported < highest)]
    if not len(left):
        return None
    tried = np.unique(np.concatenate([free_mhz, asked_mhz]))
    return float(left[np.abs(left[:, None] - tried[None, :]).min(axis=1).argmax()])
