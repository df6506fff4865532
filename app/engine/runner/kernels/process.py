"""The parent's side of a child process that answers requests, and of a runner process with its spare."""

from __future__ import annotations

import queue
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from ....base.conversation import Conversation, Frame, Message, receive
from ....base.errors import InputError, WattridgeError
from ...children.ending import NOT_KNOWN, status_is_lost
from ...children.python import python_command, python_environment
from ...results.measurement import State

START_S: Final = 120.0  # a context takes a second or so; the first one after a boot much longer
ASK_S: Final = 60.0
MOMENT_S: Final = 0.3
STOPPED_S: Final = 1.5  # that an answer may still take once the session was stopped; the process is ended then
END_S: Final = 2.0  # for a process to end by itself
LAST_WORDS_S: Final = 5.0  # for the status and the errors of one whose output has ended


class KernelFailed(WattridgeError):
    """A configuration's kernel failed. `lost`: the runner process ended with it."""

    compiler_s: float = 0.0  # what the compiler took, where it is the compiler that failed

    def __init__(self, state: State, what: str, *, lost: bool = False) -> None:
        super().__init__(what)
        self.state = state
        self.lost = lost


class AskedProcess:
    """A child process that answers frames. `post` and `request` must be called by one thread at a time."""

    def __init__(self, what: str, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        """Start it and return at once; `ready` waits. `what` names it in messages. Raises OSError."""
        self.what = what
        self.stopping: Callable[[], bool] = lambda: False
        self._inbox: queue.SimpleQueue[Frame | None] = queue.SimpleQueue()
        self._posted = 0
        self._answered = -1
        self._process = Conversation(command, receive, self._inbox.put, environment=python_environment(environment))

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process.status is not None

    @property
    def has_answered(self) -> bool:
        """Whether nothing that was posted is still on its way."""
        return self._answered + self._inbox.qsize() >= self._posted

    def ready(self) -> None:
        """Wait until the context stands and everything posted is answered. Raises KernelFailed, InputError."""
        self._until(self._posted, START_S)

    def post(self, message: Message, blocks: Sequence[bytes] = ()) -> None:
        """Send without waiting for the reply; an error, or the end of the process, is raised by the next request."""
        self._posted += 1
        self._process.send({**message, "number": self._posted}, blocks)

    def request(
        self,
        message: Message,
        blocks: Sequence[bytes] = (),
        *,
        timeout_s: float = ASK_S,
        meanwhile: Callable[[], None] | None = None,
    ) -> Message:
        """Send and wait for the reply. `meanwhile` is called once where that takes longer than a moment.

        Raises KernelFailed if the driver refused, the process ended or the time ran out (it is killed then),
        InputError if the request makes no sense.
        """
        return self.exchange(message, blocks, timeout_s, meanwhile)[0]

    def exchange(
        self, message: Message, blocks: Sequence[bytes], timeout_s: float, meanwhile: Callable[[], None] | None = None
    ) -> tuple[Message, list[bytes]]:
        """As `request`, with the blocks of the reply."""
        if self._answered < self._posted:
            self.ready()
        self.post(message, blocks)
        return self._until(self._posted, timeout_s, meanwhile)

    def kill(self) -> float:
        """End it; seconds that the driver took."""
        began = time.monotonic()
        self._process.kill()
        return time.monotonic() - began

    def close(self) -> None:
        """Let it end by itself, and make sure that it does."""
        self._process.end(END_S)

    # --- inside -----------------------------------------------------------------------------------------------------

    def _until(
        self, number: int, timeout_s: float, meanwhile: Callable[[], None] | None = None
    ) -> tuple[Message, list[bytes]]:
        deadline, stopped = time.monotonic() + timeout_s, False
        reply: tuple[Message, list[bytes]] = {}, []
        while self._answered < number:
            if not stopped and self.stopping():
                deadline, stopped = min(deadline, time.monotonic() + STOPPED_S), True
            left_s = max(0.0, deadline - time.monotonic())
            try:
                frame = self._inbox.get(timeout=min(left_s, MOMENT_S))
            except queue.Empty:
                if meanwhile is not None:
                    meanwhile()
                    meanwhile = None
                elif time.monotonic() >= deadline:
                    if stopped:
                        self._process.kill()
                    what = "stopped" if stopped else f"no answer within {timeout_s:g} s"
                    raise KernelFailed(State.TIMEOUT, what, lost=True) from None
                continue
            if frame is None:
                self._inbox.put(None)  # for the next request: what has ended does not answer later
                raise KernelFailed(State.RUNTIME, self._how_it_ended(), lost=True)
            message, came = frame
            self._answered = int(message["number"])
            if "fault" in message:
                fault = message["fault"]
                raise KernelFailed(State.RUNTIME, str(fault["message"]), lost=bool(fault["fatal"]))
            if "wrong" in message:
                fault = message["wrong"]
                raise InputError(str(fault["what"]), str(fault["where"]), str(fault["remedy"]))
            reply = dict(message["reply"]), came
        return reply

    def _how_it_ended(self) -> str:
        last = " ".join(self._process.last_words(LAST_WORDS_S)[-3:]).strip()
        code = self._process.status
        how = NOT_KNOWN if status_is_lost(code) else f"exit status {code}"
        if code is not None and code < 0:
            with suppress(ValueError):
                how = signal.Signals(-code).name
        return f"the {self.what} ended{':' if how == NOT_KNOWN else ' by'} {how}" + (f": {last}" if last else "")


class RunnerProcess(AskedProcess):
    """One process with the context of one device."""

    def __init__(self, backend: str, device: str, environment: Mapping[str, str]) -> None:
        """`backend` is the module that opens the device."""
        super().__init__("runner process", python_command(f"{__package__}.worker", backend, device), environment)


class RunnerProcesses:
    """The process in use and a warm spare. `prepare` posts the initial state to a new process."""

    def __init__(self, start: Callable[[], RunnerProcess], prepare: Callable[[RunnerProcess], None]) -> None:
        self._start = start
        self._prepare = prepare
        self._current: RunnerProcess | None = None
        self._spare: RunnerProcess | None = None
        self._spare_stands = False  # or it has failed, as will be found where it is needed
        self._spare_outdated = False  # it does not have what `prepare` posts now
        self.replaced = 0

    @property
    def current(self) -> RunnerProcess:
        if self._current is None:
            self._current = self._fresh()
        return self._current

    def keep_spare(self) -> None:
        """Have a spare one; returns at once."""
        if self._spare is None:
            self._spare, self._spare_stands, self._spare_outdated = self._start(), False, True
        self.inform_spare()

    def inform_spare(self) -> None:
        """Post the initial state to the spare once this process has computed the references. Returns at once."""
        if self._spare is not None and self._current is not None and self._current.has_answered:
            self._update_spare(self._spare)

    def await_opened(self) -> None:
        """Wait until the spare one has its context: making one disturbs what the board runs."""
        if self._spare is not None:
            with suppress(KernelFailed, InputError):
                self._spare.ready()

    def await_spare(self) -> None:
        """Wait until the spare, if any, is ready to take over."""
        if self._spare is None or (self._spare_stands and not self._spare_outdated):
            return
        self._update_spare(self._spare)
        with suppress(KernelFailed, InputError):
            self._spare.ready()
        self._spare_stands = True

    def prepare_again(self) -> None:
        """The initial state has changed; the spare receives it once this process has computed the references."""
        self._spare_outdated = self._spare is not None
        if self._current is not None:
            self._prepare(self._current)

    def replace(self) -> float:
        """End the process in use; the spare one takes over. Seconds that the driver took to end the old one."""
        teardown_s = self._current.kill() if self._current is not None else 0.0
        if self._spare is not None:
            self._update_spare(self._spare)
        self._current, self._spare = self._spare or self._fresh(), None
        self.replaced += 1
        return teardown_s

    def _update_spare(self, spare: RunnerProcess) -> None:
        if self._spare_outdated:
            self._prepare(spare)
            self._spare_outdated = False

    def close(self) -> None:
        for process in (self._spare, self._current):
            if process is not None:
                process.close()
        self._current = self._spare = None

    def _fresh(self) -> RunnerProcess:
        process = self._start()
        self._prepare(process)
        return process
