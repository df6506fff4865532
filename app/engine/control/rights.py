"""Starting the helper with the rights of root, from files that only root can change. Never a prompt unasked."""

from __future__ import annotations

import contextlib
import importlib.machinery
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from ...errors import PermissionRefused
from ...own_modules import is_frozen, lone_module_command
from .client import Helper
from .helper import policy
from .helper.__main__ import LAUNCHER, unsafe, unsafe_link, unsafe_tree

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
    """How this process can run a program as root."""

    prefix: tuple[str, ...]  # of the command
    prompts: bool = False  # it may ask for a password
    terminal: bool = False  # on this terminal


def read_only() -> bool:
    """Whether WATTRIDGE_READ_ONLY=1 forbids every setting of real boards."""
    return os.environ.get(READ_ONLY) == "1"


def why_read_only(uuid: str) -> str:
    """Why a real board may not be set, by the environment variable or by root's policy; empty where it may."""
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
    """The error where every way failed; `otherwise` is the remedy where the user could be asked, and was."""
    remedy = otherwise
    if asking is Asking.NEVER:
        remedy = f"run it as root, or from a terminal or the window, where you can be asked; {otherwise}"
    elif asking is Asking.WINDOW and shutil.which("pkexec") is None:
        remedy = f"pkexec, which would ask for a password, is not installed: use a terminal; {otherwise}"
    return PermissionRefused("this needs the rights of root", where, remedy)


def has_python() -> bool:
    """Whether the Python that an installed helper runs on is here."""
    return os.access(PYTHON, os.X_OK)


def helper_command(uuid: str, label: str) -> list[str]:
    """The program that serves one board: the installed helper, which only root can change.

    Root itself, as in a container, may use this copy of Wattridge where that is root's alone too. Raises
    PermissionRefused where there is neither.
    """
    own = lone_module_command(f"{__package__}.helper", uuid)
    if os.environ.get(UNSAFE) == "1":
        return own
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
    return own


def start_helper(uuid: str, label: str, asking: Asking, cancel: threading.Event | None = None) -> Helper:
    """A helper that serves that board. Raises PermissionRefused, with the remedy, where there are no rights to be had.

    Without a password first; where one is needed the user is asked as `asking` says, until `cancel` is set.
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
        kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}  # root's own to say
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
    """Why the helper of this copy of Wattridge may not run as root where it lies; empty where it may.

    What it would run: this interpreter with its standard library, the helper and the packages around it, pynvml, and
    the binding of AMD SMI. Frozen, all of them lie in one folder.
    """
    if is_frozen():
        return _unsafe_below(os.path.dirname(os.path.realpath(sys.executable)))
    library = os.path.dirname(os.path.realpath(os.__file__))
    pynvml = _pynvml()
    packages = [_HELPER.parent, *list(_HELPER.parents)[1:3], *(_HELPER.parents[2] / name for name in _BINDING)]
    around = [path for package in packages for path in (package / "__init__.py", *package.glob("__pycache__/*"))]
    beside = [] if pynvml is None else [pynvml, *pynvml.parent.glob("__pycache__/pynvml*")]
    binding = _HELPER.parents[2] / _BINDING[-1] / "binding.py"
    for each in (sys.executable, os.path.realpath(sys.executable), library, _HELPER, binding, *around, *beside):
        if fault := unsafe_link(str(each)):
            return fault
    return _unsafe_below(library) or _unsafe_below(str(_HELPER))


def _unsafe_below(root: str) -> str:
    """Why what lies in a folder, other packages left out, may not run as root; empty where it may."""
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
    """The file that the helper of this copy would import; None where it finds none."""
    environment = Path(sys.executable).parents[1] / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    places = [str(_HELPER.parents[3]), str(environment / "site-packages")]
    found = importlib.machinery.PathFinder.find_spec("pynvml", places)
    return None if found is None or found.origin is None else Path(found.origin)


def _try(
    command: Sequence[str],
    label: str,
    patience_s: float,
    *,
    environment: Mapping[str, str] | None = None,
    cancel: threading.Event | None = None,
    own_terminal: bool = True,
) -> Helper | None:
    """Start it and wait until it is ready; None where it ends without a reply, for want of rights."""
    with tempfile.TemporaryFile() as errors:  # what sudo says of a missing password is not for the user
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
