"""`Ring`: time-stamped rows of numbers in fixed memory, with the smallest and largest value of every block of rows.

One thread appends, any thread reads. The ring is a little longer than what readers are shown, so the writer rarely
comes round to a row that is being copied. `Ring.consistent` checks that it did not, and otherwise reads again.
"""

from __future__ import annotations

import math
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Times = npt.NDArray[np.int64]
Result = TypeVar("Result")

FACTOR = 16  # rows per block, blocks per larger block
LEVELS = 3
TOP = FACTOR**LEVELS  # the ring's length is a multiple of the largest block, so blocks never straddle its end
SUMMED = FACTOR**2  # rows per block of sums
_KEPT_GAPS = 1000
_ATTEMPTS = 3  # reads without holding up the writer


@dataclass(slots=True)
class Summary:
    """One column over a span: `integral` in the column's unit times seconds, over the `covered_s` that are known."""

    integral: float = 0.0
    covered_s: float = 0.0
    rows: int = 0  # with a known value, inside the span
    minimum: float = math.inf
    maximum: float = -math.inf

    def take(self, other: Summary) -> None:
        """Add what is known of another span."""
        self.integral += other.integral
        self.covered_s += other.covered_s
        self.rows += other.rows
        self.minimum, self.maximum = min(self.minimum, other.minimum), max(self.maximum, other.maximum)


