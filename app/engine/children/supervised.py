"""Processes that are to run as long as this one does: what dies is started again, and all end with this process.

A child gets its task as one line of JSON on its standard input, which stays open: its end is the child's, whatever
became of this process. On its standard output it says in one line of JSON that it is ready, or why it cannot be.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from .python import python_command, python_environment

FIRST_WAIT_S: Final = 0.2  # before a child that died is started again; twice as long each time
LONGEST_WAIT_S: Final = 5.0
STEADY_S: Final = 20.0  # a child that lived so long starts again at once
STOP_S: Final = 4.0  # a signal ends all within 5 s
_LOOK_S: Final = 0.05
_DRAIN_S: Final = 0.5  # for what a child left in its output, which a program that it started may hold open
_LONGEST_LINE: Final = 1 << 16
GIVES_UP: Final = 2  # exit status of a child that would only fail again


@dataclass(slots=True)
class Child:
    """One of them."""

    name: str
    module: str
    task: Mapping[str, Any]
    ready: Mapping[str, Any] | None = None  # what it said when it was; None until then
    failed: str = ""  # why it is not started again
    process: subprocess.Popen[bytes] | None = None
    started_s: float = 0.0
    again_s: float = 0.0
    wait_s: float = FIRST_WAIT_S
    said: str = ""  # of its last end
    reader: threading.Thread | None = field(default=None, repr=False)


class Supervisor:
    """Keeps children running until it is closed. `on_line` hears what the user should know of them."""

    def __init__(self, children: Sequence[Child], on_line: Callable[[str], None] = lambda _: None) -> None:
        self.children = tuple(children)
        self._on_line = on_line
        self._changed = threading.Condition()
        self._closing = False
        for child in self.children:
            self._start(child)
        self._thread = threading.Thread(target=self._watch, name="supervisor", daemon=True)
        self._thread.start()

    def until_ready(self, child: Child, timeout_s: float) -> Mapping[str, Any] | None:
        """What a child said when it was ready; None where it failed, or took longer."""
        with self._changed:
            self._changed.wait_for(lambda: child.ready is not None or child.failed, timeout_s)
            return child.ready

    def close(self) -> None:
        """End all of them. Safe to call twice."""
        with self._changed:
            self._closing = True
        self._thread.join()
        for child in self.children:
            if child.process is not None and child.process.stdin is not None:
                with suppress(OSError):
                    child.process.stdin.close()
        until = time.monotonic() + STOP_S
        for child in self.children:
            if child.process is not None:
                try:
                    child.process.wait(max(0.1, until - time.monotonic()))
                except subprocess.TimeoutExpired:
                    child.process.kill()
                    child.process.wait()
            if child.reader is not None:
                child.reader.join(_DRAIN_S)

    # --- inside -------------------------------------------------------------------------------------------------------

    def _start(self, child: Child) -> None:
        child.started_s = time.monotonic()
        child.process = subprocess.Popen(
            python_command(child.module),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=python_environment(),
            start_new_session=True,  # Ctrl+C is for this process, which ends them in order
        )
        assert child.process.stdin is not None
        with suppress(OSError):
            child.process.stdin.write(json.dumps(dict(child.task)).encode() + b"\n")
            child.process.stdin.flush()
        child.reader = threading.Thread(target=self._read, args=(child, child.process), name=child.name, daemon=True)
        child.reader.start()

    def _read(self, child: Child, process: subprocess.Popen[bytes]) -> None:
        """The line that it says, and whatever else, so that it never waits for a reader."""
        assert process.stdout is not None
        with process.stdout as stream:
            line = stream.readline(_LONGEST_LINE)
            with suppress(ValueError, AttributeError):
                said = json.loads(line)
                with self._changed:
                    if "ready" in said:
                        child.ready = dict(said["ready"])
                    else:
                        child.failed = str(said.get("failed", "")) or "it failed"
                    self._changed.notify_all()
            while stream.read(_LONGEST_LINE):
                pass

    def _watch(self) -> None:
        while True:
            with self._changed:
                if self._closing:
                    return
            for child in self.children:
                self._look_at(child)
            time.sleep(_LOOK_S)

    def _look_at(self, child: Child) -> None:
        now = time.monotonic()
        process = child.process
        if process is not None:
            status = process.poll()
            if status is None:
                return
            if child.reader is not None:
                child.reader.join(_DRAIN_S)
            if process.stdin is not None:
                with suppress(OSError):
                    process.stdin.close()
            child.process = None
            if status == GIVES_UP:
                with self._changed:
                    child.failed = child.failed or "it failed"
                    self._changed.notify_all()
                self._on_line(f"{child.name}: {child.failed}")
                return
            said = f" ({child.failed})" if child.failed else ""
            with self._changed:
                child.ready, child.failed = None, ""
            child.wait_s = FIRST_WAIT_S if now - child.started_s > STEADY_S else min(2 * child.wait_s, LONGEST_WAIT_S)
            child.again_s = now + child.wait_s
            line = f"{child.name} ended with status {status}{said}; it is started again"
            if line != child.said:  # the same again and again is said once
                child.said = line
                self._on_line(line)
        elif not child.failed and now >= child.again_s:
            self._start(child)
