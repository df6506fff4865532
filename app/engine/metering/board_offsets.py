"""What boards of one model report of the same configurations, over a reference board: ratios with their intervals.

No two boards of a model draw, or report, quite the same, so figures are compared within a board only. Configurations
that several boards measured show by how much they differ. The logarithm of a figure is that of the configuration, plus
that of the board, plus a rest,

    log y(b, c) = m(c) + o(b) + e(b, c),      o(reference) = 0

the additive two-way layout with unequal numbers of observations [Searle1971, ch. 7], by least squares for each figure.
With m(c) eliminated the o are the solution of a linear system whose matrix is the Laplacian of the boards that share
configurations. Student's t over all of the rest gives the 95 %: it holds what a measurement scatters and what one
configuration differs from another in, as where a board leaks more.

Energy is power times time in every measurement, and the estimates are linear and unweighted, so the offset of energy is
the sum of the other two. A configuration at which a limit acted says nothing: there the clock gives way.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...sensors.event_reasons import LIMITING
from ..measurement import Depth, Measurement, State
from .confidence import NORMAL_95, Interval, student_t

FIGURES: Final = ("time_s", "power_w", "energy_j")
LEAST: Final = 3  # configurations that a board shares with others, before its offset is known
PLAUSIBLE: Final = (0.5, 2.0)  # a ratio outside is none of boards of one model

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
    usable = _linked(usable, reference)
    boards = sorted({each.board for each in usable} - {reference})
    found = {reference: BoardOffset(0, dict.fromkeys(FIGURES, EXACT))}
    if not boards:
        return found
    layout = _Layout(usable, reference, boards)
    by_figure = {name: layout.solve(np.log([each.values[name] for each in usable])) for name in FIGURES}
    noise = {name: _noise(usable, name) for name in FIGURES}
    for at, board in enumerate(boards):
        ratios = {}
        for name, (offsets, errors, scatter, degrees) in by_figure.items():
            half = student_t(degrees) * float(errors[at])
            value = math.exp(offsets[at])
            # of the difference between two boards, each of which has a rest of its own
            differs = math.sqrt(2 * max(0.0, scatter**2 - noise[name] ** 2))
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


class _Layout:
    """Which board measured which configuration how often; its least squares are the same for every figure."""

    def __init__(self, measured: Sequence[Measurement], reference: str, boards: Sequence[str]) -> None:
        place = {board: at for at, board in enumerate((reference, *boards))}
        rows = {row: at for at, row in enumerate(dict.fromkeys(each.row for each in measured))}
        self._board = np.array([place[each.board] for each in measured])
        self._row = np.array([rows[each.row] for each in measured])
        counts = np.zeros((len(place), len(rows)))
        np.add.at(counts, (self._board, self._row), 1.0)
        self.shared = (counts > 0).sum(axis=1)[1:].tolist()
        self._share = counts / counts.sum(axis=0)  # of a configuration's measurements, each board's
        laplacian = np.diag(counts.sum(axis=1)) - self._share @ counts.T
        self._inverse = np.linalg.inv(laplacian[1:, 1:])
        self._degrees = max(1, len(measured) - len(rows) - len(boards))

    def solve(self, logs: Floats) -> tuple[Floats, Floats, float, int]:
        """The offsets of the boards but the reference, their standard errors, the scatter, its degrees of freedom."""
        counts = np.bincount(self._row)
        means = np.bincount(self._row, logs) / counts
        centred = np.bincount(self._board, logs - means[self._row], minlength=len(self._share))
        offsets = np.concatenate([[0.0], self._inverse @ centred[1:]])
        left = logs - offsets[self._board]
        rest = left - (np.bincount(self._row, left) / counts)[self._row]
        scatter = math.sqrt(float(rest @ rest) / self._degrees)
        return offsets[1:], scatter * np.sqrt(np.diag(self._inverse)), scatter, self._degrees


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
