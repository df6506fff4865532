"""What a board's history does to its power: the same kernel draws more on a warm board, and by how much is learnt.

A die that is warmer leaks more, and so do the memory and the regulators, which warm more slowly. What the board reports
of it is two temperatures, and what it has drawn: the power of a kernel is

    log P = a + b . x,   x = (T_gpu - 50 degC, T_memory - 50 degC, (P_fast - P) / P, (P_slow - P) / P)

with `a` the kernel's own, `b` the board's, and P_fast and P_slow averages of the power over what came before, weighted
exponentially with time constants of 1 and 30 s. `b` is found by Bayesian linear regression [Gelman2013, section 14.8]
from kernels that were measured more than once, with a normal prior. What is not known about `b` widens the interval of
a power that is stated for another condition than that of its measurement.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from .confidence import student_t

Floats = npt.NDArray[np.float64]
FAST_S: Final = 1.0
SLOW_S: Final = 30.0
MIDDLE_C: Final = 50.0
# Per degree of the GPU and of the memory, and per share of the power: what an H200 showed, and how boards may differ.
PRIOR: Final = (0.002, 0.0005, 0.015, 0.015)
PRIOR_SD: Final = (0.0015, 0.0008, 0.015, 0.03)
WANDER: Final = 0.005  # of the mean of a short window beyond the noise of its samples, 1 sigma: an H200's
WANDER_DEGREES: Final = 8.0  # of freedom, with which that counts
BETWEEN: Final = 0.004  # 1 sigma, relative, by which sessions differ beyond all that: means of 2 s of an H200
MOST_SHARE: Final = 2.0  # nothing that light was looked at
_ROUNDS: Final = 8  # of wander and coefficients in turn
_STEPS: Final = 6  # towards the power at a condition


class PowerHistory:
    """The two averages of a board's power, as its samples come in. Before the first, the first counts."""

    def __init__(self) -> None:
        self._time_s = math.nan
        self.fast_w = math.nan
        self.slow_w = math.nan

    def add(self, time_s: float, power_w: float) -> None:
        """The power from the sample before until that time, s. What is not later, or no number, does not count."""
        if math.isnan(self._time_s):
            self._time_s, self.fast_w, self.slow_w = time_s, power_w, power_w
        elif time_s > self._time_s and math.isfinite(power_w):
            passed_s, self._time_s = time_s - self._time_s, time_s
            self.fast_w += (power_w - self.fast_w) * -math.expm1(-passed_s / FAST_S)
            self.slow_w += (power_w - self.slow_w) * -math.expm1(-passed_s / SLOW_S)


@dataclass(frozen=True, slots=True)
class Condition:
    """A thermal condition: of a window in which something was measured, or one that figures are stated for."""

    gpu_c: float = math.nan  # where not known, it is left out of account
    memory_c: float = math.nan
    fast_w: float = math.nan  # NaN: as much as the kernel itself draws
    slow_w: float = math.nan

    def seen_by(self, power_w: float) -> Floats:
        """`x` of a kernel that draws `power_w`; shape (4,), NaN where not known."""
        shares = [0.0 if math.isnan(each) else each / power_w - 1.0 for each in (self.fast_w, self.slow_w)]
        return np.array([self.gpu_c - MIDDLE_C, self.memory_c - MIDDLE_C, *(min(MOST_SHARE, each) for each in shares)])


@dataclass(frozen=True, slots=True)
class Look:
    """The power of a kernel in one window. Kernels are told apart by their names."""

    kernel: str
    power_w: float
    sampled_sd: float  # of the mean by the noise of its samples, relative
    condition: Condition


