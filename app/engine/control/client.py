"""`Helper`: the program's side of the conversation with the helper with rights, and starting that as root.

It is started from files that only root can change, and the user is prompted for a password on request only.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import IO, Any, Final

from ...base.configuration import setting
from ...base.errors import PermissionRefused, WattridgeError
from ...base.processes import is_frozen, lone_module_command
from ...sensors.gpu import GpuLost, NoPermission, NotSupported, SensorError
from .helper import policy
from .helper.__main__ import LAUNCHER, unsafe, unsafe_link, unsafe_tree
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
    """The helper has ended, or no longer answers. `back` is whether the board is known to be as it was before."""

    def __init__(self, what: str, where: str, remedy: str, *, back: bool = False) -> None:
        super().__init__(what, where, remedy)
        self.back = back


_unended: list[subprocess.Popen[bytes]] = []  # helpers that did not end in time: the system still reports their end


class Helper:
    """One helper process, sent a request every second at least. Thread-safe. `state` is the last one reported."""

    def __init__(self, process: subprocess.Popen[bytes], label: str) -> None:
        """Hold a process that was started; `label` names the board in errors, and `hello` has to be called next."""
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
        """Wait until it is ready; False if it ends without a reply (no rights) or is late. Raises its error."""
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
        """Let it put back what is not confirmed, and end. It is never killed, which would leave settings."""
        self._ending.set()
        if self._threads[1].ident is not None:  # it answered `hello`
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


READ_ONLY: Final = "WATTRIDGE_READ_ONLY"
UNSAFE: Final = "WATTRIDGE_UNSAFE_HELPER_FROM_CHECKOUT"  # for the development of the helper, and its tests
LIBRARY: Final = Path("/usr/lib/wattridge")
PYTHON: Final = "/usr/bin/python3"  # of the installed helper, from 3.9
INSTALL: Final = "install it again: wattridge helper install"
_WARNING: Final = (
    f"WARNING: {UNSAFE}=1 runs files as root that others than root can change. "
    "It is for developing the helper; everybody else: wattridge helper install"
)
_START_S: Final = 20.0
_PROMPT_S: Final = 180.0
_HELPER: Final = Path(__file__).resolve().parent / "helper"
_BINDING: Final = ("sensors", "sensors/amd")  # packages of the program around the binding of AMD SMI


class Asking(Enum):
    """How the user may be asked for a password, which is only done after they asked for control."""

    NEVER = "never"
    TERMINAL = "terminal"
    WINDOW = "window"


@dataclass(frozen=True, slots=True)
class Way:
    """A way in which this process can run a program as root."""

    prefix: tuple[str, ...]  # of the command
    prompts: bool = False  # it may ask for a password
    terminal: bool = False  # on this terminal


def read_only() -> bool:
    """Whether WATTRIDGE_READ_ONLY=1 forbids every setting of real boards."""
    return setting(READ_ONLY) == "1"


def why_read_only(uuid: str) -> str:
    """Why a real board may not be set, by the environment variable or by root's policy; empty if it may."""
    if read_only():
        return f"{READ_ONLY}=1 forbids every setting"
    return policy.require(uuid, {}) if os.name == "posix" else ""


def ways_to_root(asking: Asking) -> Iterator[Way]:
    """The ways there are, those without a password first."""
    if os.geteuid() == 0:
        yield Way(())
        return
    sudo, pkexec = shutil.which("sudo"), shutil.which("pkexec")
    if sudo is not None:
        yield Way((sudo, "-n", "--"))
    if asking is Asking.WINDOW and pkexec is not None:
        yield Way((pkexec, "--disable-internal-agent"), prompts=True)
    elif asking is Asking.TERMINAL and sudo is not None:
        yield Way((sudo, "--"), prompts=True, terminal=True)
    elif asking is Asking.TERMINAL and pkexec is not None:
        yield Way((pkexec,), prompts=True, terminal=True)


def no_rights(where: str, asking: Asking, otherwise: str) -> PermissionRefused:
    """The error where every way failed; `otherwise` is the remedy where the user was asked."""
    remedy = otherwise
    if asking is Asking.NEVER:
        remedy = f"run it as root, or from a terminal or the window, where you can be asked; {otherwise}"
    elif asking is Asking.WINDOW and shutil.which("pkexec") is None:
        remedy = f"pkexec, which would ask for a password, is not installed: use a terminal; {otherwise}"
    return PermissionRefused("this needs the rights of root", where, remedy)


def has_python() -> bool:
    """Whether the Python that an installed helper runs on is installed."""
    return os.access(PYTHON, os.X_OK)


