"""Cells of delimited text as numbers and times, a block of lines at a time: a hundred megabytes in a second or two.

Every step works on one character of all rows at once, so that no Python object is made per cell. Time stamps in ns are
read from numbers of any unit, dates with times, and times of the day.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Final

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Rows = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

PADDING: Final = b"\n" + b" " * 63  # behind a block, so that no cell is read beyond it
_NEWLINE, _SPACE, _RETURN, _POINT, _MINUS, _PLUS, _ZERO = (ord(item) for item in "\n \r.-+0")
_LONGEST: Final = 19  # digits that 64 bits hold, but for the largest numbers: ns since 1970 have as many
_LONGEST_TEXT: Final = 60  # characters by which texts are told apart
_PRIME: Final = np.uint64(0x100000001B3)  # of the hash FNV-1a
_TENS: Final = 10.0 ** np.arange(_LONGEST + 2)


class Block:
    """Whole lines, split into cells: `starts[row, cell]` is where a cell begins, spaces before it left out.

    `delimiter` None stands for spaces. Lines with another number of cells than `cells` are in `odd`, by number; those
    that are empty or begin with '#' are neither.
    """

    def __init__(self, text: bytes, delimiter: str | None, cells: int) -> None:
        self.data: Bytes = np.frombuffer(text + PADDING, np.uint8)
        self._text = text + PADDING
        data = self.data[: len(text)]
        ends = np.flatnonzero(data == _NEWLINE)
        if not len(ends) or ends[-1] != len(text) - 1:
            ends = np.append(ends, len(text))  # the last line, where it does not end
        begins = np.concatenate(([0], ends[:-1] + 1))
        self.lines = len(ends)
        self._begins, self._ends = begins, ends
        first = self.data[begins]
        kept = (begins < ends) & (first != ord("#")) & (first != _RETURN)
        self._bound: int = -1 if delimiter is None else ord(delimiter)
        if delimiter is None:
            inside = (data != _SPACE) & (data != _NEWLINE) & (data != _RETURN) & (data != ord("\t"))
            before = np.concatenate(([False], inside[:-1]))
            marks = np.flatnonzero(inside & ~before)
            per_line = cells
        else:
            marks = np.flatnonzero(data == self._bound)
            per_line = cells - 1
        edges = np.searchsorted(marks, begins)
        counts = np.diff(np.append(edges, len(marks)))
        if delimiter is None:
            kept &= counts > 0
        good = kept & (counts == per_line)
        self.odd: Rows = np.flatnonzero(kept & ~good)
        self.numbers: Rows = np.flatnonzero(good)  # of the lines, from 0
        if len(self.numbers) != self.lines or kept.sum() != self.lines:
            marks = marks[np.repeat(good, counts)]
        table = marks.reshape(len(self.numbers), per_line)
        self.starts: npt.NDArray[np.int64] = table if delimiter is None else np.column_stack((begins[good], table + 1))
        if delimiter is not None:
            self._skip_spaces()

    def _skip_spaces(self) -> None:
        """Most logs have one space behind each comma, or none; some pad their cells."""
        while (spaces := self.data[self.starts] == _SPACE).any():
            self.starts += spaces

    def __len__(self) -> int:
        return len(self.numbers)

    def line(self, number: int) -> bytes:
        """A whole line, counted from 0."""
        return self._text[int(self._begins[number]) : int(self._ends[number])].strip()

    def text(self, row: int, cell: int) -> bytes:
        """One cell as it is written, without spaces around it."""
        start = int(self.starts[row, cell])
        return self._text[start : self._end(start)].strip()

    def distinct(self, cell: int) -> tuple[list[int], Rows]:
        """A row of each different text in a cell, and of every row which of these it has: by a hash of the text."""
        starts = self.starts[:, cell]
        code = np.zeros(len(starts), np.uint64)
        active = np.ones(len(starts), np.bool_)
        for place in range(_LONGEST_TEXT):
            character = self.data[starts + place]
            active &= (character != _NEWLINE) & (character != _RETURN)
            active &= (character != self._bound) if self._bound != -1 else (character != _SPACE)
            if not active.any():
                break
            code = np.where(active, (code ^ character) * _PRIME, code)
        _, rows, which = np.unique(code, return_index=True, return_inverse=True)
        return rows.tolist(), which

    def floats(self, cell: int, slow: Callable[[bytes, int], float]) -> Floats:
        """One cell of every row as a number; `slow` reads what is not digits with a point, by text and row.

        A unit may follow a number after a space, the same in all rows.
        """
        values, stops, is_number = read_numbers(self.data, self.starts[:, cell])
        behind = self.data[stops]
        whole = (behind == self._bound) | (behind == _NEWLINE) | (behind == _RETURN)
        if self._bound == -1:
            whole |= (behind == _SPACE) | (behind == ord("\t"))
        else:
            spaced = behind == _SPACE
            if spaced.any():
                unit = self.data[stops + 1]
                like = unit[int(np.argmax(spaced))]
                whole |= spaced & (unit == like)
        for row in np.flatnonzero(~(is_number & whole)).tolist():
            values[row] = slow(self.text(row, cell), row)
        return values

    def unit(self, cell: int) -> str:
        """What follows the number in the first row that has one; '' where nothing does."""
        for row in range(min(len(self), 1000)):
            words = self.text(row, cell).split()
            if words and words[0][:1].isdigit():
                return words[1].decode("utf-8", "replace") if len(words) > 1 else ""
        return ""

    def _end(self, start: int) -> int:
        ends = b"\n" if self._bound == -1 else b"\n" + bytes((self._bound,))
        stop = min(index for end in ends if (index := self._text.find(end, start)) >= 0)
        if self._bound == -1:
            return start + len(self._text[start:stop].split(None, 1)[0])
        return stop


def read_numbers(data: Bytes, starts: Rows) -> tuple[Floats, Rows, npt.NDArray[np.bool_]]:
    """The decimal numbers that begin at `starts`, where each ends, and which are any: digits with at most one point.

    What is not digits ends a number. Numbers of more than 63 bits are not known.
    """
    sign = data[starts]
    negative = sign == _MINUS
    offsets = starts + (negative | (sign == _PLUS))
    mantissa = np.zeros(len(offsets), np.int64)
    digits = np.zeros(len(offsets), np.int64)
    decimals = np.zeros(len(offsets), np.int64)
    pointed = np.zeros(len(offsets), np.bool_)
    active = np.ones(len(offsets), np.bool_)
    for _ in range(_LONGEST + 2):
        character = data[offsets]
        digit = character - np.uint8(_ZERO)
        is_digit = active & (digit < 10)
        is_point = active & (character == _POINT) & ~pointed
        active = is_digit | is_point
        if not active.any():
            break
        mantissa = np.where(is_digit, mantissa * 10 + digit, mantissa)
        digits += is_digit
        decimals += is_digit & pointed
        pointed |= is_point
        offsets = offsets + active
    is_number = (digits > 0) & (digits <= _LONGEST) & ~active & (mantissa >= 0)
    values = mantissa / _TENS[decimals]
    values[negative] *= -1.0
    values[~is_number] = np.nan
    return values, offsets, is_number


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
    """What reads the stamps of a column whose first cell is `first`; None if that is no time.

    `scale` is s per unit of a number; None: seconds, or what the epoch's size says.
    """
    form = next((item for item in _FORMS if item.pattern.fullmatch(first)), None)
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


def rises(stamps: Nanoseconds, share: float = 1.0) -> bool:
    """Whether there are times, of which at least this share is no earlier than the one before."""
    later = np.diff(stamps) >= 0
    return len(stamps) > 0 and bool(is_time(stamps).all()) and later.sum() >= share * len(later)


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
    return np.array([_day_ns(value) for value in distinct.tolist()], np.int64)[places]


def _day_ns(code: int) -> int:
    try:
        return (date(code // 10_000, code // 100 % 100, code % 100).toordinal() - 719_163) * DAY_NS
    except (ValueError, OverflowError):
        return _BAD


def _time_of_day(data: Bytes, starts: Rows) -> Nanoseconds:
    seconds, _, is_number = read_numbers(data, starts + 6)
    colons = (data[starts + 2] == ord(":")) & (data[starts + 5] == ord(":"))
    hours, minutes = _digits(data, starts, 2), _digits(data, starts + 3, 2)
    is_number &= colons & (hours >= 0) & (hours < 24) & (minutes >= 0) & (minutes < 60)
    whole = np.where(is_number, hours * 3600 + minutes * 60, 0) * 1_000_000_000
    return np.where(is_number, whole + np.rint(np.where(is_number, seconds, 0.0) * 1e9).astype(np.int64), _BAD)


def _digits(data: Bytes, starts: Rows, count: int) -> Nanoseconds:
    """Numbers of so many digits; far below 0 where something else stands there."""
    value = np.zeros(len(starts), np.int64)
    for index in range(count):
        digit = data[starts + index] - np.uint8(48)
        value = np.where(digit < 10, value * 10 + digit, -1_000_000_000)
    return value


def _numbered(block: Block, cell: int, ns: float) -> Nanoseconds:
    values, _, is_number = read_numbers(block.data, block.starts[:, cell])
    is_number &= np.abs(values) * ns < 2.0**62
    if ns == 1e9:  # seconds since the epoch keep their nanoseconds in two parts
        seconds = np.floor(np.where(is_number, values, 0.0))
        rest = np.where(is_number, values, 0.0) - seconds
        stamps = seconds.astype(np.int64) * 1_000_000_000 + np.rint(rest * 1e9).astype(np.int64)
    else:
        stamps = np.rint(np.where(is_number, values, 0.0) * ns).astype(np.int64)
    return np.where(is_number, stamps, _BAD)
