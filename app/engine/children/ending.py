"""Child programs end with Wattridge, even if it is killed: a `reaper` process outlives it and ends them."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from ...base.processes import lone_module_command

_STOP_S: Final = 2.0
NOT_KNOWN: Final = "this program ignores SIGCHLD, so how it ended is not known"


@contextmanager
def ends_with_us(process: int, *, group: bool) -> Iterator[None]:
    """While inside, the program of that process id ends when this process does, however that is. POSIX only."""
    _reaper.say(f"+{process} group" if group else f"+{process}")
    try:
        yield
    finally:
        _reaper.say(f"-{process}")


def status_is_lost(status: int | None) -> bool:
    """Whether a child that seems to have ended well may have failed: this program, a user's script, ignores SIGCHLD."""
    return status == 0 and os.name == "posix" and signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN


def prepare_for_the_end() -> None:
    """Start the reaper now rather than beside the first program, which may be measured."""
    _reaper.start()


def end_with_parent() -> None:
    """To be called in a process of `multiprocessing`: it ends at once where its parent was killed."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, name="parent", daemon=True).start()


class _Reaper:
    """This process's side of it. Where it does not start, programs run without."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def start(self) -> None:
        with self._lock:
            if os.name != "posix" or self._owner == os.getpid():
                return
            self._owner = os.getpid()
            with suppress(OSError):
                self._process = subprocess.Popen(
                    lone_module_command(f"{__package__}.reaper"),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    cwd="/",
                    start_new_session=True,
                )
                atexit.register(self._stop)
                assert self._process.stdout is not None
                self._process.stdout.read(1)  # it listens
                self._process.stdout.close()

    def say(self, line: str) -> None:
        self.start()
        with self._lock, suppress(OSError, ValueError):
            if self._process is not None and self._process.stdin is not None:
                self._process.stdin.write(line.encode() + b"\n")
                self._process.stdin.flush()

    def _stop(self) -> None:
        if self._process is None or self._owner != os.getpid():
            return
        with suppress(OSError, ValueError, subprocess.TimeoutExpired):
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait(_STOP_S)


_reaper = _Reaper()
