"""`Ring`: time-stamped rows of numbers in fixed memory, with the smallest and largest value of every block of rows.

One thread appends, any thread reads, no lock. A row is written before the count moves, and the ring is a little longer
than what readers are shown, so a row being overwritten is never one that somebody copies.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Times = npt.NDArray[np.int64]

_FACTOR = 16  # rows per block, blocks per larger block
_LEVELS = 3
_TOP = _FACTOR**_LEVELS  # the ring's length is a multiple of the largest block, so blocks never straddle its end
_KEPT_GAPS = 1000


class Ring:
    """At most `rows` rows of `columns` float32 values with strictly rising time stamps in ns; the oldest are dropped.

    The arrays are allocated at once but untouched: the system gives memory page by page as rows come, then it is flat.
    Rows have absolute numbers, 0 for the first ever appended; `first` and `count` bound the ones still here.
    """

    def __init__(self, columns: int, rows: int, gap_ns: int) -> None:
        self.columns = columns
        self.gap_ns = gap_ns  # rows further apart than this have nothing known between them
        self.gaps: tuple[tuple[int, int], ...] = ()  # (time before, time after) of each, the newest 1000
        self.count = 0
        self._shown = max(1, rows)
        self.length = (-(-self._shown // _TOP) + 1) * _TOP
        self._time: Times = np.zeros(self.length, np.int64)
        self._value: Floats = np.zeros((self.length, columns), np.float32)
        self._low: list[Floats] = []
        self._high: list[Floats] = []
        for level in range(1, _LEVELS + 1):
            self._low.append(np.zeros((columns, self.length // _FACTOR**level), np.float32))
            self._high.append(np.zeros((columns, self.length // _FACTOR**level), np.float32))

    # --- the one writer -----------------------------------------------------------------------------------------------

    def append(self, time_ns: int, values: Sequence[float]) -> bool:
        """Append one row; False, and nothing is kept, where it is not newer than the last."""
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
        if (row + 1) % _FACTOR == 0:
            self._summarise(row + 1)
        self.count = row + 1
        return True

    def _summarise(self, count: int) -> None:
        """Fill the blocks that end at row `count`. NaN counts only where a whole block is NaN."""
        end = (count - 1) % self.length + 1
        block = self._value[end - _FACTOR : end]
        low, high = np.fmin.reduce(block, axis=0), np.fmax.reduce(block, axis=0)
        for level in range(_LEVELS):
            end //= _FACTOR
            self._low[level][:, end - 1] = low
            self._high[level][:, end - 1] = high
            if end % _FACTOR:
                return
            if level + 1 < _LEVELS:
                low = np.fmin.reduce(self._low[level][:, end - _FACTOR : end], axis=1)
                high = np.fmax.reduce(self._high[level][:, end - _FACTOR : end], axis=1)

    # --- readers ------------------------------------------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        """Memory once the ring is full."""
        blocks = sum(array.nbytes for array in (*self._low, *self._high))
        return self._time.nbytes + self._value.nbytes + blocks

    @property
    def first(self) -> int:
        """Absolute number of the oldest row that readers are shown."""
        return max(0, self.count - self._shown)

    @property
    def first_ns(self) -> int:
        """Time of the oldest row; 0 while empty."""
        return int(self._time[self.first % self.length]) if self.count else 0

    @property
    def last_ns(self) -> int:
        """Time of the newest row; 0 while empty."""
        count = self.count
        return int(self._time[(count - 1) % self.length]) if count else 0

    def before(self, time_ns: int, inclusive: bool = True) -> int:
        """Absolute number of the first row after `time_ns` (at or after it, where not inclusive)."""
        rows = range(self.first, self.count)
        find = bisect_right if inclusive else bisect_left
        return rows.start + find(rows, time_ns, key=lambda row: int(self._time[row % self.length]))

    def between(self, t0_ns: int, t1_ns: int) -> tuple[int, int]:
        """Absolute rows [a, b) with t0_ns <= time <= t1_ns."""
        start = self.before(t0_ns, inclusive=False)
        return start, max(start, self.before(t1_ns))

    def times(self, start: int, stop: int) -> Times:
        """Time stamps in ns of rows [start, stop): a copy."""
        return self.take(self._time, start, stop)

    def column(self, column: int, start: int, stop: int) -> Floats:
        """One column of rows [start, stop): a copy."""
        return self.take(self._value[:, column], start, stop)

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

    def points(self, start: int, stop: int, max_points: int, columns: Sequence[int]) -> tuple[Times, Floats]:
        """Rows [start, stop) for drawing: times (n,) and values (columns, n), n at most `max_points`.

        More rows than that become the smallest and the largest value of each of equal blocks of rows, so no spike is
        lost. Block edges stand at fixed rows, so a picture that scrolls does not flicker.
        """
        rows = stop - start
        picked = list(columns)
        if rows <= max_points:
            values = self.take(self._value, start, stop)[:, picked].T
            return self.times(start, stop), np.ascontiguousarray(values)
        width = -(-rows // max(1, max_points // 2 - 2))
        level = 0
        while level < _LEVELS and _FACTOR ** (level + 1) <= width:
            level += 1
        unit = _FACTOR**level
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
        bounds = np.unique(np.asarray(edges, np.int64))
        begin, middle = bounds[:-1], bounds[:-1] + np.diff(bounds) // 2
        slots = np.stack((begin, middle), axis=1).ravel() % self.length
        return self._time[slots], out

    def _reduce_rows(self, start: int, stop: int, picked: list[int], lows: list[Floats], highs: list[Floats]) -> None:
        block = self.take(self._value, start, stop)[:, picked]
        lows.append(np.fmin.reduce(block, axis=0)[:, None])
        highs.append(np.fmax.reduce(block, axis=0)[:, None])

    def _reduce_blocks(
        self, level: int, start: int, stop: int, per: int, picked: list[int], lows: list[Floats], highs: list[Floats]
    ) -> None:
        """Whole blocks between two block edges, from the level's own blocks (level 0: from the rows themselves)."""
        if stop <= start:
            return
        if level == 0:
            rows = self.take(self._value, start, stop)[:, picked].T.reshape(len(picked), -1, per)
            lows.append(np.fmin.reduce(rows, axis=2))
            highs.append(np.fmax.reduce(rows, axis=2))
            return
        unit = _FACTOR**level
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
