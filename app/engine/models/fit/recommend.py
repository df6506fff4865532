"""From the curves that explain the points to one clock: the one with the least energy to expect.

The valley of the energy is flat and its bottom uncertain, so the clock is not read off the best curve alone: all curves
that explain the points count, and the clock with the smallest expected loss against the (unknown) best is recommended.

No recommendation may contradict the measured energy per work, taken by clock over the repeats (`Measured`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..arrays import Floats, Mask
from .curve import Curve
from .posterior import Posterior

_SAME_CLOCK = 0.0025  # relative: observed clocks this close were the same setting; steps are 7.5 MHz or more
_FOLLOWED = 0.05  # relative: an observed clock this close to the requested one followed it
_LEAST_DEGREES = 3  # of repeats beyond the first of each clock, from which on they show the scatter
_LEAST_SCATTER = 0.01  # of a reading, where no repeats show it
_NORMAL_SPREAD = 1.4826  # standard deviation over the median absolute one, of a normal distribution
_LEAST_REPEATED = 0.0025  # where they do: what drifts between two clocks is not seen between repeats
_MEDIAN = 1.2533  # standard error of a median over that of a mean, of a normal distribution
_HIGHER = 0.03  # relative: a median that lies less above the least one is as good
_CONTRADICT = 0.1  # relative: repeats that span less agree
_UNUSUAL = 4.0  # times what the repeats of a clock span usually


@dataclass(frozen=True, slots=True)
class Measured:
    """Energy per work at each clock; arrays of shape (k,), ascending by clock."""

    clock_mhz: Floats  # as observed, the mean of the repeats
    requested_mhz: Floats  # as set, where that is known, else the same
    energy: Floats  # median of the repeats, in any unit
    repeats: npt.NDArray[np.int64]
    scatter: float | None  # relative standard deviation of a repeat; None if there are too few
    span: Floats  # of the repeats: the highest over the lowest energy, minus one

    @classmethod
    def of(
        cls, clock_mhz: Floats, energy: Floats, requested_mhz: Floats | None = None, used: Mask | None = None
    ) -> Measured:
        """Group readings by clock: those with the same requested clock are repeats, else those observed close.

        Parameters
        ----------
        clock_mhz : array, shape (n,)
            Observed clocks in MHz.
        energy : array, shape (n,)
            Energy per work of each reading, in any unit.
        requested_mhz : array, shape (n,), or None, optional
            Requested clocks in MHz, NaN where only the observed one is known; None if none is.
        used : array of bool, shape (n,), or None, optional
            A reading that is not used counts where others repeat it: which of them is wrong is not known. None if all
            are.

        Returns
        -------
        Measured
            One entry per clock. The scatter is that of the used readings.
        """
        asked = clock_mhz
        if requested_mhz is None:
            group = _close(clock_mhz)
        else:
            asked = np.where(np.isfinite(requested_mhz), requested_mhz, clock_mhz)
            group = np.unique(asked, return_inverse=True)[1]
        used = np.ones(len(group), dtype=np.bool_) if used is None else used
        kept = np.flatnonzero(used | (np.bincount(group)[group] > 1))
        group = np.unique(group[kept], return_inverse=True)[1]
        rows = [kept[group == index] for index in range(int(group.max()) + 1)]
        rows.sort(key=lambda at: float(clock_mhz[at].mean()))
        of_used = [energy[row[used[row]]] for row in rows if used[row].any()]
        degrees = sum(map(len, of_used)) - len(of_used)
        scatter = None
        if degrees >= _LEAST_DEGREES:
            scatter = math.sqrt(sum(float(((item / item.mean() - 1) ** 2).sum()) for item in of_used) / degrees)
        return cls(
            clock_mhz=np.array([clock_mhz[row].mean() for row in rows]),
            requested_mhz=np.array([asked[row].mean() for row in rows]),
            energy=np.array([np.median(energy[row]) for row in rows]),
            repeats=np.array([len(row) for row in rows]),
            scatter=scatter,
            span=np.array([energy[row].max() / energy[row].min() - 1 for row in rows]),
        )

    @property
    def best(self) -> int:
        """Index of the clock at which the least energy was measured.

        A clock with fewer repeats must be lower by the error of its mean, and a clock whose repeats contradict each
        other by as much as medians may differ.
        """
        uncertain = (self.scatter or 0.0) / np.sqrt(self.repeats) + _HIGHER * self._contradict
        return int((self.energy * (1 + uncertain)).argmin())

    @property
    def best_mhz(self) -> float:
        """The clock to set for it."""
        return float(self._settable_mhz[self.best])

    def checked(self, clock_mhz: float) -> tuple[float, list[str]]:
        """Check a clock against the medians of the repeats.

        Its median, or that of the nearest measured clock, must not lie above the least one by more than a few per cent
        and by more than the scatter of the repeats explains. Repeats that contradict each other are named.

        Parameters
        ----------
        clock_mhz : float
            The clock in MHz that would be recommended.

        Returns
        -------
        tuple of float and list of str
            The clock in MHz, or the one to set instead of it if the medians contradict it; and why. Without repeats the
            clock as it is.
        """
        if not (self.repeats > 1).any():
            return clock_mhz, []
        settable, reasons = self._settable_mhz, []
        index, least = int(np.abs(settable - clock_mhz).argmin()), int(self.energy.argmin())
        error = _MEDIAN * (self.scatter or 0.0) * math.sqrt(1 / self.repeats[index] + 1 / self.repeats[least])
        higher = float(self.energy[index] / self.energy[least] - 1)
        if higher > max(_HIGHER, error):
            reasons.append(
                f"{clock_mhz:.0f} MHz is not recommended: the median of the repeats at {settable[index]:.0f} MHz is"
                f" {100 * higher:.1f} % above the least one, at {settable[least]:.0f} MHz, which is recommended"
            )
            clock_mhz, index = float(settable[least]), least
        if self._contradict[index]:
            reasons.append(
                f"the {self.repeats[index]} repeats at {settable[index]:.0f} MHz contradict each other: the highest "
                f"took {100 * self.span[index]:.0f} % more energy than the lowest; measure it again"
            )
        return clock_mhz, reasons

    def misfit(self, modelled_mhz: Floats, modelled: Floats, noise: float) -> float:
        """How far modelled energies lie off beyond the noise of a reading.

        Parameters
        ----------
        modelled_mhz : array, shape (m,)
            Clocks of the model in MHz, ascending.
        modelled : array, shape (m,)
            Modelled energy at them, in any unit.
        noise : float
            Relative noise of a reading; the scatter of the repeats counts where that is larger.

        Returns
        -------
        float
            Relative standard deviation; 0 where noise explains all of it.
        """
        noise = max(noise, self.scatter or 0.0)
        spread = float(np.var(self._over(modelled_mhz, modelled))) - noise**2 * float((1 / self.repeats).mean())
        return float(np.sqrt(max(0.0, spread)))

    def contradicted(
        self, clock_mhz: float, modelled_mhz: Floats, modelled: Floats, curve: Floats, noise: float
    ) -> float | None:
        """The measured energy at a clock over the least one, minus one, where that is clearly above 0.

        Clearly is by more than the scatter of the repeats. Where there are none, it is by more than luck does: the
        least of k readings is low by about sqrt(2 ln k) of what they scatter about the modelled energies, or of the
        noise that these take. Between the given clocks the energy is interpolated: that of the fitted curve times what
        was measured over it at the neighbours. A straight line between them would lie above any valley.

        Parameters
        ----------
        clock_mhz : float
            The clock in MHz.
        modelled_mhz : array, shape (m,)
            Clocks of the model in MHz, ascending.
        modelled : array, shape (m,)
            Expected energy at them over all curves, in any unit.
        curve : array, shape (m,)
            Energy of the fitted curve at them, in any unit.
        noise : float
            Relative noise of a reading, as the modelled energies take it.

        Returns
        -------
        float or None
            Relative excess; None where it is not clear.
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
    def _contradict(self) -> Mask:
        """Where the repeats span far more than at other clocks."""
        usual = self.span[self.repeats > 1] if (self.repeats > 1).any() else self.span
        return np.asarray(self.span > max(_CONTRADICT, _UNUSUAL * float(np.median(usual))))

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


