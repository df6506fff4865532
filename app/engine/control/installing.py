"""Installing the helper with rights, and removing it: what goes where, and the one program that root runs for it."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import importlib.util
import json
import os
import shlex
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from ...base.errors import PermissionRefused, WattridgeError
from ...base.installation import how_to_add_package
from ...base.paths import resources
from .client import (
    INSTALL,
    LIBRARY,
    PYTHON,
    READ_ONLY,
    Asking,
    has_python,
    helper_command,
    no_rights,
    read_only,
    ways_to_root,
)
from .helper import policy, record
from .helper.__main__ import LAUNCHER, MANIFEST, unsafe_tree

_PACKAGE: Final = "wattridge/engine/control/helper"
_SETUP: Final = Path(__file__).resolve().with_name("root_setup.py")  # read here, and run by root
_ROOTS_PYTHON: Final = (PYTHON, "-I", "-S", "-B", "-")  # reads the program from its standard input
MODULES: Final = (
    "__init__", "amd_board", "board", "grammar", "holding", "keeper", "nvml_board", "policy", "record", "serve",
    "watchdog",
)  # fmt: skip
PACKAGED: Final = "PACKAGED"  # the file that says so
_BINDING: Final = "wattridge/sensors/amd/binding.py"  # of AMD SMI, which nothing else of the program is needed for
_MOST_BYTES: Final = 4 << 20
_ANSWER_S: Final = 0.1  # between two looks at whether the user gave up
_END_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class Places:
    """Where the parts lie once they are installed."""

    library: str = str(LIBRARY)
    action: str = "/usr/share/polkit-1/actions/org.wattridge.control.policy"
    unit: str = "/etc/systemd/system/wattridge-restore.service"
    policy: str = policy.PATH
    records: str = record.FOLDER
    locks: str = record.LOCK_FOLDER
    sudoers: str = "/etc/sudoers"


PLACES: Final = Places()
OTHER_VERSION: Final = "The installed helper is of another version than this program."


@dataclass(frozen=True, slots=True)
class Installation:
    """The state of the installed helper."""

    installed: bool
    fault: str  # why it does not run as root; empty if it may
    current: bool  # it is of this version of the program

    @property
    def ready(self) -> bool:
        return self.installed and not self.fault


def installation(library: Path | None = None) -> Installation:
    """What is installed here, checked file by file."""
    library = LIBRARY if library is None else library
    if not os.path.lexists(library):
        return Installation(installed=False, fault="", current=False)
    fault = unsafe_tree(str(library)) or ("" if has_python() else f"{PYTHON} is missing")
    try:
        current = _version((library / MANIFEST).read_bytes()) == _version(tree()[MANIFEST])
    except (OSError, WattridgeError):
        current = False
    return Installation(installed=True, fault=fault, current=current)


def why_install() -> str:
    """Why the user should be offered to install the helper, now or again; empty if nothing is amiss."""
    if os.name != "posix":
        return ""
    installed = installation()
    if installed.fault:
        return f"The installed helper may not run as root: {installed.fault}."
    if installed.installed:
        return "" if installed.current else OTHER_VERSION
    try:
        helper_command("", "")
    except PermissionRefused:
        return "Setting clocks and caps needs a small helper with root's rights, which is installed once."
    return ""  # root may use this copy


def tree(packaged: str = "") -> dict[str, bytes]:
    """Every file of the installed helper by its path below its folder, from this copy of the program.

    `packaged` names the system's package that brings them, and that alone replaces and removes them.
    """
    helper = Path(__file__).resolve().parent / "helper"
    parts = _PACKAGE.split("/")
    files = {LAUNCHER: _read(helper / "__main__.py"), "pynvml.py": _read(_pynvml())}
    for depth in range(1, len(parts)):  # the packages around the helper, empty: it needs nothing of theirs
        files["/".join((*parts[:depth], "__init__.py"))] = b""
    files[f"{_PACKAGE}/__main__.py"] = files[LAUNCHER]  # other modules import its checks
    for name in MODULES:
        files[f"{_PACKAGE}/{name}.py"] = _read(helper / f"{name}.py")
    files["wattridge/sensors/__init__.py"] = files["wattridge/sensors/amd/__init__.py"] = b""
    files[_BINDING] = _read(helper.parents[2] / "sensors" / "amd" / "binding.py")
    if packaged:
        files[PACKAGED] = f"{packaged}\n".encode()
    lines = [f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in sorted(files.items())]
    return {**files, MANIFEST: "".join(lines).encode()}


def setup_program(do: str, places: Places = PLACES, *, leave_records: bool = False) -> str:
    """The program that installs or removes ("install", "remove") everything when root's Python reads it.

    "put back" only puts every board back, before a package of the system that brought the helper is removed.
    """
    control = resources() / "control"
    default_policy = _read(control / "policy.conf")
    order: dict[str, Any] = {
        "do": do,
        "places": {name: getattr(places, name) for name in Places.__dataclass_fields__},
        "launcher": LAUNCHER,
        "packaged": PACKAGED,
        "systemd": os.path.isdir("/run/systemd/system") and places.unit == Places().unit,
        "leave_records": leave_records,
        "default_policy_sha256": hashlib.sha256(default_policy).hexdigest(),
    }
    if do == "install":
        order["tree"] = {name: _entry(content, executable=name == LAUNCHER) for name, content in tree().items()}
        order["files"] = {
            places.action: {**_entry(_read(control / "org.wattridge.control.policy")), "if_folder": True},
            places.unit: {**_entry(_read(control / "wattridge-restore.service")), "if_folder": True},
            places.policy: {**_entry(default_policy), "keep": True},
        }
    text = _read(_SETUP).decode()
    return f"{text}\n\nsys.exit(main(json.loads({json.dumps(order)!r})))\n"


def install(asking: Asking, cancel: threading.Event | None = None, places: Places = PLACES) -> dict[str, list[str]]:
    """Install the helper, or replace it by this version: {"done": lines, "notes": lines}.

    The user may be asked for a password, as `asking` says. Raises PermissionRefused without the rights, WattridgeError
    where a place is not safe or the disk refuses.
    """
    return _as_root(setup_program("install", places), "install", asking, cancel)


def remove(
    asking: Asking, cancel: threading.Event | None = None, places: Places = PLACES, *, leave_records: bool = False
) -> dict[str, list[str]]:
    """Put every board back, then remove the helper and all that came with it. Returns and raises as `install`.

    Where a board cannot be put back nothing is removed, unless `leave_records`.
    """
    if read_only():
        raise PermissionRefused(f"{READ_ONLY}=1 forbids putting boards back", "helper", "unset it first")
    return _as_root(setup_program("remove", places, leave_records=leave_records), "remove", asking, cancel)


# --- inside -----------------------------------------------------------------------------------------------------------


def _as_root(program: str, do: str, asking: Asking, cancel: threading.Event | None) -> dict[str, list[str]]:
    """Let root's own Python read the program from a pipe; return its report."""
    where = f"helper {do}"
    if os.name != "posix":
        raise PermissionRefused("boards are set on Linux only", where, "nothing needs to be installed here")
    if not has_python():
        raise WattridgeError(f"{PYTHON} is missing", where, "the helper runs on it: install Python 3.9 or later there")
    for way in ways_to_root(asking):
        output = _piped([*way.prefix, *_ROOTS_PYTHON], program, way.prompts, cancel)
        with contextlib.suppress(ValueError, IndexError):
            reply: dict[str, Any] = json.loads(output.splitlines()[-1])
            if "error" in reply:
                raise WattridgeError(str(reply["error"]), where, "nothing else was changed; fix that and try again")
            return reply
    by_hand = f"wattridge helper {do} --print | sudo {shlex.join(_ROOTS_PYTHON)}"
    raise no_rights(where, asking, f"an administrator can run: {by_hand}")


