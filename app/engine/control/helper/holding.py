"""Holding a board: the rights, the lock, and two processes of which either puts the board back for the other.

The serving process calls the driver and may be killed, crash or hang there; then the other, the guardian, has the board
put back from the record by another child. When the guardian is killed, the serving process notices at once and puts the
board back itself. The guardian never calls the driver: where that hangs for good, the record stays, and the next start
reports it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from . import policy
from . import record as records
from .board import Board
from .grammar import Failed
from .keeper import Keeper
from .nvml_board import NvmlBoard
from .serve import serve
from .watchdog import STALL_S, Child

READ_ONLY = "WATTRIDGE_READ_ONLY"
LOCK_S = 3.0  # the helper before this one may still be putting the board back
STUCK_S = 60.0  # how long a process that cannot be killed is waited for
_ATTEMPTS = 3  # at putting a board back
_NOT_DONE = 3  # the exit status of such an attempt that failed for a reason
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
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, how a child ended would never be known
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.umask(0o022)
        os.chdir("/")
        if arguments == ["--restore"]:
            return _restore_all()
        if len(arguments) != 1 or not records.is_uuid(arguments[0]):
            raise Failed("refused", "one argument is needed: the UUID of a whole board, GPU-... or AMD-...")
        _require_user(arguments[0], uid)
        return _hold(arguments[0], uid)
    except Failed as failed:
        _say(failed)
    return 1


# --- two processes ----------------------------------------------------------------------------------------------------


def _hold(uuid: str, uid: int) -> int:
    """Serve one board in a process of its own, and have the board put back however that process ends."""
    lock = _lock(uuid, LOCK_S)
    holder = {"pid": os.getpid(), "started": records.started(os.getpid()) or 0, "uid": uid}
    alive, guardian = os.pipe()

    def work(beat: Callable[[], None]) -> int:
        os.close(guardian)
        return _serving(uuid, holder, alive, beat)

    serving = Child(work)
    os.close(alive)
    _give_up_streams()
    for name in _ENDING + _CRASHES:
        signal.signal(getattr(signal, name), lambda *_: _terminate(serving.pid))
    for name in _IGNORED:
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    ended = serving.wait()
    for name in _ENDING + _CRASHES:
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    if ended and serving.reap() == 0:
        return 0
    put_back_by_a_child(uuid, holder, forget=ended)
    if not ended and serving.ended_within(STUCK_S):  # a call that it was in may have set the board after all
        put_back_by_a_child(uuid, holder)
    os.close(lock)
    return 1


def _serving(uuid: str, holder: dict[str, int], alive: int, beat: Callable[[], None]) -> int:
    """The life of the process that serves; its exit status."""
    try:
        woken, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake)
        for name in _ENDING:
            signal.signal(getattr(signal, name), lambda *_: None)  # the wake-up descriptor says it
        for name in _IGNORED:
            signal.signal(getattr(signal, name), signal.SIG_IGN)
        with records.Records(records.FOLDER, make=True) as folder:
            keeper = Keeper(_board(uuid, beat), folder, holder)
            try:
                serve(keeper, 0, 1, alive, woken, alive=beat)
            finally:
                keeper.end()
        return 0
    except Failed as failed:
        _say(failed)
    except Exception as error:  # noqa: BLE001  (the other process puts the board back, and this is why)
        _say(Failed("driver", f"{type(error).__name__}: {error}"))
    return 1


def put_back_by_a_child(uuid: str, holder: dict[str, int], *, forget: bool = True, report: bool = False) -> bool:
    """Have a board put back as its record says; whether that was done. Where it was not, the record stays.

    A driver that hangs in one call may answer another: every second attempt goes through the settings backwards.
    `forget` says that the record goes once the board is back, `report` that errors are printed.
    """
    for attempt in range(_ATTEMPTS):
        order = records.KNOBS if attempt % 2 == 0 else records.KNOBS[::-1]
        child = Child(partial(_putting_back, uuid, holder, order, forget, report), start_s=2 * STALL_S)
        if not child.wait() and not child.ended_within(STUCK_S):
            break
        status = child.reap()
        if status in (0, _NOT_DONE):  # what was refused for a reason is refused again
            return status == 0
    if report:
        print(f"{uuid}: the driver does not answer", file=sys.stderr)
    return False


def _putting_back(
    uuid: str, holder: dict[str, int], order: Sequence[str], forget: bool, report: bool, beat: Callable[[], None]
) -> int:
    """Put back the settings that are left over, if any; the exit status."""
    try:
        with records.Records(records.FOLDER, make=True) as folder:
            found = folder.read(uuid)
            if found is None:
                folder.remove(uuid)  # it is from before a restart
            if found is None or not found.open:
                return 0
            keeper = Keeper(_board(uuid, beat), folder, holder)
            if keeper.left_over:
                keeper.put_back("start", order, forget=forget)
        return 0
    except Failed as error:
        if report:
            print(f"{uuid}: {error}", file=sys.stderr, flush=True)
        return _NOT_DONE


def _restore_all() -> int:
    """At the start of the machine, put back every board that has a record and that no helper serves."""
    status = 0
    with records.Records(records.FOLDER, make=True) as folder:
        uuids = folder.uuids()
    holder = {"pid": os.getpid(), "started": records.started(os.getpid()) or 0, "uid": 0}
    for uuid in uuids:
        try:
            lock = _lock(uuid, 0.0)
        except Failed as error:
            print(f"{uuid}: {error}", file=sys.stderr)
            status = 1
            continue
        if put_back_by_a_child(uuid, holder, report=True):
            with records.Records(records.FOLDER, make=True) as folder:
                is_kept = folder.read(uuid) is not None
            print(f"{uuid}: {'kept as it was set and confirmed' if is_kept else 'nothing is left set'}", flush=True)
        else:
            status = 1
        os.close(lock)
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
    """The right to set one board, which the system releases however its holders end. Raises Failed."""
    with records.Records(records.LOCK_FOLDER, make=True):
        pass  # the folder is there, and no other user can write to it
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
        except OSError as error:
            if not isinstance(error, BlockingIOError):  # as ENOLCK: nobody else may be setting the board
                os.close(file)
                raise Failed("record", f"{records.LOCK_FOLDER}: {error.strerror}") from None
            if time.monotonic() >= until:
                holder = os.pread(file, 20, 0).decode("ascii", "replace")
                os.close(file)
                raise Failed("busy", f"another session is setting this board, process {holder}") from None
            time.sleep(0.02)
    with contextlib.suppress(OSError):
        os.ftruncate(file, 0)
        os.pwrite(file, str(os.getpid()).encode(), 0)  # for those that are refused
    return file


def _board(uuid: str, alive: Callable[[], None]) -> Board:
    """The board of that UUID, through its vendor's library. Raises Failed."""
    if uuid.startswith("AMD-"):
        from . import amd_board

        return amd_board.AmdBoard(amd_board.load(), uuid, alive)
    return NvmlBoard(_nvml(), uuid, alive)


def _nvml() -> Any:
    try:
        import pynvml  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        raise Failed("driver", "pynvml (nvidia-ml-py) is not beside the helper") from None
    return pynvml


def _say(failed: Failed) -> None:
    with contextlib.suppress(OSError):
        os.write(1, json.dumps({"error": failed.document()}).encode() + b"\n")


def _terminate(process: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGTERM)


def _give_up_streams() -> None:
    """Only the serving process may hold the conversation open."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(nothing, stream)
    os.close(nothing)
