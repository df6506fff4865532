"""The thermal model of a board: the same kernel draws more on a warm board, and by how much is learnt.

A die that is warmer leaks more, and so do the memory and the regulators, which warm more slowly. The board reports two
temperatures and its power so far, so that the power of a kernel is

    log P = a + b . x,   x = (T_gpu - 50 degC, T_memory - 50 degC, (P_fast - P) / P, (P_slow - P) / P)

with `a` the kernel's own, `b` the board's, and P_fast and P_slow averages of the power over what came before, weighted
exponentially with time constants of 1 and 30 s. `b` is found by Bayesian linear regression [Gelman2013, section 14.8]
from kernels that were measured more than once. Boards differ: two of four H200 followed their temperature, the others
wandered by as much and did not. So the prior is a mixture of normal ones of several widths around zero, weighted by the
evidence for each: where windows show little, little is corrected. The mixture is kept as the normal distribution of the
same mean and covariance. The uncertainty of `b` widens the interval of a power that is stated for another condition
than that of its measurement.

The model is kept with the board. Boards of a kind differ: the model of another board of the same name is a weak prior.
A board's own model counts for less as it ages.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...base.board_files import BoardFiles
from ...base.errors import WattridgeError
from ...sensors.gpu import GpuInfo
from .characterisation.store import stored_characterisation
from .condition import Condition, SeenConditions
from .confidence import NORMAL_95, student_t
from .window import Window

Floats = npt.NDArray[np.float64]
MIDDLE_C: Final = 50.0
# Per degree of the GPU and of the memory, and per share of the power: nothing known, and how boards may differ.
PRIOR: Final = (0.0, 0.0, 0.0, 0.0)
PRIOR_SD: Final = (0.0015, 0.0008, 0.01, 0.01)
WIDTHS: Final = (0.1, 0.5, 1.0, 2.0)  # of the mixture, over these; equally likely before anything is learnt
OVERALL: Final = math.sqrt(sum(width**2 for width in WIDTHS) / len(WIDTHS))  # of the mixture
INDEPENDENT: Final = 0.4  # of the windows, as it were: those that follow each other wander together
TAKEN_OUT_SD: Final = 0.005  # of the share of the last second, where the meter has taken its aftereffect out
WANDER: Final = 0.006  # of the mean of a short window, the noise of its samples included, 1 sigma: the middle H200's
WANDER_DEGREES: Final = 4.0  # of freedom, with which that counts: five boards wander by 0.4 to 1.9 %
BETWEEN: Final = 0.006  # 1 sigma, relative, that another process adds, at least: 0.70 and 0.62 % on two H200 against
# 0.16 % within one process, whose buffers lie where they lay (tests/benchmarks/reference.txt)
# Per degree of the step, 1 sigma: leakage is no straight line, it doubles every 40 degC or so, and sessions that all
# stay cool (none runs its board warm before it measures) learn its slope there, ever more surely.
ELSEWHERE: Final = 0.0004
MOST_SHARE: Final = 2.0  # nothing that light was looked at
# Windows of one kernel that lie further apart than boards wander and warm up by show something else that happened: a
# library that chose another algorithm, a launch that waited for the host. They teach nothing of the board.
MOST_APART: Final = 0.12  # of log P from the kernel's median
MOST_LONGER: Final = 0.04  # of the time per launch from the kernel's median; 0.2 % is usual at one clock
HALVED_AFTER_S: Final = 30 * 86400.0  # age at which half of what was learnt counts
NEXT_SESSION: Final = 0.7  # of it counts in the next session: boards change, and models are only models
OTHER_BOARD: Final = 0.1
# Five boards wander by 0.4 to 1.9 %. More was learnt from windows that something else disturbed, by a version that did
# not leave them out, and would widen every interval of the sessions that begin with it.
MOST_WANDER: Final = 0.06
_WIDEST: Final = 1e12
_FILES: Final = BoardFiles("boards", (1,))
_ROUNDS: Final = 8  # of wander and coefficients in turn
_STEPS: Final = 6  # towards the power at a condition


@dataclass(frozen=True, slots=True)
class Look:
    """The power of a kernel, identified by its name, in one window."""

    kernel: str
    power_w: float
    sampled_sd: float  # of the mean by the noise of its samples, relative
    condition: Condition
    time_s: float = math.nan  # of a launch; if not known, windows are compared by their power alone


@dataclass(frozen=True, slots=True)
class ThermalModel:
    """How the power of one board follows its condition. `learn` returns the model after more windows."""

    coefficients: tuple[float, ...] = PRIOR
    precision: tuple[tuple[float, ...], ...] = tuple(
        tuple(1.0 / (OVERALL * sd) ** 2 if row == column else 0.0 for column in range(len(PRIOR_SD)))
        for row, sd in enumerate(PRIOR_SD)
    )  # the inverse of the coefficients' covariance
    wander: float = WANDER  # 1 sigma, relative
    wander_degrees: float = WANDER_DEGREES

    def learn(self, looks: Iterable[Look]) -> ThermalModel:
        """Return the model after more windows.

        Parameters
        ----------
        looks : iterable of Look
            The windows, in any order; those of kernels seen once show nothing.

        Returns
        -------
        ThermalModel
            The model; this one itself if the windows show nothing.
        """
        rows, own_sd = _within_kernels(looks)
        if not len(rows):
            return self
        groups, x, y = rows[:, 0], rows[:, 2:], rows[:, 1]
        free = len(y) - len(np.unique(groups))
        model = self
        for _ in range(_ROUNDS):
            variance = model.wander**2
            weights = 1.0 / np.maximum(own_sd**2, variance)
            xc, yc = _centred(x, groups, weights), _centred(y[:, None], groups, weights)[:, 0]
            coefficients, covariance = self._mixed(xc, yc, INDEPENDENT * weights)
            seen = variance * float((weights * (yc - xc @ coefficients) ** 2).sum())
            degrees = self.wander_degrees + free
            wander = math.sqrt((self.wander_degrees * self.wander**2 + seen) / degrees)
            precision = np.asarray(np.linalg.inv(covariance), dtype=np.float64)
            model = ThermalModel(tuple(coefficients.tolist()), _rows(precision), wander, degrees)
        return model

    def _mixed(self, x: Floats, y: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Return mean and covariance of the coefficients after these windows, over priors of all widths by evidence."""
        before = np.asarray(self.coefficients)
        information, off = (x * weights[:, None]).T @ x, (x * weights[:, None]).T @ (y - x @ before)
        means, covariances, evidence = [], [], []
        for width in WIDTHS:
            prior = np.asarray(self.precision) * (OVERALL / width) ** 2
            covariance = np.linalg.inv(prior + information)
            step = covariance @ off
            ratio = np.linalg.slogdet(prior)[1] + np.linalg.slogdet(covariance)[1]
            evidence.append((ratio + off @ step) / 2)
            means.append(step)
            covariances.append(covariance)
        shares = np.exp(np.asarray(evidence) - max(evidence))
        shares /= shares.sum()
        mean = np.einsum("w,wi->i", shares, means)
        apart = np.asarray(means) - mean
        covariance = np.einsum("w,wij->ij", shares, covariances) + np.einsum("w,wi,wj->ij", shares, apart, apart)
        return before + mean, covariance

    def weakened(self, share: float) -> ThermalModel:
        """Return a model with less of what was learnt: a prior for another time, or another board of its kind.

        Parameters
        ----------
        share : float
            How much of what was learnt counts, 0..1; 0 leaves what is known of any board.

        Returns
        -------
        ThermalModel
            The weaker model.
        """
        first = ANY_BOARD
        before, now = np.asarray(first.precision), np.asarray(self.precision)
        precision = before + share * (now - before)
        weighted = before @ first.coefficients + share * (now @ self.coefficients - before @ first.coefficients)
        degrees = WANDER_DEGREES + share * (self.wander_degrees - WANDER_DEGREES)
        wander = math.sqrt(WANDER**2 + share * (self.wander**2 - WANDER**2))
        return ThermalModel(tuple(np.linalg.solve(precision, weighted).tolist()), _rows(precision), wander, degrees)

    def without_aftereffect(self) -> ThermalModel:
        """Return the model for powers from which the meter has taken out the excess that the second before left."""
        precision, coefficients = np.array(self.precision), np.asarray(self.coefficients)
        weighted = precision @ coefficients
        precision[2, 2] += 1.0 / TAKEN_OUT_SD**2
        solved = tuple(np.linalg.solve(precision, weighted).tolist())
        return ThermalModel(solved, _rows(precision), self.wander, self.wander_degrees)

    def stated(self, power_w: float, measured: Condition, condition: Condition) -> tuple[float, float]:
        """Return the power at another condition.

        Quantities that are known of one of the two conditions alone are left out of account.

        Parameters
        ----------
        power_w : float
            The power as measured, W.
        measured : Condition
            The condition of the measurement.
        condition : Condition
            The condition to state the power for.

        Returns
        -------
        power_w : float
            The power at `condition`, W.
        step_sd : float
            The relative standard deviation of the step there.
        """
        x, coefficients = _seen(measured, power_w), np.asarray(self.coefficients)
        stated_w, step = power_w, np.zeros_like(x)
        for _ in range(_STEPS):
            step = np.nan_to_num(_seen(condition, stated_w) - x, nan=0.0)
            stated_w = power_w * math.exp(float(coefficients @ step))
        sd = math.sqrt(max(0.0, float(step @ np.linalg.solve(np.asarray(self.precision), step))))
        return stated_w, math.hypot(sd, ELSEWHERE * float(step[0]))

    @property
    def repeatability(self) -> float:
        """How much short windows of one kernel in one session differ; 95 %, relative."""
        return student_t(round(self.wander_degrees)) * self.wander

    def uncertainty(self, step_sd: float, sampled: float = 0.0) -> float:
        """Return the error of a stated power as another process would see it, beyond the window's own interval.

        It is composed of the board's wander, as far as the samples of the window do not show it already, the step to
        the condition, and the difference of another process, whose buffers lie elsewhere: as much as windows differ by
        on a board that wanders (three H200).

        Parameters
        ----------
        step_sd : float
            The relative standard deviation of the step to the condition.
        sampled : float, optional
            The half-width of the window's own interval; 95 %, relative.

        Returns
        -------
        float
            The half-width, to be added in squares to the window's own; 95 %, relative.
        """
        within = math.sqrt(max(0.0, self.repeatability**2 - sampled**2))
        return math.hypot(
            within, student_t(round(self.wander_degrees)) * math.hypot(step_sd, max(BETWEEN, self.wander))
        )

    def uncertainty_of_ratio(self, step_sd: float, sampled: Sequence[float]) -> float:
        """Return the error of the ratio of two powers of one session, of which the session's own error is no part.

        Parameters
        ----------
        step_sd : float
            The relative standard deviation of the step from the condition of one to that of the other.
        sampled : sequence of float
            The half-width of the own interval of each window; 95 %, relative.

        Returns
        -------
        float
            The half-width; 95 %, relative.
        """
        windows = (max(own, self.repeatability) for own in sampled)
        return math.hypot(*windows, student_t(round(self.wander_degrees)) * step_sd)


