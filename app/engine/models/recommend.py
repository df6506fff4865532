"""From the bends that explain the points to one clock: the one with the least energy to expect.

The valley of the energy is flat and its bottom uncertain, so the clock is not read off the best curve alone: every bend
that explains the points has its say, and the clock with the smallest expected loss against the (unknown) best is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.engine.models.limits import Duration
from app.engine.models.shapes import Shapes

Floats = npt.NDArray[np.float64]

_FINE = 161  # clocks at which the energy curves are compared
_BENDS = 400
_AS_GOOD = 0.001  # a sampled clock this close to the best one is preferred: it was seen to be obeyed
_CONTRADICTION = 0.003  # beyond the noise: then the measured energies are believed, not the model
_TRUST = 0.5  # of a point's departure from the model: half is taken for real, half for noise


@dataclass(frozen=True, slots=True)
class Valley:
    """The energy curves over the sampled range, each relative to its own minimum."""

    clock_mhz: Floats  # (m,)
    loss: Floats  # (m,): expected energy over the lowest, minus one
    interval_mhz: tuple[float, float]  # 95 % of the bends have their optimum inside

    def loss_at(self, clock_mhz: npt.ArrayLike) -> Floats:
        return np.interp(np.asarray(clock_mhz, dtype=np.float64), self.clock_mhz, self.loss)


def survey(shapes: Shapes, duration: Duration, lowest_mhz: float, highest_mhz: float) -> Valley:
    """The expected loss at each clock of a range and the interval of the optimum."""
    clock = np.linspace(lowest_mhz, highest_mhz, _FINE)
    energy = shapes.sample(_BENDS).power_w(clock) * duration.relative(clock)
    optimum = np.sort(clock[energy.argmin(axis=1)])
    low, high = optimum[int(0.025 * _BENDS)], optimum[int(0.975 * _BENDS)]
    half_step = 0.5 * float(clock[1] - clock[0])
    interval = max(lowest_mhz, float(low) - half_step), min(highest_mhz, float(high) + half_step)
    loss = (energy / energy.min(axis=1)[:, None]).mean(axis=0) - 1.0
    return Valley(clock, loss, interval)


def recommend(
    valley: Valley, sampled_mhz: Floats, energy: Floats, supported_mhz: Sequence[float] | None
) -> tuple[float, str]:
    """The clock to use and, where it is not simply the model's, why.

    `sampled_mhz` and the `energy` per work measured there have shape (n,), the energy in any unit. Supported clocks,
    where known, are candidates within the sampled range; else the sampled ones are.
    """
    sampled, at = np.unique(sampled_mhz, return_inverse=True)
    measured = np.bincount(at, np.log(energy)) / np.bincount(at)
    modelled = np.log1p(valley.loss_at(sampled))
    weights = _neighbours(sampled)
    departure = weights @ (measured - modelled)  # of one clock and those beside it, so that no lucky reading wins
    low, high = float(sampled[0]), float(sampled[-1])
    within = [c for c in supported_mhz if low <= c <= high] if supported_mhz is not None else []
    if within:
        candidates = np.asarray(sorted(within), dtype=np.float64)
        loss = valley.loss_at(candidates)
        chosen = float(candidates[loss.argmin()])
        near = sampled[np.isin(sampled, candidates)]
        if len(near):
            loss_near = valley.loss_at(near)
            if loss_near.min() <= loss.min() + _AS_GOOD:
                chosen = float(near[loss_near.argmin()])
    else:
        chosen = float(sampled[(modelled + _TRUST * departure).argmin()])
    if len(sampled) < 5:
        return chosen, ""
    # Dense, quiet measurements that clearly have their minimum elsewhere overrule the model.
    believed = modelled + departure
    there = int(believed.argmin())
    gap = float(np.interp(chosen, sampled, believed) - believed[there])
    noise = scatter(sampled, measured) * float(np.sqrt((weights**2).sum(axis=1)).mean())
    if gap > _CONTRADICTION + 4 * noise:
        clock = float(sampled[there])
        what = f"the measured energy is {100 * gap:.1f} % lower at {clock:.0f} MHz than where the model has its lowest"
        return clock, f"{what}: the measurements are followed"
    return chosen, ""


def _neighbours(clock_mhz: Floats) -> Floats:
    """Weights, shape (n, n), rows summing to 1, that average each clock with those within about a per cent."""
    span = 0.01 * float(clock_mhz[-1])
    weight = np.exp(-0.5 * ((clock_mhz[:, None] - clock_mhz[None, :]) / span) ** 2)
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def scatter(clock_mhz: Floats, log_energy: Floats) -> float:
    """Relative noise of the energies without any model: how far each lies from the line between its neighbours.

    With few clocks the bend of the valley counts as noise, so that few points never contradict the model.
    """
    left, middle, right = clock_mhz[:-2], clock_mhz[1:-1], clock_mhz[2:]
    share = (middle - left) / (right - left)
    line = log_energy[:-2] * (1 - share) + log_energy[2:] * share
    departure = (log_energy[1:-1] - line) / np.sqrt(1 + share**2 + (1 - share) ** 2)
    return float(1.4826 * np.median(np.abs(departure)))