def helper_command(uuid: str, label: str) -> list[str]:
    """The program that serves one board: the installed helper, which only root can change.

    Root itself, as in a container, may use this copy of Wattridge where that is root's alone too. Raises
    PermissionRefused if there is neither.
    """
    command = lone_module_command(f"{__package__}.helper", uuid)
    if os.environ.get(UNSAFE) == "1":
        return command
    if os.path.lexists(LIBRARY):
        if fault := unsafe_tree(str(LIBRARY)):
            raise PermissionRefused(f"the installed helper may not run as root: {fault}", label, INSTALL)
        if not has_python():
            raise PermissionRefused(f"the helper needs {PYTHON}, from 3.9, which is not here", label, "install it")
        return [str(LIBRARY / LAUNCHER), uuid]
    remedy = "install it once, in the window's Control panel or with: wattridge helper install"
    if os.geteuid() != 0:
        raise PermissionRefused("the helper that sets clocks and caps is not installed", label, remedy)
    if fault := _unsafe_copy():
        what = f"the helper is not installed, and this copy of Wattridge may not run as root instead: {fault}"
        raise PermissionRefused(what, label, remedy)
    return command


def start_helper(uuid: str, label: str, asking: Asking, cancel: threading.Event | None = None) -> Helper:
    """Start a helper that serves a board. Raises PermissionRefused, with the remedy, where no rights can be obtained.

    It is tried without a password first; where one is needed the user is asked by `asking`, until `cancel` is set.
    """
    if read_only():
        raise PermissionRefused(f"{READ_ONLY}=1 forbids every setting", label, "unset it to allow control")
    if os.name != "posix" or sys.platform == "darwin":
        raise PermissionRefused(
            "boards are set on Linux only", label, "use the exported nvidia-smi script, as administrator"
        )
    if not uuid.startswith(("GPU-", "AMD-")):
        raise PermissionRefused("a part of a partitioned board (MIG) is not set on its own", label, "name the board")
    command = helper_command(uuid, label)
    if os.environ.get(UNSAFE) == "1":
        print(_WARNING, file=sys.stderr, flush=True)  # noqa: T201  (whatever starts it, the user must see it)
    if os.geteuid() == 0:
        kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}  # root may set it
        helper = _try(command, label, _START_S, environment={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **kept})
        if helper is None:
            raise PermissionRefused("the helper does not start", label, f"try it by hand: {' '.join(command)}")
        return helper
    for way in ways_to_root(asking):
        patience_s = _PROMPT_S if way.prompts else _START_S
        helper = _try([*way.prefix, *command], label, patience_s, cancel=cancel, own_terminal=not way.terminal)
        if helper is not None:
            return helper
    raise no_rights(label, asking, "all but setting works without")


# --- inside -----------------------------------------------------------------------------------------------------------


def _unsafe_copy() -> str:
    """Why the helper of this copy of Wattridge may not run as root where it lies; empty if it may.

    It would run this interpreter with its standard library, the helper and the packages around it, pynvml, and the
    binding of AMD SMI. Frozen, all of them lie in one folder.
    """
    if is_frozen():
        return _unsafe_below(os.path.dirname(os.path.realpath(sys.executable)))
    library = os.path.dirname(os.path.realpath(os.__file__))
    pynvml = _pynvml()
    packages = [_HELPER.parent, *list(_HELPER.parents)[1:3], *(_HELPER.parents[2] / name for name in _BINDING)]
    around = [path for package in packages for path in (package / "__init__.py", *package.glob("__pycache__/*"))]
    beside = [] if pynvml is None else [pynvml, *pynvml.parent.glob("__pycache__/pynvml*")]
    binding = _HELPER.parents[2] / _BINDING[-1] / "binding.py"
    for path in (sys.executable, os.path.realpath(sys.executable), library, _HELPER, binding, *around, *beside):
        if fault := unsafe_link(str(path)):
            return fault
    return _unsafe_below(library) or _unsafe_below(str(_HELPER))


def _unsafe_below(root: str) -> str:
    """Why the content of a folder, without other packages, may not run as root; empty if it may."""
    if fault := unsafe_link(root):
        return fault
    for parent, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in ("site-packages", "dist-packages")]
        for name in folders + files:
            path = os.path.join(parent, name)
            if fault := unsafe_link(path) if os.path.islink(path) else unsafe(path):
                return fault
    return ""


def _pynvml() -> Path | None:
    """The file that the helper of this copy would import; None if it finds none."""
    environment = Path(sys.executable).parents[1] / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    places = [str(_HELPER.parents[3]), str(environment / "site-packages")]
    spec = importlib.machinery.PathFinder.find_spec("pynvml", places)
    return None if spec is None or spec.origin is None else Path(spec.origin)


def _try(
    command: Sequence[str],
    label: str,
    patience_s: float,
    *,
    environment: Mapping[str, str] | None = None,
    cancel: threading.Event | None = None,
    own_terminal: bool = True,
) -> Helper | None:
    """Start the helper and wait until it is ready; None if it ends without a reply, for want of rights."""
    with tempfile.TemporaryFile() as errors:  # sudo's message about a missing password is not for the user
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors if own_terminal else None,
                env=environment,
                start_new_session=own_terminal,  # Ctrl+C is for the session; only sudo's prompt needs the terminal
            )
        except OSError:
            return None
    helper = Helper(process, label)
    ready = False
    try:
        ready = helper.hello(patience_s, cancel)
    finally:
        if not ready:
            if process.poll() is None and cancel is not None and cancel.is_set():
                with contextlib.suppress(OSError):
                    process.terminate()  # it waits for a password
            helper.close()
    return helper if ready else None
