"""A model of the energy of kernels that were timed: gradient-boosted trees over what is known without measuring it.

Kernels of one problem do the same work: of their energy a share does not depend on how long they take, the rest is
drawn for as long as they run. The trees learn what differs from that. Relative to the fastest kernel (tau = t / t_min)
and the one of least energy, with x the features of a kernel:

    y = E_min / E                              target, 0..1, with weight y: errors at low energies count more
    y_0(tau) = 1 / (c (s + (1 - s) tau))       s: the fastest one's share of its work; c: its energy over the least
    y(x, tau) = y_0(tau) + sum of the trees of (x, ln tau)

`s` is fitted with a prior (SHARE), since a few kernels of nearly one time hardly show it, and where all draw the same
power, as at a limit, it is 0; of many kernels one half says whether it predicts the other better with it or without.

[Zhang2024] gives target and weight, with squared error; [Zheng2020] the settings that were the start: depth 10, step
0.2. Held out, shallower trees with smaller steps over parts of rows and columns, and the start from y_0 instead of a
constant, have about half the error (`tests/benchmarks/energy_search.txt`); on kernels that an H200 measured, the share,
and a depth of 2 instead of 4, take off another quarter (`tests/benchmarks/operators.txt`).

Nothing in it has a unit but what it is scaled by, so that a model of another shape or board can stand in for c tau: a
prior. Whether it helps is tested on what has been measured; if it does not, it is dropped.
"""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ...own_installation import how_to_add
from .arrays import Floats

LEAST_POINTS: Final = 6  # of which trees are grown; of fewer, mean power x time is all there is
_TREES: Final = 200
_FEW_TREES: Final = 60  # where two models are only compared
_SETTINGS: Final = {
    "max_depth": 2,
    "eta": 0.1,
    "min_child_weight": 0.001,
    "subsample": 0.8,
    "colsample_bynode": 0.8,
    "seed": 1,
    "nthread": 1,  # the other cores compile
}
SHARE: Final = (0.4, 0.3)  # of the energy that does not depend on the time: mean and deviation before any is known,
_SHARES: Final = np.linspace(0.0, 0.95, 39)  # tried,
_KEPT: Final = 0.75  # of what was fitted: less is wrong where a limit holds the power of some kernels,
_SCATTER: Final = 0.12  # about it, relative: what the trees are there for
_ENOUGH: Final = 48  # kernels, of which halves say whether the fitted share or none predicts better
_LEAST_Y: Final = 1e-3  # E is at most this many times E_min the other way round
_FOLDS: Final = 4  # of the test of a prior
MISSING_LIBRARY: Final = (
    f"XGBoost is not installed, so energies are predicted as mean power x time: {how_to_add('model')}"
)


@cache
def library() -> Any:
    """The module `xgboost`, or None where it is missing. Loaded when first needed: that takes half a second."""
    try:
        return importlib.import_module("xgboost")
    except (ImportError, OSError):  # its library may lack another
        return None


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
    level: float  # c; where there is a prior, the factor on what it predicts
    share: float  # s; 0 where there is a prior
    points: int  # it learnt from
    trees: Any = None  # xgboost.Booster
    prior: EnergyCostModel | None = None

    def energy_j(self, sample: Sample) -> Floats:
        """The energy of a launch of each kernel, J, shape (kernels,). A prediction, never a measurement."""
        return self.least_energy_j * self.relative_energy(sample, self.least_time_s)

    def relative_energy(self, sample: Sample, least_time_s: float) -> Floats:
        """E / E_min of kernels of a problem whose fastest one takes `least_time_s`, shape (kernels,)."""
        start = _start(self.level, self.share, self.prior, sample, least_time_s)
        if self.trees is None or not len(start):
            return 1.0 / start
        inputs = library().DMatrix(
            _inputs(sample, self.names, least_time_s), base_margin=start, missing=math.nan, nthread=1
        )
        predicted: Floats = self.trees.predict(inputs).astype(np.float64)
        return 1.0 / np.maximum(predicted, _LEAST_Y)

    # --- kept -------------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """As it is kept: the trees in the library's own JSON. Only of a model that was fitted without a prior."""
        assert self.prior is None, "its trees mean nothing without the prior"
        trees = None if self.trees is None else json.loads(self.trees.save_raw("json"))
        return {
            "names": list(self.names),
            "least_time_s": self.least_time_s,
            "least_energy_j": self.least_energy_j,
            "level": self.level,
            "share": self.share,
            "points": self.points,
            "trees": trees,
        }

    @classmethod
    def from_json(cls, document: Any, where: str) -> EnergyCostModel:
        """The reverse of `to_json`. Raises InputError for a damaged one, or where the library is missing."""
        try:
            names = tuple(str(name) for name in document["names"])
            numbers = {key: float(document[key]) for key in ("least_time_s", "least_energy_j", "level")}
            points, share = int(document["points"]), float(document["share"])
            if not all(math.isfinite(number) and number > 0 for number in numbers.values()):
                raise ValueError("a scale is not above 0")
            if not 0 <= share < 1:
                raise ValueError("a share is not from 0 to 1")
            trees = None if document["trees"] is None else _loaded(document["trees"], len(names) + 1)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise InputError(f"a damaged energy model: {error}", where, "delete the file; it is learnt again") from None
        return cls(names, numbers["least_time_s"], numbers["least_energy_j"], numbers["level"], share, points, trees)


