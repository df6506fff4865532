"""Time stamps of a log in ns: numbers of any unit, dates with times, times of the day, whole blocks at once."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Final

import numpy as np
import numpy.typing as npt

from .cells import Block, Bytes, Rows, read_numbers

Nanoseconds = npt.NDArray[np.int64]

DAY_NS: Final = 86_400_000_000_000
_CLOCK: Final = re.compile(rb"\d\d:\d\d:\d\d(\.\d+)?")
_EPOCHS: Final = ((1e17, 1.0), (1e14, 1e3), (1e11, 1e6))  # since 1970: at least so much -> ns per unit
_BAD: Final = -(2**62)  # what is no time


@dataclass(frozen=True, slots=True)
class _Form:
    """Where the year, the month and the day stand in a stamp, and where the time of the day begins."""

    pattern: re.Pattern[bytes]
    year: int
    month: int
    day: int
    time: int


_FORMS: Final = (
    _Form(re.compile(rb"\d{4}[-/.]\d\d[-/.]\d\d[ T]\d\d:\d\d:\d\d.*"), 0, 5, 8, 11),
    _Form(re.compile(rb"\d\d[-/.]\d\d[-/.]\d{4}[ T]\d\d:\d\d:\d\d.*"), 6, 3, 0, 11),
    _Form(re.compile(rb"\d{8} \d\d:\d\d:\d\d.*"), 0, 4, 6, 9),
)


def stamp_reader(first: bytes, scale: float | None) -> Callable[[Block, int], Nanoseconds] | None:
    """What reads the stamps of a column whose first cell is `first`; None where that is no time.

    `scale` is s per unit of a number; None: seconds, or what the epoch's size says.
    """
    form = next((each for each in _FORMS if each.pattern.fullmatch(first)), None)
    if form is not None:
        return lambda block, cell: _dated(block.data, block.starts[:, cell], form)
    if _CLOCK.fullmatch(first):
        return lambda block, cell: _time_of_day(block.data, block.starts[:, cell])
    try:
        number = float(first)
    except ValueError:
        return None
    if not np.isfinite(number):
        return None
    ns = scale * 1e9 if scale is not None else next((each for size, each in _EPOCHS if abs(number) >= size), 1e9)
    return lambda block, cell: _numbered(block, cell, ns)


def days(block: Block, cell: int) -> Nanoseconds:
    """A column of dates (20260419 or 2026-04-19 or 2026/04/19) in ns."""
    starts = block.starts[:, cell]
    wide = 0 if bool((block.data[starts + 4] - np.uint8(48) < 10).all()) else 1
    return _days(block.data, starts, 0, 4 + wide, 6 + 2 * wide)


def is_time(stamps: Nanoseconds) -> npt.NDArray[np.bool_]:
    """Which of them are times."""
    return stamps > _BAD // 2


def _dated(data: Bytes, starts: Rows, form: _Form) -> Nanoseconds:
    month, day = form.month, form.day
    if form.day == 0 and bool((_digits(data, starts + month, 2) > 12).any()):
        month, day = day, month  # the month stands first: no month is greater than 12
    return _days(data, starts, form.year, month, day) + _time_of_day(data, starts + form.time)


def _days(data: Bytes, starts: Rows, year: int, month: int, day: int) -> Nanoseconds:
    """Few days are different, so each is looked up once."""
    code = _digits(data, starts + year, 4) * 10_000 + _digits(data, starts + month, 2) * 100
    code += _digits(data, starts + day, 2)
    distinct, places = np.unique(code, return_inverse=True)
    return np.array([_day_ns(each) for each in distinct.tolist()], np.int64)[places]


def _day_ns(code: int) -> int:
    try:
        return (date(code // 10_000, code // 100 % 100, code % 100).toordinal() - 719_163) * DAY_NS
    except (ValueError, OverflowError):
        return _BAD


def _time_of_day(data: Bytes, starts: Rows) -> Nanoseconds:
    seconds, _, known = read_numbers(data, starts + 6)
    colons = (data[starts + 2] == ord(":")) & (data[starts + 5] == ord(":"))
    hours, minutes = _digits(data, starts, 2), _digits(data, starts + 3, 2)
    known &= colons & (hours >= 0) & (hours < 24) & (minutes >= 0) & (minutes < 60)
    whole = np.where(known, hours * 3600 + minutes * 60, 0) * 1_000_000_000
    return np.where(known, whole + np.rint(np.where(known, seconds, 0.0) * 1e9).astype(np.int64), _BAD)


def _digits(data: Bytes, starts: Rows, count: int) -> Nanoseconds:
    """Numbers of so many digits; far below 0 where something else stands there."""
    value = np.zeros(len(starts), np.int64)
    for at in range(count):
        digit = data[starts + at] - np.uint8(48)
        value = np.where(digit < 10, value * 10 + digit, -1_000_000_000)
    return value


def _numbered(block: Block, cell: int, ns: float) -> Nanoseconds:
    values, _, known = read_numbers(block.data, block.starts[:, cell])
    known &= np.abs(values) * ns < 2.0**62
    if ns == 1e9:  # seconds since the epoch keep their nanoseconds in two parts
        seconds = np.floor(np.where(known, values, 0.0))
        rest = np.where(known, values, 0.0) - seconds
        stamps = seconds.astype(np.int64) * 1_000_000_000 + np.rint(rest * 1e9).astype(np.int64)
    else:
        stamps = np.rint(np.where(known, values, 0.0) * ns).astype(np.int64)
    return np.where(known, stamps, _BAD)
