"""Processes that run as long as this one does: one that dies is started again, and all end with this process.

A child receives its task as the first frame of the conversation, and ends when the conversation does, however this
process ended. It answers with a frame that reports that it is ready, or why it cannot be.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from ...base.conversation import Conversation, Frame, receive
from .python import python_command, python_environment

FIRST_WAIT_S: Final = 0.2  # before a child that died is started again; twice as long each time
LONGEST_WAIT_S: Final = 5.0
STEADY_S: Final = 20.0  # a child that lived so long starts again at once
STOP_S: Final = 4.0  # a signal ends all within 5 s
_LOOK_S: Final = 0.05
_DRAIN_S: Final = 0.5  # for what a child left in its output, which a program that it started may hold open
GIVES_UP: Final = 2  # exit status of a child that would only fail again


@dataclass(slots=True)
class Child:
    """One supervised process: its task and its state."""

    name: str
    module: str
    task: Mapping[str, Any]
    ready: Mapping[str, Any] | None = None  # the message with which it reported that it was ready; None until then
    failed: str = ""  # why it is not started again
    process: Conversation[Frame] | None = None
    started_s: float = 0.0
    again_s: float = 0.0
    wait_s: float = FIRST_WAIT_S
    said: str = ""  # of its last end


class Supervisor:
    """Keeps children running until it is closed. `on_line` gets the lines that the user should see."""

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
        """Wait for the message with which a child reports that it is ready; None if it failed, or took longer."""
        with self._changed:
            self._changed.wait_for(lambda: child.ready is not None or child.failed, timeout_s)
            return child.ready

    def close(self) -> None:
        """End all of them. Safe to call twice."""
        with self._changed:
            self._closing = True
        self._thread.join()
        running = [child.process for child in self.children if child.process is not None]
        for process in running:
            process.close_input()
        until = time.monotonic() + STOP_S
        for process in running:
            process.end(max(0.1, until - time.monotonic()))

    # --- inside -------------------------------------------------------------------------------------------------------

    def _start(self, child: Child) -> None:
        child.started_s = time.monotonic()
        child.process = Conversation(
            python_command(child.module),
            receive,
            partial(self._heard, child),
            environment=python_environment(),
            stderr=None,
        )
        child.process.send(dict(child.task))

    def _heard(self, child: Child, frame: Frame | None) -> None:
        if frame is None:
            return
        message, _ = frame
        with self._changed:
            if "ready" in message:
                child.ready = dict(message["ready"])
            else:
                child.failed = str(message.get("failed", "")) or "it failed"
            self._changed.notify_all()

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
            status = process.status
            if status is None:
                return
            process.drain(_DRAIN_S)
            process.close_input()
            if status == GIVES_UP:
                with self._changed:
                    child.failed = child.failed or "it failed"
                    self._changed.notify_all()
                self._on_line(f"{child.name}: {child.failed}")
                child.process = None
                return
            reason = f" ({child.failed})" if child.failed else ""
            with self._changed:
                child.ready, child.failed = None, ""
            child.process = None
            child.wait_s = FIRST_WAIT_S if now - child.started_s > STEADY_S else min(2 * child.wait_s, LONGEST_WAIT_S)
            child.again_s = now + child.wait_s
            line = f"{child.name} ended with status {status}{reason}; it is started again"
            if line != child.said:  # the same again and again is said once
                child.said = line
                self._on_line(line)
        elif not child.failed and now >= child.again_s:
            self._start(child)
