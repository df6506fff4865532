"""The energy of one call from blocks of calls, and against earlier sessions of the same call on the same kind of board.

Sessions differ by more than the blocks of one do: temperature, driver, another board of the same name. How much they
differ is estimated as by the moderated t [Smyth2004]: what the sessions show, with their degrees of freedom, and what
four H200 did, with `PRIOR_DEGREES`. So one earlier session shows a large change, and ten show a small one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from ...base.formatting import number
from ..metering.confidence import NORMAL_95, Interval, confidence_interval, not_negative

# One sigma, relative: sessions of four H200 differed by 0.5 to 1.1 % (median), README.
BETWEEN_SESSIONS: Final = 0.011
PRIOR_DEGREES: Final = 4
CONFIDENCE: Final = 0.99  # of the interval of a change


@dataclass(frozen=True, slots=True)
class CallEnergy:
    """Energy and time of one call, with 95 % intervals; None where one block alone shows none."""

    energy_j: float
    energy_interval_j: Interval | None
    time_s: float
    time_interval_s: Interval | None

    @property
    def words(self) -> str:
        """'0.1234 J (0.1228–0.124) in 0.0102 s'."""
        ends = self.energy_interval_j
        shown = "" if ends is None else f" ({number(ends[0])}–{number(ends[1])})"
        return f"{number(self.energy_j)} J{shown} in {number(self.time_s)} s"


@dataclass(frozen=True, slots=True)
class AgainstBaseline:
    """An energy relative to the mean of earlier sessions: 0.02 is 2 % more."""

    change: float
    interval: Interval
    sessions: int

    def worse(self, threshold: float) -> bool:
        """Return whether the whole interval lies above a threshold.

        Parameters
        ----------
        threshold : float
            The change that is allowed, a share.

        Returns
        -------
        bool
            False where the interval reaches down to the threshold.
        """
        return self.interval[0] > threshold

    @property
    def differs(self) -> bool:
        """True if the interval leaves out zero."""
        return not self.interval[0] <= 0.0 <= self.interval[1]

    @property
    def words(self) -> str:
        """'1.3 % (−0.4 to 3 %) more than in 4 sessions'."""
        low, high = (f"{100 * end:+.1f}" for end in self.interval)
        several = "s" if self.sessions > 1 else ""
        return f"{100 * self.change:+.1f} % ({low} to {high} %) against {self.sessions} session{several}"


def call_energy(energies_j: Sequence[float], times_s: Sequence[float], wander: float) -> CallEnergy:
    """Summarise blocks of calls.

    Parameters
    ----------
    energies_j, times_s : sequence of float
        Energy and time of one call in each block, J and s.
    wander : float
        What the mean of a short window is off by beyond the noise of its samples, one sigma, relative.

    Returns
    -------
    CallEnergy
        Means, with Student's t over the blocks.
    """
    energy_j, interval = fmean(energies_j), confidence_interval(energies_j)
    if interval is not None:
        half_j = math.hypot((interval[1] - interval[0]) / 2, NORMAL_95 * wander * energy_j)
        interval = not_negative((energy_j - half_j, energy_j + half_j))
    times = confidence_interval(times_s)
    return CallEnergy(energy_j, interval, fmean(times_s), times and not_negative(times))


def against_baseline(energy: CallEnergy, sessions_j: Sequence[float]) -> AgainstBaseline:
    """Compare an energy with those of earlier sessions.

    Parameters
    ----------
    energy : CallEnergy
        The energy of this session.
    sessions_j : sequence of float
        Those of earlier sessions, J, at least one.

    Returns
    -------
    AgainstBaseline
        The change, with an interval that carries the variance between sessions.
    """
    from scipy.special import stdtrit  # imported late, as elsewhere

    logs = [math.log(session_j) for session_j in sessions_j]
    mean, degrees = fmean(logs), PRIOR_DEGREES + len(logs) - 1
    squares = PRIOR_DEGREES * BETWEEN_SESSIONS**2 + sum((value - mean) ** 2 for value in logs)
    low_j, high_j = energy.energy_interval_j or (energy.energy_j, energy.energy_j)
    within = (high_j - low_j) / 2 / NORMAL_95 / energy.energy_j
    error = math.sqrt(squares / degrees * (1 + 1 / len(logs)) + within**2)
    half = float(stdtrit(degrees, (1 + CONFIDENCE) / 2)) * error
    change = math.log(energy.energy_j) - mean
    return AgainstBaseline(math.expm1(change), (math.expm1(change - half), math.expm1(change + half)), len(logs))
