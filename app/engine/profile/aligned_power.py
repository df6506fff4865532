"""Power of the time in which a program ran, from a recording or a log, and how its clock fits that of the trace.

Both files usually know the time of day, which aligns them. Beside it stands an estimate from the data: the shift at
which power follows what ran best. Where a log knows no time of day, that shift alone aligns it, if there is only one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from ...base.errors import InputError
from ...sensors.recorded.recording import Recording
from ..metering.characterisation.sensor_figures import CHANNEL_OF
from .program_trace import KERNEL, ProgramTrace

Floats = npt.NDArray[np.float64]

_FEWEST: Final = 8  # samples within the trace
_REACH_S: Final = 2.0  # of the estimate, to both sides of what the clocks say
_STEPS: Final = 240  # within that
_MOST: Final = 20_000  # samples that it looks at
_BETTER: Final = 0.005  # by which the correlation through a longer window must be higher for it to be believed
_VARIES: Final = 0.01  # of what ran in each window, one sigma
_WINDOWS_S: Final = (0.025, 0.1, 1.0)  # over which sensors average, beside the time from sample to sample
_APART_S: Final = 0.3  # lag from which on it is said
_BLOCKS: Final = 6
_T_OF_BLOCKS: Final = 2.571  # 95 % of Student's t with five degrees of freedom
_FOLLOWS: Final = 0.3  # correlation from which on an estimate is shown
_ALONE: Final = 0.6  # and from which on it aligns a log without a time of day,
_AHEAD: Final = 0.1  # if no other shift comes so near
_GENERIC: Final = ("", "gpu", "device", "card")
_QUARTER_NS: Final = 900_000_000_000
_ZONES: Final = range(-48, 57)  # quarters of an hour, from 12 h behind UTC to 14 h ahead


@dataclass(frozen=True, slots=True)
class Lag:
    """How power follows what ran, as the data alone show it. NaN where they do not."""

    lag_s: float = math.nan  # from the end of what a value averages to its stamp, with what the clocks are apart
    margin_s: float = math.nan  # half of its 95 % interval
    window_s: float = math.nan  # what a value averages, of a few that sensors have
    correlation: float = math.nan  # of power with what ran


@dataclass(frozen=True, slots=True)
class Alignment:
    """How the times of the trace were put on the clock of the power samples."""

    IN_JSON: ClassVar = ("words",)

    how: str
    shift_s: float  # added to the trace's times, which count from the log's beginning where both know the time of day
    lag: Lag  # as estimated from the data
    overlap: float  # share of the trace's span in which there is power

    @property
    def words(self) -> str:
        """The estimate in one line."""
        lag = self.lag
        if math.isnan(lag.lag_s):
            return "no estimate from the data: what ran varies too little, or power does not follow it"
        return (
            f"power is the mean of about {1e3 * lag.window_s:.3g} ms that end {1e3 * lag.lag_s:.0f} ±"
            f" {max(1e3 * lag.margin_s, 1):.0f} ms before it is stamped"
            f" (correlation with what ran {lag.correlation:.2f})"
        )


@dataclass(frozen=True, slots=True)
class AlignedPower:
    """Power samples of one board, and where the trace lies on their clock."""

    recording: Recording
    source: str  # in SOURCES of the characterisation: buffer, instant, average, counter
    time_s: Floats  # of each sample, on the clock of the recording
    power_w: Floats
    alignment: Alignment
    notes: tuple[str, ...]

    def on_clock(self, trace: ProgramTrace, time_ns: npt.NDArray[np.int64]) -> Floats:
        """Times of the trace on the clock of the samples, s."""
        return _since_origin(trace, self.recording, time_ns) + self.alignment.shift_s


def align(
    trace: ProgramTrace, boards: Sequence[Recording], where: str, offset_s: float = 0.0, reach_s: float = _REACH_S
) -> AlignedPower:
    """Find the board's power among the boards of a log and align it with the trace.

    `offset_s` is added to the trace's times. `reach_s` is how far power may lie from where the clocks put it: less if
    both times are of one clock, since a program that is killed leaves power behind whose cause was not written. Raises
    InputError where no board of the log fits in name or time.
    """
    named = [board for board in boards if _same_board(trace.board, board.info.name)]
    if not named:
        there = ", ".join(dict.fromkeys(board.info.name for board in boards))
        raise InputError(f"the trace is of {trace.board}, the power of {there}", where, "name the power of that board")
    found = []
    fault = InputError("the log holds no power", where, "log the power of the board")
    for board in named:
        for source, time_s, power_w in _powers(board):
            try:
                found.append(_aligned(trace, board, source, time_s, power_w, where, offset_s, reach_s))
            except InputError as error:
                fault = error
            else:
                break  # the finest that fits
    if not found:
        raise fault
    best = max(found, key=lambda each: np.nan_to_num(each.alignment.lag.correlation, nan=-1.0))
    if len(found) > 1 and not best.alignment.lag.correlation > _FOLLOWS:
        numbers = ", ".join(board.title.rpartition("#")[2] for board in named)
        raise InputError("the power of no board of this log follows the trace", where, f"name one: FILE#N of {numbers}")
    if len(found) > 1:
        note = f"of {len(found)} boards in the log, {best.recording.title}, whose power follows the trace best"
        return replace(best, notes=(note, *best.notes))
    return best


def busy_intervals(start_s: npt.NDArray[Any], end_s: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The spans in which anything ran: intervals that overlap or touch, joined. `start_s` ascends."""
    if not len(start_s):
        return start_s, end_s
    reached = np.maximum.accumulate(end_s)
    begins = np.concatenate(([True], start_s[1:] > reached[:-1]))
    places = np.flatnonzero(begins)
    return start_s[places], reached[np.append(places[1:] - 1, len(start_s) - 1)]