class Ring:
    """At most `rows` rows of `columns` float32 values with strictly rising time stamps in ns; the oldest are dropped.

    The arrays are allocated at once but untouched: the system gives memory page by page as rows come, then it is flat.
    Rows have absolute numbers, 0 for the first ever appended; `first` and `count` bound the ones still here. Whatever
    reads rows while another thread appends belongs in a function passed to `consistent`.
    """

    def __init__(self, columns: int, rows: int, gap_ns: int) -> None:
        self.columns = columns
        self.gap_ns = gap_ns  # rows further apart than this have nothing known between them
        self.gaps: tuple[tuple[int, int], ...] = ()  # (time before, time after) of each, the newest 1000
        self.count = 0
        self._appending = threading.RLock()  # held by the writer for each row
        self._shown = max(1, rows)
        self.length = (-(-self._shown // TOP) + 1) * TOP
        self._time: Times = np.zeros(self.length, np.int64)
        self._value: Floats = np.zeros((self.length, columns), np.float32)
        self._low: list[Floats] = []
        self._high: list[Floats] = []
        for level in range(1, LEVELS + 1):
            self._low.append(np.zeros((columns, self.length // FACTOR**level), np.float32))
            self._high.append(np.zeros((columns, self.length // FACTOR**level), np.float32))
        self._integral = np.zeros((columns, self.length // SUMMED))
        self._covered_s = np.zeros((columns, self.length // SUMMED))
        self._known = np.zeros((columns, self.length // SUMMED), np.int16)

    # --- the one writer -----------------------------------------------------------------------------------------------

    def append(self, time_ns: int, values: Sequence[float]) -> bool:
        """Append one row; False, and nothing is kept, where it is not newer than the last."""
        with self._appending:
            return self._append(time_ns, values)

    def _append(self, time_ns: int, values: Sequence[float]) -> bool:
        row = self.count
        if row:
            last_ns = self.last_ns
            if time_ns <= last_ns:
                return False
            if time_ns - last_ns > self.gap_ns:
                self.gaps = (*self.gaps[1 - _KEPT_GAPS :], (last_ns, time_ns))
        slot = row % self.length
        self._time[slot] = time_ns
        self._value[slot] = values
        if (row + 1) % FACTOR == 0:
            self._summarise(row + 1)
        if (row + 1) % SUMMED == 0:
            block = (row % self.length) // SUMMED
            self._integral[:, block], self._covered_s[:, block], self._known[:, block] = self.add_up(
                row + 1 - SUMMED, row + 1
            )
        self.count = row + 1
        return True

    def _summarise(self, count: int) -> None:
        """Fill the blocks that end at row `count`. NaN counts only where a whole block is NaN."""
        end = (count - 1) % self.length + 1
        block = self._value[end - FACTOR : end]
        low, high = np.fmin.reduce(block, axis=0), np.fmax.reduce(block, axis=0)
        for level in range(LEVELS):
            end //= FACTOR
            self._low[level][:, end - 1] = low
            self._high[level][:, end - 1] = high
            if end % FACTOR:
                return
            if level + 1 < LEVELS:
                low = np.fmin.reduce(self._low[level][:, end - FACTOR : end], axis=1)
                high = np.fmax.reduce(self._high[level][:, end - FACTOR : end], axis=1)

    def add_up(self, start: int, stop: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
        """Integral, seconds covered and known values of rows [start, stop), per column."""
        values = self.part(range(self.columns), start, stop).T.astype(np.float64)
        time_ns = self.times(max(start - 1, 0), stop)
        apart_ns = np.diff(time_ns, prepend=time_ns[:1]) if start == 0 else np.diff(time_ns)
        seconds = np.where(apart_ns > self.gap_ns, 0, apart_ns) * 1e-9
        finite = values == values  # NaN is the one number that differs from itself
        return seconds @ np.where(finite, values, 0.0), seconds @ finite, finite.sum(axis=0)

    # --- readers ------------------------------------------------------------------------------------------------------

    def consistent(self, read: Callable[[], Result]) -> Result:
        """The result of `read`, none of whose rows was overwritten meanwhile.

        `read` may be called several times, so it only copies. It runs without a lock; whether the writer came round is
        seen from the count before and after. The last attempt holds the writer up, so a reader always gets its rows.
        """
        for _ in range(_ATTEMPTS):
            oldest = self.first
            result = read()
            with self._appending:  # between two rows: all that was written up to `count` is visible, and nothing more
                # The row after the newest may be half written beside this ring: `Trace` keeps another array as long.
                overwritten = self.count - self.length >= oldest
            if not overwritten:
                return result
        with self._appending:
            return read()

    @property
    def nbytes(self) -> int:
        """Memory once the ring is full."""
        sums = (self._integral, self._covered_s, self._known)
        blocks = sum(array.nbytes for array in (*self._low, *self._high, *sums))
        return self._time.nbytes + self._value.nbytes + blocks

    @property
    def first(self) -> int:
        """Absolute number of the oldest row that readers are shown."""
        return max(0, self.count - self._shown)

    @property
    def first_ns(self) -> int:
        """Time of the oldest row; 0 while empty."""
        return self.consistent(lambda: int(self._time[self.first % self.length]) if self.count else 0)

    @property
    def last_ns(self) -> int:
        """Time of the newest row; 0 while empty."""
        count = self.count
        return int(self._time[(count - 1) % self.length]) if count else 0

    def before(self, time_ns: int, inclusive: bool = True) -> int:
        """Absolute number of the first row after `time_ns` (at or after it, where not inclusive)."""
        return self._find(time_ns, inclusive, self.count)

    def between(self, t0_ns: int, t1_ns: int, count: int | None = None) -> tuple[int, int]:
        """Absolute rows [a, b) with t0_ns <= time <= t1_ns, of the first `count`."""
        count = self.count if count is None else count
        start = self._find(t0_ns, False, count)
        return start, max(start, self._find(t1_ns, True, count))

    def _find(self, time_ns: int, inclusive: bool, count: int) -> int:
        rows = range(max(0, count - self._shown), count)
        find = bisect_right if inclusive else bisect_left
        return rows.start + find(rows, time_ns, key=lambda row: int(self._time[row % self.length]))

    def times(self, start: int, stop: int) -> Times:
        """Time stamps in ns of rows [start, stop): a copy."""
        return self.take(self._time, start, stop)

    def column(self, column: int, start: int, stop: int) -> Floats:
        """One column of rows [start, stop): a copy."""
        return self.take(self._value[:, column], start, stop)

    def part(self, columns: Sequence[int], start: int, stop: int) -> Floats:
        """Some columns of rows [start, stop): a copy of shape (columns, rows)."""
        return self.take(self._value, start, stop)[:, list(columns)].T

    def row(self, row: int) -> Floats:
        """All columns of one row: a copy."""
        values: Floats = self._value[row % self.length].copy()
        return values

    def take(self, array: npt.NDArray[Any], start: int, stop: int) -> npt.NDArray[Any]:
        """Rows [start, stop) of an array that is as long as the ring: a copy in order."""
        slot, size = start % self.length, max(0, stop - start)
        if slot + size <= self.length:
            return array[slot : slot + size].copy()
        return np.concatenate((array[slot:], array[: slot + size - self.length]))

    def summary(self, column: int, t0_ns: int, t1_ns: int) -> Summary:
        """One column between two times, from the blocks' sums: the same cost for a minute and for hours.

        The integral is that of the step curve on which each value stands for the time since the row before it.
        """
        out, count = Summary(), self.count  # a row that comes meanwhile is not after the span
        first = max(0, count - self._shown)
        start, stop = self.between(t0_ns, t1_ns, count)
        if start < stop:
            self._add_row(out, column, start, t0_ns, t1_ns, covers=start > first, inside=True)
            self._add_rows(out, column, start + 1, stop)
        if stop < count:  # the row after the span covers the span's end
            self._add_row(out, column, stop, t0_ns, t1_ns, covers=stop > first, inside=False)
        return out

    def _add_row(
        self, out: Summary, column: int, row: int, t0_ns: int, t1_ns: int, *, covers: bool, inside: bool
    ) -> None:
        """One row, as far as the time it covers lies in the span: none for the oldest one."""
        value = float(self.row(row)[column])
        if math.isnan(value):
            return
        seconds = 0.0
        if covers:
            before, at = (int(time_ns) for time_ns in self.times(row - 1, row + 1))
            if at - before <= self.gap_ns:
                seconds = max(0, min(at, t1_ns) - max(before, t0_ns)) * 1e-9
        if not inside and not seconds:
            return
        out.integral += value * seconds
        out.covered_s += seconds
        out.rows += inside
        out.minimum, out.maximum = min(out.minimum, value), max(out.maximum, value)

    def _add_rows(self, out: Summary, column: int, start: int, stop: int) -> None:
        """Rows [start, stop), each with all the time it covers: whole blocks by their sums, the rest one by one."""
        inner, outer = -(-start // SUMMED) * SUMMED, stop // SUMMED * SUMMED
        if inner < outer:
            blocks, slots = (outer - inner) // SUMMED, self.length // SUMMED
            places = np.arange(inner // SUMMED, inner // SUMMED + blocks) % slots
            out.integral += float(self._integral[column, places].sum())
            out.covered_s += float(self._covered_s[column, places].sum())
            out.rows += int(self._known[column, places].sum())
            out.minimum = float(np.fmin(out.minimum, np.fmin.reduce(self._low[1][column, places])))
            out.maximum = float(np.fmax(out.maximum, np.fmax.reduce(self._high[1][column, places])))
        else:
            inner = outer = stop
        for first, last in ((start, inner), (outer, stop)):
            if first < last:
                integral, covered_s, finite = self.add_up(first, last)
                values = self.column(column, first, last)
                out.integral += float(integral[column])
                out.covered_s += float(covered_s[column])
                out.rows += int(finite[column])
                out.minimum = float(np.fmin(out.minimum, np.fmin.reduce(values)))
                out.maximum = float(np.fmax(out.maximum, np.fmax.reduce(values)))

    def points(self, start: int, stop: int, max_points: int, columns: Sequence[int]) -> tuple[Times, Floats]:
        """Rows [start, stop) for drawing: times (n,) and values (columns, n), n at most `max_points`.

        More rows than that become the smallest and the largest value of each of equal blocks of rows, so no spike is
        lost. Block edges stand at fixed rows, so a picture that scrolls does not flicker.
        """
        rows = stop - start
        picked = list(columns)
        if rows <= max_points:
            return self.times(start, stop), np.ascontiguousarray(self.part(picked, start, stop))
        width = -(-rows // max(1, max_points // 2 - 2))
        level = 0
        while level < LEVELS and FACTOR ** (level + 1) <= width:
            level += 1
        unit = FACTOR**level
        width = -(-width // unit) * unit
        inner, outer = -(-start // width) * width, stop // width * width
        lows: list[Floats] = []
        highs: list[Floats] = []
        edges = [start, *range(inner, outer + 1, width), stop]
        if start < inner:
            self._reduce_rows(start, inner, picked, lows, highs)
        self._reduce_blocks(level, inner, outer, width // unit, picked, lows, highs)
        if outer < stop:
            self._reduce_rows(outer, stop, picked, lows, highs)
        low, high = np.concatenate(lows, axis=1), np.concatenate(highs, axis=1)
        out: Floats = np.empty((len(picked), 2 * low.shape[1]), np.float32)
        out[:, 0::2], out[:, 1::2] = low, high
        bounds = np.array(list(dict.fromkeys(edges)), np.int64)  # np.unique would import numpy.ma: 15 ms of a paint
        begin, middle = bounds[:-1], bounds[:-1] + np.diff(bounds) // 2
        slots = np.stack((begin, middle), axis=1).ravel() % self.length
        return self._time[slots], out

    def _reduce_rows(self, start: int, stop: int, picked: list[int], lows: list[Floats], highs: list[Floats]) -> None:
        block = self.part(picked, start, stop)
        lows.append(np.fmin.reduce(block, axis=1)[:, None])
        highs.append(np.fmax.reduce(block, axis=1)[:, None])

    def _reduce_blocks(
        self, level: int, start: int, stop: int, per: int, picked: list[int], lows: list[Floats], highs: list[Floats]
    ) -> None:
        """Whole blocks between two block edges, from the level's own blocks (level 0: from the rows themselves)."""
        if stop <= start:
            return
        if level == 0:
            rows = self.part(picked, start, stop).reshape(len(picked), -1, per)
            lows.append(np.fmin.reduce(rows, axis=2))
            highs.append(np.fmax.reduce(rows, axis=2))
            return
        unit = FACTOR**level
        blocks = self.length // unit
        slot, size = start // unit % blocks, (stop - start) // unit
        for source, target, reduce in (
            (self._low[level - 1], lows, np.fmin.reduce),
            (self._high[level - 1], highs, np.fmax.reduce),
        ):
            part = source[:, slot : slot + size][picked]
            if slot + size > blocks:
                part = np.concatenate((part, source[:, : slot + size - blocks][picked]), axis=1)
            target.append(reduce(part.reshape(len(picked), -1, per), axis=2))
