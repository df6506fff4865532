"""What a board's history does to its power: the same kernel draws more on a warm board, and by how much is learnt.

A die that is warmer leaks more, and so do the memory and the regulators, which warm more slowly. What the board reports
of it is two temperatures, and what it has drawn: the power of a kernel is

    log P = a + b . x,   x = (T_gpu - 50 degC, T_memory - 50 degC, (P_fast - P) / P, (P_slow - P) / P)

with `a` the kernel's own, `b` the board's, and P_fast and P_slow averages of the power over what came before, weighted
exponentially with time constants of 1 and 30 s. `b` is found by Bayesian linear regression [Gelman2013, section 14.8]
from kernels that were measured more than once. Boards differ: two of four H200 followed their temperature, the others
wandered by as much and did not. So the prior is a mixture of normal ones of several widths around zero, weighted by the
evidence for each: where windows show little, little is corrected. The mixture is kept as the normal distribution of the
same mean and covariance. What is not known about `b` widens the interval of a power that is stated for another
condition than that of its measurement.

What is learnt is kept with the board. Boards of a kind differ: what another of the same name showed is a weak prior.
What a board showed itself counts for less as it ages.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...base.board_files import BoardFiles
from ...base.errors import WattridgeError
from ...sensors.gpu import GpuInfo
from .condition import Condition
from .confidence import student_t

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
    """The power of a kernel in one window. Its name says which kernel."""

    kernel: str
    power_w: float
    sampled_sd: float  # of the mean by the noise of its samples, relative
    condition: Condition
    time_s: float = math.nan  # of a launch; where not known, windows are compared by their power alone


@dataclass(frozen=True, slots=True)
class ThermalModel:
    """How the power of one board follows its condition. `learn` returns what is known after more windows."""

    coefficients: tuple[float, ...] = PRIOR
    precision: tuple[tuple[float, ...], ...] = tuple(
        tuple(1.0 / (OVERALL * sd) ** 2 if row == column else 0.0 for column in range(len(PRIOR_SD)))
        for row, sd in enumerate(PRIOR_SD)
    )  # the inverse of the coefficients' covariance
    wander: float = WANDER  # 1 sigma, relative
    wander_degrees: float = WANDER_DEGREES

    def learn(self, looks: Iterable[Look]) -> ThermalModel:
        """The model after these windows, of which those of kernels seen once show nothing."""
        rows, own_sd = _within_kernels(looks)
        if not len(rows):
            return self
        groups, x, y = rows[:, 0], rows[:, 2:], rows[:, 1]
        free = len(y) - len(np.unique(groups))
        found = self
        for _ in range(_ROUNDS):
            variance = found.wander**2
            weights = 1.0 / np.maximum(own_sd**2, variance)
            xc, yc = _centred(x, groups, weights), _centred(y[:, None], groups, weights)[:, 0]
            coefficients, covariance = self._mixed(xc, yc, INDEPENDENT * weights)
            seen = variance * float((weights * (yc - xc @ coefficients) ** 2).sum())
            degrees = self.wander_degrees + free
            wander = math.sqrt((self.wander_degrees * self.wander**2 + seen) / degrees)
            precision = np.asarray(np.linalg.inv(covariance), dtype=np.float64)
            found = ThermalModel(tuple(coefficients.tolist()), _rows(precision), wander, degrees)
        return found

    def _mixed(self, x: Floats, y: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Mean and covariance of the coefficients after these windows, over priors of all widths by their evidence."""
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
        """With that share of what was learnt: the prior for another time, or for another board of the same kind."""
        first = ANY_BOARD
        before, now = np.asarray(first.precision), np.asarray(self.precision)
        precision = before + share * (now - before)
        weighted = before @ first.coefficients + share * (now @ self.coefficients - before @ first.coefficients)
        degrees = WANDER_DEGREES + share * (self.wander_degrees - WANDER_DEGREES)
        wander = math.sqrt(WANDER**2 + share * (self.wander**2 - WANDER**2))
        return ThermalModel(tuple(np.linalg.solve(precision, weighted).tolist()), _rows(precision), wander, degrees)

    def without_aftereffect(self) -> ThermalModel:
        """For powers of which the meter has taken out what the second before left behind, on a board it knows."""
        precision, coefficients = np.array(self.precision), np.asarray(self.coefficients)
        weighted = precision @ coefficients
        precision[2, 2] += 1.0 / TAKEN_OUT_SD**2
        found = np.linalg.solve(precision, weighted)
        return ThermalModel(tuple(found.tolist()), _rows(precision), self.wander, self.wander_degrees)

    def stated(self, power_w: float, measured: Condition, condition: Condition) -> tuple[float, float]:
        """(power W at `condition`, relative standard deviation of the step there) of what drew `power_w` when measured.

        What only one of the two conditions knows is left out of account.
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
        """By how much short windows of one kernel in one session differ; 95 %, relative."""
        return student_t(round(self.wander_degrees)) * self.wander

    def uncertainty(self, step_sd: float, sampled: float = 0.0) -> float:
        """What a stated power may be off by as another process sees it, beyond `sampled`; all of them 95 %, relative.

        That is what the board wanders by, as far as the samples of the window do not show it already (`sampled` is the
        half-width of its interval), the step to the condition, and what another process adds, whose buffers lie
        elsewhere: as much as windows differ by on a board that wanders (three H200).
        """
        within = math.sqrt(max(0.0, self.repeatability**2 - sampled**2))
        return math.hypot(
            within, student_t(round(self.wander_degrees)) * math.hypot(step_sd, max(BETWEEN, self.wander))
        )


ANY_BOARD: Final = ThermalModel()  # what is known before anything is learnt


def _seen(condition: Condition, power_w: float) -> Floats:
    """`x` of a kernel that draws `power_w`; shape (4,), NaN where not known."""
    shares = [0.0 if math.isnan(w) else w / power_w - 1.0 for w in (condition.fast_w, condition.slow_w)]
    temperatures = (condition.gpu_c - MIDDLE_C, condition.memory_c - MIDDLE_C)
    return np.array([*temperatures, *(min(MOST_SHARE, share) for share in shares)])


def _within_kernels(looks: Iterable[Look]) -> tuple[Floats, Floats]:
    """Rows of (kernel's number, log power, x) of kernels seen more than once, and their samples' deviations."""
    seen: dict[str, list[Look]] = {}
    for look in looks:
        seen.setdefault(look.kernel, []).append(look)
    rows, own_sd = [], []
    alike = [_alike(group) for group in seen.values()]
    for number, group in enumerate(each for each in alike if len(each) > 1):
        for look in group:
            x = np.nan_to_num(_seen(look.condition, look.power_w), nan=0.0)
            rows.append([number, math.log(look.power_w), *x])
            own_sd.append(look.sampled_sd)
    return np.asarray(rows, dtype=np.float64), np.asarray(own_sd, dtype=np.float64)


def _alike(looks: Sequence[Look]) -> Sequence[Look]:
    """Those of one kernel in which the same happened, by their power and the time of a launch."""
    if len(looks) < 2:
        return looks
    power_w, time_s = median(look.power_w for look in looks), median(look.time_s for look in looks)
    return [
        look
        for look in looks
        if abs(math.log(look.power_w / power_w)) <= MOST_APART
        and not abs(look.time_s / time_s - 1.0) > MOST_LONGER  # unknown times say nothing
    ]


def _centred(values: Floats, groups: Floats, weights: Floats) -> Floats:
    """Without the weighted mean of each group."""
    numbers = groups.astype(np.int64)
    total = np.bincount(numbers, weights)
    means = np.stack([np.bincount(numbers, weights * column) / total for column in values.T], axis=1)
    centred: Floats = values - means[numbers]
    return centred


def _rows(matrix: Floats) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(each) for each in row) for row in matrix)


@dataclass(frozen=True, slots=True)
class BoardHeat:
    """How a board's power follows its temperature, as far as is known before a session."""

    model: ThermalModel = ANY_BOARD
    condition: Condition | None = None  # that its figures are stated for, fixed by its first session


def known_heat(info: GpuInfo, now_s: float | None = None) -> BoardHeat:
    """What is kept of that board, else of the newest of its name, weakened by age; the default where nothing is."""
    now_s = time.time() if now_s is None else now_s
    own = _FILES.read(_FILES.path(info.uuid), _heat_of)
    if own is not None:
        heat, document = own
        return BoardHeat(heat.model.weakened(NEXT_SESSION * _left(document, now_s)), heat.condition)
    alike = [other for other in _FILES.all(_heat_of) if other[1].get("name") == info.name]
    if not alike:
        return BoardHeat()
    heat, document = max(alike, key=lambda other: other[1]["learnt_s"])
    return BoardHeat(heat.model.weakened(OTHER_BOARD * _left(document, now_s)))


def keep_heat(info: GpuInfo, heat: BoardHeat, now_s: float | None = None) -> None:
    """Keep what a session has shown of a board, in place of what was known before."""
    document = {
        "uuid": info.uuid,
        "name": info.name,
        "learnt_s": time.time() if now_s is None else now_s,
        "model": model_to_json(heat.model),
        "condition": None if heat.condition is None else heat.condition.as_names(),
    }
    with suppress(WattridgeError):  # a disk that is full or read-only: the next session learns it again
        _FILES.keep(_FILES.path(info.uuid), document)


def model_to_json(model: ThermalModel) -> dict[str, Any]:
    """As it is kept with a board and with a session."""
    return asdict(model)


def model_from_json(document: Any) -> ThermalModel:
    """The reverse of `model_to_json`. Raises ValueError and what damage besides may raise."""
    size = len(PRIOR)
    coefficients, precision = (np.asarray(document[name], dtype=np.float64) for name in ("coefficients", "precision"))
    wander, degrees = float(document["wander"]), float(document["wander_degrees"])
    if (
        coefficients.shape != (size,)
        or precision.shape != (size, size)
        or not 0 <= wander < 1
        or not 1 <= degrees < 1e9
    ):
        raise ValueError("it is no thermal model")
    if not (np.abs(precision).max() < _WIDEST and np.abs(coefficients).max() < 1):
        raise ValueError("it is no model of a board")
    np.linalg.cholesky(precision)  # raises LinAlgError, a ValueError, where it is no precision
    return ThermalModel(tuple(coefficients.tolist()), tuple(map(tuple, precision.tolist())), wander, degrees)


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