# --- inside -----------------------------------------------------------------------------------------------------------


def _powers(board: Recording) -> Iterator[tuple[str, Floats, Floats]]:
    """The powers of a recording, the finest first, with their times in s."""
    if (known := np.isfinite(board.sample_w)).any():
        yield "buffer", board.sample_ns[known] / 1e9, board.sample_w[known]
    columns = board.by_name
    for source, name in CHANNEL_OF.items():
        if name in columns:
            kept = np.isfinite(columns[name])
            yield source, board.time_ns[kept] / 1e9, columns[name][kept]
    if (counter := columns.get("energy_j")) is not None:
        kept = np.flatnonzero(np.isfinite(counter))
        kept = kept[np.concatenate(([True], np.diff(counter[kept]) > 0))] if len(kept) else kept
        time_s = board.time_ns[kept] / 1e9
        yield "counter", time_s[1:], np.diff(counter[kept]) / np.diff(time_s)


def _aligned(
    trace: ProgramTrace,
    board: Recording,
    source: str,
    time_s: Floats,
    power_w: Floats,
    where: str,
    offset_s: float,
    reach_s: float,
) -> AlignedPower:
    if len(time_s) < _FEWEST:
        raise InputError(f"the log holds {len(time_s)} samples of power", where, f"at least {_FEWEST} are needed")
    start_s = _since_origin(trace, board, trace.start_ns)
    kernels = trace.kind == KERNEL if (trace.kind == KERNEL).any() else np.ones(len(trace), np.bool_)
    begin_s, end_s = busy_intervals(start_s[kernels], (start_s + trace.duration_ns / 1e9)[kernels])
    span_s = float(begin_s[0]), float(end_s.max())
    notes: list[str] = []
    if trace.on_wall and math.isfinite(board.began_s):
        how, shift_s = "the time of day in both files", offset_s
        if not board.zoned:
            zone_ns = _zone_ns(trace, board, span_s, (float(time_s[0]), float(time_s[-1])))
            shift_s += zone_ns / 1e9
            sign, (hours, quarters) = "-" if zone_ns < 0 else "+", divmod(abs(zone_ns) // _QUARTER_NS, 4)
            notes.append(f"the log's times name no zone: they are taken as UTC{sign}{hours}:{15 * quarters:02}")
    else:
        how = "the shift at which power follows what ran"
        shift_s = offset_s or _only_shift(begin_s, end_s, time_s, power_w, where)
        if offset_s:
            how = "--offset"
    first_s, last_s = span_s[0] + shift_s, span_s[1] + shift_s
    inside = (time_s >= first_s) & (time_s <= last_s)
    if inside.sum() < _FEWEST:
        raise InputError(_apart(trace, board, (first_s, last_s), (time_s[0], time_s[-1])), where, _APART_REMEDY)
    overlap = (min(last_s, float(time_s[-1])) - max(first_s, float(time_s[0]))) / (last_s - first_s)
    if overlap < 0.98:
        notes.append(f"there is power of {100 * overlap:.0f} % of the trace only; what ran outside of it is left out")
    step_s = float(np.median(np.diff(time_s)))
    windows_s = (step_s,) if source in ("buffer", "counter") else sorted({step_s, *_WINDOWS_S})
    lag = _lag(begin_s + shift_s, end_s + shift_s, time_s, power_w, windows_s, reach_s)
    if lag.margin_s < abs(lag.lag_s) - _APART_S:
        notes.append(f"power follows what ran by {lag.lag_s:.2f} s: the clocks may differ; --offset S shifts the trace")
    alignment = Alignment(how, shift_s, lag, min(overlap, 1.0))
    return AlignedPower(board, source, time_s, power_w, alignment, tuple(notes))


_APART_REMEDY: Final = "name the power log of the same run; --offset S shifts the trace"


def _apart(trace: ProgramTrace, board: Recording, span_s: tuple[float, float], log_s: tuple[float, float]) -> str:
    if not trace.on_wall or math.isnan(board.began_s) or (span_s[0] < log_s[1] and span_s[1] > log_s[0]):
        return f"fewer than {_FEWEST} samples of power lie within the {span_s[1] - span_s[0]:.3g} s of the trace"
    began_s = _began_ns(board) / 1e9
    ran, logged = (
        " to ".join(f"{datetime.fromtimestamp(began_s + at, UTC):%Y-%m-%d %H:%M:%S}" for at in span)
        for span in (span_s, log_s)
    )
    return f"the trace is of {ran}, the power of {logged}: they have no time in common"


def _since_origin(trace: ProgramTrace, board: Recording, time_ns: npt.NDArray[np.int64]) -> Floats:
    """Times of the trace since the beginning of the recording, as far as the clocks of both say; else since its own."""
    known = trace.on_wall and math.isfinite(board.began_s)
    origin = _began_ns(board) if known else int(trace.start_ns[0])
    return np.asarray((time_ns - origin) / 1e9, np.float64)


def _began_ns(board: Recording) -> int:
    """When a recording began; the dates of a log that names no zone are taken as UTC, until the zone is found."""
    if board.zoned:
        return round(board.began_s * 1e9)
    return round(datetime.fromtimestamp(board.began_s).replace(tzinfo=UTC).timestamp() * 1e9)


def _same_board(ran_on: str, logged: str) -> bool:
    """Whether two names may be of one board. A log often names none."""
    first, second = (
        name.lower().removesuffix(", simulated").replace("nvidia", "").strip() for name in (ran_on, logged)
    )
    if second.rstrip("0123456789 #") in _GENERIC or not first:
        return True
    return first in second or second in first


def _zone_ns(trace: ProgramTrace, board: Recording, span_s: tuple[float, float], log_s: tuple[float, float]) -> int:
    """How far the log's dates are ahead of UTC: this machine's zone, UTC or another one, the first that fits."""
    here = datetime.fromtimestamp(trace.start_ns[0] / 1e9).astimezone().utcoffset()
    own_ns = int(here.total_seconds() * 1e9) if here is not None else 0
    for zone_ns in (own_ns, 0, *(quarter * _QUARTER_NS for quarter in sorted(_ZONES, key=abs))):
        common = min(span_s[1] + zone_ns / 1e9, log_s[1]) - max(span_s[0] + zone_ns / 1e9, log_s[0])
        if common > 0.5 * min(span_s[1] - span_s[0], log_s[1] - log_s[0]):
            return zone_ns
    return own_ns


def _busy(begin_s: Floats, end_s: Floats) -> tuple[Floats, Floats]:
    """The time that something ran up to each of some times: straight lines between them."""
    edges = np.column_stack((begin_s, end_s)).ravel()
    return edges, np.column_stack((np.zeros(len(begin_s)), end_s - begin_s)).ravel().cumsum()


def _lag(
    begin_s: Floats, end_s: Floats, time_s: Floats, power_w: Floats, windows_s: Sequence[float], reach_s: float
) -> Lag:
    """By how much power follows what ran, and over how long its values average, by their correlation."""
    edges, ran = _busy(begin_s, end_s)
    span_s = edges[-1] - edges[0]
    reach_s = min(reach_s, max(0.1 * span_s, 0.2))
    windows_s = [window_s for window_s in windows_s if window_s < 0.3 * span_s]
    rests = _rests_outside(float(edges[0]), float(edges[-1]), reach_s, time_s, power_w)
    # where more ran outside of the trace, nothing is known of what ran in windows that reach there
    first_s = edges[0] - reach_s if rests[0] else edges[0] + reach_s + max(windows_s, default=0.0)
    last_s = edges[-1] + reach_s if rests[1] else edges[-1] - reach_s
    kept = np.flatnonzero((time_s > first_s) & (time_s < last_s))[:_MOST]
    time_s, power_w = time_s[kept], power_w[kept]
    if len(kept) < 4 * _FEWEST or not power_w.std() > 0:
        return Lag()
    power_w = power_w - power_w.mean()
    found, least = Lag(), _FOLLOWS
    for window_s in windows_s:
        shifts = np.linspace(-reach_s, reach_s, _STEPS + 1)
        for step_s in (shifts[1] - shifts[0], 0.0):
            ends = time_s - shifts[:, None]
            shares = (np.interp(ends, edges, ran) - np.interp(ends - window_s, edges, ran)) / window_s
            scores, without = _correlations(shares, power_w)
            top, correlation = _peak(shifts, scores)
            if step_s > 0 and math.isfinite(top):
                shifts = np.linspace(top - 2 * step_s, top + 2 * step_s, _STEPS // 4 + 1)
        if correlation > least:
            least = correlation + _BETTER
            each = np.array([_peak(shifts, row)[0] for row in without])
            spread = math.sqrt((_BLOCKS - 1) ** 2 / _BLOCKS) * float(each.std(ddof=1))  # of a jackknife
            coarse_s = float(np.median(np.diff(time_s))) / math.sqrt(12 * len(time_s))  # the stamps of the samples
            found = Lag(top, _T_OF_BLOCKS * math.hypot(spread, coarse_s), window_s, correlation)
    return found


def _rests_outside(begin_s: float, end_s: float, reach_s: float, time_s: Floats, power_w: Floats) -> tuple[bool, bool]:
    """Whether the board rested before the trace and after it: a profiler often watches a part of a program only."""
    inside = power_w[(time_s >= begin_s) & (time_s <= end_s)]
    low, high = np.percentile(inside, (5, 95))
    sides = [
        power_w[(time_s > begin_s - reach_s) & (time_s < begin_s - 0.2 * reach_s)],
        power_w[(time_s > end_s + 0.2 * reach_s) & (time_s < end_s + reach_s)],
    ]
    first, last = (len(side) > 2 and float(np.median(side)) <= low + 0.25 * (high - low) for side in sides)
    return first, last


def _correlations(shares: Floats, power_w: Floats) -> tuple[Floats, Floats]:
    """The correlation of each row with power, and the same without each of some blocks of time: (blocks, rows)."""
    at = np.linspace(0, len(power_w), _BLOCKS, endpoint=False).astype(int)
    sums = [np.add.reduceat(values, at, axis=1) for values in (shares, shares**2, shares * power_w)]  # (rows, blocks)
    ones, powers, squares = (np.add.reduceat(values, at) for values in (np.ones(len(power_w)), power_w, power_w**2))

    def correlation(taken: npt.NDArray[np.bool_]) -> Floats:
        x, xx, xy = (values[:, taken].sum(axis=1) for values in sums)
        count, y, yy = ones[taken].sum(), powers[taken].sum(), squares[taken].sum()
        spread = np.maximum(xx / count - (x / count) ** 2, 0.0) * max(yy / count - (y / count) ** 2, 0.0)
        varies = xx / count - (x / count) ** 2 > _VARIES**2
        return np.where(varies, (xy / count - x * y / count**2) / np.sqrt(np.maximum(spread, 1e-18)), np.nan)

    blocks = np.eye(_BLOCKS, dtype=np.bool_)
    return correlation(np.ones(_BLOCKS, np.bool_)), np.array([correlation(~block) for block in blocks])


def _peak(shifts: Floats, scores: Floats) -> tuple[float, float]:
    """Where a curve is highest, between its points, and how high; NaN where nothing varies."""
    if np.isnan(scores).all():
        return math.nan, math.nan
    top = int(np.nanargmax(scores))
    low, mid, high = scores[max(top - 1, 0)], scores[top], scores[min(top + 1, len(scores) - 1)]
    bend = low - 2 * mid + high
    beside = 0.5 * (low - high) / bend if np.isfinite(bend) and bend < 0 else 0.0
    return float(shifts[top] + beside * (shifts[1] - shifts[0])), float(mid)


def _only_shift(begin_s: Floats, end_s: Floats, time_s: Floats, power_w: Floats, where: str) -> float:
    """The shift of a log without a time of day: the only one at which its power follows what ran. Raises InputError."""
    step_s = max(float(np.median(np.diff(time_s))), (time_s[-1] - time_s[0]) / 2**18)
    grid_s = np.arange(time_s[0], time_s[-1], step_s)
    power = np.interp(grid_s, time_s, power_w)
    edges, ran = _busy(begin_s, end_s)
    shares = np.diff(np.interp(np.arange(edges[0], edges[-1] + step_s, step_s), edges, ran)) / step_s
    count = len(shares)
    what = "the power log knows no time of day, and there is not one shift alone at which its power follows the trace"
    if not _FEWEST <= count <= len(power) or shares.std() < _VARIES:
        raise InputError(what, where, _APART_REMEDY)
    size = 1 << (len(power) + count).bit_length()
    centred = shares - shares.mean()
    products = np.fft.irfft(np.fft.rfft(power, size) * np.conj(np.fft.rfft(centred, size)), size)
    sums, squares = (np.concatenate(([0.0], np.cumsum(values))) for values in (power, power**2))
    mean = (sums[count:] - sums[:-count]) / count
    spread = np.sqrt(np.maximum((squares[count:] - squares[:-count]) / count - mean**2, 1e-9))
    scores = products[: len(spread)] / (count * centred.std() * spread)
    top = int(np.argmax(scores))
    near = max(round(_REACH_S / step_s), 3)
    others = np.concatenate((scores[: max(top - near, 0)], scores[top + near + 1 :]))
    if scores[top] < _ALONE or (len(others) and others.max() > scores[top] - _AHEAD):
        raise InputError(what, where, _APART_REMEDY)
    return float(grid_s[top] - edges[0])
