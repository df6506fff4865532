"""A child process under a watchdog: it sends heartbeats, and is killed when they stop.

A process is stuck when the driver does not return from a call, or when it is stopped. Its parent can then have the work
done by another child. The parent itself never waits for the driver.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable

STALL_S = 5.0  # between two heartbeats; no single call of the driver may take longer
START_S = 30.0  # until the first one: the driver may have to be loaded
KILLED_S = 1.0  # for a killed process to be gone: one that waits within the kernel (state D) does not go


class Child:
    """A forked child that does `work` and ends with the exit status that it returns."""

    def __init__(self, work: Callable[[Callable[[], None]], int], *, start_s: float = START_S) -> None:
        """`work` is given a function to call at least every STALL_S; it may take `start_s` to its first call."""
        self._start_s = start_s
        self._pulse, pulse = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                os.close(self._pulse)
                os.set_blocking(pulse, False)
                status = work(lambda: _beat(pulse))
            finally:
                os._exit(status)
        os.close(pulse)

    def wait(self) -> bool:
        """Until it has ended, by itself or killed for want of a heartbeat; False where not even that ended it."""
        patience_s = self._start_s
        while select.select([self._pulse], [], [], patience_s)[0]:
            if not os.read(self._pulse, 4096):  # closed: it has ended
                if self.ended_within(KILLED_S):
                    return True
                break
            patience_s = STALL_S
        kill(self.pid)
        return self.ended_within(KILLED_S)

    def ended_within(self, seconds: float) -> bool:
        """Whether it ends in that time. Its number stays its own until `reap`."""
        until = time.monotonic() + seconds
        while os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
            if time.monotonic() > until:
                return False
            time.sleep(0.01)
        return True

    def reap(self) -> int:
        """The exit status of a child that has ended, negative where a signal ended it."""
        os.close(self._pulse)
        _, status = os.waitpid(self.pid, 0)
        return os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)


def kill(process: int) -> None:
    """End a process at once, if anything can."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def _beat(pulse: int) -> None:
    with contextlib.suppress(OSError):  # no reader: then the watchdog is gone
        os.write(pulse, b".")
