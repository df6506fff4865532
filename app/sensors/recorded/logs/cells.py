"""Cells of delimited text as numbers and times, a block of lines at a time: a hundred megabytes in a second or two.

Every step works on one character of all rows at once, so that no Python object is made per cell. Time stamps in ns are
read from numbers of any unit, dates with times, and times of the day.
"""

from __future__ import annotations

import math
import re
from datetime import date
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ....base.text import float_or_none

Bytes = npt.NDArray[np.uint8]
Rows = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

PADDING: Final = b"\n" + b" " * 63  # behind a block, so that no cell is read beyond it
_NEWLINE, _SPACE, _POINT, _MINUS, _PLUS, _ZERO, _SLASH = b"\n .-+0/"
_LONGEST: Final = 19  # digits that 64 bits hold, but for the largest numbers: ns since 1970 have as many
_LONGEST_TEXT: Final = 60  # characters by which texts are told apart
_PRIME: Final = np.uint64(0x100000001B3)  # of the hash FNV-1a
_TENS: Final = 10.0 ** np.arange(_LONGEST + 2)
_POWERS: Final = _TENS.clip(max=1e18).astype(np.int64)  # of a number with more decimals nothing stands before the point


class Block:
    """Whole lines, split into cells: `starts[row, cell]` is where a cell begins, spaces before it left out.

    Lines with another number of cells than `cells` are in `odd`, by number; those that are empty or begin with '#' are
    neither. Cells between spaces have one between two of them, and none around the line.
    """

    def __init__(self, text: bytes, delimiter: str, cells: int) -> None:
        text = text if text.endswith(b"\n") else text + b"\n"
        self._text, self._delimiter = text + PADDING, delimiter.encode()
        self.data: Bytes = np.frombuffer(self._text, np.uint8)
        data = self.data[: len(text)]
        self._ends = np.flatnonzero(data == _NEWLINE)
        self._begins = np.concatenate(([0], self._ends[:-1] + 1))
        self.lines = len(self._ends)
        self._is_end = np.isin(np.arange(256), [*b"\n\r", *self._delimiter])  # of a cell, by character
        kept = ~np.isin(data[self._begins], [*b"\n\r#"])
        marks = np.flatnonzero(data == ord(delimiter))
        counts = np.diff(np.searchsorted(marks, self._begins), append=len(marks))
        good = kept & (counts == cells - 1)
        self.odd: Rows = np.flatnonzero(kept & ~good)
        self.numbers: Rows = np.flatnonzero(good)  # of the lines, from 0
        behind = marks[np.repeat(good, counts)].reshape(len(self.numbers), cells - 1) + 1
        self.starts: Rows = np.column_stack((self._begins[good], behind))
        while (spaces := self.data[self.starts] == _SPACE).any():  # most logs have one behind each comma, or none
            self.starts += spaces

    def __len__(self) -> int:
        return len(self.numbers)

    def keep(self, rows: npt.NDArray[np.bool_]) -> None:
        """Leave out the other rows."""
        if not rows.all():
            self.starts, self.numbers = self.starts[rows], self.numbers[rows]

    def line(self, number: int) -> bytes:
        """A whole line, counted from 0."""
        return self._text[int(self._begins[number]) : int(self._ends[number])].strip()

    def text(self, row: int, cell: int) -> str:
        """One cell as it is written, without spaces around it."""
        start = int(self.starts[row, cell])
        text = self._text[start : self._text.index(b"\n", start)].partition(self._delimiter)[0]
        return text.decode("utf-8", "replace").strip()

    def distinct(self, *cells: int) -> tuple[list[int], Rows]:
        """The first row of each different text in some cells, and of every row which of these it has: by a hash."""
        code = np.zeros(len(self), np.uint64)
        for starts in self.starts[:, cells].T:
            code *= _PRIME  # else 'a1' beside '2' would be as 'a' beside '12'
            active = np.ones(len(starts), np.bool_)
            for place in range(_LONGEST_TEXT):
                character = self.data[starts + place]
                active &= ~self._is_end[character]
                if not active.any():
                    break
                code = np.where(active, (code ^ character) * _PRIME, code)
        _, rows, which = np.unique(code, return_index=True, return_inverse=True)
        order = np.argsort(rows)
        return rows[order].tolist(), np.argsort(order)[which]

    def floats(self, cell: int) -> tuple[Floats, list[int]]:
        """One cell of every row as a number, and the rows in which it is not: no digits, with at most one point.

        A unit may follow a number after a space, the same in all rows.
        """
        values, stops, is_number = read_numbers(self.data, self.starts[:, cell])
        behind = self.data[stops]
        whole = self._is_end[behind]
        spaced = (behind == _SPACE) & ~whole
        if spaced.any():
            unit = self.data[stops + 1]
            whole |= spaced & (unit == unit[int(np.argmax(spaced))]) & ((unit < _ZERO) | (unit > _ZERO + 9))  # '3 054'
        return values, np.flatnonzero(~(is_number & whole)).tolist()

    def unit(self, cell: int) -> str:
        """What follows the number in the first row that has one; '' where nothing does."""
        for row in range(min(len(self), 1000)):
            words = self.text(row, cell).split()
            if words and words[0][:1].isdigit():
                return words[1] if len(words) > 1 else ""
        return ""


