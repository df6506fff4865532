"""`Estimate`: how far something is that is done part by part, without promising what does not hold.

How long a part takes is known only as a bound. So the total is what is done, and the bounds of all that may still come:
it shrinks where a part proves shorter or needless, and never grows. What is done never goes back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from ....sensors.clock import Clock

OnProgress = Callable[[str, float, float], None]  # what is done, in words; seconds done; seconds in all, at most


class Estimate:
    """Seconds on one clock. `on_progress` is called from the thread that reports."""

    def __init__(self, clock: Clock, parts: Mapping[str, float], on_progress: OnProgress | None) -> None:
        """`parts` are their words and the seconds that each takes at most, in their order."""
        self._clock = clock
        self._begun_ns = self._part_ns = clock.now_ns()
        self._left = dict(parts)
        self._part, self._most_s = "", 0.0
        self._total_s = sum(parts.values())
        self._on_progress = on_progress

    @property
    def seconds(self) -> float:
        """Done by now."""
        return self._since_s(self._begun_ns)

    def begin(self, part: str) -> None:
        """This part begins; those before it are done, or not needed."""
        while self._left and self._part != part:
            self._part = next(iter(self._left))
            self._most_s = self._left.pop(self._part)
        self._part_ns = self._clock.now_ns()
        self.report()

    @contextmanager
    def standing(self) -> Iterator[None]:
        """What happens inside takes no time of it: a wait for something else."""
        begun_ns = self._clock.now_ns()
        try:
            yield
        finally:
            waited_ns = self._clock.now_ns() - begun_ns
            self._begun_ns += waited_ns
            self._part_ns += waited_ns

    def end(self) -> None:
        """Nothing is left to do."""
        self._left.clear()
        self._most_s = 0.0
        self.report()

    def report(self) -> None:
        """Say how far it is."""
        done_s = self.seconds
        left_s = max(0.0, self._most_s - self._since_s(self._part_ns)) + sum(self._left.values())
        self._total_s = min(self._total_s, done_s + left_s)
        if self._on_progress is not None:
            self._on_progress(self._part, min(done_s, self._total_s), self._total_s)

    def _since_s(self, time_ns: int) -> float:
        return (self._clock.now_ns() - time_ns) / 1e9