def _piped(command: list[str], program: str, prompts: bool, cancel: threading.Event | None) -> str:
    """The output of a command that reads the program; empty if it does not start, lacks rights or is cancelled."""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if prompts else subprocess.DEVNULL,
            text=True,
            start_new_session=not prompts,
        )
    except OSError:
        return ""
    assert process.stdin is not None
    assert process.stdout is not None
    # the program is larger than a pipe, and it is not read before the password is given
    feeding = threading.Thread(target=_feed, args=(process.stdin, program), name="helper's setup", daemon=True)
    feeding.start()
    while process.poll() is None and not (cancel is not None and cancel.is_set()):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_ANSWER_S)
    if process.poll() is None:
        with contextlib.suppress(OSError):
            process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_END_S)
    if process.poll() is None:
        return ""  # it is root's, and no signal of ours reaches it
    feeding.join()
    with process.stdout as output:
        return output.read()  # one line: it fits into the pipe


def _feed(stream: IO[str], program: str) -> None:
    with contextlib.suppress(OSError), stream:
        stream.write(program)


def _entry(content: bytes, *, executable: bool = False) -> dict[str, Any]:
    return {
        "base64": base64.b64encode(content).decode(),
        "sha256": hashlib.sha256(content).hexdigest(),
        "executable": executable,
        "if_folder": False,
        "keep": False,
    }


def _version(manifest: bytes) -> list[bytes]:
    """The lines of a manifest in which versions of the helper differ: not pynvml, which has a version of its own."""
    others = (b"  pynvml.py", f"  {PACKAGED}".encode())
    return [line for line in manifest.splitlines() if not line.endswith(others)]


def _read(path: Path) -> bytes:
    """Read a file of this program, once: the same bytes are checked, sent and installed."""
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise WattridgeError(f"cannot be read: {error.strerror}", str(path), INSTALL) from None
    if len(content) > _MOST_BYTES:
        raise WattridgeError("is larger than any file of the helper", str(path), "install Wattridge again")
    return content


def _pynvml() -> Path:
    spec = importlib.util.find_spec("pynvml")
    if spec is None or spec.origin is None:
        raise WattridgeError("nvidia-ml-py is not installed", "pynvml", how_to_add_package("nvidia-ml-py"))
    return Path(spec.origin)
