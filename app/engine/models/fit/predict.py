"""What a fitted model predicts of its load at a clock under a power limit: power, time and energy per work.

Every figure comes from the curves of the posterior (`posterior.py`), drawn again from the points that a fit keeps, so
that a ratio of two states has the interval of that ratio. A limit below the power of a curve lowers the clock of that
curve until its power meets the limit. Nothing is predicted beyond the clocks that were measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...metering.confidence import student_t
from ..arrays import Floats, Mask
from .curve import Duration, fit_duration
from .frequency import FrequencyFit
from .points import Points
from .posterior import LEAST_DEGREES, NORMAL, posterior_of

_TAIL = 0.025  # on either side of a 95 % interval
_HOLDING = 0.012  # relative: at the same mean clock a limit draws up to 2.4 % less on twins than a locked clock does
_BESIDE = 0.99  # a board runs some MHz beside what was set
_LEAST_NOISE = 0.001  # of a measured time, relative


@dataclass(frozen=True, slots=True)
class Expected:
    """A predicted figure, with the interval that holds a measurement of it with 95 % probability."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """The load in one state of the board. `time` and `energy` per work are in any unit; None: speed is not known."""

    power_w: Floats  # of each curve, shape (k,)
    time: Floats | None
    held: Mask  # the curves that the limit holds below the clock
    held_mhz: float  # the clock that the limit holds the load at; the one that was set where it does not

    @property
    def energy(self) -> Floats | None:
        """Per work, of each curve."""
        return None if self.time is None else self.power_w * self.time

    @property
    def binds(self) -> bool | None:
        """Whether the limit acts on this load; None: the curves do not agree."""
        share = float(self.held.mean())
        return None if _TAIL < share < 1 - _TAIL else share > 0.5


@dataclass(frozen=True, slots=True)
class Predictor:
    """Curves of one load on one board, from a fit that is identifiable."""

    fit: FrequencyFit
    clock_mhz: Floats  # (m,)
    power_w: Floats  # (k, m)
    time: Floats | None  # (k, m): per work; None where the speed is not known
    noise: float  # of a reading of power, relative
    time_noise: float  # of a measured time, relative
    wider: float  # than a normal interval, for the few points

    @classmethod
    def of(cls, fit: FrequencyFit) -> Predictor | None:
        """Draw the curves of a fit again.

        Parameters
        ----------
        fit : FrequencyFit
            The fit.

        Returns
        -------
        Predictor or None
            None where the fit is not identifiable.
        """
        if not fit.identifiable:
            return None
        clock, used = fit.clock_mhz[fit.used], fit.used
        rate = fit.rate[used] if len(fit.rate) and np.isfinite(fit.rate[used]).all() else None
        voltage = fit.voltage_mv[used] if len(fit.voltage_mv) else None
        points = Points(clock, fit.power_w[used], rate=rate, voltage_mv=voltage)
        posterior = posterior_of(points, Duration() if rate is None else fit_duration(clock, rate))
        wider = student_t(max(LEAST_DEGREES, len(clock) - 3)) / NORMAL
        time, time_noise = None, 0.0
        if rate is not None:
            time = posterior.drawn_time
            expected = np.interp(clock, posterior.clock_mhz, posterior.time)
            time_noise = max(_LEAST_NOISE, float(np.log(expected * rate).std()))
        return cls(fit, posterior.clock_mhz, posterior.power_w, time, posterior.noise, time_noise, wider)

    @property
    def range_mhz(self) -> tuple[float, float]:
        """The clocks that were measured, within which it predicts."""
        return float(self.clock_mhz[0]), float(self.clock_mhz[-1])

    def at(self, clock_mhz: float, limit_w: float = math.inf) -> Outcome | None:
        """The load at a locked clock, under a power limit.

        Parameters
        ----------
        clock_mhz : float
            The graphics clock in MHz.
        limit_w : float, optional
            The power limit in W; by default none.

        Returns
        -------
        Outcome or None
            None beyond the measured clocks: where the clock lies above them and the limit does not hold the load
            within them, and where the load would run below them.
        """
        lowest, highest = self.range_mhz
        if clock_mhz < _BESIDE * lowest:
            return None
        place = np.interp(clock_mhz, self.clock_mhz, np.arange(len(self.clock_mhz)))
        free = _at(self.power_w, np.full(len(self.power_w), place))
        spread = math.hypot(self.noise, _HOLDING) * np.random.default_rng(0).standard_normal(len(free))
        limits_w = limit_w * (1 + spread)
        held = free > limits_w
        places = np.full(len(free), place)
        if held.any():
            places[held] = self._where_held(held, int(place), limits_w[held])
        if np.isnan(places).mean() > _TAIL:
            return None
        places = np.where(np.isnan(places), 0.0, places)
        time = None if self.time is None else _at(self.time, places)
        mhz = float(np.interp(np.median(places), np.arange(len(self.clock_mhz)), self.clock_mhz))
        outcome = Outcome(np.where(held, limit_w, free), time, held, mhz)
        return None if _BESIDE * clock_mhz > highest and not outcome.binds else outcome

    def _where_held(self, held: Mask, last: int, limits_w: Floats) -> Floats:
        """Of curves above their limits, where each falls to it, in steps of the clocks; NaN where it never does."""
        curves, rows = self.power_w[held], np.arange(len(limits_w))
        below = curves[:, : last + 1] <= limits_w[:, None]
        step = last - np.argmax(below[:, ::-1], axis=1)
        here, there = curves[rows, step], curves[rows, np.minimum(step + 1, curves.shape[1] - 1)]
        part = np.where(there > here, (limits_w - here) / np.where(there > here, there - here, 1.0), 0.0)
        return np.where(below.any(axis=1), step + np.clip(part, 0.0, 1.0), np.nan)

    def power(self, outcome: Outcome) -> Expected:
        """The power of a load in one state.

        Parameters
        ----------
        outcome : Outcome
            As `at` returned it.

        Returns
        -------
        Expected
            In W.
        """
        return self._expected(outcome.power_w, self.noise)

    def change(self, outcome: Outcome, before: Outcome | None = None) -> tuple[Expected, Expected] | None:
        """Time and energy per work in one state over those in another.

        Parameters
        ----------
        outcome : Outcome
            As `at` returned it.
        before : Outcome or None, optional
            The other state; None is the untouched board, as it was measured, else the highest clock that was.

        Returns
        -------
        tuple of Expected and Expected, or None
            Of the time and of the energy, as ratios; None where the speed is not known.
        """
        time, energy = outcome.time, outcome.energy
        if time is None or energy is None:
            return None
        fit = self.fit
        if before is None and fit.untouched_rate and fit.untouched_energy:
            old_time, old_energy = np.asarray(1 / fit.untouched_rate), np.asarray(fit.untouched_energy)
        else:
            other = before if before is not None else self.at(self.range_mhz[1])
            assert other is not None, "the highest clock lies within the range"
            assert other.time is not None, "it is of the same curves"
            old_time, old_energy = other.time, other.power_w * other.time
        return self._expected(time / old_time, self.time_noise), self._expected(energy / old_energy, self.noise)

    def _expected(self, values: Floats, noise: float) -> Expected:
        low, middle, high = np.quantile(values, [_TAIL, 0.5, 1 - _TAIL])
        reading = NORMAL * noise * middle
        below, above = (math.hypot(self.wider * (end - middle), reading) for end in (low, high))
        return Expected(float(middle), float(middle - below), float(middle + above))


def _at(curves: Floats, places: Floats) -> Floats:
    """Of each curve the value at its place, between two clocks; shape (k,)."""
    before = np.minimum(places.astype(np.int64), curves.shape[1] - 2)
    part, rows = places - before, np.arange(len(curves))
    return np.asarray((1 - part) * curves[rows, before] + part * curves[rows, before + 1])
