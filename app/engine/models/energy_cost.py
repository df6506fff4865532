"""A model of the energy of kernels that were timed, from what is known without measuring it.

Kernels of one problem do the same work: of their energy a part does not depend on how long they take, the rest is drawn
for as long as they run. With the fastest kernel's time t_min, the least energy E_min, tau = t / t_min, and x the
features of a kernel (its parameters, its machine code, its launch):

    ln (E / E_min) = EXPONENT ln tau + c + g(x, ln tau)

c is a constant and g a Gaussian process (`GaussianRegression`). Of a few kernels there is no g, and E = mean power x
time. Energies enter by their logarithm: a relative error counts the same in all.

[Zhang2024] has gradient-boosted trees of 1 / E in place of g, with the settings of [Zheng2020]. Of kernels that boards
of three models measured, held out, g has in the mean two thirds of the error of the best trees that were found
(`tests/benchmarks/energy_models.txt`).

Nothing in it has a unit but what it is scaled by, so that a model of another shape or board can stand in for
EXPONENT ln tau: a prior. Whether it helps is tested on what has been measured; if it does not, it is dropped.

The regression is one over many columns of numbers [Rasmussen2006, chapters 2, 4 and 5]: a value is a constant plus a
Gaussian process, with noise. Of two rows x and x', each column standardised,

    covariance = s^2 exp(-1/2 sum_j ((x_j - x'_j) / l_j)^2)

s, the noise and a length l_j for each column are the most probable ones (marginal likelihood times priors). Rows are
few and columns may be more than a hundred: the lengths are expected to grow with the root of the number of columns, so
that rows stay alike however many columns there are [Hvarfner2024]. Then no column needs to be chosen beforehand.
Columns count by their inverse hyperbolic sine: as they are where small, by their logarithm where large.

Models are kept for each board's name and kernel. A kernel is identified by the names of its parameters: shapes and
boards of one template share them. A model is a prior for the next shape or board, and never more than that: the search
tests it before it uses it.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_solve
from scipy.optimize import minimize

from ...base.board_files import BoardFiles
from ...base.errors import InputError, WattridgeError
from .arrays import Floats, Mask

# Of the logarithms: mean and standard deviation of a normal prior, lower and upper bound. That of a length is for one
# column, of deviation 1; values are logarithms, or of the order of 1.
_LENGTH: Final = (math.log(3.0), 0.8, math.log(0.1), math.log(1e3))
_SPREAD: Final = (math.log(0.3), 0.7, math.log(0.01), math.log(3.0))
_NOISE: Final = (math.log(0.03), 0.5, math.log(1e-3), math.log(0.5))
_ITERATIONS: Final = 30
_JITTER: Final = 1e-6
_FILES: Final = BoardFiles("energy-models", (3,), most_bytes=16 << 20)


@dataclass(frozen=True, slots=True)
class GaussianRegression:
    """What `regress` learnt."""

    varying: Mask  # (columns,): the others say nothing
    centre: Floats  # (varying,)
    scale: Floats  # (varying,): deviation times length
    constant: float
    spread: float
    points: Floats  # (rows, varying), centred and scaled
    weights: Floats  # (rows,)

    def mean(self, inputs: Floats) -> Floats:
        """Compute the expected value of each row.

        Parameters
        ----------
        inputs : array, shape (rows, columns)
            Columns as of the rows that were learnt from; NaN stands for an unknown number, which counts as the column's
            mean.

        Returns
        -------
        array, shape (rows,)
            In the unit of the values that were learnt from.
        """
        near = np.exp(-0.5 * _squares(self._scaled(inputs), self.points))
        return np.asarray(self.constant + self.spread**2 * (near @ self.weights))

    def to_json(self) -> dict[str, Any]:
        """Make the document in which the regression is kept.

        Returns
        -------
        dict
            Numbers and lists, as `from_json` reads them.
        """
        return {
            "varying": np.flatnonzero(self.varying).tolist(),
            "centre": self.centre.tolist(),
            "scale": self.scale.tolist(),
            "constant": self.constant,
            "spread": self.spread,
            "points": self.points.tolist(),
            "weights": self.weights.tolist(),
        }

    @classmethod
    def from_json(cls, document: Any, columns: int) -> GaussianRegression:
        """Read a document, the reverse of `to_json`.

        Parameters
        ----------
        document : object
            What `to_json` made, as JSON reads it.
        columns : int
            How many columns the inputs have.

        Returns
        -------
        GaussianRegression
            The regression.

        Raises
        ------
        KeyError
            If a field is missing.
        TypeError
            If a field is of another kind.
        ValueError
            If the document is of another number of columns, or its numbers are not finite or not of one size.
        OverflowError
            If a number is too large.
        """
        varying = np.zeros(columns, dtype=np.bool_)
        indices = [int(value) for value in document["varying"]]
        if indices != sorted({item for item in indices if 0 <= item < columns}):
            raise ValueError(f"it is not of {columns} columns")
        varying[indices] = True
        centre, scale, weights = (_numbers(document[name], 1) for name in ("centre", "scale", "weights"))
        points = _numbers(document["points"], 2)
        if len(centre) != len(indices) or len(scale) != len(indices) or points.shape != (len(weights), len(indices)):
            raise ValueError("its numbers are not of one size")
        if not (scale > 0).all():
            raise ValueError("a scale is not above 0")
        constant, spread = _numbers([document["constant"], document["spread"]], 1)
        return cls(varying, centre, scale, float(constant), float(spread), points, weights)

    def _scaled(self, inputs: Floats) -> Floats:
        return _known((np.arcsinh(inputs[:, self.varying]) - self.centre) / self.scale)


def regress(inputs: Floats, values: Floats) -> GaussianRegression:
    """Fit a Gaussian process to the values of rows of numbers.

    Parameters
    ----------
    inputs : array, shape (rows, columns)
        NaN, an unknown number, counts as that column's mean.
    values : array, shape (rows,)
        At least one.

    Returns
    -------
    GaussianRegression
        The fitted process.
    """
    seen = np.isfinite(inputs)
    counts = np.maximum(seen.sum(axis=0), 1)
    shown = np.where(seen, np.arcsinh(inputs), 0.0)
    centre = shown.sum(axis=0) / counts
    deviation = np.sqrt((np.where(seen, shown - centre, 0.0) ** 2).sum(axis=0) / counts)
    varying = deviation > 1e-9
    centre, deviation = centre[varying], deviation[varying]
    standard = _known((np.arcsinh(inputs[:, varying]) - centre) / deviation)
    constant = float(values.mean())
    scales = _most_probable(standard, values - constant)
    points = standard / scales.lengths
    covariance = scales.covariance(points)
    return GaussianRegression(
        varying,
        centre,
        deviation * scales.lengths,
        constant,
        scales.spread,
        points,
        np.asarray(np.linalg.solve(covariance, values - constant), dtype=np.float64),
    )


class _Scales(NamedTuple):
    lengths: Floats
    spread: float
    noise: float

    @classmethod
    def of(cls, logs: Floats) -> _Scales:
        return cls(np.exp(logs[:-2]), math.exp(logs[-2]), math.exp(logs[-1]))

    def covariance(self, points: Floats) -> Floats:
        """Of rows whose columns were divided by the lengths, with the noise."""
        covariance = self.spread**2 * np.exp(-0.5 * _squares(points, points))
        covariance[np.diag_indices(len(points))] += self.noise**2 + _JITTER
        return covariance


def _most_probable(standard: Floats, values: Floats) -> _Scales:
    """Lengths, spread and noise at which likelihood times priors are greatest."""
    rows, columns = standard.shape
    grown = math.log(max(columns, 1)) / 2
    mean, deviation, low, high = np.array([_LENGTH] * columns + [_SPREAD, _NOISE]).T
    mean[:columns] += grown

    def cost(logs: Floats) -> tuple[float, Floats]:
        """The negative logarithm of that, and its slope (eqs. 5.8 and 5.9)."""
        scales = _Scales.of(logs)
        points = standard / scales.lengths
        covariance = scales.covariance(points)
        off = (logs - mean) / deviation
        factor = np.linalg.cholesky(covariance)
        inverse = cho_solve((factor, True), np.eye(rows), check_finite=False)
        weights = inverse @ values
        pull = 0.5 * (inverse - np.outer(weights, weights))
        noise = scales.noise**2
        alike = pull * covariance
        alike[np.diag_indices(rows)] -= np.diag(pull) * (noise + _JITTER)
        lengths = 2 * (alike.sum(axis=1) @ points**2 - (points * (alike @ points)).sum(axis=0))
        slope = np.array([*lengths, 2 * alike.sum(), 2 * noise * np.trace(pull)])
        value = 0.5 * values @ weights + np.log(np.diag(factor)).sum() + 0.5 * off @ off
        return float(value), slope + off / deviation

    bounds = list(zip(low, high, strict=True))
    solution = minimize(cost, mean, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": _ITERATIONS})
    return _Scales.of(np.asarray(solution.x, dtype=np.float64))


def _squares(some: Floats, others: Floats) -> Floats:
    """Squared distances, shape (some, others)."""
    apart = (some**2).sum(axis=1)[:, None] + (others**2).sum(axis=1) - 2 * some @ others.T
    return np.asarray(np.maximum(apart, 0.0))


def _numbers(document: Any, dimensions: int) -> Floats:
    """Raises ValueError or TypeError where they are not numbers of that many dimensions."""
    numbers = np.array(document, dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError("a number is not finite")
    if numbers.ndim != dimensions:
        raise ValueError(f"{numbers.ndim} dimensions for {dimensions}")
    return numbers


def _known(standard: Floats) -> Floats:
    return np.where(np.isfinite(standard), standard, 0.0)


LEAST_POINTS: Final = 6  # that g is learnt from
EXPONENT: Final = 0.6
_MOST_POINTS: Final = 300  # that g is learnt from: its time grows with their cube
_FARTHEST: Final = 7.0  # of ln (E / E_min): a thousandth or thousandfold
_FOLDS: Final = 4  # of the test of a prior


@dataclass(frozen=True, slots=True)
class Sample:
    """Kernels that were measured, or are to be predicted. `features` has shape (kernels, names); NaN if unknown."""

    names: tuple[str, ...]
    features: Floats
    time_s: Floats

    def columns(self, names: Sequence[str]) -> Floats:
        """Select features by name, in the order of the names.

        Parameters
        ----------
        names : sequence of str
            The names; they need not be those of the sample.

        Returns
        -------
        array, shape (kernels, names)
            NaN if there is no feature of that name, or its value is unknown.
        """
        positions = {name: index for index, name in enumerate(self.names)}
        result = np.full((len(self.time_s), len(names)), np.nan)
        for index, name in enumerate(names):
            if name in positions:
                result[:, index] = self.features[:, positions[name]]
        return result

    def of(self, which: Any) -> Sample:
        """Select some of the kernels.

        Parameters
        ----------
        which : array or slice
            Positions of the kernels, or a mask of shape (kernels,).

        Returns
        -------
        Sample
            Those kernels.
        """
        return Sample(self.names, self.features[which], self.time_s[which])


@dataclass(frozen=True, slots=True)
class EnergyCostModel:
    """A model that `fit` made, for kernels of one problem on one board."""

    names: tuple[str, ...]  # of its features
    least_time_s: float
    least_energy_j: float
    exponent: float  # of tau; 0 if there is a prior
    level: float  # c
    points: int  # it learnt from
    regression: GaussianRegression | None = None  # c + g; None if there is c alone
    prior: EnergyCostModel | None = None

    def energy_j(self, sample: Sample) -> Floats:
        """Predict the energy of a launch of each kernel. It is a prediction, never a measurement.

        Parameters
        ----------
        sample : Sample
            Kernels of the problem that the model was fitted to, with their times in s.

        Returns
        -------
        array, shape (kernels,)
            Energy in J.
        """
        return self.least_energy_j * self.relative_energy(sample, self.least_time_s)

    def relative_energy(self, sample: Sample, least_time_s: float) -> Floats:
        """Predict E / E_min of kernels of any problem.

        Parameters
        ----------
        sample : Sample
            The kernels, with their times in s.
        least_time_s : float
            Time of the problem's fastest kernel in s.

        Returns
        -------
        array, shape (kernels,)
            Without a unit, from about a thousandth to a thousand.
        """
        log_energy = _start(self.exponent, self.prior, sample, least_time_s)
        if self.regression is None:
            log_energy = log_energy + self.level
        elif len(log_energy):
            log_energy = log_energy + self.regression.mean(_inputs(sample, self.names, least_time_s))
        return np.asarray(np.exp(np.clip(log_energy, -_FARTHEST, _FARTHEST)))

    # --- kept -------------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Make the document in which the model is kept. Only of one that was fitted without a prior.

        Returns
        -------
        dict
            Numbers, names and lists, as `from_json` reads them.
        """
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
        """Read a document, the reverse of `to_json`.

        Parameters
        ----------
        document : object
            What `to_json` made, as JSON reads it.
        where : str
            The file or folder that it is from, for the error.

        Returns
        -------
        EnergyCostModel
            The model, without a prior.

        Raises
        ------
        InputError
            For a damaged document.
        """
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
    """Fit the model of kernels with measured energies.

    Parameters
    ----------
    sample : Sample
        The kernels, with their features and times in s.
    energy_j : array, shape (kernels,)
        Energy of a launch of each in J, at least one, all above 0.
    prior : EnergyCostModel or None, optional
        What g starts from instead of the power of tau.

    Returns
    -------
    EnergyCostModel
        Without g below LEAST_POINTS kernels.
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
    """Test a prior on measured kernels; it helps where the first error is lower.

    Parameters
    ----------
    prior : EnergyCostModel
        The model that g would start from.
    sample : Sample
        The kernels, with their features and times in s.
    energy_j : array, shape (kernels,)
        Energy of a launch of each in J.

    Returns
    -------
    tuple of float
        Held-out errors with and without the prior, relative root mean square; NaN if there are too few kernels.
    """
    return held_out_error(sample, energy_j, prior), held_out_error(sample, energy_j)


def held_out_error(sample: Sample, energy_j: Floats, prior: EnergyCostModel | None = None) -> float:
    """Compute the error of predictions of kernels that the model was not fitted to.

    Parameters
    ----------
    sample : Sample
        The kernels, with their features and times in s.
    energy_j : array, shape (kernels,)
        Energy of a launch of each in J.
    prior : EnergyCostModel or None, optional
        What g starts from; None for the power of tau.

    Returns
    -------
    float
        Relative root mean square over a few folds; NaN if there are too few kernels.
    """
    if len(energy_j) < 2 * _FOLDS:
        return math.nan
    return math.sqrt(float((held_out_errors(sample, energy_j, np.arange(len(energy_j)), prior) ** 2).mean()))


def held_out_errors(
    sample: Sample, energy_j: Floats, order: npt.NDArray[np.int64], prior: EnergyCostModel | None = None
) -> Floats:
    """Compute the relative error of each kernel, predicted by a model that was not fitted to it.

    Parameters
    ----------
    sample : Sample
        The kernels, with their features and times in s.
    energy_j : array, shape (kernels,)
        Energy of a launch of each in J.
    order : array of int, shape (kernels,)
        A permutation; the same place modulo the number of folds is held out together.
    prior : EnergyCostModel or None, optional
        What g starts from; None for the power of tau.

    Returns
    -------
    array, shape (kernels,)
        Predicted over measured energy minus 1.
    """
    errors, fold = np.empty(len(energy_j)), order % _FOLDS
    for one in range(_FOLDS):
        learnt, held = fold != one, fold == one
        model = fit(sample.of(learnt), energy_j[learnt], prior)
        errors[held] = model.energy_j(sample.of(held)) / energy_j[held] - 1.0
    return errors


def error_share(predicted_j: Floats, measured_j: Floats) -> float:
    """Compute sum (predicted - measured)^2 / sum measured^2 of y = 1 / E: the inverse of a signal-to-noise ratio.

    [Zhang2024, algorithm 1] has it of E, where one kernel of much energy outweighs all those that matter; its model is
    of E_min / E.

    Parameters
    ----------
    predicted_j, measured_j : array, shape (kernels,)
        Energies in J.

    Returns
    -------
    float
        0 for exact predictions.
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


