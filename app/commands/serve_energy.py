"""`wattridge serve-energy`: the joules of any stretch of time, for programs that include `wattridge.h`.

A program keeps two times of CLOCK_MONOTONIC itself, and asks for what lies between them when it wants to: one line,
`BEGIN END` in ns, over a Unix socket, answered by `MICROJOULES LOW HIGH`, -1 for an interval that is not known, or by
the reason why there are none.
"""

from __future__ import annotations

import os
import re
import socket
import threading
import time
from argparse import ArgumentParser, Namespace
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..base.configuration import setting
from ..base.errors import InputError, WattridgeError
from ..base.paths import resources
from .terminal import say, show, stop_on_interrupt

if TYPE_CHECKING:
    from ..engine.metering.watching import Watch

_QUESTION: Final = re.compile(rb"(\d{1,19}) (\d{1,19})\n")
_LONGEST: Final = 64  # bytes of a question
_PATIENCE_S: Final = 5.0  # for a client to ask
_LOOK_S: Final = 0.2
_MOST_AT_ONCE: Final = 64  # clients, beyond which one waits for another


def serve_energy_arguments(parser: ArgumentParser) -> None:
    """Declare the options of `wattridge serve-energy`."""
    parser.add_argument("--gpu", metavar="GPU", help="an index, a UUID or simulated:NAME")
    where = "where programs ask ($WATTRIDGE_SOCKET, else wattridge.sock in $XDG_RUNTIME_DIR)"
    parser.add_argument("--socket", metavar="PATH", help=where)
    parser.add_argument("--include", action="store_true", help="print the folder of wattridge.h, and end")


def serve_energy(arguments: Namespace) -> int:
    """Sample a board and answer programs, until it is stopped."""
    if arguments.include:
        show(str(resources() / "include"))
        return 0
    from ..engine.metering.watching import watch
    from ..sensors.select import open_gpu

    path = _path(arguments.socket)
    watched = watch(arguments.gpu, lambda text: open_gpu(text, voltage=False))
    try:
        with _listening(path) as listener, stop_on_interrupt() as stop:
            say(f"{watched.gpu.info.label}: programs ask at {path}")
            try:
                _answer_all(listener, watched, stop)
            finally:
                path.unlink(missing_ok=True)
    finally:
        watched.release()
    return 0


def _path(named: str | None) -> Path:
    folder = os.environ.get("XDG_RUNTIME_DIR")
    text = named or setting("WATTRIDGE_SOCKET") or (f"{folder}/wattridge.sock" if folder else "")
    if not text or not hasattr(socket, "AF_UNIX"):
        raise InputError("it is not known where programs would ask", "--socket", "name a path for the socket, on Linux")
    return Path(text)


def _listening(path: Path) -> socket.socket:
    """A socket that this user alone may ask. One that nobody serves any more is replaced."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other, suppress(OSError):
            other.connect(str(path))
            raise InputError("another one serves there", str(path), "end it first, or name another --socket")
        if path.is_socket():
            path.unlink()
        listener.bind(str(path))
        listener.listen()
        listener.settimeout(_LOOK_S)
    except OSError as error:
        listener.close()
        raise InputError(f"no socket can be made there: {error}", str(path), "name another --socket") from None
    except InputError:
        listener.close()
        raise
    finally:
        os.umask(mask)
    return listener


def _answer_all(listener: socket.socket, watched: Watch, stop: threading.Event) -> None:
    began_ns = time.monotonic_ns()
    places = threading.Semaphore(_MOST_AT_ONCE)

    def answer(client: socket.socket) -> None:
        try:
            with client, suppress(OSError):
                client.settimeout(_PATIENCE_S)
                client.sendall(f"{_joules(watched, _asked(client), began_ns)}\n".encode())
        finally:
            places.release()

    while not stop.is_set():
        with suppress(TimeoutError):
            client, _ = listener.accept()
            while not places.acquire(timeout=_LOOK_S):
                if stop.is_set():
                    client.close()
                    return
            threading.Thread(target=answer, args=(client,), name="joules for a program", daemon=True).start()


def _asked(client: socket.socket) -> bytes:
    got = b""
    deadline = time.monotonic() + _PATIENCE_S
    while not got.endswith(b"\n") and len(got) < _LONGEST and time.monotonic() < deadline:
        more = client.recv(_LONGEST)
        if not more:
            break
        got += more
    return got


def _joules(watched: Watch, question: bytes, began_ns: int) -> str:
    """The answer to one question."""
    from ..engine.metering.span import read_span

    asked = _QUESTION.fullmatch(question)
    start_ns, end_ns = (int(asked[1]), int(asked[2])) if asked is not None else (0, 0)
    now_ns = time.monotonic_ns()
    if not 0 < start_ns < end_ns <= now_ns:
        return "not two times of CLOCK_MONOTONIC, in ns, that have passed"
    if start_ns < began_ns:
        return "it began before this did"
    ahead_ns = watched.gpu.clock.now_ns() - now_ns  # a simulated board's clock begins at a time of its own
    try:
        span = read_span(watched, start_ns + ahead_ns, end_ns + ahead_ns)
    except WattridgeError as error:  # the board is gone
        say(str(error))
        return error.what.replace("\n", " ")
    if span.unknown:
        say(f"energy is not known of {(end_ns - start_ns) / 1e9:.3g} s: {span.unknown}")
        return span.unknown.replace("\n", " ")
    ends_j = span.energy_interval_j or (-1e-6, -1e-6)
    return " ".join(str(round(joules * 1e6)) for joules in (span.energy_j, *ends_j))
