"""Programs of the user: run to their end (`run_process`), or in the background of a session (`BackgroundProgram`).

They are timed to the millisecond, bounded in time and output, never run through a shell, and end with this process.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from ...base.processes import current_stop, original_environment
from ..children.ending import NOT_KNOWN, ends_with_us, prepare_for_the_end, status_is_lost
from ..children.reaper import ASK_S, Family

MOST_OUTPUT: Final = 1 << 20  # bytes kept of each stream, the last ones
LOST: Final = 1 << 16  # no exit status: it is not known, so it counts as a failure
_CHUNK: Final = 1 << 16
_LOOK_S: Final = 0.05  # between looks at the time limit and `stop`; the end itself is stamped at once
DRAIN_S: Final = 1.0  # for output that a program left in its pipes


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended. Times in ns on the clock that was given; the outputs are empty where not captured."""

    exit_status: int  # negative: the number of the signal that ended it
    start_ns: int
    end_ns: int
    time_s: float  # on the wall
    output: str
    errors: str
    timed_out: bool
    stopped: bool

    @property
    def how(self) -> str:
        """Why it failed, in words."""
        if self.exit_status == LOST:
            return NOT_KNOWN
        if self.exit_status >= 0:
            return f"exit status {self.exit_status}"
        with suppress(ValueError):
            return f"ended by {signal.Signals(-self.exit_status).name}"
        return f"ended by signal {-self.exit_status}"


def run_process(
    words: Sequence[str],
    *,
    folder: Path | None = None,
    capture: bool = True,
    output_to: int | None = None,
    timeout_s: float | None = None,
    stop: threading.Event | None = None,
    grace_s: Callable[[], float] = lambda: 0.0,
    ask_s: float = ASK_S,
    on_output: Callable[[int, bytes], None] | None = None,
    now_ns: Callable[[], int] = time.monotonic_ns,
    environment: Mapping[str, str] | None = None,
) -> Ended:
    """Run a program to its end, its time limit's, or `stop` (at a terminal `grace_s()` later: it is interrupted too).

    Captured, it has no input. Otherwise it has this program's input and outputs; `output_to` is a file descriptor for
    its output; `environment` is the user's own if none is given. `on_output` is called on threads with 1 or 2, its
    output or its errors, and what came there; `ask_s` is from asking it to end to killing it. What it started ends with
    it at a time limit, at `stop`, and when this process ends, however that is. Raises OSError if it does not start.
    """
    pipe = subprocess.PIPE if capture else None
    group = capture or not _at_terminal()  # a program at a terminal stays in the group that the terminal reads for
    prepare_for_the_end()
    begun = time.monotonic()
    start_ns = now_ns()
    process = subprocess.Popen(
        list(words),
        cwd=folder,
        stdin=subprocess.DEVNULL if capture else None,
        stdout=pipe if capture else output_to,
        stderr=pipe,
        start_new_session=capture,
        process_group=0 if group and not capture and os.name == "posix" else None,
        env=dict(environment) if environment is not None else original_environment(),
    )
    with ends_with_us(process.pid, group=group):
        return _finished(process, group, begun, start_ns, timeout_s, stop, grace_s, now_ns, ask_s, on_output)


def answer_of(words: Sequence[str], limit_s: float = 60.0) -> str:
    """What a program prints that answers at once, such as its version. Raises OSError if it does not start, takes
    longer, or a signal ends this program meanwhile."""
    ended = run_process(words, timeout_s=limit_s, stop=current_stop())
    if ended.timed_out or ended.stopped:
        raise TimeoutError(f"no answer within {limit_s:g} s" if ended.timed_out else "stopped")
    return ended.output


def _finished(
    process: subprocess.Popen[bytes],
    group: bool,
    begun: float,
    start_ns: int,
    timeout_s: float | None,
    stop: threading.Event | None,
    grace_s: Callable[[], float],
    now_ns: Callable[[], int],
    ask_s: float,
    on_output: Callable[[int, bytes], None] | None,
) -> Ended:
    """Wait for its end, or bring it about; an exception here, like a signal's, ends it too."""
    family = Family(process.pid, group)
    end: list[tuple[int, float]] = []
    waiter = threading.Thread(target=lambda: _wait(process, now_ns, end), name="program", daemon=True)
    waiter.start()
    streams = ((1, process.stdout), (2, process.stderr))
    tails = [_Tail(stream, number, on_output) for number, stream in streams if stream is not None]

    def send(name: str) -> None:
        _signal(process, family, name)

    end_at = begun + timeout_s if timeout_s is not None else float("inf")
    try:
        timed_out, stopped = _until_ended(waiter, end_at, stop, (lambda: 0.0) if group else grace_s, ask_s, send)
    except BaseException:
        _signal(process, family, "SIGTERM")
        waiter.join(ASK_S)
        _signal(process, family, "SIGKILL")
        raise
    if timed_out or stopped:
        _signal(process, family, "SIGKILL")  # what it started and did not end
    for tail in tails:
        if not tail.join(DRAIN_S):  # something that it started holds the pipe
            _signal(process, family, "SIGKILL")
            tail.join(DRAIN_S)
    end_ns, ended = end[0]
    texts = [tail.text() for tail in tails] or ["", ""]
    stopped = stopped or (stop is not None and stop.is_set() and process.returncode != 0)
    status = LOST if status_is_lost(process.returncode) else process.returncode
    return Ended(status, start_ns, end_ns, ended - begun, texts[0], texts[1], timed_out, stopped)