@dataclass(frozen=True, slots=True)
class ThermalModel:
    """How the power of one board follows its condition. `learn` returns what is known after more windows."""

    coefficients: tuple[float, ...] = PRIOR
    precision: tuple[tuple[float, ...], ...] = tuple(
        tuple(1.0 / sd**2 if row == column else 0.0 for column in range(len(PRIOR_SD)))
        for row, sd in enumerate(PRIOR_SD)
    )  # the inverse of the coefficients' covariance
    wander: float = WANDER  # 1 sigma, relative
    wander_degrees: float = WANDER_DEGREES

    def learn(self, looks: Iterable[Look]) -> ThermalModel:
        """The model after these windows, of which those of kernels seen once show nothing."""
        rows, own_sd = _within_kernels(looks)
        if not len(rows):
            return self
        prior, before = np.asarray(self.precision), np.asarray(self.coefficients)
        groups, x, y = rows[:, 0], rows[:, 2:], rows[:, 1]
        variance, degrees = self.wander**2, self.wander_degrees
        coefficients, precision = before, prior
        for _ in range(_ROUNDS):
            weights = 1.0 / (own_sd**2 + variance)
            xc, yc = _centred(x, groups, weights), _centred(y[:, None], groups, weights)[:, 0]
            precision = prior + (xc * weights[:, None]).T @ xc
            coefficients = np.linalg.solve(precision, prior @ before + (xc * weights[:, None]).T @ yc)
            left = yc - xc @ coefficients
            free = len(y) - len(np.unique(groups))
            seen = max(0.0, float((left**2 - own_sd**2 * free / len(y)).sum()) / max(1, free))
            variance = (self.wander_degrees * self.wander**2 + free * seen) / (self.wander_degrees + free)
            degrees = self.wander_degrees + free
        return ThermalModel(tuple(coefficients.tolist()), _rows(precision), math.sqrt(variance), degrees)

    def weakened(self, share: float) -> ThermalModel:
        """With that share of its certainty: as a prior for another time, or another board of the same kind."""
        precision = _rows(np.asarray(self.precision) * share)
        return ThermalModel(self.coefficients, precision, self.wander, max(WANDER_DEGREES, self.wander_degrees * share))

    def stated(self, power_w: float, measured: Condition, condition: Condition) -> tuple[float, float]:
        """(power W at `condition`, relative standard deviation of the step there) of what drew `power_w` when measured.

        What only one of the two conditions knows is left out of account.
        """
        x, coefficients = measured.seen_by(power_w), np.asarray(self.coefficients)
        stated_w, step = power_w, np.zeros_like(x)
        for _ in range(_STEPS):
            step = np.nan_to_num(condition.seen_by(stated_w) - x, nan=0.0)
            stated_w = power_w * math.exp(float(coefficients @ step))
        sd = math.sqrt(max(0.0, float(step @ np.linalg.solve(np.asarray(self.precision), step))))
        return stated_w, sd

    def interval_w(self, stated_w: float, sampled_sd: float, step_sd: float) -> tuple[float, float]:
        """95 % interval of the power that another process, at that condition, would see in a window of seconds, W."""
        half = student_t(round(self.wander_degrees)) * math.hypot(sampled_sd, self.wander, step_sd, BETWEEN) * stated_w
        return stated_w - half, stated_w + half


def _within_kernels(looks: Iterable[Look]) -> tuple[Floats, Floats]:
    """Rows of (kernel's number, log power, x) of kernels seen more than once, and their samples' deviations."""
    seen: dict[str, list[Look]] = {}
    for look in looks:
        seen.setdefault(look.kernel, []).append(look)
    rows, own_sd = [], []
    for number, group in enumerate(each for each in seen.values() if len(each) > 1):
        for look in group:
            x = np.nan_to_num(look.condition.seen_by(look.power_w), nan=0.0)
            rows.append([number, math.log(look.power_w), *x])
            own_sd.append(look.sampled_sd)
    return np.asarray(rows, dtype=np.float64), np.asarray(own_sd, dtype=np.float64)


def _centred(values: Floats, groups: Floats, weights: Floats) -> Floats:
    """Without the weighted mean of each group."""
    numbers = groups.astype(np.int64)
    total = np.bincount(numbers, weights)
    means = np.stack([np.bincount(numbers, weights * column) / total for column in values.T], axis=1)
    centred: Floats = values - means[numbers]
    return centred


def _rows(matrix: Floats) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(each) for each in row) for row in matrix)
