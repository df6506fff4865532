"""How far another machine's clock is ahead of this one's, from questions and answers, with its error.

An answer that was stamped `remote` between the question at `asked` and its arrival at `answered` puts the offset,
remote - local, into the interval from remote - answered to remote - asked, whichever way the delay is shared out: its
middle is in error by at most half the round trip [Mills1991, 'Internet time synchronization: the Network Time
Protocol', IEEE Trans. Communications 39(10), section III]. The shortest round trip of the last minute is the best
answer; clocks drift apart by up to 100 ppm meanwhile.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

_KEPT_NS: Final = 60_000_000_000
_DRIFT: Final = 100e-6  # of two quartz clocks, at most
_SLEW: Final = 1e-3  # how fast the offset in force follows: stamps keep their order, and 20 ms apart stay 20 ms apart


@dataclass(frozen=True, slots=True)
class Answer:
    """One question and its answer, ns: when it was asked and answered here, and the time there in between."""

    asked_ns: int
    remote_ns: int
    answered_ns: int

    @property
    def offset_ns(self) -> float:
        return self.remote_ns - (self.asked_ns + self.answered_ns) / 2

    def error_ns(self, now_ns: int) -> float:
        """Half the round trip, and what the clocks may have drifted apart since."""
        return (self.answered_ns - self.asked_ns) / 2 + _DRIFT * max(0, now_ns - self.answered_ns)


class ClockOffset:
    """The offset in force, and its error. Not thread-safe: one thread feeds and asks."""

    def __init__(self) -> None:
        self._answers: deque[Answer] = deque()
        self._offset_ns = 0.0
        self._since_ns: int | None = None  # when the offset in force was last moved

    def add(self, answer: Answer) -> None:
        """Raises ValueError for an answer that came before its question."""
        if answer.answered_ns < answer.asked_ns:
            raise ValueError("an answer before its question")
        self._answers.append(answer)
        while self._answers[0].answered_ns < answer.answered_ns - _KEPT_NS:
            self._answers.popleft()
        best = min(self._answers, key=lambda each: each.error_ns(answer.answered_ns))
        self._follow(best, answer.answered_ns)

    def _follow(self, best: Answer, now_ns: int) -> None:
        """Move the offset in force towards the best answer; at once where it lies outside that answer's bounds."""
        change = best.offset_ns - self._offset_ns
        if self._since_ns is None or abs(change) > best.error_ns(now_ns):
            self._offset_ns = best.offset_ns
        else:
            most = _SLEW * max(0, now_ns - self._since_ns)
            self._offset_ns += max(-most, min(most, change))
        self._since_ns = now_ns

    @property
    def known(self) -> bool:
        return self._since_ns is not None

    @property
    def offset_ns(self) -> float:
        """What the other clock is ahead by; 0 while nothing is known."""
        return self._offset_ns

    def error_ns(self, now_ns: int) -> float:
        """The most by which the offset in force can be wrong; inf while nothing is known."""
        if not self._answers:
            return float("inf")
        best = min(self._answers, key=lambda each: each.error_ns(now_ns))
        return best.error_ns(now_ns) + abs(best.offset_ns - self._offset_ns)

    def local_ns(self, remote_ns: int) -> int:
        """An instant of the other clock on this one."""
        return remote_ns - round(self._offset_ns)