ANY_BOARD: Final = ThermalModel()  # before anything is learnt


def _seen(condition: Condition, power_w: float) -> Floats:
    """`x` of a kernel with that power; shape (4,), NaN if not known."""
    shares = [0.0 if math.isnan(w) else w / power_w - 1.0 for w in (condition.fast_w, condition.slow_w)]
    temperatures = (condition.gpu_c - MIDDLE_C, condition.memory_c - MIDDLE_C)
    return np.array([*temperatures, *(min(MOST_SHARE, share) for share in shares)])


def _within_kernels(looks: Iterable[Look]) -> tuple[Floats, Floats]:
    """Rows of (kernel's number, log power, x) of kernels seen more than once, and their samples' deviations."""
    seen: dict[str, list[Look]] = {}
    for look in looks:
        seen.setdefault(look.kernel, []).append(look)
    rows, own_sd = [], []
    alike = map(_alike, seen.values())
    for number, group in enumerate(group for group in alike if len(group) > 1):
        for look in group:
            x = np.nan_to_num(_seen(look.condition, look.power_w), nan=0.0)
            rows.append([number, math.log(look.power_w), *x])
            own_sd.append(look.sampled_sd)
    return np.asarray(rows, dtype=np.float64), np.asarray(own_sd, dtype=np.float64)


