"""Holding a board: the rights, the lock, and two processes of which either puts the board back for the other.

The one that serves talks to NVML and may be killed or crash in the driver; then the other, which only waits, puts the
board back from the record. When that one is killed, the first notices at once and does it itself.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import sys
import time
from typing import Any, NoReturn

from app.engine.control.helper import policy
from app.engine.control.helper import record as records
from app.engine.control.helper.board import Board, Failed
from app.engine.control.helper.keeper import Keeper
from app.engine.control.helper.serve import serve

READ_ONLY = "WATTRIDGE_READ_ONLY"
LOCK_S = 3.0  # the helper before this one may still be putting the board back
_ENDING = ("SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_CRASHES = ("SIGSEGV", "SIGBUS", "SIGABRT", "SIGFPE", "SIGILL")  # sent from outside; real ones are the other process's
_IGNORED = ("SIGINT", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGPIPE")  # the terminal's, which are for the session


def main(arguments: list[str]) -> int:
    """Serve the board of that UUID, or with --restore put back all that are left over; the exit status."""
    try:
        elevated = "SUDO_UID" in os.environ or "PKEXEC_UID" in os.environ
        uid = int(os.environ.get("SUDO_UID") or os.environ.get("PKEXEC_UID") or os.getuid())
        if os.environ.get(READ_ONLY) == "1":
            raise Failed("refused", f"{READ_ONLY}=1 forbids every setting")
        if elevated and any(name.startswith("LD_") for name in os.environ):
            raise Failed("refused", "it was given rights together with another user's libraries")
        os.environ.clear()
        os.umask(0o022)
        os.chdir("/")
        if arguments == ["--restore"]:
            return _restore_all()
        if len(arguments) != 1 or not records.is_uuid(arguments[0]):
            raise Failed("refused", "one argument is needed: the UUID of a whole board, GPU-...")
        _require_user(arguments[0], uid)
        return _hold(arguments[0], uid)
    except Failed as failed:
        _say({"error": {"kind": failed.kind, "what": str(failed)}})
    except records.RecordError as error:
        _say({"error": {"kind": "record", "what": str(error)}})
    return 1


# --- two processes ----------------------------------------------------------------------------------------------------


def _hold(uuid: str, uid: int) -> int:
    """Serve one board in a process of its own, and see to it that the board is put back however that one ends."""
    lock = _lock(uuid, LOCK_S)
    holder = {"pid": os.getpid(), "started": records.started(os.getpid()) or 0, "uid": uid}
    alive, guardian = os.pipe()
    serving = os.fork()
    if serving == 0:
        os.close(guardian)
        _serving(uuid, holder, alive)
    os.close(alive)
    _give_up_streams()
    for name in _ENDING + _CRASHES:
        signal.signal(getattr(signal, name), lambda *_: _tell(serving))
    for name in _IGNORED:
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    os.waitid(os.P_PID, serving, os.WEXITED | os.WNOWAIT)  # its number is nobody else's while a signal may go there
    for name in _ENDING:
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    _, status = os.waitpid(serving, 0)
    if status == 0:
        return 0
    for name in _CRASHES:
        signal.signal(getattr(signal, name), signal.SIG_DFL)  # NVML runs here from now on: a crash is a crash
    with contextlib.suppress(Failed, records.RecordError):  # the record stays for the next start
        put_back(uuid, holder)
    os.close(lock)
    return 1


def _serving(uuid: str, holder: dict[str, int], alive: int) -> NoReturn:
    """The life of the process that serves."""
    status = 1
    try:
        told, tell = os.pipe()
        os.set_blocking(tell, False)
        signal.set_wakeup_fd(tell)
        for name in _ENDING:
            signal.signal(getattr(signal, name), lambda *_: None)  # the wake-up tells it
        for name in _IGNORED:
            signal.signal(getattr(signal, name), signal.SIG_IGN)
        with records.Records(records.FOLDER, make=True) as folder:
            keeper = Keeper(Board(_nvml(), uuid), folder, holder)
            try:
                serve(keeper, 0, 1, alive, told)
            finally:
                keeper.end()
        status = 0
    except Failed as failed:
        _say({"error": {"kind": failed.kind, "what": str(failed)}})
    except records.RecordError as error:
        _say({"error": {"kind": "record", "what": str(error)}})
    except Exception as error:  # noqa: BLE001  (the other process puts the board back, and this is why)
        _say({"error": {"kind": "driver", "what": f"{type(error).__name__}: {error}"}})
    finally:
        os._exit(status)


def put_back(uuid: str, holder: dict[str, int]) -> None:
    """Put back what a process left over; nothing to do where it left nothing. Raises Failed, RecordError."""
    with records.Records(records.FOLDER, make=True) as folder:
        found = folder.read(uuid)
        if found is None or not (found.open or found.boot != records.boot()):
            return
        keeper = Keeper(Board(_nvml(), uuid), folder, holder)
        if keeper.left_over:
            keeper.reset("start")


def _restore_all() -> int:
    """For the start of the machine: every board that has a record and that nobody serves."""
    status = 0
    with records.Records(records.FOLDER, make=True) as folder:
        uuids = folder.uuids()
    holder = {"pid": os.getpid(), "started": records.started(os.getpid()) or 0, "uid": 0}
    for uuid in uuids:
        try:
            lock = _lock(uuid, 0.0)
            try:
                put_back(uuid, holder)
            finally:
                os.close(lock)
            print(f"{uuid}: as it was before")
        except (Failed, records.RecordError) as error:
            print(f"{uuid}: {error}", file=sys.stderr)
            status = 1
    return status


def _require_user(uuid: str, uid: int) -> None:
    """Raise Failed where root's policy does not let that user start the helper.

    A policy that cannot be relied on forbids settings, one by one, but not putting a board back.
    """
    with contextlib.suppress(policy.PolicyError):
        if reason := policy.load(uuid).refuses_user(uid):
            raise Failed("policy", reason)


# --- pieces -----------------------------------------------------------------------------------------------------------


def _lock(uuid: str, patience_s: float) -> int:
    """The right to set one board, which the system takes back however its holders end. Raises Failed."""
    with records.Records(records.LOCK_FOLDER, make=True):
        pass  # the folder is there, and nobody else can write to it
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        file = os.open(f"{records.LOCK_FOLDER}/{uuid}.lock", flags, 0o600)  # others cannot open it, nor hold it
    except OSError as error:
        raise Failed("record", f"{records.LOCK_FOLDER}: {error.strerror}") from None
    until = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError:
            if time.monotonic() >= until:
                holder = os.pread(file, 20, 0).decode("ascii", "replace")
                os.close(file)
                raise Failed("busy", f"another session is setting this board, process {holder}") from None
            time.sleep(0.02)
    with contextlib.suppress(OSError):
        os.ftruncate(file, 0)
        os.pwrite(file, str(os.getpid()).encode(), 0)  # for whoever is refused
    return file


def _nvml() -> Any:
    try:
        import pynvml  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        raise Failed("driver", "pynvml (nvidia-ml-py) is not beside the helper") from None
    return pynvml


def _say(document: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):
        os.write(1, json.dumps(document).encode() + b"\n")


def _tell(process: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGTERM)


def _give_up_streams() -> None:
    """Only the serving process may hold the conversation open."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(nothing, stream)
    os.close(nothing)
