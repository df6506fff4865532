"""From the curves that explain the points to one clock: the one with the least energy to expect.

The valley of the energy is flat and its bottom uncertain, so the clock is not read off the best curve alone: all curves
that explain the points count, and the clock with the smallest expected loss against the (unknown) best is recommended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .arrays import Floats
from .curve import Curve
from .measured import Measured
from .posterior import Posterior

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
        return np.interp(np.asarray(clock_mhz, dtype=np.float64), self.clock_mhz, self.loss)


def survey(clock_mhz: Floats, cost: Floats) -> Valley:
    """The expected loss at each clock of shape (m,) of curves of a cost (energy, say) of shape (k, m)."""
    optimum = np.sort(clock_mhz[cost.argmin(axis=1)])
    low, high = optimum[int(_TAIL * len(optimum))], optimum[int((1 - _TAIL) * len(optimum))]
    half_step = 0.5 * float(clock_mhz[1] - clock_mhz[0])
    interval = max(float(clock_mhz[0]), float(low) - half_step), min(float(clock_mhz[-1]), float(high) + half_step)
    loss = (cost / cost.min(axis=1)[:, None]).mean(axis=0) - 1.0
    quarter = len(optimum) // 4
    middle = float(optimum[quarter:-quarter].mean())  # of the middle half: finer than the clocks of the grid
    return Valley(clock_mhz, loss, middle, interval)


def settable_interval(valley: Valley, supported_mhz: Sequence[float] | None) -> tuple[float, float]:
    """What holds the best of the clocks that can be set, with 95 %: the interval out to the next ones on both sides.

    The best of them is a neighbour of the continuous optimum. Where they are not known, the interval as it is.
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
    """The clock to recommend in place of the model's choice where that contradicts the measurements, and why."""
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
    """The clock to use: of the supported ones within the sampled range, else of the sampled ones.

    Of those, one in `interval_mhz` where there is any. `energy` per work, in any unit, as it was measured at the
    sampled clocks, shape (n,). Where the optimum is not bracketed, or where only sampled clocks are known, what was
    measured there counts beside the curves, and a clock between the sampled ones must be clearly better.
    """
    sampled, at = np.unique(sampled_mhz, return_inverse=True)
    within = candidates(sampled, supported_mhz)
    loss = valley.loss_at(within) + _outside(within, interval_mhz)
    loss_sampled = valley.loss_at(sampled)
    if not bracketed or len(within) == len(sampled):
        modelled = np.log1p(loss_sampled)
        measured = np.bincount(at, np.log(energy)) / np.bincount(at)
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
    """Clocks that can be recommended: supported ones within the sampled range; the sampled ones where none is known."""
    low, high = float(sampled_mhz.min()), float(sampled_mhz.max())
    within = [c for c in supported_mhz if low <= c <= high] if supported_mhz is not None else []
    return np.asarray(sorted(within), dtype=np.float64) if within else np.unique(sampled_mhz)


def _outside(clocks_mhz: Floats, interval_mhz: tuple[float, float]) -> Floats:
    """Infinite for clocks outside the interval, shape (n,); 0 for all where none lies in it."""
    low, high = interval_mhz
    inside = (clocks_mhz >= low) & (clocks_mhz <= high)
    return np.where(inside | ~inside.any(), 0.0, np.inf)