def _alike(looks: Sequence[Look]) -> Sequence[Look]:
    """The looks at one kernel in which the same ran, by their power and the time of a launch."""
    if len(looks) < 2:
        return looks
    power_w, time_s = median(look.power_w for look in looks), median(look.time_s for look in looks)
    return [
        look
        for look in looks
        if abs(math.log(look.power_w / power_w)) <= MOST_APART
        and not abs(look.time_s / time_s - 1.0) > MOST_LONGER  # NaN: not compared
    ]


def _centred(values: Floats, groups: Floats, weights: Floats) -> Floats:
    """Without the weighted mean of each group."""
    numbers = groups.astype(np.int64)
    total = np.bincount(numbers, weights)
    means = np.stack([np.bincount(numbers, weights * column) / total for column in values.T], axis=1)
    centred: Floats = values - means[numbers]
    return centred


def _rows(matrix: Floats) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, matrix.tolist()))


@dataclass(frozen=True, slots=True)
class BoardHeat:
    """How a board's power follows its temperature, as far as is known before a session."""

    model: ThermalModel = ANY_BOARD
    condition: Condition | None = None  # that its figures are stated for, fixed by its first session


def known_heat(info: GpuInfo, now_s: float | None = None) -> BoardHeat:
    """Return what is kept of a board, else of the newest of its name, weakened by age; else the default.

    Parameters
    ----------
    info : GpuInfo
        The board.
    now_s : float or None, optional
        The time to reckon its age from, s since the epoch; None for now.

    Returns
    -------
    BoardHeat
        The model, and the condition if it is the board's own; None as the condition otherwise.

    Raises
    ------
    InputError
        Where there can be no data folder, as `data_folder` raises it.
    """
    now_s = time.time() if now_s is None else now_s
    kept = _FILES.read(_FILES.path(info.uuid), _heat_of)
    if kept is not None:
        heat, document = kept
        return BoardHeat(heat.model.weakened(NEXT_SESSION * _left(document, now_s)), heat.condition)
    alike = [other for other in _FILES.all(_heat_of) if other[1].get("name") == info.name]
    if not alike:
        return BoardHeat()
    heat, document = max(alike, key=lambda other: other[1]["learnt_s"])
    return BoardHeat(heat.model.weakened(OTHER_BOARD * _left(document, now_s)))


