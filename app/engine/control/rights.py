"""Starting the helper with the rights of root: directly as root, else by sudo or pkexec. Never a prompt unasked."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import IO, Final

from app.engine.control.client import Helper
from app.errors import PermissionRefused

READ_ONLY: Final = "WATTRIDGE_READ_ONLY"
INSTALLED: Final = Path("/usr/lib/wattridge/wattridge-control")  # that only root can change; see installing.py
_START_S: Final = 20.0
_PROMPT_S: Final = 180.0
_FOLDER: Final = Path(__file__).resolve().parent / "helper"
_INSTALL: Final = "what root can install once for it: wattridge restore --out FOLDER"
_REMEDY: Final = (
    "run it as root, or where you can be asked: from a terminal or the window; all but setting works without; "
    + _INSTALL
)


class Asking(Enum):
    """How a person may be asked for a password. Only who has said that control is wanted may be asked at all."""

    NEVER = "never"
    TERMINAL = "terminal"
    WINDOW = "window"


def read_only() -> bool:
    """Whether WATTRIDGE_READ_ONLY=1 forbids every setting of real boards."""
    return os.environ.get(READ_ONLY) == "1"


def helper_command(uuid: str) -> list[str]:
    """The program that serves one board: the copy that only root can change, where one is installed.

    Else the one of this environment. Whoever can write there can change what runs as root once a password is given,
    as with any program that is started by sudo from one's own folder; so no policy or rule may ever name it.
    """
    if os.geteuid() != 0 and only_roots(INSTALLED):
        return [str(INSTALLED), uuid]
    return [sys.executable, "-I", "-S", "-B", str(_FOLDER), uuid]


def only_roots(path: Path) -> bool:
    """Whether nobody but root can exchange or change that file: it and every folder above it."""
    try:
        return all(_is_only_roots(part.lstat()) for part in (path, *path.parents))
    except OSError:
        return False


def start_helper(uuid: str, label: str, asking: Asking, cancel: threading.Event | None = None) -> Helper:
    """A helper that serves that board. Raises PermissionRefused, with the remedy, where there are no rights to be had.

    Without a password first; where one is needed the person is asked as `asking` says, until `cancel` is set.
    """
    if read_only():
        raise PermissionRefused(f"{READ_ONLY}=1 forbids every setting", label, "unset it to allow control")
    if os.name != "posix" or sys.platform == "darwin":
        raise PermissionRefused(
            "boards are set on Linux only", label, "use the exported nvidia-smi script, as administrator"
        )
    if not uuid.startswith("GPU-"):
        raise PermissionRefused("a part of a partitioned board (MIG) is not set on its own", label, "name the board")
    command = helper_command(uuid)
    if os.geteuid() == 0:
        helper = _try(command, label, _START_S, environment=_roots_environment())
        if helper is None:
            raise PermissionRefused("the helper does not start", label, f"try it by hand: {' '.join(command)}")
        return helper
    sudo, pkexec = shutil.which("sudo"), shutil.which("pkexec")
    if sudo is not None:
        helper = _try([sudo, "-n", "--", *command], label, _START_S, cancel=cancel)
        if helper is not None:
            return helper
    prompting: list[str] | None = None
    remedy = _REMEDY
    if asking is Asking.WINDOW and pkexec is not None:
        prompting = [pkexec, "--disable-internal-agent", *command]
    elif asking is Asking.WINDOW:
        remedy = f"pkexec, which would ask for a password, is not installed; use a terminal, or {_INSTALL}"
    elif asking is Asking.TERMINAL and sudo is not None:
        prompting = [sudo, "--", *command]
    elif asking is Asking.TERMINAL and pkexec is not None:
        prompting = [pkexec, *command]
    if prompting is not None:
        helper = _try(prompting, label, _PROMPT_S, cancel=cancel, own_terminal=asking is Asking.WINDOW)
        if helper is not None:
            return helper
    raise PermissionRefused("setting clocks and caps needs the rights of root", label, remedy)


# --- inside -----------------------------------------------------------------------------------------------------------


def _try(
    command: Sequence[str],
    label: str,
    patience_s: float,
    *,
    environment: Mapping[str, str] | None = None,
    cancel: threading.Event | None = None,
    own_terminal: bool = True,
) -> Helper | None:
    """Start it and wait until it is ready; None where it ends without a word, for want of rights."""
    with tempfile.TemporaryFile() as errors:  # what sudo says of a missing password is not for the person
        try:
            process = _popen(command, environment, errors if own_terminal else None, own_terminal)
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


def _popen(
    command: Sequence[str], environment: Mapping[str, str] | None, errors: IO[bytes] | None, own_terminal: bool
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        list(command),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        env=None if environment is None else dict(environment),
        start_new_session=own_terminal,  # Ctrl+C is for the session; only sudo's prompt needs the terminal
    )


def _roots_environment() -> dict[str, str]:
    """For a helper that root starts: nothing but where the driver's library lies, which is root's own to say."""
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    return {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **kept}


def _is_only_roots(about: os.stat_result) -> bool:
    return about.st_uid == 0 and not stat.S_ISLNK(about.st_mode) and not about.st_mode & 0o022
