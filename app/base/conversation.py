"""A conversation with a child process: bounded frames both ways, and each side notices the end of the other.

A frame is its header's length (4 bytes, big endian), the header (JSON, UTF-8; `blocks` holds the blocks' lengths) and
the blocks one after the other. Nothing is ever unpickled. `Conversation` is the parent's side, `Parent` the child's.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import struct
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import IO, Any, Final, Generic, TypeVar

MAX_HEADER: Final = 4 << 20
MAX_BLOCK: Final = 1 << 30
_LENGTH: Final = struct.Struct(">I")
_KEPT_ERRORS: Final = 64  # lines of what the process prints
_LONGEST_ERROR: Final = 1000  # bytes of one of them
_KILLED_S: Final = 30.0  # what the system, or a driver, may take to end a killed process
_SENDING_S: Final = 0.2  # for a message that is being written
_JOIN_S: Final = 2.0  # for what a process left in its pipes, which a program that it started may hold open

Message = dict[str, Any]
Frame = tuple[Message, list[bytes]]
Heard = TypeVar("Heard")


class WireError(Exception):
    """The received bytes are no frame: the peer is not the expected program."""


def send(stream: IO[bytes], message: Message, blocks: Sequence[bytes] = ()) -> None:
    """Write one frame and flush. Raises OSError if the other side has gone."""
    header = json.dumps({**message, "blocks": [len(block) for block in blocks]}).encode()
    stream.write(_LENGTH.pack(len(header)))
    stream.write(header)
    for block in blocks:
        stream.write(block)
    stream.flush()


def receive(stream: IO[bytes]) -> Frame | None:
    """The next frame, or None at the end of the stream. Raises WireError."""
    prefix = stream.read(_LENGTH.size)
    if len(prefix) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(prefix)
    if length > MAX_HEADER:
        raise WireError(f"a header of {length} bytes")
    try:
        message = json.loads(stream.read(length))
        sizes = message.pop("blocks")
    except (ValueError, KeyError, AttributeError) as error:
        raise WireError(f"a header that is not one: {error}") from None
    if not all(isinstance(size, int) and 0 <= size <= MAX_BLOCK for size in sizes):
        raise WireError(f"blocks of {sizes} bytes")
    blocks = [stream.read(size) for size in sizes]
    if any(len(block) < size for block, size in zip(blocks, sizes, strict=True)):
        return None
    return message, blocks


class Conversation(Generic[Heard]):
    """A child process, what it is sent and what it answers. Thread-safe."""

    def __init__(
        self,
        command: Sequence[str],
        read: Callable[[IO[bytes]], Heard | None],
        heard: Callable[[Heard | None], None],
        *,
        environment: Mapping[str, str] | None = None,
        stderr: int | None = subprocess.PIPE,
        interruptible: bool = False,
    ) -> None:
        """Start the process and return at once. Raises OSError.

        `read` takes what comes next from its output, such as `receive`; `heard` is called with that on a thread, and
        with None once at the end. What goes to a piped `stderr` is kept for `last_words`. Ctrl+C reaches the process
        where it is `interruptible`; others are ended by this process when that is ready to.
        """
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=environment,
            start_new_session=not interruptible,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin: IO[bytes] = self._process.stdin
        self._sending = threading.Lock()
        self._errors: deque[str] = deque(maxlen=_KEPT_ERRORS)
        self._threads = [
            threading.Thread(target=_listen, args=(self._process.stdout, read, heard), name="replies", daemon=True)
        ]
        if self._process.stderr is not None:
            self._threads.append(
                threading.Thread(target=self._keep, args=(self._process.stderr,), name="errors", daemon=True)
            )
        for thread in self._threads:
            thread.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def status(self) -> int | None:
        """Its exit status; None while it runs."""
        return self._process.poll()

    def send(self, message: Message, blocks: Sequence[bytes] = ()) -> bool:
        """Send a frame; whether it could be written."""
        return self._written(lambda: send(self._stdin, message, blocks))

    def write(self, line: bytes) -> bool:
        """Send what is framed already; whether it could be written."""
        return self._written(lambda: (self._stdin.write(line), self._stdin.flush()))

    def wait(self, timeout_s: float) -> bool:
        """Wait for its end; whether it has ended."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout_s)
        return self._process.returncode is not None

    def drain(self, timeout_s: float = _JOIN_S) -> None:
        """Wait until everything that an ended process wrote has been read."""
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(timeout_s)

    def last_words(self, timeout_s: float) -> list[str]:
        """The last lines of its errors, once it has ended; they are waited for so long."""
        self.wait(timeout_s)
        self._threads[-1].join(timeout_s)
        return list(self._errors)

    def terminate(self) -> None:
        """Send the signal that asks the process to exit."""
        with suppress(OSError):
            self._process.terminate()

    def close_input(self) -> None:
        """Close its input, at the end of which our child processes exit.

        It stays open while a message cannot be written, as nothing reads it: closing would wait for that.
        """
        if self._sending.acquire(timeout=_SENDING_S):
            try:
                with suppress(OSError, ValueError):
                    self._stdin.close()
            finally:
                self._sending.release()

    def end(self, grace_s: float) -> None:
        """Close its input, and kill it if it does not end by itself within that time. Safe to call twice."""
        self.close_input()
        if self.wait(grace_s):
            self.drain()
        else:
            self.kill()

    def kill(self) -> None:
        """End it at once, and wait for that."""
        self._process.kill()
        self.wait(_KILLED_S)
        self.close_input()
        self.drain()

    # --- inside -----------------------------------------------------------------------------------------------------

    def _written(self, write: Callable[[], object]) -> bool:
        with self._sending, suppress(OSError, ValueError):  # it has gone, or its input was closed
            write()
            return True
        return False

    def _keep(self, stream: IO[bytes]) -> None:
        """Note the last lines; a kernel may print without end, and without a line's end."""
        with suppress(OSError, ValueError), stream:
            while line := stream.readline(_LONGEST_ERROR):
                self._errors.append(line.decode("utf-8", "replace").rstrip())


