"""The gain of a board's power sensor against a meter: the ratio of the powers that both report, window by window.

NVML's error is proportional to the power, up to 5 % either way [Yang2024]: P_board = g P_meter. Where the windows show
it, an offset as well: P_board = g P_meter + c, which a meter on other rails than the board's sensor would show. Both
sensors err, alike in relative terms as far as is known: the line is fitted with errors in both variables [York2004],
which scale by the scatter about it, with Student's t for the 95 %.

The gain of a board is kept for its next session.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

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
MOST_STEPS: Final = 50  # it takes about five
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
        return f"{self.gain:.4f} ({self.interval[0]:.4f} to {self.interval[1]:.4f}){self._offset_words('W')}"

    def sentence(self, of: str, unit: str) -> str:
        """Say what was compared, with the errors of gain and offset.

        Parameters
        ----------
        of : str
            The name of the reading that takes the place of the board's sensor.
        unit : str
            The unit of both readings.

        Returns
        -------
        str
            One sentence.
        """
        low, high = self.interval
        offset = self._offset_words(unit)
        if self.offset_interval_w is None:
            offset = f"; {self.windows} rows of this range tell no offset"
        spans = f"{self.windows} rows of {self.range_w[0]:.4g} to {self.range_w[1]:.4g} {unit}"
        return f"{of} is {self.gain:.4f} ({low:.4f} to {high:.4f}) times {self.meter}{offset} (95 %, {spans})"

    def _offset_words(self, unit: str) -> str:
        if not self.offset_w or self.offset_interval_w is None:
            return ""
        low, high = self.offset_interval_w
        return f", and {self.offset_w:+.3g} {unit} ({low:.3g} to {high:.3g})"


@np.errstate(all="ignore")  # a table may hold any number: what no line fits is found not finite
def fit_gain(meter: str, board_w: Sequence[float] | Floats, meter_w: Sequence[float] | Floats) -> Gain:
    """Fit the gain to the mean powers of windows.

    Parameters
    ----------
    meter : str
        The name of the meter in figures.
    board_w, meter_w : sequence of float, length n
        The power of each window by the board's sensor and by the meter, W, or their energies, J; windows that one of
        them lacks are NaN.

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
    count, gain, offset_w = len(board), float(ratios.mean()), 0.0
    half, scatter = student_t(count - 1) * float(ratios.std(ddof=1)) / math.sqrt(count), float(ratios.std(ddof=1))
    offset_interval_w = None
    if count >= LEAST_FOR_OFFSET and other.max() >= LEAST_RANGE * other.min():
        line = straight_line(other, board, other, board)
        half_w = student_t(count - 2) * line.intercept_error
        if all(map(math.isfinite, (*line, half_w))):
            offset_interval_w = (line.intercept - half_w, line.intercept + half_w)
        if abs(line.intercept) > half_w:
            gain, half, offset_w = line.slope, student_t(count - 2) * line.slope_error, line.intercept
            scatter = float(np.sqrt(np.sum((ratios - gain - offset_w / other) ** 2) / (count - 2)))
    if not (PLAUSIBLE[0] <= gain <= PLAUSIBLE[1] and math.isfinite(half)):
        what = f"it reports {gain:.2f} times what {meter} does"
        raise WattridgeError(what, meter, "see whether the meter is on all of this board's supplies, and on no other's")
    return Gain(
        meter=meter,
        gain=gain,
        interval=(gain - half, gain + half),
        offset_w=offset_w,
        offset_interval_w=offset_interval_w,
        scatter=scatter,
        windows=count,
        range_w=(float(other.min()), float(other.max())),
    )


class Line(NamedTuple):
    """A straight line and the standard errors of its two parameters."""

    slope: float
    intercept: float
    slope_error: float
    intercept_error: float


def straight_line(x: Floats, y: Floats, x_error: Floats, y_error: Floats) -> Line:
    """Fit a straight line to points that have errors in both variables, uncorrelated [York2004, eqs 13a to 13d].

    Parameters
    ----------
    x, y : array, shape (n,)
        The points, three of them at least.
    x_error, y_error : array, shape (n,)
        Their errors, one sigma; one factor common to all of them does not matter.

    Returns
    -------
    Line
        The line. Its errors are those that the scatter about it shows: they are scaled by the square root of the sum of
        weighted squares over n - 2.
    """
    slope = float(np.polyfit(x, y, 1)[0])
    weight_x, weight_y = x_error**-2.0, y_error**-2.0
    for _ in range(MOST_STEPS):
        weight = weight_x * weight_y / (weight_x + slope**2 * weight_y)
        mean_x, mean_y = np.average(x, weights=weight), np.average(y, weights=weight)
        beta = weight * ((x - mean_x) / weight_y + slope * (y - mean_y) / weight_x)
        before, slope = slope, float(np.sum(weight * beta * (y - mean_y)) / np.sum(weight * beta * (x - mean_x)))
        if abs(slope - before) <= 1e-12 * abs(slope):
            break
    intercept = float(mean_y - slope * mean_x)
    adjusted = mean_x + beta
    middle = np.average(adjusted, weights=weight)
    variance = 1.0 / np.sum(weight * (adjusted - middle) ** 2)
    scale = np.sum(weight * (y - slope * x - intercept) ** 2) / (len(x) - 2)
    errors = np.sqrt(scale * np.array([variance, 1.0 / np.sum(weight) + middle**2 * variance]))
    return Line(slope, intercept, *errors.tolist())


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
