"""A log of readings over time: the plateaus at which the clock stood still under load, one point per clock.

A log is not a table of measurements: its rows are readings at whatever the board did, ramps and idle stretches among
them. Of a sweep of locked clocks it holds one plateau or more per clock; everything else is left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...sensors.recorded.logs.cells import Block, is_time, stamps_of
from ..formats.columns import Columns
from ..formats.headings import unit_of
from .arrays import Floats, Mask, Rows

READING = "reading"  # the column instead of the time, if that is unknown

_STAMP = re.compile(r"stamp|date|time|elapsed|^ts?( |$|_|\[)", re.IGNORECASE)
_DURATION = re.compile(r"run_?time|duration|latency|launch|exec|per_(run|iter|launch)", re.IGNORECASE)
_LEAST_ROWS = 100  # fewer rows are a table
_LONGEST_STEP_S = 15.0  # between the readings of a log
_ROWS_PER_CLOCK = 5  # of a log whose times are numbers: they may also be durations

_SAME_CLOCK_MHZ = 4.0  # readings of one locked clock lie this close together
_LEAST_S = 1.5  # a plateau lasts, the ramp aside
_LEAST_READINGS = 5
_RAMP_S = 1.0  # what a board's own average takes to follow
_TWO_LEVELS = 0.25  # relative: readings at one clock that are this far apart are load and idle
_IDLE = 1.15  # times the idle power: a plateau below is one without load
_NEAR_CEILING = 0.015  # relative
_CLOCKS_AT_CEILING = 3
_BELOW_LINE = 0.85  # of what the next clocks lead to expect: no load draws so little
_BUSY = 50.0  # per cent of utilisation
_SAME_MEMORY = 0.05  # relative


@dataclass(frozen=True, slots=True)
class Plateau:
    """What was read at one clock under load, over all stretches at it."""

    clock_mhz: float
    power_w: float  # the median
    scatter_w: float  # standard deviation of the readings, outliers aside
    readings: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Log:
    """Readings in the order of time; arrays of shape (n,), NaN if unknown."""

    time_s: Floats
    clock_mhz: Floats
    power_w: Floats
    memory_mhz: Floats | None = None
    utilisation: Floats | None = None  # per cent
    rate: Floats | None = None  # speed in any unit
    timed: bool = True  # False: the times are numbers of readings

    @property
    def words(self) -> str:
        """How many readings over what time."""
        over = f" over {np.ptp(self.time_s):.0f} s" if self.timed else ""
        return f"a log of {len(self.time_s)} readings{over}"


def log_times(columns: Columns, clock: str, time: str | None) -> tuple[Floats, bool] | None:
    """Compute the time of each row, where the table is a log.

    Rows of several boards may alternate, so a time may repeat.

    Parameters
    ----------
    columns : Columns
        The table, n rows.
    clock : str
        Name of the column of clocks.
    time : str or None
        Name of a column of times, which may be those of the readings or durations; None if there is none.

    Returns
    -------
    tuple of array and bool, or None
        Times of shape (n,), and whether these are seconds rather than numbers of readings; None for a table of
        measurements.
    """
    if READING in columns.cells:
        return columns.numbers(READING), False
    if len(columns) < _LEAST_ROWS or any(_DURATION.search(name) for name in columns.cells):
        return None
    if time is not None and _numeric_times(columns, time, clock) is None:
        return None  # how long something took
    for name in columns.cells:
        if not _STAMP.search(name):
            continue
        if columns.is_numeric(name):
            seconds = _numeric_times(columns, name, clock)
        else:
            seconds = _stamps(columns.cells[name])
        if seconds is None or (np.diff(seconds) < 0).any():
            continue
        steps = np.diff(seconds)
        if (steps > 0).any() and np.median(steps[steps > 0]) <= _LONGEST_STEP_S:
            return seconds, True
    return None


def plateaus(log: Log) -> tuple[list[Plateau], list[Rows]]:
    """Find the plateaus of a log at which the clock stood still under load.

    Parameters
    ----------
    log : Log
        Readings in the order of time, arrays of shape (n,).

    Returns
    -------
    tuple of list of Plateau and list of array
        The plateaus by ascending clock, and the rows of each; empty if there are none.
    """
    usable = np.isfinite(log.clock_mhz) & (log.clock_mhz > 0) & (log.power_w > 0)
    usable &= _at_working_memory_clock(log)
    idle = _idle_power(log, usable)
    levels: list[tuple[float, Rows]] = []
    for stretch in _stretches(log, usable):
        rows = _loaded(log, stretch)
        if len(rows) and (idle is None or np.median(log.power_w[rows]) > _IDLE * idle):
            levels += [(float(np.median(log.clock_mhz[part])), part) for part in _settled(log, rows)]
    levels.sort(key=lambda each: each[0])
    groups: list[list[Rows]] = []
    last = -np.inf
    for clock, rows in levels:
        if clock - last > _SAME_CLOCK_MHZ:
            groups.append([])
        groups[-1].append(rows)
        last = clock
    kept = [np.concatenate(_at_full_load(log, group)) for group in groups]
    found_plateaus = [_plateau(log, rows) for rows in kept]
    if len(found_plateaus) > 2 and _rests(*found_plateaus[:3]):
        return found_plateaus[1:], kept[1:]
    return found_plateaus, kept


def ceiling_w(log: Log) -> float | None:
    """Find the power at which a limit held the board: the highest, drawn at several clocks.

    Parameters
    ----------
    log : Log
        Readings in the order of time, arrays of shape (n,).

    Returns
    -------
    float or None
        In W; None if there is none.
    """
    finite = np.isfinite(log.clock_mhz) & np.isfinite(log.power_w)
    if not finite.any():
        return None
    high = finite & (log.power_w > (1 - 2 * _NEAR_CEILING) * np.percentile(log.power_w[finite], 99))
    level = float(np.median(log.power_w[high]))
    near_ceiling = finite & (np.abs(log.power_w - level) < _NEAR_CEILING * level)
    clocks, count = np.unique(np.round(log.clock_mhz[near_ceiling] / _SAME_CLOCK_MHZ), return_counts=True)
    often = clocks[count >= _LEAST_READINGS]
    return level if len(often) >= _CLOCKS_AT_CEILING else None


# --- time -------------------------------------------------------------------------------------------------------------


def _stamps(cells: Sequence[str]) -> Floats | None:
    """Date and time as seconds; None if a cell is none."""
    block = Block("\n".join(cell or "-" for cell in cells).encode(), "\0", 1)
    stamps = stamps_of(block, 0, None)
    known = np.flatnonzero(is_time(stamps))
    if len(block) < len(cells) or len(known) < 0.99 * len(cells):
        return None
    return np.asarray(np.interp(np.arange(len(cells)), known, (stamps[known] - stamps[known[0]]) / 1e9))


def _numeric_times(columns: Columns, name: str, clock: str) -> Floats | None:
    """Numbers that are times of readings rather than durations: even steps, and many rows at each clock."""
    values = columns.numbers(name)
    if not np.isfinite(values).all() or np.ptp(values) == 0 or (np.diff(values) < 0).any():
        return None
    numbers = columns.numbers(clock)
    if len(values) < _ROWS_PER_CLOCK * len(np.unique(numbers[np.isfinite(numbers)])):
        return None
    quantity, scale = unit_of(name)
    if quantity != "time" or scale == 1.0:  # since the epoch, in ns or ms, or seconds
        scale = 1e-9 if values[0] > 1e17 else 1e-3 if values[0] > 1e11 else 1.0
    steps = np.diff(values)
    steps = steps[steps > 0]
    if not len(steps) or np.percentile(steps, 90) > 5 * np.median(steps):
        return None
    return np.asarray((values - values[0]) * scale)


# --- plateaus ---------------------------------------------------------------------------------------------------------


def _at_working_memory_clock(log: Log) -> Mask:
    """Readings at the memory clock of the highest powers: at another one the board rests."""
    if log.memory_mhz is None:
        return np.ones(len(log.time_s), dtype=np.bool_)
    high = log.power_w >= np.nanpercentile(log.power_w, 80)
    working = float(np.nanmedian(log.memory_mhz[high])) if np.isfinite(log.memory_mhz[high]).any() else np.nan
    if not np.isfinite(working):
        return np.ones(len(log.time_s), dtype=np.bool_)
    return np.asarray(~(np.abs(log.memory_mhz - working) > _SAME_MEMORY * working))


def _rests(lowest: Plateau, second: Plateau, third: Plateau) -> bool:
    """Whether the board rests at the lowest clock, at which an idle board without a lock lies.

    Under one load power over the clock bends upwards, so it lies above the line through the next two plateaus.
    """
    slope = (third.power_w - second.power_w) / (third.clock_mhz - second.clock_mhz)
    line = second.power_w + slope * (lowest.clock_mhz - second.clock_mhz)
    return lowest.power_w < _BELOW_LINE * line


def _stretches(log: Log, usable: Mask) -> list[Rows]:
    """Rows between two changes of the clock, in one piece and long enough."""
    rows = np.flatnonzero(usable)
    if not len(rows):
        return []
    cuts = (np.abs(np.diff(log.clock_mhz[rows])) > _SAME_CLOCK_MHZ) | (np.diff(log.time_s[rows]) > _LONGEST_STEP_S)
    edges = np.concatenate([[0], np.flatnonzero(cuts) + 1, [len(rows)]])
    long = np.flatnonzero(np.diff(edges) >= _LEAST_READINGS)
    pieces = [rows[edges[index] : edges[index + 1]] for index in long.tolist()]
    return [piece for piece in pieces if _long_enough(log, piece)]


def _long_enough(log: Log, rows: Rows) -> bool:
    return len(rows) >= _LEAST_READINGS and float(np.ptp(log.time_s[rows])) >= _LEAST_S


def _idle_power(log: Log, usable: Mask) -> float | None:
    """The power without load, W, where the log shows it: by the utilisation, else as the lower of two levels."""
    if log.utilisation is not None:
        resting = usable & (log.utilisation == 0)
        return float(np.median(log.power_w[resting])) if resting.sum() >= _LEAST_READINGS else None
    lower = [
        log.power_w[stretch][~upper]
        for stretch in _stretches(log, usable)
        if (upper := _upper_level(log.power_w[stretch])).sum() >= _LEAST_READINGS and (~upper).sum() >= _LEAST_READINGS
    ]
    return float(np.median(np.concatenate(lower))) if lower else None


def _loaded(log: Log, rows: Rows) -> Rows:
    """The rows of a stretch at which the board works."""
    if log.utilisation is not None and np.isfinite(log.utilisation[rows]).all():
        rows = rows[log.utilisation[rows] >= _BUSY]
    return rows[_upper_level(log.power_w[rows])] if len(rows) else rows


def _upper_level(power: Floats) -> Mask:
    """All readings of one level; of two levels those of the upper one."""
    low, high = np.percentile(power, [5, 95])
    if low >= (1 - _TWO_LEVELS) * high:
        return np.asarray(power >= (1 - _TWO_LEVELS) * high)
    return np.asarray(power > (low + high) / 2)


def _settled(log: Log, rows: Rows) -> list[Rows]:
    """Pieces under load without their ramps, as far as they are long enough."""
    pieces = np.split(rows, np.flatnonzero(np.diff(rows) > 2) + 1)
    kept = []
    for piece in pieces:
        time = log.time_s[piece]
        inner = piece[(time >= time[0] + _RAMP_S) & (time <= time[-1] - 0.3 * _RAMP_S)] if len(piece) else piece
        if len(inner) and _long_enough(log, inner):
            kept.append(inner)
    return kept


def _at_full_load(log: Log, group: list[Rows]) -> list[Rows]:
    """Of several stretches at one clock those of the same load as the one that draws most."""
    levels = [float(np.median(log.power_w[rows])) for rows in group]
    return [rows for rows, level in zip(group, levels, strict=True) if level >= (1 - _TWO_LEVELS) * max(levels)]


def _plateau(log: Log, rows: Rows) -> Plateau:
    power = log.power_w[rows]
    median = float(np.median(power))
    steps = np.diff(log.time_s)
    step = float(np.median(steps[steps > 0])) if (steps > 0).any() else 0.0
    return Plateau(
        clock_mhz=float(np.median(log.clock_mhz[rows])),
        power_w=median,
        scatter_w=1.48 * float(np.median(np.abs(power - median))),
        readings=len(rows),
        seconds=step * len(rows),
    )
