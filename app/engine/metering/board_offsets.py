"""What boards of one model report of the same configurations, over a reference board: ratios with their intervals.

No two boards of a model draw, or report, quite the same, so figures are compared within a board only. Configurations
that several boards measured show by how much they differ. The logarithm of a figure is that of the configuration, plus
that of the board, plus what each of them adds as the GPU warms, plus a rest,

    log y(b, c, T) = m(c) + o(b) + (s(c) + d(b)) g(T) + e,      o(reference) = d(reference) = 0
    g(T) = (2^(k (T - T0)) - 1) / (k ln 2)

the additive two-way layout with unequal numbers of observations [Searle1971, ch. 7] and a covariate, T0 being the
usual temperature of the reference. Leakage doubles every 40 degC or so, and its logarithm with the rest of the power
is bent less: k, the doublings per degree, is about 1/50. Near T0, g is T - T0 for any k. The slopes have normal priors
around zero [Gelman2013, section 14.8]. The figures are those that the boards drew: stated for one condition they carry
the error of the board's thermal model, the same in all that a board measured cold, so that no scatter shows it.

Student's t over the rest gives the 95 %, by its means over a board's looks at a configuration, or by single looks where
they scatter more: it holds what measurements scatter and what one configuration differs from another in, which is the
same at every look. Added to it are what the priors leave open, that temperatures are whole degrees, and that k is not
known: by how much the offsets move with it, per sigma, at the slopes that were found. k is not fitted: over the few
degrees by which boards warm up, a bend looks like leakage that differs from board to board. With k fitted, 76 to 97 %
of the intervals of drawn boards 25 degC apart held the truth, and now 94 to 100 %, with no curvature as with a doubling
every 25 degC. The price is an interval three times as wide where leaky boards are that far apart, six or more where
the warm one is the reference; at like temperatures there is none. Time does not follow the temperature. Energy is power
times time in every measurement, and its ratio is the product of the other two. A configuration at which a limit acted
says nothing: there the clock gives way.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...sensors.event_reasons import LIMITING
from ..measurement import THERMAL_CORRECTION, Depth, Measurement, State
from .confidence import NORMAL_95, Interval, student_t
from .thermal import PRIOR_SD

FIGURES: Final = ("time_s", "power_w", "energy_j")
LEAST: Final = 3  # configurations that a board shares with others, before its offset is known
PLAUSIBLE: Final = (0.5, 2.0)  # a ratio outside is none of boards of one model

# Per degree, 1 sigma, by how much a board's power follows its temperature more than the reference's: five H200 follow
# theirs by 0 to 0.0012 (tests/benchmarks/reference.txt).
SLOPES_APART: Final = 0.0007
SLOPES: Final = PRIOR_SD[0]  # of a configuration
DOUBLINGS: Final = (1 / 50, 1 / 50)  # per degree, mean and 1 sigma: from none to one in 25 degC
WHOLE_DEGREES: Final = 0.41  # 1 sigma, of the difference of two temperatures in whole degrees, the same in every window
_MOST_APART_C: Final = 100.0  # no two boards at work are
_LEAST_SCATTER: Final = 1e-6  # simulated boards take exactly the same time
_START: Final = 0.003  # of the scatter, to begin with
_ROUNDS: Final = 12  # of scatter and coefficients in turn

_AS_DRAWN: Final = {"power_w": "power_raw_w", "energy_j": "energy_raw_j"}

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Ratio:
    """One figure of a board over that of the reference board."""

    value: float
    interval: Interval  # 95 % confidence
    differs: float  # by how much single configurations differ from it, beyond what measurements scatter; one sigma

    @property
    def half(self) -> float:
        """Half of the interval, of its logarithm."""
        low, high = self.interval
        return math.log(high / low) / 2

    @property
    def uncertainty(self) -> float:
        """Of one configuration that is corrected by it, relative, 95 %."""
        return math.hypot(self.half, NORMAL_95 * self.differs)

    @property
    def words(self) -> str:
        """`1.031 (1.029 to 1.033)`."""
        low, high = self.interval
        return f"{self.value:.4f} ({low:.4f} to {high:.4f})"


@dataclass(frozen=True, slots=True)
class BoardOffset:
    """How a board differs from the reference board."""

    shared: int  # configurations that it was seen by
    ratios: Mapping[str, Ratio]  # of each of FIGURES that is known


EXACT: Final = Ratio(1.0, (1.0, 1.0), 0.0)  # of the reference board itself


def fit_offsets(measured: Sequence[Measurement], reference: str) -> dict[str, BoardOffset]:
    """The offsets of boards, by their UUIDs, from what they measured of the same rows; the reference's are exactly 1.

    A board is left out that shares fewer than LEAST configurations with the others, or none with those that are linked
    to the reference, or whose ratios are not plausible. `measured` may hold a row of a board several times.
    """
    usable = [
        each
        for each in measured
        if each.state is State.OK
        and each.depth is Depth.ENERGY
        and not each.event_reasons & LIMITING
        and each.board
        and all(each.values.get(name, 0.0) > 0.0 for name in FIGURES)
    ]
    usual_c = _usual_c([each for each in usable if each.board == reference])
    usable = _linked(usable, reference)
    boards = sorted({each.board for each in usable} - {reference})
    found = {reference: BoardOffset(0, dict.fromkeys(FIGURES, EXACT))}
    if not boards:
        return found
    layout = _Layout(usable, reference, boards, usual_c)
    by_figure = {
        name: layout.solve(np.log([_drawn(each, name) for each in usable]), warms=name != "time_s") for name in FIGURES
    }
    noise = {name: _noise(usable, name) for name in FIGURES}
    for at, board in enumerate(boards):
        ratios = {}
        for name, fitted in by_figure.items():
            half = float(fitted.halves[at])
            of = ("time_s", "power_w") if name == "energy_j" else (name,)
            value = math.exp(sum(by_figure[each].offsets[at] for each in of))
            # of the difference between two boards, each of which has a rest of its own
            differs = math.sqrt(2 * max(0.0, fitted.scatter**2 - noise[name] ** 2))
            ratios[name] = Ratio(value, (value * math.exp(-half), value * math.exp(half)), differs)
        if all(PLAUSIBLE[0] <= ratio.value <= PLAUSIBLE[1] for ratio in ratios.values()):
            found[board] = BoardOffset(layout.shared[at], ratios)
    return found


def offsets_to_json(offsets: Mapping[str, BoardOffset], reference: str) -> dict[str, Any]:
    """As a session keeps them."""
    boards = {
        board: {
            "shared": offset.shared,
            **{name: [each.value, *each.interval, each.differs] for name, each in offset.ratios.items()},
        }
        for board, offset in offsets.items()
    }
    return {"reference": reference, "boards": boards}


def offsets_from_json(document: Any) -> tuple[dict[str, BoardOffset], str]:
    """The reverse: the offsets, and the key of the reference board. Raises ValueError and what damage besides may."""
    found = {}
    for board, kept in document["boards"].items():
        ratios = {}
        for name in FIGURES:
            value, low, high, differs = map(float, kept[name])
            if not 0 < low <= value <= high < math.inf or not 0 <= differs < math.inf:
                raise ValueError("these are no ratios")
            ratios[name] = Ratio(value, (low, high), differs)
        found[board] = BoardOffset(int(kept["shared"]), ratios)
    if document["reference"] not in found:
        raise ValueError("the reference is none of the boards")
    return found, document["reference"]


# --- inside -----------------------------------------------------------------------------------------------------------


def _linked(measured: list[Measurement], reference: str) -> list[Measurement]:
    """What boards say that share enough with the others, on configurations that more than one of them measured."""
    while True:
        boards_of: dict[int, set[str]] = defaultdict(set)
        for each in measured:
            boards_of[each.row].add(each.board)
        linked, todo = {reference}, [reference]
        while todo:
            board = todo.pop()
            near = {b for boards in boards_of.values() if board in boards for b in boards} - linked
            linked |= near
            todo += near
        common = {row for row, boards in boards_of.items() if len(boards & linked) > 1}
        rows_of: dict[str, set[int]] = defaultdict(set)
        for each in measured:
            if each.row in common:
                rows_of[each.board].add(each.row)
        enough = {board for board in linked if board == reference or len(rows_of[board]) >= LEAST}
        kept = [each for each in measured if each.row in common and each.board in enough]
        if len(kept) == len(measured):
            return kept
        measured = kept


@dataclass(frozen=True, slots=True)
class _Fitted:
    """One figure of all boards but the reference."""

    offsets: Floats  # logarithms of the ratios
    halves: Floats  # of their 95 % intervals
    scatter: float


class _Layout:
    """Which board measured which configuration, and how warm it was: the design, which all figures have in common.

    The boards' coefficients are eliminated first, so that a thousand boards cost a thousand systems of two equations,
    and one of the size of the configurations that they share.
    """

    def __init__(self, measured: Sequence[Measurement], reference: str, boards: Sequence[str], usual_c: float) -> None:
        """Ratios will be those at `usual_c`; where temperatures are not known, they are left out of account."""
        place = {board: at for at, board in enumerate((reference, *boards))}
        rows = {row: at for at, row in enumerate(dict.fromkeys(each.row for each in measured))}
        self._board = np.array([place[each.board] for each in measured])
        self._row = np.array([rows[each.row] for each in measured])
        self._rows, self._boards = len(rows), len(boards)
        self.shared = [len(set(self._row[self._board == at].tolist())) for at in range(1, len(place))]
        warmer = np.array([each.values.get("temperature_c", math.nan) for each in measured]) - usual_c
        warmer = np.clip(np.nan_to_num(warmer, nan=0.0), -_MOST_APART_C, _MOST_APART_C)
        mean, sd = DOUBLINGS
        self._grown = _grown(warmer, mean)  # g, and half of what it moves by from one sigma below to one above
        self._bend = (_grown(warmer, mean + sd) - _grown(warmer, mean - sd)) / 2

    def solve(self, logs: Floats, *, warms: bool) -> _Fitted:
        """The offsets; `warms` where the figure follows the temperature."""
        rows, boards = self._rows, self._boards
        grown, bend = (self._grown, self._bend) if warms else (np.zeros_like(logs), np.zeros_like(logs))
        level = np.zeros((len(logs), 2 * rows))  # m and s of each configuration
        level[np.arange(len(logs)), self._row] = 1.0
        level[np.arange(len(logs)), rows + self._row] = grown
        own = np.stack([np.ones_like(grown), grown], axis=1)  # o and d of each board
        of_level, of_board = np.repeat([0.0, 1.0 / SLOPES**2], rows), np.array([0.0, 1.0 / SLOPES_APART**2])  # priors
        both, own_both = np.zeros((boards, 2, 2 * rows)), np.zeros((boards, 2, 2))
        others = self._board > 0
        at = self._board[others] - 1
        np.add.at(both, at, own[others][:, :, None] * level[others][:, None, :])
        np.add.at(own_both, at, own[others][:, :, None] * own[others][:, None, :])
        normal, variance = level.T @ level, _START**2

        def coefficients(logs: Floats) -> tuple[Floats, Floats]:
            """Of the configurations and of the boards, by the present weights; linear in the logarithms."""
            own_logs = np.zeros((boards, 2))
            np.add.at(own_logs, at, own[others] * logs[others][:, None])
            levels = solved @ (level.T @ logs - np.tensordot(across, own_logs, ((0, 1), (0, 1))))
            return levels, (inverse @ (own_logs - both @ levels)[:, :, None])[:, :, 0]

        for _ in range(_ROUNDS):
            inverse = np.linalg.inv(own_both + variance * np.diag(of_board))
            across = inverse @ both
            left = normal + variance * np.diag(of_level) - np.tensordot(both, across, ((0, 1), (0, 1)))
            solved = np.linalg.inv(left)
            covariance = variance * solved
            levels, found = coefficients(logs)
            joint = -across @ covariance
            spread = variance * inverse - joint @ across.transpose(0, 2, 1)
            rest = logs - level @ levels
            rest[others] -= (own[others] * found[at]).sum(axis=1)
            degrees = len(logs) - 2 * (rows + boards) + float(of_level @ np.diag(covariance))
            degrees += float(np.einsum("k,bkk->", of_board, spread))
            variance = max(_LEAST_SCATTER**2, float(rest @ rest) / max(1.0, degrees))
        slopes = levels[rows + self._row]
        slopes[others] += found[at, 1]
        bent = coefficients(slopes * bend)[1][:, 0]  # by how much they move with k, per sigma of it
        unknown = joint[:, 0] ** 2 @ of_level + spread[:, 0] ** 2 @ of_board  # what the priors leave open
        among, degrees = self._among_cells(rest, degrees)
        t = student_t(max(1, math.floor(degrees + 1e-6)))
        # Where boards are far apart, the slopes take up what the means differ by: single looks say what they scatter.
        scattered = max(1.0, among / variance) * np.maximum(0.0, spread[:, 0, 0] - unknown)
        rounded = WHOLE_DEGREES * float(np.mean(levels[rows:]))
        halves = np.sqrt(t**2 * scattered + NORMAL_95**2 * (unknown + rounded**2 + bent**2))
        return _Fitted(found[:, 0], halves, math.sqrt(variance))

    def _among_cells(self, rest: Floats, degrees: float) -> tuple[float, float]:
        """The variance of the rest, and its degrees of freedom, by the means of a board's looks at a configuration.

        What a configuration differs in from board to board is the same at every look: more looks say no more of it.
        """
        cell = np.unique(self._board * self._rows + self._row, return_inverse=True)[1]
        looks = np.bincount(cell)
        degrees = max(1.0, min(degrees, float(len(looks) - self._rows - self._boards)))
        return max(_LEAST_SCATTER**2, float((np.bincount(cell, rest) ** 2 / looks).sum()) / degrees), degrees


def _grown(warmer_c: Floats, doublings: float) -> Floats:
    """g, with so many doublings per degree."""
    rate = math.log(2.0) * doublings
    return np.asarray(np.expm1(rate * warmer_c) / rate) if rate else warmer_c


def _usual_c(measured: Sequence[Measurement]) -> float:
    """The middle of their temperatures; NaN where they have none."""
    known = [each.values["temperature_c"] for each in measured if "temperature_c" in each.values]
    return median(known) if known else math.nan


def _drawn(measured: Measurement, name: str) -> float:
    """A figure as the board drew it, which may state it for another condition."""
    return measured.values[name] / (measured.values.get(THERMAL_CORRECTION, 1.0) if name in _AS_DRAWN else 1.0)


def _noise(measured: Sequence[Measurement], name: str) -> float:
    """What single measurements scatter, by their own intervals: one relative sigma; 0 where they have none.

    By those of what was drawn, where figures are stated for a condition: that adds an error that all of a board share.
    """
    own = []
    for each in measured:
        drawn = next((n for n in (_AS_DRAWN.get(name, name), name) if n in each.intervals), None)
        if drawn is not None and each.values.get(drawn, 0.0) > 0.0:
            low, high = each.intervals[drawn]
            own.append(((high - low) / 2 / NORMAL_95 / each.values[drawn]) ** 2)
    return math.sqrt(fmean(own)) if own else 0.0