# Share of the curves with their optimum on either side of the 95 % interval. Half of what the curves alone suggest:
# on simulated boards, where the voltage bends at a point, the interval then holds the truth in 90 to 99 %.
_TAIL = 0.025
_TRUST = 0.5  # of a point's departure from the curves: half counts as real, half as noise
_CLEARLY = 0.003  # expected loss by which another clock must be better than what was measured, where not bracketed
_AS_GOOD = 0.001  # a sampled clock this close to the best one is preferred: it was seen to be obeyed


@dataclass(frozen=True, slots=True)
class Valley:
    """What a clock costs over the sampled range, above the best clock of each curve."""

    clock_mhz: Floats  # (m,)
    loss: Floats  # (m,): expected energy over the lowest, minus one
    optimum_mhz: float  # the middle of the curves' optima
    interval_mhz: tuple[float, float]  # holds the optimum with 95 %

    def loss_at(self, clock_mhz: npt.ArrayLike) -> Floats:
        """Expected loss at clocks, interpolated.

        Parameters
        ----------
        clock_mhz : array_like, any shape
            Clocks in MHz; beyond the sampled range the loss at its end counts.

        Returns
        -------
        array, same shape
            Expected energy over the lowest, minus one.
        """
        return np.interp(np.asarray(clock_mhz, dtype=np.float64), self.clock_mhz, self.loss)


