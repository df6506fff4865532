"""The gain of a board's power sensor against a meter: the ratio of the powers that both report, window by window.

NVML's error is proportional to the power, up to 5 % either way [Yang2024]: P_board = g P_meter. Where the windows show
it, an offset as well: P_board = g P_meter + c, which a meter on other rails than the board's sensor would show. Both
are fitted to relative residuals, P_board / P_meter = g + c / P_meter, by least squares, with Student's t for the 95 %.

The gain of a board is kept for its next session.
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
    """The gain of a board's sensor: its power over that of a meter."""

    meter: str  # by its name in figures
    gain: float
    interval: Interval  # 95 % confidence
    offset_w: float  # 0 if the powers span too little to determine it
    offset_interval_w: Interval | None
    scatter: float  # of single windows about the fit; relative, one sigma
    windows: Count
    range_w: tuple[float, float]  # of the meter's power

    def corrected(self, power_w: float) -> float:
        """Return the power that the meter would have reported.

        Parameters
        ----------
        power_w : float
            The power by the board's sensor, W.

        Returns
        -------
        float
            The power without offset and gain, W.
        """
        return (power_w - self.offset_w) / self.gain

    @property
    def words(self) -> str:
        """`1.031 (1.029 to 1.033)`, with the offset where there is one."""
        low, high = self.interval
        offset = f", and {self.offset_w:+.1f} W" if self.offset_w else ""
        return f"{self.gain:.4f} ({low:.4f} to {high:.4f}){offset}"


def fit_gain(meter: str, board_w: Sequence[float], meter_w: Sequence[float]) -> Gain:
    """Fit the gain to the mean powers of windows.

    Parameters
    ----------
    meter : str
        The name of the meter in figures.
    board_w, meter_w : sequence of float
        The power of each window by the board's sensor and by the meter, W; windows that one of them lacks are NaN.

    Returns
    -------
    Gain
        The gain, with an offset where the windows show one.

    Raises
    ------
    WattridgeError
        Where the windows are too few, or the two do not measure the same.
    """
    board, other = np.asarray(board_w, np.float64), np.asarray(meter_w, np.float64)
    finite = np.isfinite(board) & np.isfinite(other) & (board > 0) & (other > 0)
    board, other = board[finite], other[finite]
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
    """Return gain and offset, the half-widths of their 95 % intervals, and the scatter of the residuals."""
    columns = np.column_stack([np.ones(len(ratios)), 1.0 / meter_w][: 1 + offset])
    coefficients = np.linalg.lstsq(columns, ratios, rcond=None)[0]
    degrees = len(ratios) - columns.shape[1]
    scatter = math.sqrt(float(np.sum((ratios - columns @ coefficients) ** 2)) / degrees)
    errors = scatter * np.sqrt(np.diag(np.linalg.inv(columns.T @ columns)))
    halves = (student_t(degrees) * errors).tolist()
    return [*coefficients.tolist(), 0.0][:2], [*halves, 0.0][:2], scatter


def known_gain(info: GpuInfo) -> Gain | None:
    """Return the gain kept of a board. Another board of the same name has another gain.

    Parameters
    ----------
    info : GpuInfo
        The board.

    Returns
    -------
    Gain or None
        The gain; None if none is kept, or none that can be read.

    Raises
    ------
    InputError
        Where there can be no data folder, as `data_folder` raises it.
    """
    return _FILES.read(_FILES.path(info.uuid), lambda document: read_gain(document["gain"]))


def keep_gain(uuid: str, name: str, gain: Gain) -> None:
    """Keep the gain that a session has shown of a board's sensor, in place of an earlier one.

    Nothing is kept where the disk is full or read-only.

    Parameters
    ----------
    uuid : str
        The board's UUID.
    name : str
        The board's name.
    gain : Gain
        The gain.
    """
    document = {"uuid": uuid, "name": name, "fitted_s": time.time(), "gain": as_json(gain)}
    with suppress(WattridgeError):  # a disk that is full or read-only: the session itself still holds it
        _FILES.keep(_FILES.path(uuid), document)


def read_gain(document: Any) -> Gain:
    """Read a gain from its JSON document.

    Parameters
    ----------
    document : object
        The document, which has the fields of a `Gain`.

    Returns
    -------
    Gain
        The gain.

    Raises
    ------
    ValueError
        For a document that is damaged; reading one may raise LookupError, TypeError and AttributeError as well.
    """
    gain = from_json(Gain, document)
    intervals = (*gain.interval, *(gain.offset_interval_w or ()), *gain.range_w)
    finite = all(map(math.isfinite, (gain.gain, gain.offset_w, gain.scatter, *intervals)))
    if not (finite and PLAUSIBLE[0] <= gain.gain <= PLAUSIBLE[1] and 0 <= gain.windows < 1 << 53):
        raise ValueError("it is no gain")
    return gain
