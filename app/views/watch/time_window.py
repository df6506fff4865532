"""`TimeWindow`: the stretch of time that is shown. Live it follows the newest reading; held it stays where it is."""

from __future__ import annotations

import time
from datetime import datetime

from ...sensors.clock import Clock

LENGTHS_S = (10.0, 60.0, 600.0, 3600.0, 24 * 3600.0)  # offered in the menu
SHORTEST_S = 0.2
LONGEST_S = 24 * 3600.0


class TimeWindow:
    """Lengths in s, instants in ns on the GPU's clock."""

    def __init__(self, length_s: float = 60.0, longest_s: float = LONGEST_S, shortest_s: float = SHORTEST_S) -> None:
        self.length_s, self._longest_s, self.shortest_s = length_s, longest_s, shortest_s
        self.held_at_ns: int | None = None  # when it was held; the origin of the axis
        self._held_end_ns: int | None = None

    @property
    def live(self) -> bool:
        """It follows the newest reading."""
        return self._held_end_ns is None

    def bounds(self, newest_ns: int, columns: int) -> tuple[int, int]:
        """Start and end. Live, the end is the newest reading rounded up to a whole pixel column.

        The rounding keeps the same readings in the same column from frame to frame, so that a trace moves without
        shimmering; a column is at most one second wide for this, so that nothing new waits longer.
        """
        if self._held_end_ns is not None:
            end = self._held_end_ns
        else:
            step = max(1, min(int(self.length_s * 1e9 / max(1, columns)), 1_000_000_000))
            end = -(-newest_ns // step) * step
        return end - int(self.length_s * 1e9), end

    def hold(self, newest_ns: int) -> None:
        """Stop following."""
        if self._held_end_ns is None:
            self._held_end_ns = self.held_at_ns = newest_ns

    def follow(self) -> None:
        """Follow the newest reading again."""
        self._held_end_ns = self.held_at_ns = None

    def set_length(self, length_s: float) -> None:
        """Show that many seconds, the end staying where it is."""
        self.length_s = min(max(length_s, self.shortest_s), self._longest_s)

    def zoom(self, factor: float, anchor_ns: int) -> None:
        """Lengthen (factor above 1) or shorten. Held, the anchor stays in place; live, the end does."""
        before = self.length_s
        self.set_length(before * factor)
        if self._held_end_ns is not None:
            share = self.length_s / before
            self._held_end_ns = anchor_ns + round((self._held_end_ns - anchor_ns) * share)

    def pan(self, seconds: float, newest_ns: int, oldest_ns: int) -> None:
        """Move by that many seconds (negative: into the past), holding; never past what was recorded."""
        self.hold(newest_ns)
        assert self._held_end_ns is not None
        moved = self._held_end_ns + round(seconds * 1e9)
        self._held_end_ns = max(min(moved, newest_ns), min(oldest_ns + int(self.length_s * 5e8), newest_ns))

    def show(self, start_ns: int, end_ns: int, newest_ns: int) -> None:
        """Hold just that stretch."""
        if end_ns > start_ns:
            self.hold(newest_ns)
            self.set_length((end_ns - start_ns) / 1e9)
            self._held_end_ns = end_ns


class WallTime:
    """Only for a clock that keeps pace with the wall's: a simulated hour that took a second has no time of day."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._epoch_ns = time.time_ns() - clock.now_ns()

    def text(self, instant_ns: int) -> str:
        """'14:03:21.4', in local time; empty if there is none."""
        if not self._clock.kept_pace:
            return ""
        moment = datetime.fromtimestamp((instant_ns + self._epoch_ns) / 1e9).astimezone()
        return f"{moment:%H:%M:%S}.{moment.microsecond // 100_000}"
