"""A program that runs beside the session, as a server does: started, listened to, ended. It ends with this process."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from ..children.reaper import ASK_S
from .subprocesses import Ended, run_process

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
        """How it ended; None while it runs. Raises OSError where it did not start."""
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
        """Ask it to end, kill it and all that it started where it does not, and wait for that. Safe to call twice."""
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