def _listen(
    stream: IO[bytes], read: Callable[[IO[bytes]], Heard | None], heard: Callable[[Heard | None], None]
) -> None:
    with stream:
        while True:
            try:
                came = read(stream)
            except (WireError, OSError, ValueError):
                came = None
            heard(came)
            if came is None:
                return


class Parent:
    """The other side, in the child: frames from the parent arrive in `inbox`, and None when that has gone."""

    def __init__(self, orphan_s: float | None = None, *, outlasts_signals: bool = False) -> None:
        """From here on what anything prints goes the way of errors, and the parent gets frames alone.

        The process is ended `orphan_s` after its parent has gone, whatever holds its other threads; None: it ends
        by itself. One that `outlasts_signals` leaves those that ask to exit to the parent, which ends it in order: a
        scheduler of jobs sends them to every process.
        """
        for name in ("SIGTERM", "SIGHUP") if outlasts_signals else ():
            with suppress(AttributeError, ValueError):  # not on Windows; only in a main thread
                signal.signal(getattr(signal, name), lambda *_: None)  # programs that it starts hear them
        self.inbox: queue.SimpleQueue[Frame | None] = queue.SimpleQueue()
        self._orphan_s = orphan_s
        self._outward = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)
        # a buffer that nobody else has: the interpreter's own is locked while it is read, and could not be closed
        inward = os.fdopen(os.dup(0), "rb")
        threading.Thread(target=_listen, args=(inward, receive, self._heard), name="parent", daemon=True).start()

    def send(self, message: Message, blocks: Sequence[bytes] = ()) -> None:
        """Answer with a frame. Raises OSError if the parent has gone."""
        send(self._outward, message, blocks)

    def _heard(self, frame: Frame | None) -> None:
        self.inbox.put(frame)
        if frame is None and self._orphan_s is not None:
            time.sleep(self._orphan_s)
            os._exit(1)
