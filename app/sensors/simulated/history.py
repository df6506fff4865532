"""What a simulated board drew: constant pieces with running integrals, so that the mean over any window is exact."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

_TRIM_FROM: Final = 512  # pieces; each is a dozen objects

# power W, memory W, busy 0..1, memory busy 0..1, launches per second; or their integrals, in s
Rates = tuple[float, float, float, float, float]


class History:
    """Pieces [start, next start) of constant power, of the last few seconds. The last piece has no end yet.

    Before the first piece the board is taken to have drawn what the first piece says.
    """

    def __init__(self, kept_s: float) -> None:
        self._kept_ns = round(kept_s * 1e9)
        self._trim_at = _TRIM_FROM
        self._start_ns: list[int] = []
        self._rates: list[Rates] = []
        self._sums: list[Rates] = []  # their integrals up to the piece's start

    def __len__(self) -> int:
        """Pieces held."""
        return len(self._start_ns)

    def append(
        self, start_ns: int, power_w: float, memory_w: float, busy: float, memory_busy: float, per_s: float
    ) -> None:
        """A new piece from `start_ns` on, with `per_s` launches a second.

        One that begins where the last began replaces it.
        """
        rates = (power_w, memory_w, busy, memory_busy, per_s)
        if self._start_ns and start_ns <= self._start_ns[-1]:
            self._rates[-1] = rates
            return
        self._sums.append(self._at(start_ns) if self._start_ns else (0.0, 0.0, 0.0, 0.0, 0.0))
        self._start_ns.append(start_ns)
        self._rates.append(rates)
        if len(self._start_ns) > self._trim_at:
            self._trim(start_ns - self._kept_ns)

    def energy_j(self, time_ns: int) -> float:
        """Energy drawn since the first piece."""
        return self._at(time_ns)[0]

    def launches(self, time_ns: int) -> float:
        """Launches since the first piece, of whatever: a load ends with a whole one."""
        return self._at(time_ns)[4]

    def means(self, from_ns: int, to_ns: int) -> tuple[float, float, float, float]:
        """Mean power W, memory power W, share of time busy and of memory busy over a window, from_ns < to_ns."""
        seconds = (to_ns - from_ns) / 1e9
        before, after = self._at(from_ns), self._at(to_ns)
        return (
            (after[0] - before[0]) / seconds,
            (after[1] - before[1]) / seconds,
            (after[2] - before[2]) / seconds,
            (after[3] - before[3]) / seconds,
        )

    def _at(self, time_ns: int) -> Rates:
        i = max(0, bisect_right(self._start_ns, time_ns) - 1)
        seconds = (time_ns - self._start_ns[i]) / 1e9
        sums, rates = self._sums[i], self._rates[i]
        return (
            sums[0] + rates[0] * seconds,
            sums[1] + rates[1] * seconds,
            sums[2] + rates[2] * seconds,
            sums[3] + rates[3] * seconds,
            sums[4] + rates[4] * seconds,
        )

    def _trim(self, before_ns: int) -> None:
        gone = max(0, bisect_right(self._start_ns, before_ns) - 1)
        del self._start_ns[:gone], self._rates[:gone], self._sums[:gone]
        self._trim_at = max(_TRIM_FROM, 2 * len(self._start_ns))