def survey(clock_mhz: Floats, cost: Floats) -> Valley:
    """Compute the expected loss at each clock.

    Parameters
    ----------
    clock_mhz : array, shape (m,)
        Clocks in MHz, evenly spaced.
    cost : array, shape (k, m)
        Curves of a cost (energy, say) in any unit.

    Returns
    -------
    Valley
        The loss of shape (m,), the optimum and its interval in MHz.
    """
    optimum = np.sort(clock_mhz[cost.argmin(axis=1)])
    low, high = optimum[int(_TAIL * len(optimum))], optimum[int((1 - _TAIL) * len(optimum))]
    half_step = 0.5 * float(clock_mhz[1] - clock_mhz[0])
    interval = max(float(clock_mhz[0]), float(low) - half_step), min(float(clock_mhz[-1]), float(high) + half_step)
    loss = (cost / cost.min(axis=1)[:, None]).mean(axis=0) - 1.0
    quarter = len(optimum) // 4
    middle = float(optimum[quarter:-quarter].mean())  # of the middle half: finer than the clocks of the grid
    return Valley(clock_mhz, loss, middle, interval)


def settable_interval(valley: Valley, supported_mhz: Sequence[float] | None) -> tuple[float, float]:
    """Extend the 95 % interval of the optimum to the next clocks that can be set on both sides.

    The best of the clocks that can be set is a neighbour of the continuous optimum.

    Parameters
    ----------
    valley : Valley
        The loss over the clock.
    supported_mhz : sequence of float or None
        Clocks that can be set, in MHz; None if unknown.

    Returns
    -------
    tuple of float
        Ends of the interval in MHz; the interval as it is where the clocks are not known.
    """
    low, high = valley.interval_mhz
    low, high = min(low, valley.optimum_mhz), max(high, valley.optimum_mhz)
    if supported_mhz is not None and len(supported_mhz):
        clocks = np.unique(np.asarray(supported_mhz, dtype=np.float64))
        low = float(clocks[clocks <= low].max(initial=valley.clock_mhz[0]))
        high = float(clocks[clocks >= high].min(initial=valley.clock_mhz[-1]))
    return low, high


def follow_data(
    chosen_mhz: float,
    interval_mhz: tuple[float, float],
    measured: Measured,
    posterior: Posterior,
    curve: Curve,
    supported_mhz: Sequence[float] | None,
) -> tuple[float, list[str]]:
    """Replace a clock of the model where that contradicts the measurements.

    Parameters
    ----------
    chosen_mhz : float
        The choice of the model in MHz.
    interval_mhz : tuple of float
        Where the optimum is expected.
    measured : Measured
        Measured energies by clock.
    posterior : Posterior
        The curves that explain the points.
    curve : Curve
        The fitted curve.
    supported_mhz : sequence of float or None
        Clocks that can be set, in MHz; None if unknown.

    Returns
    -------
    tuple of float and list of str
        The clock to recommend in MHz, and why.
    """
    smooth = curve.energy(posterior.clock_mhz)
    low, high = interval_mhz
    modelled = posterior.energy.mean(axis=0)
    excess = measured.contradicted(chosen_mhz, posterior.clock_mhz, modelled, smooth, posterior.noise)
    if excess is not None:
        better = _on_grid(measured.best_mhz, supported_mhz)
        if better != chosen_mhz:
            return better, [
                f"the model does not follow the data: {chosen_mhz:.0f} MHz, its choice, takes {100 * excess:.1f} % more"
                f" measured energy than {better:.0f} MHz, which is recommended"
            ]
    if not low <= chosen_mhz <= high:
        return chosen_mhz, [
            f"no given clock lies between {low:.0f} and {high:.0f} MHz, where the optimum is expected:"
            f" {chosen_mhz:.0f} MHz is the best of those that are given; measure in between"
        ]
    return chosen_mhz, []