def read_numbers(data: Bytes, starts: Rows) -> tuple[Floats, Rows, npt.NDArray[np.bool_]]:
    """The decimal numbers that begin at `starts`, where each ends, and which are any: digits with at most one point.

    What is not digits ends a number. Numbers of more than 63 bits are not known.
    """
    sign = data[starts]
    begins = starts + ((sign == _MINUS) | (sign == _PLUS))
    whole, point = _whole(data, begins, _LONGEST + 1)
    pointed = data[point] == _POINT
    fraction, stops = _whole(data, point + pointed, _LONGEST + 1)
    digits, decimals = stops - begins - pointed, stops - point - pointed
    mantissa = whole * _POWERS[decimals] + fraction
    is_number = (digits > 0) & (digits <= _LONGEST) & (mantissa >= 0)
    values = np.where(sign == _MINUS, -1.0, 1.0) * mantissa / _TENS[decimals]
    values[~is_number] = np.nan
    return values, stops, is_number


def _whole(data: Bytes, starts: Rows, most: int = 9) -> tuple[Rows, Rows]:
    """The whole numbers of up to `most` digits that begin at `starts`, and where each ends; 0 where none does."""
    value, at = np.zeros(len(starts), np.int64), starts
    for _ in range(most):
        digit = data[at] - np.uint8(_ZERO)
        is_digit = digit < 10
        if not is_digit.any():
            break
        value, at = np.where(is_digit, value * 10 + digit, value), at + is_digit
    return value, at


Nanoseconds = npt.NDArray[np.int64]

DAY_NS: Final = 86_400_000_000_000
_CLOCK: Final = re.compile(r"\d{1,2}:\d\d?:\d\d?([.:]\d+)?( ?[AP]M)?", re.IGNORECASE | re.ASCII)
_DATED: Final = re.compile(r"(\d{1,4}([-/.])\d{1,2}\2\d{1,4}|\d{8})[ T]\d{1,2}:\d\d?:\d\d?(?!\d).*", re.ASCII)
_EPOCHS: Final = ((1e17, 1.0), (1e14, 1e3), (1e11, 1e6))  # since 1970: at least so much -> ns per unit
_BAD: Final = -(2**62)  # what is no time
_LAST_DAY: Final = 50_000  # since 1970
_LOOKED_AT: Final = 50  # cells, for how stamps are written
_FEWEST_STEPS: Final = 10
_MOST_TOGETHER: Final = 16  # boards of one machine
_SOON: Final = 0.1  # of the time to the next ones: readings that come together
_OF_BOARDS: Final = 50_000_000  # ns, in which a tool reads the next board
_OF_RUNS: Final = 1_000_000_000  # ns, which no tool takes for it
_EVEN: Final = 0.1  # standard deviation of the steps of a clock over their mean
_MOSTLY_SAME: Final = 0.5
_APART: Final = 1.25  # ratio of the powers of two boards, which one board does not draw in turns
_FAR: Final = 10.0  # times the scatter of each


