"""`Seconds`: what a ring held, as the mean, the smallest and the largest value of every second, for much longer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .ring import Floats, Ring, Summary, Times

SECOND_NS: Final = 1_000_000_000


class Seconds:
    """The rows of a ring, a second each, for the last so many; a second is known once its last row has come.

    Where the ring's rows lie further apart, because the board's clock runs faster, so do these. `beside` is an array as
    long as the ring, of which the value beside a second's last row is kept. The ring's writer calls `follow` after each
    row, any thread reads.
    """

    def __init__(self, ring: Ring, seconds: int, beside: npt.NDArray[Any]) -> None:
        self._ring, self._beside = ring, beside
        self.ring = Ring(3 * ring.columns, seconds, ring.gap_ns)  # means, smallest, largest
        self.beside = np.zeros(self.ring.length if len(beside) else 0)
        self._first = 0  # the row with which the present second begins
        self._ends_ns = 0

    @property
    def nbytes(self) -> int:
        """Memory once the span is full."""
        return self.ring.nbytes + self.beside.nbytes

    def follow(self) -> None:
        """Take the newest row of the ring."""
        newest_ns, ring = self._ring.last_ns, self._ring
        if newest_ns < self._ends_ns:
            return
        unit_ns = max(SECOND_NS, ring.gap_ns - ring.gap_ns % SECOND_NS)
        self.ring.gap_ns = ring.gap_ns + 2 * unit_ns
        self._ends_ns = (newest_ns // unit_ns + 1) * unit_ns
        last = ring.count - 1
        if not last:  # what comes next covers the time since this
            self._append(newest_ns, np.tile(ring.row(0), 3), 0)
        if last > self._first:
            self._close(last)
            before_ns = int(ring.times(last - 1, last)[0])
            if newest_ns - before_ns > ring.gap_ns:  # nothing is known between them
                self._append(newest_ns - 1, np.full(self.ring.columns, np.nan), last - 1)
        self._first = last

    def _close(self, stop: int) -> None:
        ring = self._ring
        integral, covered_s, _ = ring.add_up(self._first, stop)
        rows = ring.part(range(ring.columns), self._first, stop)
        low, high = np.fmin.reduce(rows, axis=1), np.fmax.reduce(rows, axis=1)
        mean = np.divide(integral, covered_s, out=(low + high) / 2.0, where=covered_s > 0)
        self._append(int(ring.times(stop - 1, stop)[0]), np.concatenate((mean, low, high)), stop - 1)

    def _append(self, time_ns: int, values: npt.NDArray[Any], row: int) -> None:
        if len(self.beside):
            self.beside[self.ring.count % self.ring.length] = self._beside[row % self._ring.length]
        self.ring.append(time_ns, values.tolist())

    # --- readers, of what the ring has dropped ------------------------------------------------------------------------

    @property
    def until_ns(self) -> int:
        """The time up to which the ring has dropped rows, behind which its own count; 0 where it has dropped none.

        It moves on while a reader reads, who therefore asks once.
        """
        if not self._ring.first:
            return 0
        row = self.ring.before(self._ring.first_ns, inclusive=False)
        return int(self.ring.times(row, row + 1)[0]) if self.ring.first < row < self.ring.count else 0

    def points(self, start: int, stop: int, max_points: int, columns: Sequence[int]) -> tuple[Times, Floats]:
        """As `Ring.points`: the smallest and the largest value of blocks, whatever their number."""
        count = self._ring.columns
        most = max_points if stop - start > max_points else max(1, (stop - start) - 1)
        time_ns, low = self.ring.points(start, stop, most, [count + column for column in columns])
        _, high = self.ring.points(start, stop, most, [2 * count + column for column in columns])
        low[:, 1::2] = high[:, 1::2]
        return time_ns, low

    def summary(self, column: int, t0_ns: int, t1_ns: int) -> Summary:
        """As `Ring.summary`; its rows are seconds."""
        count = self._ring.columns
        of_mean, of_low, of_high = (self.ring.summary(column + part * count, t0_ns, t1_ns) for part in range(3))
        of_mean.minimum, of_mean.maximum = of_low.minimum, of_high.maximum
        return of_mean
