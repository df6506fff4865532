"""A clock for threads that must never be late, however busy the machine: time passes only while all of them wait."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_LOOK_S = 0.002  # on the wall, between looks at `stop`, which sets nobody's alarm


class LockstepClock:
    """Every thread that has asked for the time or waited takes part until it ends. Runs at the speed of its waiters."""

    speed = 1.0

    def __init__(self) -> None:
        self._now_ns = 1_000_000_000
        self._news = threading.Condition()
        self._alarms: dict[threading.Thread, int | None] = {}  # None: at work, so time stands still

    def now_ns(self) -> int:
        with self._news:
            self._alarms.setdefault(threading.current_thread(), None)
            return self._now_ns

    def wait(self, seconds: float, stop: threading.Event | None = None) -> bool:
        thread = threading.current_thread()
        with self._news:
            alarm_ns = self._alarms[thread] = self._now_ns + round(max(0.0, seconds) * 1e9)
            while self._now_ns < alarm_ns and not (stop is not None and stop.is_set()):
                self._advance()
                if self._now_ns < alarm_ns:
                    self._news.wait(_LOOK_S)
            self._alarms[thread] = None
        return stop is not None and stop.is_set()

    @contextmanager
    def away(self) -> Iterator[None]:
        """Time goes on without this thread, which waits for something else."""
        with self._news:
            self._alarms.pop(threading.current_thread(), None)
        yield
        self.now_ns()

    def _advance(self) -> None:
        """To the next alarm, if nobody is at work."""
        self._alarms = {thread: alarm for thread, alarm in self._alarms.items() if thread.is_alive()}
        alarms = [alarm for alarm in self._alarms.values() if alarm is not None]
        if len(alarms) == len(self._alarms) and min(alarms) > self._now_ns:
            self._now_ns = min(alarms)
            self._news.notify_all()
