"""Launches in this process, on a thread of their own, for scripts that watch their kernels by functions.

It answers what a runner process answers, so that all above it is the same, but a fault cannot be contained: a lost
context or a launch without end ends the session.
"""

from __future__ import annotations

import importlib
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLate
from typing import Final

from ....base.conversation import Message
from ....base.errors import InputError, WattridgeError
from ...results.measurement import State
from .backend import DeviceFault
from .process import ASK_S, MOMENT_S, START_S, KernelFailed
from .worker import Worker

_Asked = tuple[Message, list[bytes], "Future[Message]"]
_CLOSE_S: Final = 5.0


class OwnThread:
    """A thread that owns the context; `post` and `request` are for one other thread."""

    def __init__(self, backend: str, device: str, now_ns: Callable[[], int]) -> None:
        """`backend` is the module that opens the device."""
        self._asked: queue.SimpleQueue[_Asked | None] = queue.SimpleQueue()
        self._posted: list[Future[Message]] = []
        self._opened: Future[Message] = Future()
        self._posted.append(self._opened)
        self._thread = threading.Thread(
            target=self._serve, args=(backend, device, now_ns), name="launches", daemon=True
        )
        self._thread.start()

    def ready(self) -> None:
        """Wait until the context stands and everything posted is answered. Raises KernelFailed, InputError."""
        posted, self._posted = self._posted, []
        for value in posted:
            _result(value, START_S)

    def post(self, message: Message, blocks: Sequence[bytes] = ()) -> None:
        """Ask without waiting for the reply; what goes wrong is raised by the next request."""
        self._posted.append(self._ask(message, blocks))

    def request(
        self,
        message: Message,
        blocks: Sequence[bytes] = (),
        *,
        timeout_s: float = ASK_S,
        meanwhile: Callable[[], None] | None = None,
    ) -> Message:
        """As `RunnerProcess.request`; a launch that does not end raises WattridgeError, as it cannot be ended."""
        self.ready()
        asked = self._ask(message, blocks)
        if meanwhile is not None:
            try:
                return _result(asked, min(MOMENT_S, timeout_s))
            except _NoAnswer:
                meanwhile()
        return _result(asked, timeout_s)

    def close(self) -> None:
        """End the thread, unless a launch holds it."""
        self._asked.put(None)
        self._thread.join(_CLOSE_S)

    # --- inside -----------------------------------------------------------------------------------------------------

    def _ask(self, message: Message, blocks: Sequence[bytes]) -> Future[Message]:
        answer: Future[Message] = Future()
        self._asked.put((message, list(blocks), answer))
        return answer

    def _serve(self, module: str, device: str, now_ns: Callable[[], int]) -> None:
        try:
            backend = importlib.import_module(module).open_backend(device)
        except (DeviceFault, ImportError) as error:
            self._opened.set_exception(DeviceFault(str(error), fatal=True))
            return
        self._opened.set_result({})
        worker = Worker(backend, now_ns)
        while True:
            try:
                asked = self._asked.get(timeout=worker.patience_s if worker.running else None)
            except queue.Empty:
                worker.pump()
                continue
            if asked is None:
                backend.close()
                return
            message, blocks, answer = asked
            try:
                answer.set_result(worker.answer(message, blocks))
            except (DeviceFault, InputError, MemoryError) as error:
                answer.set_exception(error)


class OwnProcess:
    """What `RunnerProcesses` offers, of this process alone: there is no spare one, and none that takes over."""

    replaced = 0

    def __init__(
        self, backend: str, device: str, prepare: Callable[[OwnThread], None], now_ns: Callable[[], int]
    ) -> None:
        self.current = OwnThread(backend, device, now_ns)
        self._prepare = prepare

    def prepare_again(self) -> None:
        """The initial state has changed."""
        self._prepare(self.current)

    def keep_spare(self) -> None:
        """There is none, so that none is informed or waited for either."""

    inform_spare = await_opened = await_spare = keep_spare

    def replace(self) -> float:
        """Raises WattridgeError: what a fault has cost is this process's context."""
        remedy = "start the script again; without observers of its own, kernels run in a process of theirs"
        raise WattridgeError("a kernel has cost this process its context", "launches in this process", remedy)

    def close(self) -> None:
        self.current.close()


class _NoAnswer(WattridgeError):
    """Nothing was answered in that time."""


def _result(answer: Future[Message], timeout_s: float) -> Message:
    try:
        return answer.result(timeout_s)
    except TooLate:
        what = f"a launch has not ended within {timeout_s:.3g} s, and in this process it cannot be ended"
        raise _NoAnswer(what, "launches in this process", "end the script") from None
    except DeviceFault as fault:
        raise KernelFailed(State.RUNTIME, str(fault), lost=fault.fatal) from None
    except MemoryError:
        raise KernelFailed(State.RUNTIME, "the host is out of memory") from None