def keep_model(board: str, parameters: Sequence[str], model: EnergyCostModel) -> None:
    """Keep what a session has learnt, in place of what was kept of that board and kernel.

    Nothing is kept on a disk that is full or read-only: the next session learns it again.

    Parameters
    ----------
    board : str
        Name of the board.
    parameters : sequence of str
        Names of the kernel's parameters, in any order: they identify the kernel.
    model : EnergyCostModel
        What was learnt, fitted without a prior.
    """
    document = {
        "board": board,
        "parameters": sorted(parameters),
        "learnt_s": time.time(),
        "model": model.to_json(),
    }
    with suppress(WattridgeError):  # a disk that is full or read-only: the next session learns it again
        _FILES.keep(_FILES.path(board, suffix=f"-{_digest(parameters)}"), document, indent=None)


def kept_model(board: str, parameters: Sequence[str]) -> EnergyCostModel | None:
    """Return what is kept of a board and kernel, else the newest of the kernel on another board.

    Parameters
    ----------
    board : str
        Name of the board.
    parameters : sequence of str
        Names of the kernel's parameters, in any order.

    Returns
    -------
    EnergyCostModel or None
        None if nothing is kept that can be read.
    """

    def parse(document: Any) -> tuple[float, EnergyCostModel] | None:
        if document["parameters"] != sorted(parameters):
            return None
        return float(document["learnt_s"]), EnergyCostModel.from_json(document["model"], _FILES.folder)

    ending = f"-{_digest(parameters)}"
    kept = _FILES.read(_FILES.path(board, suffix=ending), parse)
    alike = [kept] if kept is not None else _FILES.all(parse, f"*{ending}.json")
    newest = max(alike, key=lambda other: other[0], default=None)
    return None if newest is None else newest[1]


def _digest(parameters: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(sorted(parameters)).encode()).hexdigest()[:12]