class Dates:
    """The dates of one file: which writes the day before the month everywhere, or behind it."""

    def __init__(self, month_first: bool | None = None) -> None:
        self._month_first = month_first
        self.contradicted = False  # some can only begin with the day, and others with the month
        self._offset: int | None = None  # of the first stamp, in ns
        self.packed: bool | None = None  # numbers are times of the day, as 101152

    def read(self, data: Bytes, starts: Rows) -> tuple[Nanoseconds, Rows]:
        """Dates in ns (20260419, 2026-04-19, 19.4.2026 or 4/19/2026), and where each of them ends."""
        first, at = _whole(data, starts)
        second, after = _whole(data, at + 1)
        third, end = _whole(data, after + 1)
        packed, sign = first > 9999, data[at]
        joined = packed | (np.isin(sign, (_MINUS, _POINT, _SLASH)) & (sign == data[after]))
        code = np.where(packed, first, first * 10_000 + second * 100 + third)
        late = ~packed & (first <= 31)  # the year stands behind
        if late.any():
            day_first, month_first = third * 10_000 + second * 100 + first, third * 10_000 + first * 100 + second
            chosen = self._choose(_days(day_first[late]), _days(month_first[late]), bool((sign[late] == _POINT).any()))
            code = np.where(late, month_first if chosen else day_first, code)
        return np.where(joined, _days(code), _BAD), np.where(packed, at, end)

    def offsets(self, data: Bytes, starts: Rows) -> Nanoseconds:
        """The offsets from UTC that stand at `starts`, +01:00 or +0100, less that of the first stamp of the file."""
        hours, at = _whole(data, starts + 1)
        minutes, _ = _whole(data, at + 1)
        apart, packed = data[at] == ord(":"), at == starts + 5
        hours, minutes = np.where(packed, hours // 100, hours), np.where(packed, hours % 100, minutes)
        written = np.isin(data[starts], (_PLUS, _MINUS)) & (apart | packed)
        found = np.where(data[starts] == _MINUS, -1, 1) * (hours * 60 + minutes) * 60_000_000_000
        if self._offset is None and written.any():
            self._offset = int(found[int(np.argmax(written))])
        return np.where(written, found - (self._offset or 0), 0)

    def of_day(self, stamps: Nanoseconds) -> Nanoseconds:
        """Numbers as they are, or as times of the day: 101152 as 10:11:52, where the steps are then more even."""
        hours, minutes, seconds = stamps // 10**13, stamps // 10**11 % 100, stamps // 10**9 % 100
        times = ((hours * 60 + minutes) * 60 + seconds) * 10**9 + stamps % 10**9
        if self.packed is None:
            written = len(stamps) > _FEWEST_STEPS and hours.min() > 0 and hours.max() < 24
            written = written and max(minutes.max(), seconds.max()) < 60
            self.packed = bool(written and np.diff(times).std() < np.diff(stamps).std())
        return times if self.packed else stamps

    def _choose(self, day_first: Nanoseconds, month_first: Nanoseconds, points: bool) -> bool:
        """Whether the month stands first: where only that gives dates, or dates that follow one another sooner."""
        bad = [not is_time(days).all() for days in (day_first, month_first)]
        leaps = [((np.diff(days) < 0).sum(), np.ptp(days)) for days in (day_first, month_first)]
        found = not points and bool(bad[0] if bad[0] != bad[1] else leaps[1] < leaps[0])
        if self._month_first is None:
            self._month_first = found
        self.contradicted |= found != self._month_first and (bad[0] != bad[1] or leaps[0] != leaps[1])
        return self._month_first


def stamps_of(block: Block, cell: int, scale: float | None, dates: Dates | None = None) -> Nanoseconds:
    """The stamps of a column as the first of its cells that is one is written; none where none of the first ones is.

    `scale` is s per unit of a number; None: seconds, or what the epoch's size says. `dates` are those of the file.
    """
    starts, dates = block.starts[:, cell], dates or Dates()
    for row in range(min(len(block), _LOOKED_AT)):
        first = block.text(row, cell)
        number = float_or_none(re.sub(" [mun]?s$", "", first))
        if _DATED.fullmatch(first):
            days, ends = dates.read(block.data, starts)
            times, behind = _time_of_day(block.data, ends + 1)
            return days + times - dates.offsets(block.data, behind)
        if _CLOCK.fullmatch(first):
            return _time_of_day(block.data, starts)[0]
        if number is not None and math.isfinite(number):
            by_size = next((each for size, each in _EPOCHS if abs(number) >= size), 1e9)
            stamps = _numbered(block, cell, by_size if scale is None else scale * 1e9)
            return dates.of_day(stamps) if scale is None else stamps
    return np.empty(0, np.int64)


def over_midnight(stamps: Nanoseconds) -> Nanoseconds:
    """Times of the day, which fall at midnight, as times that rise; others as they are."""
    if len(stamps) and stamps.min() >= 0 and stamps.max() < DAY_NS:
        return np.asarray(stamps + np.cumsum(np.diff(stamps, prepend=stamps[0]) < -DAY_NS // 2) * DAY_NS)
    return stamps


def is_time(stamps: Nanoseconds) -> npt.NDArray[np.bool_]:
    """Which of them are times."""
    return stamps > _BAD // 2


def rises(stamps: Nanoseconds, share: float = 1.0) -> bool:
    """Whether there are times, of which at least this share is no earlier than the one before."""
    later = np.diff(stamps) >= 0
    return len(stamps) > 0 and bool(is_time(stamps).all() and later.sum() >= share * len(later))


def is_clock(steps: npt.NDArray[Any], begins: npt.NDArray[Any]) -> bool:
    """Tell whether times that begin so, and rise by these steps, are of a clock: from near 0 on, and evenly."""
    even = len(steps) > 0 and steps.min() > 0 and steps.std() <= _EVEN * steps.mean()
    return bool(even and begins.min() >= 0 and begins.max() <= 2 * steps.mean())


def together(stamps: Nanoseconds, values: Floats) -> int:
    """Count the readings that come together each time, as those of several boards do; 1 where they are of one.

    A board that is read twice at once has the same value twice, and one that is read in runs has seconds between.
    Of whole seconds that are the same, boards must differ; without times, by their place.
    """
    if not len(stamps):  # no column holds the time
        return next(
            (n for n in range(2, _MOST_TOGETHER + 1) if n <= len(values) // 3 and _differ_by_place(values, n)), 1
        )
    steps = np.diff(stamps)
    if not (stamps % 1_000_000_000).any() and not steps.all():
        count = of_each_second(stamps)
        return count if count > 1 and len(values) == len(stamps) and _differ_by_place(values, count) else 1
    if len(steps) < _FEWEST_STEPS or len(values) != len(stamps):
        return 1
    count = int(np.argmax(steps > steps.max() / 4)) + 1
    if not 1 < count <= _MOST_TOGETHER:
        return 1
    whole = len(values) // count * count  # the log may end between two boards
    apart, groups = steps[count - 1 :: count], values[:whole].reshape(-1, count)
    within = np.delete(steps, np.s_[count - 1 :: count])
    same = (groups[:, 1:] == groups[:, :1]).mean() > _MOSTLY_SAME
    step = float(np.median(within))  # of runs that are as long as one another, it is that of the tool
    same |= step >= _OF_RUNS or (step > _OF_BOARDS and not _differ_by_place(values, count))
    return 1 if same or within.min() < 0 or within.max() > _SOON * apart.min() else count


def of_each_second(stamps: Nanoseconds) -> int:
    """Count the readings that each of many whole seconds has once or more often; 1 where some have others.

    The last second may have fewer.
    """
    seconds, counts = np.unique(stamps, return_counts=True)
    if len(counts) < _FEWEST_STEPS:
        return 1
    count = int(np.gcd.reduce(counts[:-1]))
    whole = not (seconds % 1_000_000_000).any() and bool((np.diff(stamps) >= 0).all())
    return count if whole and count <= _MOST_TOGETHER else 1


def _differ_by_place(values: Floats, count: int) -> bool:
    """Tell whether so many readings in turn are of boards: far apart, and each near those of its own place."""
    groups = values[: len(values) // count * count].reshape(-1, count)
    middle = np.median(groups, axis=0)
    scatter = float(np.quantile(np.abs(groups - middle), 0.75))
    return bool(middle.max() > _APART * middle.min() > 0) and float(np.ptp(middle)) > _FAR * scatter


def _days(codes: Rows) -> Nanoseconds:
    """Few days are different, so each is looked up once."""
    distinct, places = np.unique(codes, return_inverse=True)
    return np.array([_day_ns(value) for value in distinct.tolist()], np.int64)[places]


def _day_ns(code: int) -> int:
    try:
        days = date(min(code // 10_000, 9999), code // 100 % 100, code % 100).toordinal() - 719_163
    except ValueError:
        return _BAD
    return days * DAY_NS if 0 <= days < _LAST_DAY else _BAD


def _time_of_day(data: Bytes, starts: Rows) -> tuple[Nanoseconds, Rows]:
    """Times in ns since midnight, and where what stands behind each begins."""
    hours, at = _whole(data, starts)
    minutes, after = _whole(data, at + 1)
    seconds, end, is_number = read_numbers(data, after + 1)
    is_number &= (data[at] == ord(":")) & (data[after] == ord(":")) & (at > starts) & (hours < 24) & (minutes < 60)
    thousandths, behind = _whole(data, end + 1)
    seconds += np.where((data[end] == ord(":")) & (behind == end + 4), thousandths / 1e3, 0.0)  # 20:04:33:265
    half = end + (data[end] == _SPACE)
    for letter, later in ((b"AaMm", 0), (b"PpMm", 12)):  # 12 AM is midnight
        halved = np.isin(data[half], tuple(letter[:2])) & np.isin(data[half + 1], tuple(letter[2:]))
        hours = np.where(halved, hours % 12 + later, hours)
    ns = np.rint(np.where(is_number, seconds, 0.0) * 1e9).astype(np.int64)
    return np.where(is_number, (hours * 60 + minutes) * 60_000_000_000 + ns, _BAD), half


def _numbered(block: Block, cell: int, ns: float) -> Nanoseconds:
    values, stops, is_number = read_numbers(block.data, block.starts[:, cell])
    for row in np.flatnonzero(np.isin(block.data[stops], tuple(b"Ee"))).tolist():  # numpy.savetxt: 1.77e+09
        value = float_or_none(block.text(row, cell))
        values[row], is_number[row] = value or 0.0, value is not None
    is_number &= np.abs(values) * ns < 2.0**62
    known = np.where(is_number, values, 0.0)
    whole = np.floor(known)  # seconds since the epoch keep their nanoseconds in two parts
    stamps = whole.astype(np.int64) * round(ns) + np.rint((known - whole) * ns).astype(np.int64)
    return np.where(is_number, stamps, _BAD)