def _on_grid(clock_mhz: float, supported_mhz: Sequence[float] | None) -> float:
    """The supported clock nearest to one that was measured; that one itself where none lies within a step of it.

    So it is with a clock at which a limit holds the board: it lies above the ones that the board follows.
    """
    clocks = np.unique(np.asarray(supported_mhz if supported_mhz is not None else (), dtype=np.float64))
    if len(clocks) < 2:
        return clock_mhz
    nearest = float(clocks[np.abs(clocks - clock_mhz).argmin()])
    return nearest if abs(nearest - clock_mhz) <= np.diff(clocks).min() else clock_mhz


def recommend(
    valley: Valley,
    interval_mhz: tuple[float, float],
    sampled_mhz: Floats,
    energy: Floats,
    supported_mhz: Sequence[float] | None,
    *,
    bracketed: bool,
) -> float:
    """Choose the clock to use: of the supported ones within the sampled range, else of the sampled ones.

    Where the optimum is not bracketed, or where only sampled clocks are known, the measured energies count beside the
    curves, and a clock between the sampled ones must be clearly better.

    Parameters
    ----------
    valley : Valley
        The loss over the clock.
    interval_mhz : tuple of float
        Clocks in it are preferred where there are any.
    sampled_mhz : array, shape (n,)
        Sampled clocks in MHz.
    energy : array, shape (n,)
        Measured energy per work at them, in any unit.
    supported_mhz : sequence of float or None
        Clocks that can be set, in MHz; None if unknown.
    bracketed : bool
        Whether the points bracket the optimum.

    Returns
    -------
    float
        The clock in MHz.
    """
    sampled, inverse = np.unique(sampled_mhz, return_inverse=True)
    within = candidates(sampled, supported_mhz)
    loss = valley.loss_at(within) + _outside(within, interval_mhz)
    loss_sampled = valley.loss_at(sampled)
    if not bracketed or len(within) == len(sampled):
        modelled = np.log1p(loss_sampled)
        measured = np.bincount(inverse, np.log(energy)) / np.bincount(inverse)
        departure = measured - modelled
        expected = modelled + _TRUST * (departure - departure.mean())
        best = int((expected + _outside(sampled, interval_mhz)).argmin())
        if len(within) == len(sampled) or loss_sampled[best] < loss.min() + _CLEARLY:
            return float(sampled[best])
        return float(within[loss.argmin()])
    near = np.isin(sampled, within)
    loss_sampled = loss_sampled + _outside(sampled, interval_mhz)
    if near.any() and loss_sampled[near].min() <= loss.min() + _AS_GOOD:
        return float(sampled[near][loss_sampled[near].argmin()])
    return float(within[loss.argmin()])


def candidates(sampled_mhz: Floats, supported_mhz: Sequence[float] | None) -> Floats:
    """List the clocks that can be recommended.

    Parameters
    ----------
    sampled_mhz : array, shape (n,)
        Sampled clocks in MHz.
    supported_mhz : sequence of float or None
        Clocks that can be set, in MHz; None if unknown.

    Returns
    -------
    array, shape (m,)
        Supported clocks within the sampled range, ascending; the sampled ones if none is known.
    """
    low, high = float(sampled_mhz.min()), float(sampled_mhz.max())
    within = [c for c in supported_mhz if low <= c <= high] if supported_mhz is not None else []
    return np.asarray(sorted(within), dtype=np.float64) if within else np.unique(sampled_mhz)


def _outside(clocks_mhz: Floats, interval_mhz: tuple[float, float]) -> Floats:
    """Infinite for clocks outside the interval, shape (n,); 0 for all where none lies in it."""
    low, high = interval_mhz
    inside = (clocks_mhz >= low) & (clocks_mhz <= high)
    return np.where(inside | ~inside.any(), 0.0, np.inf)
