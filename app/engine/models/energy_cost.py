"""A model of the energy of kernels that were timed, from what is known without measuring it.

Kernels of one problem do the same work: of their energy a part does not depend on how long they take, the rest is drawn
for as long as they run. With the fastest kernel's time t_min, the least energy E_min, tau = t / t_min, and x the
features of a kernel (its parameters, its machine code, its launch):

    ln (E / E_min) = EXPONENT ln tau + c + g(x, ln tau)

c is a constant and g a Gaussian process (`gaussian_regression`). Of a few kernels there is no g, and E = mean power x
time. Energies enter by their logarithm: a relative error counts the same in all.

[Zhang2024] has gradient-boosted trees of 1 / E in place of g, with the settings of [Zheng2020]. Of kernels that boards
of three models measured, held out, g has in the mean two thirds of the error of the best trees that were found
(`tests/benchmarks/energy_models.txt`).

Nothing in it has a unit but what it is scaled by, so that a model of another shape or board can stand in for
EXPONENT ln tau: a prior. Whether it helps is tested on what has been measured; if it does not, it is dropped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from .arrays import Floats
from .gaussian_regression import GaussianRegression, regress

LEAST_POINTS: Final = 6  # that g is learnt from
EXPONENT: Final = 0.6
_MOST_POINTS: Final = 300  # that g is learnt from: its time grows with their cube
_FARTHEST: Final = 7.0  # of ln (E / E_min): a thousandth or thousandfold
_FOLDS: Final = 4  # of the test of a prior


@dataclass(frozen=True, slots=True)
class Sample:
    """Kernels that were measured, or are to be predicted. `features` has shape (kernels, names); NaN where unknown."""

    names: tuple[str, ...]
    features: Floats
    time_s: Floats

    def columns(self, names: Sequence[str]) -> Floats:
        """Those of that name, in that order; NaN where there is none."""
        at = {name: index for index, name in enumerate(self.names)}
        found = np.full((len(self.time_s), len(names)), np.nan)
        for index, name in enumerate(names):
            if name in at:
                found[:, index] = self.features[:, at[name]]
        return found

    def of(self, which: Any) -> Sample:
        """Some of the kernels."""
        return Sample(self.names, self.features[which], self.time_s[which])


@dataclass(frozen=True, slots=True)
class EnergyCostModel:
    """A model that `fit` made, for kernels of one problem on one board."""

    names: tuple[str, ...]  # of its features
    least_time_s: float
    least_energy_j: float
    exponent: float  # of tau; 0 where there is a prior
    level: float  # c
    points: int  # it learnt from
    regression: GaussianRegression | None = None  # c + g; None where there is c alone
    prior: EnergyCostModel | None = None

    def energy_j(self, sample: Sample) -> Floats:
        """The energy of a launch of each kernel, J, shape (kernels,). A prediction, never a measurement."""
        return self.least_energy_j * self.relative_energy(sample, self.least_time_s)

    def relative_energy(self, sample: Sample, least_time_s: float) -> Floats:
        """E / E_min of kernels of a problem whose fastest one takes `least_time_s`, shape (kernels,)."""
        log_energy = _start(self.exponent, self.prior, sample, least_time_s)
        if self.regression is None:
            log_energy = log_energy + self.level
        elif len(log_energy):
            log_energy = log_energy + self.regression.mean(_inputs(sample, self.names, least_time_s))
        return np.asarray(np.exp(np.clip(log_energy, -_FARTHEST, _FARTHEST)))

    # --- kept -------------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """As it is kept. Only of a model that was fitted without a prior."""
        assert self.prior is None, "g means nothing without the prior"
        return {
            "names": list(self.names),
            "least_time_s": self.least_time_s,
            "least_energy_j": self.least_energy_j,
            "exponent": self.exponent,
            "level": self.level,
            "points": self.points,
            "regression": None if self.regression is None else self.regression.to_json(),
        }

    @classmethod
    def from_json(cls, document: Any, where: str) -> EnergyCostModel:
        """The reverse of `to_json`. Raises InputError for a damaged one."""
        try:
            names = tuple(str(name) for name in document["names"])
            least_time_s, least_energy_j = float(document["least_time_s"]), float(document["least_energy_j"])
            exponent, level = float(document["exponent"]), float(document["level"])
            points, regression = int(document["points"]), document["regression"]
            if not (0 < least_time_s < math.inf and 0 < least_energy_j < math.inf):
                raise ValueError("a scale is not above 0")
            if not (0 <= exponent <= 1 and abs(level) < math.inf):
                raise ValueError("its exponent is not from 0 to 1, or its level not finite")
            learnt = None if regression is None else GaussianRegression.from_json(regression, len(names) + 1)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise InputError(f"a damaged energy model: {error}", where, "delete the file; it is learnt again") from None
        return cls(names, least_time_s, least_energy_j, exponent, level, points, learnt)


def fit(sample: Sample, energy_j: Floats, prior: EnergyCostModel | None = None) -> EnergyCostModel:
    """The model of kernels with measured energies, J, shape (kernels,), at least one, all above 0.

    `prior` is what g starts from instead of the power of tau.
    """
    least_energy, least_time = float(energy_j.min()), float(sample.time_s.min())
    few = len(energy_j) < LEAST_POINTS
    exponent = 0.0 if prior is not None else 1.0 if few else EXPONENT
    left = np.log(energy_j / least_energy) - _start(exponent, prior, sample, least_time)
    regression = None
    if not few:
        telling = _most_telling(energy_j)
        regression = regress(_inputs(sample.of(telling), sample.names, least_time), left[telling])
    level = float(np.log(np.exp(left).mean()))
    return EnergyCostModel(sample.names, least_time, least_energy, exponent, level, len(energy_j), regression, prior)


def helps(prior: EnergyCostModel, sample: Sample, energy_j: Floats) -> tuple[float, float]:
    """The held-out error of models of measured kernels with a prior and without it; it helps where the first is lower.

    Relative root mean square over a few folds, shape of `energy_j` (kernels,). NaN where there are too few to say.
    """
    return held_out_error(sample, energy_j, prior), held_out_error(sample, energy_j)


def held_out_error(sample: Sample, energy_j: Floats, prior: EnergyCostModel | None = None) -> float:
    """How far predictions of measured kernels are off that the model did not learn from: relative root mean square.

    Over a few folds; energies have shape (kernels,). NaN where there are too few to say.
    """
    if len(energy_j) < 2 * _FOLDS:
        return math.nan
    return math.sqrt(float((held_out_errors(sample, energy_j, np.arange(len(energy_j)), prior) ** 2).mean()))


def held_out_errors(
    sample: Sample, energy_j: Floats, order: npt.NDArray[np.int64], prior: EnergyCostModel | None = None
) -> Floats:
    """Predicted over measured energy minus 1 of every kernel, by a model that did not learn from it; shape (kernels,).

    Kernels of the same place in `order` modulo the number of folds are held out together.
    """
    errors, fold = np.empty(len(energy_j)), order % _FOLDS
    for one in range(_FOLDS):
        learnt, held = fold != one, fold == one
        model = fit(sample.of(learnt), energy_j[learnt], prior)
        errors[held] = model.energy_j(sample.of(held)) / energy_j[held] - 1.0
    return errors


def error_share(predicted_j: Floats, measured_j: Floats) -> float:
    """sum (predicted - measured)^2 / sum measured^2 of y = 1 / E: the inverse of a signal-to-noise ratio.

    [Zhang2024, algorithm 1] has it of E, where one kernel of much energy outweighs all those that matter; its model is
    of E_min / E.
    """
    return float(((1 / predicted_j - 1 / measured_j) ** 2).sum() / (1 / measured_j**2).sum())


# --- inside -----------------------------------------------------------------------------------------------------------


def _start(exponent: float, prior: EnergyCostModel | None, sample: Sample, least_time_s: float) -> Floats:
    """ln (E / E_min) but for c and g: by time, or by the prior; shape (kernels,)."""
    if prior is None:
        return exponent * np.log(sample.time_s / least_time_s)
    return np.log(prior.relative_energy(sample, least_time_s))


def _inputs(sample: Sample, names: Sequence[str], least_time_s: float) -> Floats:
    """The features, and ln tau; shape (kernels, names + 1)."""
    return np.column_stack([sample.columns(names), np.log(sample.time_s / least_time_s)])


def _most_telling(energy_j: Floats) -> npt.NDArray[np.intp]:
    """Where there are too many kernels, half of those kept are the ones of least energy, the others spread evenly."""
    order = np.argsort(energy_j, kind="stable")
    if len(order) <= _MOST_POINTS:
        return np.arange(len(order))
    half = _MOST_POINTS // 2
    spread = np.linspace(half, len(order) - 1, _MOST_POINTS - half).round().astype(np.intp)
    return np.asarray(order[np.concatenate([np.arange(half), spread])])