def fit(sample: Sample, energy_j: Floats, prior: EnergyCostModel | None = None) -> EnergyCostModel:
    """The model of kernels with measured energies, J, shape (kernels,), at least one, all above 0.

    `prior` is what the trees start from instead of mean power x time.
    """
    shares = [0.0]
    if prior is None and len(energy_j) >= LEAST_POINTS:
        shares = [_fitted_share(sample.time_s / sample.time_s.min(), energy_j.min() / energy_j), 0.0]
    if len(energy_j) < _ENOUGH or len(set(shares)) == 1:
        return _grown(sample, energy_j, prior, shares[0])
    return _grown(sample, energy_j, prior, min(shares, key=lambda share: _off_by_halves(sample, energy_j, share)))


def _grown(
    sample: Sample, energy_j: Floats, prior: EnergyCostModel | None, share: float, most_trees: int = _TREES
) -> EnergyCostModel:
    """The model with that share."""
    least_energy, least_time = float(energy_j.min()), float(sample.time_s.min())
    y = least_energy / energy_j
    start = _start(1.0, share, prior, sample, least_time)
    level = float(np.average(start / y, weights=y))  # E / E_min over what is expected, at low energies above all
    trees = None
    if len(y) >= LEAST_POINTS and library() is not None:
        inputs = library().DMatrix(
            _inputs(sample, sample.names, least_time),
            label=y,
            weight=y,
            base_margin=_start(level, share, prior, sample, least_time),
            missing=math.nan,
            nthread=1,
        )
        trees = library().train(_SETTINGS, inputs, most_trees)
    return EnergyCostModel(sample.names, least_time, least_energy, level, share, len(y), trees, prior)


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
    """sum (predicted - measured)^2 / sum measured^2: the inverse of a signal-to-noise ratio [Wang2024, algorithm 1]."""
    return float(((predicted_j - measured_j) ** 2).sum() / (measured_j**2).sum())


# --- inside -----------------------------------------------------------------------------------------------------------


def _off_by_halves(sample: Sample, energy_j: Floats, share: float) -> float:
    """How far off the median prediction of one half is by the other, relative."""
    odd, off = np.arange(len(energy_j)) % 2 == 1, []
    for learnt in (odd, ~odd):
        predicted = _grown(sample.of(learnt), energy_j[learnt], None, share, _FEW_TREES).energy_j(sample.of(~learnt))
        off.append(np.abs(predicted / energy_j[~learnt] - 1.0))
    return float(np.median(np.concatenate(off)))


def _fitted_share(tau: Floats, y: Floats) -> float:
    """The share s that explains y best, by least squares of E / E_min relative to what is expected, over SHARE."""

    def cost(share: float) -> float:
        expected = (share + (1.0 - share) * tau) * y  # over the measured one, but for the level
        level = (y * expected).sum() / (y * expected**2).sum()
        off = (y * (level * expected - 1.0) ** 2).sum() / _SCATTER**2
        return float(off + ((share - SHARE[0]) / SHARE[1]) ** 2)

    return _KEPT * float(min(_SHARES, key=cost))


def _start(level: float, share: float, prior: EnergyCostModel | None, sample: Sample, least_time_s: float) -> Floats:
    """y before the trees: by work and time, or by the prior; shape (kernels,)."""
    if prior is None:
        relative = share + (1.0 - share) * sample.time_s / least_time_s
    else:
        relative = prior.relative_energy(sample, least_time_s)
    return np.asarray(np.clip(1.0 / (level * relative), _LEAST_Y, 1.0 / _LEAST_Y))


def _inputs(sample: Sample, names: Sequence[str], least_time_s: float) -> Floats:
    return np.column_stack([sample.columns(names), np.log(sample.time_s / least_time_s)])


def _loaded(document: Any, columns: int) -> Any:
    """The trees of a document. Raises ValueError."""
    if library() is None:
        raise ValueError(MISSING_LIBRARY)
    trees = library().Booster({"nthread": 1})
    try:
        trees.load_model(bytearray(json.dumps(document).encode()))
    except library().core.XGBoostError as error:
        raise ValueError(str(error).splitlines()[0][:200]) from None
    if trees.num_features() != columns:
        raise ValueError(f"trees of {trees.num_features()} columns for {columns}")
    return trees