def keep_heat(info: GpuInfo, heat: BoardHeat, now_s: float | None = None) -> None:
    """Keep what a session has shown of a board, in place of an earlier model.

    Parameters
    ----------
    info : GpuInfo
        The board.
    heat : BoardHeat
        Its model and condition.
    now_s : float or None, optional
        When it was learnt, s since the epoch; now by default.
    """
    document = {
        "uuid": info.uuid,
        "name": info.name,
        "learnt_s": time.time() if now_s is None else now_s,
        "model": asdict(heat.model),
        "condition": None if heat.condition is None else heat.condition.as_names(),
    }
    with suppress(WattridgeError):  # a disk that is full or read-only: the next session learns it again
        _FILES.keep(_FILES.path(info.uuid), document)


def model_from_json(document: Any) -> ThermalModel:
    """Read a model from its JSON document.

    Parameters
    ----------
    document : object
        The document, which has the fields of a `ThermalModel`.

    Returns
    -------
    ThermalModel
        The model.

    Raises
    ------
    ValueError
        For a document that is damaged; reading one may raise LookupError and TypeError as well.
    """
    size = len(PRIOR)
    coefficients, precision = (np.asarray(document[name], dtype=np.float64) for name in ("coefficients", "precision"))
    wander, degrees = float(document["wander"]), float(document["wander_degrees"])
    shapes = coefficients.shape, precision.shape
    if shapes != ((size,), (size, size)) or not (0 <= wander < 1 and 1 <= degrees < 1e9):
        raise ValueError("it is no thermal model")
    if not (np.abs(precision).max() < _WIDEST and np.abs(coefficients).max() < 1):
        raise ValueError("it is no model of a board")
    np.linalg.cholesky(precision)  # raises LinAlgError, a ValueError, where it is no precision
    return ThermalModel(tuple(coefficients.tolist()), _rows(precision), wander, degrees)


