"""How long a session has run, pauses left out, and how fast it goes now."""

from __future__ import annotations

import time
from collections import deque

MARKS = 100  # over which the rate is taken


class SessionClock:
    """Runs from the start; `mark` tells it how far the session is."""

    def __init__(self, elapsed_s: float = 0.0, count: int = 0) -> None:
        self._before_s = elapsed_s
        self._since: float | None = time.monotonic()
        # (seconds, count) lately: the rate now, whatever the warm-up or another phase took before.
        self._marks = deque([(elapsed_s, count)], maxlen=MARKS)

    @property
    def elapsed_s(self) -> float:
        """Seconds on the wall clock while it ran."""
        return self._before_s + (time.monotonic() - self._since if self._since is not None else 0.0)

    def halt(self) -> None:
        """Time stands still."""
        self._before_s, self._since = self.elapsed_s, None

    def go(self) -> None:
        """Time runs on."""
        self._since = time.monotonic()

    def mark(self, count: int) -> None:
        """The session has come so far."""
        self._marks.append((self.elapsed_s, count))

    @property
    def rate_per_s(self) -> float:
        """How much the count grew per second over the last marks; 0 until that is known."""
        marks = list(self._marks)
        if 2 < len(marks) < MARKS:
            del marks[0]  # the first measurements carry the warm-up
        (first_s, first), (last_s, last) = marks[0], marks[-1]
        return (last - first) / (last_s - first_s) if last_s > first_s else 0.0
