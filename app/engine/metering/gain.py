"""The gain of a board's power sensor against a meter: what it reports over what the meter does, window by window.

NVML's error is proportional to the power, up to 5 % either way [Yang2024]: P_board = g P_meter. Where the windows show
it, an offset as well: P_board = g P_meter + c, which a meter on other rails than the board's sensor would show. Both
are fitted to relative residuals, P_board / P_meter = g + c / P_meter, by least squares, with Student's t for the 95 %.

What is learnt of a board is kept for its next session.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...base.board_files import BoardFiles
from ...base.errors import WattridgeError
from ...base.records import Count, as_json, from_json
from ...sensors.gpu import GpuInfo
from .confidence import Interval, student_t

Floats = npt.NDArray[np.float64]
LEAST: Final = 5  # windows
LEAST_FOR_OFFSET: Final = 8
LEAST_RANGE: Final = 1.3  # largest over smallest power, to tell an offset from a gain
PLAUSIBLE: Final = (0.5, 2.0)  # a gain outside means that the two do not measure the same
_FILES: Final = BoardFiles("gains", (1,))


@dataclass(frozen=True, slots=True)
class Gain:
    """What a board's sensor reports of what a meter does."""

    meter: str  # by its name in figures
    gain: float
    interval: Interval  # 95 % confidence
    offset_w: float  # 0 where it cannot be told from 0
    offset_interval_w: Interval | None
    scatter: float  # of single windows about the fit; relative, one sigma
    windows: Count
    range_w: tuple[float, float]  # of the meter's power

    def corrected(self, power_w: float) -> float:
        """The power that the meter would have reported."""
        return (power_w - self.offset_w) / self.gain

    @property
    def words(self) -> str:
        """`1.031 (1.029 to 1.033)`, with the offset where there is one."""
        low, high = self.interval
        offset = f", and {self.offset_w:+.1f} W" if self.offset_w else ""
        return f"{self.gain:.4f} ({low:.4f} to {high:.4f}){offset}"


def fit_gain(meter: str, board_w: Sequence[float], meter_w: Sequence[float]) -> Gain:
    """The gain by mean powers of the same windows. Raises WattridgeError where they are too few, or do not match."""
    board, other = np.asarray(board_w, np.float64), np.asarray(meter_w, np.float64)
    known = np.isfinite(board) & np.isfinite(other) & (board > 0) & (other > 0)
    board, other = board[known], other[known]
    if len(board) < LEAST:
        what = f"a gain needs {LEAST} windows that both report, and there are {len(board)}"
        raise WattridgeError(what, meter, "measure more configurations with the meter beside the board")
    ratios: Floats = board / other
    spans = len(board) >= LEAST_FOR_OFFSET and other.max() >= LEAST_RANGE * other.min()
    (gain, offset_w), halves, scatter = _least_squares(ratios, other, offset=spans)
    offset_interval_w = (offset_w - halves[1], offset_w + halves[1]) if spans else None
    if not spans or abs(offset_w) <= halves[1]:
        (gain, offset_w), halves, scatter = _least_squares(ratios, other, offset=False)
    if not PLAUSIBLE[0] <= gain <= PLAUSIBLE[1]:
        what = f"the board reports {gain:.2f} times what the meter does"
        raise WattridgeError(what, meter, "see whether the meter is on all of this board's supplies, and on no other's")
    return Gain(
        meter=meter,
        gain=gain,
        interval=(gain - halves[0], gain + halves[0]),
        offset_w=offset_w,
        offset_interval_w=offset_interval_w,
        scatter=scatter,
        windows=len(board),
        range_w=(float(other.min()), float(other.max())),
    )


def _least_squares(ratios: Floats, meter_w: Floats, *, offset: bool) -> tuple[list[float], list[float], float]:
    """Gain and offset, half of the 95 % interval of each, and the scatter that is left."""
    columns = np.column_stack([np.ones(len(ratios)), 1.0 / meter_w][: 1 + offset])
    found = np.linalg.lstsq(columns, ratios, rcond=None)[0]
    degrees = len(ratios) - columns.shape[1]
    scatter = math.sqrt(float(np.sum((ratios - columns @ found) ** 2)) / degrees)
    errors = scatter * np.sqrt(np.diag(np.linalg.inv(columns.T @ columns)))
    halves = (student_t(degrees) * errors).tolist()
    return [*found.tolist(), 0.0][:2], [*halves, 0.0][:2], scatter


@dataclass(frozen=True, slots=True)
class KnownGain:
    """A gain, and when it was fitted: seconds since the epoch."""

    gain: Gain
    fitted_s: float


def known_gain(info: GpuInfo) -> KnownGain | None:
    """What is kept of that board; None where nothing is. Another board of its name has another gain."""
    return _FILES.read(_FILES.path(info.uuid), _known_of)


def _known_of(document: Any) -> KnownGain | None:
    fitted_s = float(document["fitted_s"])
    return KnownGain(read_gain(document["gain"]), fitted_s) if math.isfinite(fitted_s) else None


def keep_gain(uuid: str, name: str, gain: Gain, now_s: float | None = None) -> None:
    """Keep what a session has shown of a board's sensor, in place of what was known before."""
    fitted_s = time.time() if now_s is None else now_s
    document = {"uuid": uuid, "name": name, "fitted_s": fitted_s, "gain": as_json(gain)}
    with suppress(WattridgeError):  # a disk that is full or read-only: the session itself still holds it
        _FILES.keep(_FILES.path(uuid), document)


def read_gain(document: Any) -> Gain:
    """Read a gain from its document. Raises ValueError and what damage besides may raise."""
    found = from_json(Gain, document)
    intervals = (*found.interval, *(found.offset_interval_w or ()), *found.range_w)
    every = (found.gain, found.offset_w, found.scatter, *intervals)
    if not all(map(math.isfinite, every)) or not PLAUSIBLE[0] <= found.gain <= PLAUSIBLE[1]:
        raise ValueError("it is no gain")
    if not 0 <= found.windows < 1 << 53:
        raise ValueError("it is no gain")
    return found
