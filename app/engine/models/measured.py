"""What was measured of the energy per work, by clock over the repeats: no recommendation may contradict it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .arrays import Floats

_SAME_CLOCK = 0.0025  # relative: observed clocks this close were the same setting; steps are 7.5 MHz or more
_FOLLOWED = 0.05  # relative: an observed clock this close to the requested one followed it
_LEAST_DEGREES = 3  # of repeats beyond the first of each clock, from which on they show the scatter
_LEAST_SCATTER = 0.01  # of a reading, where no repeats show it
_NORMAL_SPREAD = 1.4826  # standard deviation over the median absolute one, of a normal distribution
_LEAST_REPEATED = 0.0025  # where they do: what drifts between two clocks is not seen between repeats


@dataclass(frozen=True, slots=True)
class Measured:
    """Energy per work at each clock; arrays of shape (k,), ascending by clock."""

    clock_mhz: Floats  # as observed, the mean of the repeats
    requested_mhz: Floats  # as set, where that is known, else the same
    energy: Floats  # mean of the repeats, in any unit
    repeats: npt.NDArray[np.int64]
    scatter: float | None  # relative standard deviation of a repeat; None where there are too few

    @classmethod
    def of(cls, clock_mhz: Floats, energy: Floats, requested_mhz: Floats | None = None) -> Measured:
        """Of readings of shape (n,); those with the same requested clock are repeats, else those observed close."""
        asked = clock_mhz
        if requested_mhz is None:
            group = _close(clock_mhz)
        else:
            asked = np.where(np.isfinite(requested_mhz), requested_mhz, clock_mhz)
            group = np.unique(asked, return_inverse=True)[1]
        repeats = np.bincount(group)

        def mean(values: Floats) -> Floats:
            return np.asarray(np.bincount(group, values) / repeats)

        clock, average = mean(clock_mhz), mean(energy)
        degrees = len(energy) - len(repeats)
        scatter = None
        if degrees >= _LEAST_DEGREES:
            scatter = float(np.sqrt(((energy / average[group] - 1) ** 2).sum() / degrees))
        order = np.argsort(clock, kind="stable")
        return cls(clock[order], mean(asked)[order], average[order], repeats[order], scatter)

    @property
    def best(self) -> int:
        """Where the least energy was measured; a clock with fewer repeats must be lower by what its mean may err."""
        uncertain = (self.scatter or 0.0) / np.sqrt(self.repeats)
        return int((self.energy * (1 + uncertain)).argmin())

    @property
    def best_mhz(self) -> float:
        """The clock to set for it."""
        return float(self._settable_mhz[self.best])

    def misfit(self, modelled_mhz: Floats, modelled: Floats, noise: float) -> float:
        """How far modelled energies, at clocks of shape (m,), lie off beyond a reading's relative noise; relative."""
        noise = max(noise, self.scatter or 0.0)
        spread = float(np.var(self._over(modelled_mhz, modelled))) - noise**2 * float((1 / self.repeats).mean())
        return float(np.sqrt(max(0.0, spread)))

    def contradicted(
        self, clock_mhz: float, modelled_mhz: Floats, modelled: Floats, curve: Floats, noise: float
    ) -> float | None:
        """The energy at a clock over the least measured one, minus one, where that is clearly above 0; else None.

        Clearly is by more than the scatter of the repeats. Where there are none, it is by more than luck does: the
        least of k readings is low by about sqrt(2 ln k) of what they scatter about the `modelled` energies, at clocks
        of shape (m,), or of the relative `noise` of a reading that these take. Between the given clocks the energy is
        interpolated: that of the fitted `curve`, shape (m,), times what was measured over it at the neighbours. A
        straight line between them would lie above any valley.
        """
        settable = self._settable_mhz
        order = np.argsort(settable, kind="stable")
        observed = np.interp(clock_mhz, settable[order], self.clock_mhz[order])
        over = np.interp(observed, self.clock_mhz, self._over(modelled_mhz, curve))
        there = np.interp(observed, modelled_mhz, curve) * np.exp(over)
        excess = float(there / self.energy[self.best] - 1)
        if self.scatter is None:
            departure = self._over(modelled_mhz, modelled)
            scatter = _NORMAL_SPREAD * float(np.median(np.abs(departure - np.median(departure))))
            clear = max(_LEAST_SCATTER, max(scatter, noise) * math.sqrt(2 * math.log(len(departure))))
        else:
            clear = max(_LEAST_REPEATED, self.scatter)
        return excess if excess > clear else None

    @property
    def _settable_mhz(self) -> Floats:
        """The requested clocks, or the observed ones where the board did not follow."""
        followed = np.abs(self.requested_mhz / self.clock_mhz - 1) < _FOLLOWED
        return np.where(followed, self.requested_mhz, self.clock_mhz)

    def _over(self, modelled_mhz: Floats, modelled: Floats) -> Floats:
        """The logarithm of measured over modelled energy at each clock, shape (k,)."""
        return np.log(self.energy / np.interp(self.clock_mhz, modelled_mhz, modelled))


def _close(clock_mhz: Floats) -> npt.NDArray[np.int64]:
    """Which group of neighbouring clocks each belongs to, shape (n,)."""
    order = np.argsort(clock_mhz, kind="stable")
    ascending = clock_mhz[order]
    group = np.empty(len(clock_mhz), dtype=np.int64)
    group[order] = np.concatenate([[0], np.cumsum(np.diff(ascending) > _SAME_CLOCK * ascending[1:])])
    return group
