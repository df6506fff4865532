"""`Helper`: the program's side of the conversation with the helper that has rights."""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import threading
import time
from collections.abc import Mapping
from typing import IO, Any, Final

from ...errors import PermissionRefused, WattridgeError
from ...sensors.errors import GpuLost, NoPermission, NotSupported, SensorError
from .helper.grammar import Refused, line_of

BEAT_S: Final = 1.0  # after five seconds without a request the helper puts the board back
ANSWER_S: Final = 20.0  # a driver may take seconds; the helper tries three times to put a setting back
END_S: Final = 5.0
UNREADABLE_REMEDY: Final = "to unlock the clocks and set the default power limit instead: wattridge restore --defaults"
_LONGEST_LINE: Final = 1 << 16
_KINDS: Final[Mapping[str, tuple[type[WattridgeError], str]]] = {
    "refused": (PermissionRefused, "see what the board supports: wattridge gpus"),
    "policy": (PermissionRefused, "root decides what may be set on this machine; see: wattridge helper"),
    "installation": (PermissionRefused, "install the helper again: wattridge helper install"),
    "not_supported": (NotSupported, "leave this setting out"),
    "no_permission": (NoPermission, "run it as root, or from a terminal where sudo or pkexec can ask"),
    "lost": (GpuLost, "once it answers again: wattridge restore"),
    "busy": (PermissionRefused, "end the other session first; one at a time may set a board"),
    "record": (PermissionRefused, "make room in that folder or repair it, as root; then: wattridge restore"),
    "unreadable": (PermissionRefused, UNREADABLE_REMEDY),
    "driver": (SensorError, "try again; wattridge doctor looks at the driver"),
}


class HelperGone(WattridgeError):
    """The helper has ended, or no longer answers. `back`: whether the board is known to be as it was before."""

    def __init__(self, what: str, where: str, remedy: str, *, back: bool = False) -> None:
        super().__init__(what, where, remedy)
        self.back = back


_unended: list[subprocess.Popen[bytes]] = []  # helpers that did not end in time: the system still reports their end


class Helper:
    """One helper process, sent a request every second at least. Thread-safe. `state` is the last one reported."""

    def __init__(self, process: subprocess.Popen[bytes], label: str) -> None:
        """`label` names the board in errors. `hello` has to follow."""
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._stdin: IO[bytes] = process.stdin
        self._label = label
        self._lock = threading.Lock()
        self._number = 0
        self._stalled = False  # it did not answer in time
        self._ending = threading.Event()
        self._inbox: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self.state: dict[str, Any] = {}
        self._threads = [
            threading.Thread(target=self._read, args=(process.stdout,), name="helper's replies", daemon=True),
            threading.Thread(target=self._beat, name="helper's heartbeat", daemon=True),
        ]
        self._threads[0].start()

    @property
    def process(self) -> int:
        """The id of the process that holds the rights, which is not that of the sudo that started it."""
        holder = self.state.get("holder")
        return holder if isinstance(holder, int) else self._process.pid

    def hello(self, timeout_s: float, cancel: threading.Event | None = None) -> bool:
        """Wait until it is ready; False where it ends without a reply (no rights), or too late. Raises its error."""
        until = time.monotonic() + timeout_s
        while True:
            try:
                reply = self._inbox.get(timeout=0.1)
            except queue.Empty:
                if time.monotonic() > until or (cancel is not None and cancel.is_set()):
                    return False
                continue
            if reply is None:
                return False
            self._accept(reply)
            self._threads[1].start()
            return True

    def ask(self, verb: str, **fields: Any) -> dict[str, Any]:
        """Send one request and wait for the reply's state. Raises WattridgeError with the reason and the remedy."""
        with self._lock:
            return self._ask(verb, fields)

    def close(self) -> None:
        """Let it put back what is not confirmed, and end. It is never killed: that is when settings would stay."""
        self._ending.set()
        if self._threads[1].ident is not None:  # it has said hello
            with self._lock, contextlib.suppress(WattridgeError):
                self._ask("quit", {})
        with contextlib.suppress(OSError):
            self._stdin.close()
        patience_s = 0.1 if self._stalled else END_S
        try:
            self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            _unended.append(self._process)
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(patience_s)

    # --- inside -----------------------------------------------------------------------------------------------------

    def _ask(self, verb: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        if self._stalled:
            raise self._gone()
        self._number += 1
        try:
            line = line_of({"id": self._number, "do": verb, **fields})
        except Refused as refused:
            raise PermissionRefused(f"no request: {refused}", self._label) from None
        try:
            self._stdin.write(line)
            self._stdin.flush()
        except (OSError, ValueError):
            raise self._gone() from None
        until = time.monotonic() + ANSWER_S
        while True:
            try:
                reply = self._inbox.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                self._stalled = True  # from here on no heartbeat is sent either
                raise self._gone() from None
            if reply is None:
                self._inbox.put(None)  # for the next request
                raise self._gone()
            if reply.get("id") == self._number:
                self._accept(reply)
                return self.state

    def _accept(self, reply: Mapping[str, Any]) -> None:
        state = reply.get("state")
        if isinstance(state, dict):
            self.state = state
        error = reply.get("error")
        if isinstance(error, dict):
            kind, remedy = _KINDS.get(str(error.get("kind")), _KINDS["driver"])
            raise kind(str(error.get("what", "it failed")), self._label, remedy)

    def _gone(self) -> HelperGone:
        remedy = "look at it with: wattridge gpus; put back what may be left with: wattridge restore"
        if self._stalled:
            what = f"the helper that sets clocks and caps (process {self.process}) does not answer"
            return HelperGone(what, self._label, f"the driver may hang, see nvidia-smi; {remedy}")
        return HelperGone("the helper that sets clocks and caps has ended", self._label, remedy)

    def _beat(self) -> None:
        while not self._ending.wait(BEAT_S):
            with contextlib.suppress(WattridgeError):  # the next request reports it
                self.ask("state")

    def _read(self, stream: IO[bytes]) -> None:
        with contextlib.suppress(OSError, ValueError), stream:
            while line := stream.readline(_LONGEST_LINE):
                try:
                    reply = json.loads(line)
                except (ValueError, RecursionError):
                    break
                if not isinstance(reply, dict):
                    break
                self._inbox.put(reply)
        self._inbox.put(None)
