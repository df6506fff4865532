"""The sessions that an assistant started: each a process of its own (`session_child`), bounded in time and number."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, Final

from ...base.conversation import Conversation, Frame, receive
from ...base.errors import InputError, WattridgeError
from ...engine.children.ending import ends_with_us, prepare_for_the_end
from ...engine.children.python import python_command, python_environment
from ...engine.children.reaper import Family
from ...engine.control.client import READ_ONLY
from ...engine.runner.cuda.toolchain import CHOICE

MOST_SESSIONS: Final = 100  # that one server starts
START_S: Final = 120.0
_LEFT_S: Final = 300.0  # beyond its own limit: for warming up before and stating figures after
_END_S: Final = 4.0  # a signal ends all within 5 s
_OVER: Final = ("refused", "ended")


class StartedSession:
    """One process. What it said last is kept; it is ended when it takes too long."""

    def __init__(self, job: Mapping[str, Any], longest_s: float) -> None:
        """Raises WattridgeError if it does not start."""
        prepare_for_the_end()
        self._said: dict[str, Any] = {}
        self._changed = threading.Condition()
        self._limit = threading.Timer(longest_s + _LEFT_S, self._kill)
        self._limit.daemon = True
        try:
            self._process = Conversation(
                python_command(f"{__package__}.session_child"),
                receive,
                self._heard,
                environment=python_environment({READ_ONLY: "1", CHOICE: "nvrtc"}),  # nvcc reads what no check foresees
                stderr=subprocess.DEVNULL,
            )
        except OSError as error:
            raise WattridgeError(f"it does not start: {error.strerror or error}", "session", "try again") from None
        self._holding = ExitStack()
        self._holding.enter_context(ends_with_us(self._process.pid, group=True))
        self._limit.start()
        self._process.send(dict(job))

    @property
    def said(self) -> dict[str, Any]:
        """What is known: `started`, `progress`, `refused`, `ended`, `remarks`."""
        with self._changed:
            return dict(self._said)

    @property
    def over(self) -> bool:
        """It ended, or was never begun."""
        return any(key in self.said for key in _OVER)

    def wait(self, seconds: float, stop: threading.Event, *until: str) -> None:
        """Wait for one of these keys, the end, the timeout, or the caller's stop."""
        end = time.monotonic() + seconds
        with self._changed:
            while not stop.is_set() and not any(key in self._said for key in (*until, *_OVER)):
                left = end - time.monotonic()
                if left <= 0:
                    return
                self._changed.wait(min(left, 0.1))

    def ask_to_stop(self) -> None:
        """What was measured is kept."""
        self._process.send({"stop": True})

    def close(self) -> None:
        """Stop it, and end it if it does not."""
        self._process.close_input()
        self._process.wait(_END_S)
        self._kill()
        self._holding.close()

    # --- inside -------------------------------------------------------------------------------------------------------

    def _kill(self) -> None:
        """End it, and what it started."""
        if os.name == "posix" and self._process.status is None:
            Family(self._process.pid, group=True).signal(signal.SIGKILL)
        self._process.kill()

    def _heard(self, frame: Frame | None) -> None:
        with self._changed:
            if frame is not None:
                message, _ = frame
                remark = message.pop("remark", None)
                if remark is not None:
                    self._said["remarks"] = [*self._said.get("remarks", []), remark][-20:]
                self._said.update(message)
            else:
                self._limit.cancel()
                if not any(key in self._said for key in _OVER):
                    self._said["ended"] = {"state": "interrupted", "reason": "its process ended"}
            self._changed.notify_all()


class StartedSessions:
    """All of one server, by their numbers; one runs at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: dict[str, StartedSession] = {}

    def start(self, job: Mapping[str, Any], longest_s: float) -> tuple[str, StartedSession]:
        """Begin one. Raises WattridgeError while another one runs, or where too many were started."""
        with self._lock:
            running = [number for number, run in self._runs.items() if not run.over]
            if running:
                remedy = f"wait for it, or stop_session with run {running[0]}"
                raise WattridgeError(f"run {running[0]} has not ended", "start_session", remedy)
            if len(self._runs) >= MOST_SESSIONS:
                raise WattridgeError(
                    f"{MOST_SESSIONS} sessions were started", "start_session", "start the server again"
                )
            number = str(len(self._runs) + 1)
            started = self._runs[number] = StartedSession(job, longest_s)
        return number, started

    def get(self, number: str) -> StartedSession:
        """Raises InputError for one that was not started here."""
        with self._lock:
            if number not in self._runs:
                remedy = "start_session says the number; list_sessions names what is stored"
                raise InputError(f"there is no run {number}", "run", remedy)
            return self._runs[number]

    def close(self) -> None:
        """End those that run."""
        with self._lock:
            runs = list(self._runs.values())
        for run in runs:
            run.close()