def _heat_of(document: Any) -> tuple[BoardHeat, Mapping[str, Any]] | None:
    if not math.isfinite(document["learnt_s"]):
        return None
    condition = document["condition"]
    named = None if condition is None else Condition(**{name: float(value) for name, value in condition.items()})
    model = model_from_json(document["model"])
    return BoardHeat(ANY_BOARD if model.wander > MOST_WANDER else model, named), document


def _left(document: Mapping[str, Any], now_s: float) -> float:
    """The share of what was learnt that its age leaves."""
    age_s: float = max(0.0, now_s - document["learnt_s"])
    return math.pow(0.5, age_s / HALVED_AFTER_S)


GROWTH: Final = 1.05  # of the windows to learn from, until the model is fitted again: one is used after every window


class BoardLearning:
    """The thermal model of a board in one session or sweep, learnt from kernels that are measured more than once."""

    def __init__(self, info: GpuInfo, chosen: Condition | None = None) -> None:
        """Begin with the model kept of the board; `chosen` is the user's condition to state figures for."""
        self._info = info
        heat = known_heat(info)
        characterised = stored_characterisation(info)
        if characterised is not None and characterised.aftereffect is not None:
            heat = replace(heat, model=heat.model.without_aftereffect())
        self._known = heat
        self._chosen = chosen
        self._looks: dict[str, list[Look]] = {}
        self._seen = SeenConditions()
        self._learnt = heat.model
        self._learnt_from = 0  # looks
        self._repeated = 0  # looks at kernels that were looked at more than once: what can be learnt from

    def note(self, kernel: str, window: Window) -> None:
        """Take in a window in which a kernel ran.

        Parameters
        ----------
        kernel : str
            The name of the kernel, the same for each of its windows.
        window : Window
            The window. Under a limit it does not show the power of the kernel: only its condition counts.
        """
        self._seen.add(window.condition)
        if not window.limited and window.power_w > 0:
            ends = window.power_interval_w
            sd = math.nan if ends is None else (ends[1] - ends[0]) / 2 / NORMAL_95 / window.power_w
            look = Look(kernel, window.power_w, 0.0 if math.isnan(sd) else sd, window.condition, window.time_s)
            looks = self._looks.setdefault(kernel, [])
            looks.append(look)
            self._repeated += 2 if len(looks) == 2 else len(looks) > 2

    @property
    def condition(self) -> Condition:
        """The condition to state figures for. A board's first session fixes it at its end: until then it moves."""
        return self._chosen or self._known.condition or self._seen.usual

    @property
    def model(self) -> ThermalModel:
        """The model by now: the last twentieth of the windows may not count yet, until `learn_all`."""
        if self._repeated >= GROWTH * self._learnt_from:
            self.learn_all()
        return self._learnt

    def learn_all(self) -> None:
        """Learn from every window so far."""
        if self._repeated == self._learnt_from:
            return
        repeated = [look for looks in self._looks.values() if len(looks) > 1 for look in looks]
        self._learnt, self._learnt_from = self._known.model.learn(repeated), self._repeated

    def stated_w(self, window: Window) -> float:
        """Return the power of a window at the condition.

        Parameters
        ----------
        window : Window
            The window.

        Returns
        -------
        float
            The power, W; at a limit, which sets the power, as it was drawn.
        """
        if window.limited or not window.power_w > 0:
            return window.power_w
        return self.model.stated(window.power_w, window.condition, self.condition)[0]

    def keep(self, *, fix_condition: bool) -> None:
        """Keep the model for the board's next session, which begins with it.

        Parameters
        ----------
        fix_condition : bool
            Fix the usual condition of these windows as the board's, if it has none yet.
        """
        self.learn_all()
        if self._seen:
            condition = self._known.condition or (self._seen.usual if fix_condition else None)
            keep_heat(self._info, BoardHeat(self._learnt, condition))