class _Tail:
    """The last of a stream, read by a thread so that the program never waits for us."""

    def __init__(self, stream: IO[bytes], number: int, heard: Callable[[int, bytes], None] | None) -> None:
        self._stream = stream
        self._number = number
        self._heard = heard
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._thread = threading.Thread(target=self._read, name="program's output", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with suppress(OSError, ValueError), self._stream as stream:
            while chunk := os.read(stream.fileno(), _CHUNK):
                self._chunks.append(chunk)
                self._size += len(chunk)
                if self._heard is not None:
                    self._heard(self._number, chunk)
                while self._size - len(self._chunks[0]) >= MOST_OUTPUT:
                    self._size -= len(self._chunks.popleft())

    def join(self, timeout_s: float) -> bool:
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def text(self) -> str:
        return b"".join(list(self._chunks))[-MOST_OUTPUT:].decode("utf-8", errors="replace")


def _until_ended(
    waiter: threading.Thread,
    end_at: float,
    stop: threading.Event | None,
    grace_s: Callable[[], float],
    ask_s: float,
    send: Callable[[str], None],
) -> tuple[bool, bool]:
    """Join the thread that waits for a program, which is ended at a monotonic time or some time after a stop.

    Returns whether its time was over, and whether it was stopped. It is asked first, and killed `ask_s` later.
    """
    timed_out = stopped = False
    stop_at = ask_at = float("inf")
    while True:
        waiter.join(_LOOK_S if end_at < float("inf") or stop is not None else None)
        if not waiter.is_alive():
            return timed_out, stopped
        now = time.monotonic()
        if stop is not None and stop.is_set() and stop_at == float("inf"):
            stop_at = now + grace_s()
        timed_out, stopped = timed_out or now > end_at, stopped or now >= stop_at
        if (timed_out or stopped) and ask_at == float("inf"):
            ask_at = now
            send("SIGTERM")
        elif now - ask_at > ask_s:
            send("SIGKILL")


def _wait(process: subprocess.Popen[bytes], now_ns: Callable[[], int], end: list[tuple[int, float]]) -> None:
    process.wait()
    end.append((now_ns(), time.monotonic()))


def _signal(process: subprocess.Popen[bytes], family: Family, name: str) -> None:
    """To the program and all that it started."""
    if os.name == "posix":
        family.signal(getattr(signal, name), ended=process.returncode is not None)
    elif name == "SIGTERM":
        process.terminate()
    else:
        process.kill()


def _at_terminal() -> bool:
    """Whether this process has a terminal, so that its keys reach everything in its group."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR))
    except OSError:
        return False
    return True


MOST_HEARD: Final = 1 << 18  # characters of its output that are kept to be searched, the last ones


class BackgroundProgram:
    """`run_process` on a thread, so that everything it promises of a program's end holds for this one too."""

    def __init__(
        self,
        words: Sequence[str],
        *,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        ask_s: float = ASK_S,
        on_output: Callable[[int, bytes], None] | None = None,
    ) -> None:
        """Start it; `on_output` as of `run_process`. That it does not start is raised by `ended`."""
        self._stop = threading.Event()
        self._heard: deque[bytes] = deque()
        self._size = 0
        self._lock = threading.Lock()
        self._on_output = on_output
        self._ended: Ended | None = None
        self._failed: BaseException | None = None
        self._ask_s = ask_s
        self._thread = threading.Thread(
            target=self._run, args=(list(words), folder, environment), name="background program", daemon=True
        )
        self._thread.start()

    @property
    def ended(self) -> Ended | None:
        """How it ended; None while it runs. Raises OSError if it did not start."""
        if self._failed is not None:
            raise self._failed
        return self._ended if not self._thread.is_alive() else None

    @property
    def heard(self) -> str:
        """The last of what it has written so far, on both of its streams."""
        with self._lock:
            return b"".join(self._heard)[-MOST_HEARD:].decode("utf-8", errors="replace")

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for its end; whether it has ended."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def end(self) -> None:
        """Terminate the process; kill it and its children if it does not exit, and wait. Safe to call twice."""
        self._stop.set()
        self._thread.join()

    # --- on its thread ------------------------------------------------------------------------------------------------

    def _run(self, words: list[str], folder: Path | None, environment: Mapping[str, str] | None) -> None:
        try:
            self._ended = run_process(
                words,
                folder=folder,
                environment=environment,
                stop=self._stop,
                ask_s=self._ask_s,
                on_output=self._hear,
            )
        except BaseException as error:  # noqa: BLE001  (raised again where it is asked for)
            self._failed = error

    def _hear(self, stream: int, chunk: bytes) -> None:
        with self._lock:
            self._heard.append(chunk)
            self._size += len(chunk)
            while self._size - len(self._heard[0]) >= MOST_HEARD:
                self._size -= len(self._heard.popleft())
        if self._on_output is not None:
            with suppress(Exception):  # what listens may not keep the program's pipe full
                self._on_output(stream, chunk)
