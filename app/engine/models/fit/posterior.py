"""The posterior of power over the clock given the points: many curves, all equally likely.

Sharp and soft bends, small and large noise, and departures from any such curve are averaged by how well each explains
the points (Akaike's idea of averaging models, with their evidence as the weights). What follows from the curves, an
optimum above all, comes with its own uncertainty.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...metering.confidence import student_t
from ..arrays import Floats
from .bends import FEW_KINDS, KINDS, VOLTAGE_KINDS, Family, Grid, closest_power_w
from .curve import Duration, Times
from .departure import OF_POWER, Basis, Departure, counts, likeliest
from .points import Points

DRAWS = 400
_FINE = 161  # clocks at which the curves are drawn
WAITING = (0.0, 0.5, 1.0)  # shares of the dynamic power that follow the speed rather than the clock
LEAST_FIXED = 0.05  # share by which the speed departs from the clock, from which on the two are distinguished
NORMAL = 1.959964  # 97.5 % quantile
LEAST_DEGREES = 3
_LOWEST_FACTOR = 0.05  # of a curve, that no departure goes below


@dataclass(frozen=True, slots=True)
class Posterior:
    """Curves drawn from the posterior; shape (k, m) over `clock_mhz` of shape (m,)."""

    clock_mhz: Floats
    power_w: Floats
    time: Floats  # of the same work at those clocks, as expected, in the unit of 1/rate; shape (m,)
    drawn_time: Floats  # (k, m)
    ridge_mhz: Floats  # of each curve, shape (k,)
    waiting: Floats  # of each curve: the share of its dynamic power that follows the speed, shape (k,)
    noise: float  # of a reading, relative: the usual size of what is not shared with its neighbours
    points: int  # that all of it was drawn from

    @property
    def energy(self) -> Floats:
        """Per work, in any unit; shape (k, m)."""
        return self.power_w * self.drawn_time

    def band_w(self) -> Floats:
        """Where the power lies with 95 % probability, a reading's own noise left out.

        The curves take the likely sizes of noise and departure for known; of few points they are not, and the band is
        as much wider as an interval of Student's t is that has as many degrees left after level, slope and bend.

        Returns
        -------
        array, shape (2, m)
            Lower and upper end in W at each clock.
        """
        low, middle, high = np.quantile(self.power_w, [0.025, 0.5, 0.975], axis=0)
        wider = student_t(max(LEAST_DEGREES, self.points - 3)) / NORMAL
        return np.asarray([middle + wider * (low - middle), middle + wider * (high - middle)])


def posterior_of(points: Points, duration: Duration) -> Posterior:
    """Draw curves from the posterior given the points.

    Parameters
    ----------
    points : Points
        At least three points, with their rate and voltage where known.
    duration : Duration
        Time of the work over the clock.

    Returns
    -------
    Posterior
        DRAWS curves, all equally likely.
    """
    clock_mhz, power_w, voltage = points.clock_mhz, points.power_w, points.voltage_mv
    scale = float(clock_mhz.max())
    x = clock_mhz / scale
    fine_mhz = np.linspace(clock_mhz.min(), scale, _FINE)
    fine = fine_mhz / scale
    times = Times.of(duration, clock_mhz, points.rate)
    time, here = times.at(fine_mhz), times.at(clock_mhz)
    per_clock = here * x
    waiting = WAITING if per_clock.min() < (1 - LEAST_FIXED) * per_clock.max() else WAITING[:1]
    activities, fine_activities = _activities(waiting, x, here, fine, time)
    bases = {length: Basis.of(x, length) for length in OF_POWER.lengths}
    lowest = float(x.min())
    near = closest_power_w(clock_mhz, power_w, np.ones(len(x)), np.concatenate([clock_mhz, fine_mhz]))
    level, fine_level = near[: len(x)], near[len(x) :]
    wide = Grid.over(lowest, 24, 12, FEW_KINDS if voltage is None else VOLTAGE_KINDS)
    kinds = KINDS if voltage is None else VOLTAGE_KINDS
    likely = _likely(Family(x, power_w, activities, wide, voltage, level), bases)
    exact = Family(
        x, power_w, activities, wide.around(np.sum([weight for *_, weight in likely], axis=0), 56, 32, kinds), voltage
    )
    rng = np.random.default_rng(0)
    power, ridge, waits = [], [], []
    variance = 0.0
    for departure, count, _ in likely:
        basis = bases[departure.length]
        drawn = exact.rotated(basis.vectors).weighted(basis.variance(departure)).drawn(count, rng)
        curves = drawn.power_w(fine, fine_activities)
        if departure.smooth > 0:
            gain, factor = basis.posterior(departure, fine)
            beyond = (power_w - drawn.power_w(x, activities)) / level @ gain
            beyond += rng.standard_normal((count, len(fine))) @ factor
            curves = np.maximum(curves + beyond * fine_level, _LOWEST_FACTOR * fine_level)
        variance += departure.noise**2 * count / DRAWS
        power.append(curves)
        ridge.append(drawn.ridge * scale)
        waits.append(np.asarray(waiting)[drawn.activity])
    curves = np.concatenate(power)
    return Posterior(
        clock_mhz=fine_mhz,
        power_w=curves,
        time=time,
        drawn_time=times.drawn(fine_mhz, DRAWS, rng),
        ridge_mhz=np.concatenate(ridge),
        waiting=np.concatenate(waits),
        noise=float(variance**0.5),
        points=len(x),
    )


def _activities(
    waiting: tuple[float, ...], x: Floats, time: Floats, fine: Floats, fine_time: Floats
) -> tuple[Floats, Floats]:
    """What alpha v^2 is multiplied by, for each share of waiting: between the clock and the speed."""
    fastest = float((1.0 / (time * x)).max())  # speed per clock where it is best
    share = np.asarray(waiting)[:, None]
    here = (1 - share) * x + share / (time * fastest)
    there = (1 - share) * fine + share / (fine_time * fastest)
    return here, there


def _likely(family: Family, bases: dict[float, Basis]) -> list[tuple[Departure, int, Floats]]:
    """The likely sizes of the departure, how many curves to draw under each, and the weight of the bends under each.

    The counts sum to DRAWS.
    """
    rotated = {length: family.rotated(basis.vectors) for length, basis in bases.items()}
    tried = [
        (departure, log_prior, rotated[departure.length].weighted(bases[departure.length].variance(departure)))
        for departure, log_prior in OF_POWER.tried()
    ]
    kept, share = likeliest([log_prior + bends.log_evidence for _, log_prior, bends in tried])
    return [
        (tried[i][0], count, tried[i][2].weight) for i, count in zip(kept, counts(share, DRAWS), strict=True) if count
    ]
