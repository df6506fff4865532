"""The installation of this copy of Wattridge: commands that extend or repair it, and the loading of libraries.

pip adds nothing to a program that was frozen into a folder, and is not the way where pipx, uv or apt installed it.

Shared libraries are loaded without blocking the other threads of this process. Python holds its lock while the system
loads a library, for `ctypes` as for an extension module. Where the file is not cached in memory that takes long: 140 ms
for the 106 MB of NVRTC, 60 ms for one of SciPy's modules (2 cores, a local disk), in which the window does not respond.
`ctypes` calls functions without the lock, `dlopen` among them: Python's own call then finds the library loaded.

Qt's missing system libraries are reported as packages of the package manager, without importing Qt.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from contextlib import suppress
from enum import Enum
from functools import cache
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from .errors import WattridgeError
from .processes import frozen_folder, is_frozen

DISTRIBUTION: Final = "wattridge"
_OF_DEBIAN: Final = Path("/usr/lib/wattridge-program")  # where `resources/packaging/debian.py` puts the folder
_NONE_ADDED: Final = "nothing can be added to this {{copy}}: {do} installs a Wattridge that has it"


class Way(Enum):
    """Who put this copy where it is."""

    DEBIAN = "package of the system"
    FOLDER = "folder"  # that runs anywhere
    PIPX = "pipx"
    UV_TOOL = "uv tool"
    UV = "uv"  # an environment without pip
    PIP = "pip"
    CHECKOUT = "checkout"


@cache
def own_way() -> Way:
    """Recognised by what each way leaves beside the program."""
    return way_of(Path(sys.prefix), frozen_folder() or Path() if is_frozen() else None, Path(__file__).parents[2])


def way_of(environment: Path, folder: Path | None, root: Path) -> Way:
    """Of an environment; `folder` is that of a frozen program, `root` the one that holds the package."""
    if folder is not None:
        return Way.DEBIAN if _OF_DEBIAN in (folder, *folder.parents) else Way.FOLDER
    if (environment / "pipx_metadata.json").is_file():
        return Way.PIPX
    if (environment / "uv-receipt.toml").is_file():
        return Way.UV_TOOL
    if (root / "pyproject.toml").is_file() and Path(__file__).parents[1].name == "app":
        return Way.CHECKOUT
    try:
        made_by = (environment / "pyvenv.cfg").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return Way.PIP
    return Way.UV if any(line.startswith("uv ") for line in made_by.splitlines()) else Way.PIP


def own_program(way: Way | None = None) -> str:
    """The command that calls this copy, from anywhere: a folder that runs anywhere is on no PATH."""
    return own_file() if (way or own_way()) is Way.FOLDER else DISTRIBUTION


def own_file() -> str:
    """The file that starts a frozen program, also later: the folder of an AppImage is gone when it ends."""
    image, mounted = os.environ.get("APPIMAGE", ""), os.environ.get("APPDIR", "")
    is_inside = image and mounted and Path(sys.executable).is_relative_to(os.path.realpath(mounted))
    return image if is_inside else sys.executable


def can_be_imported(way: Way | None = None) -> bool:
    """Whether the Python that the user calls has this package: not where the program has one for itself."""
    return (way or own_way()) not in (Way.DEBIAN, Way.FOLDER, Way.PIPX, Way.UV_TOOL)


def how_to_add(extra: str, way: Way | None = None) -> str:
    """Return the command that adds an optional part, as `cuda`, to this copy; where none can, what installs both."""
    way = way or own_way()
    if way is Way.DEBIAN and extra == "cuda":  # which has a package of its own
        return f"sudo apt install ./{DISTRIBUTION}-cuda_*.deb"
    return _ADD_PART[way].format(program=DISTRIBUTION, extra=extra, copy=way.value)


def how_to_add_package(package: str, way: Way | None = None) -> str:
    """Return the same command for a package of the package index that belongs to none of the optional parts."""
    way = way or own_way()
    return _ADD_PACKAGE[way].format(program=DISTRIBUTION, package=package, copy=way.value)


def how_to_add_elsewhere(package: str, python: str) -> str:
    """Return the command that adds a package to another Python, as to that of a program which is watched."""
    return f"{python} -m pip install {package}"


def how_to_repair(package: str, way: Way | None = None) -> str:
    """Return the command that reinstalls a package that is installed but does not load."""
    return _REPAIR[way or own_way()].format(program=DISTRIBUTION, package=package)


_NO_PART: Final = _NONE_ADDED.format(do="pipx install '{program}[{extra}]'")
_NO_PACKAGE: Final = _NONE_ADDED.format(do="pipx install {program} && pipx inject {program} {package}")
_ADD_PART: Final = {
    Way.DEBIAN: _NO_PART,
    Way.FOLDER: _NO_PART,
    Way.PIPX: "pipx install --force '{program}[{extra}]'",
    Way.UV_TOOL: "uv tool install '{program}[{extra}]'",
    Way.UV: "uv pip install '{program}[{extra}]'",
    Way.CHECKOUT: "pip install '.[{extra}]' in the checkout",
    Way.PIP: "pip install '{program}[{extra}]'",
}
_ADD_PACKAGE: Final = {
    Way.DEBIAN: _NO_PACKAGE,
    Way.FOLDER: _NO_PACKAGE,
    Way.PIPX: "pipx inject {program} {package}",
    Way.UV_TOOL: "uv tool install --with {package} {program}",
    Way.UV: "uv pip install {package}",
    Way.CHECKOUT: "pip install {package}",
    Way.PIP: "pip install {package}",
}
_FORCED: Final = "install it for this Python: pip install --force-reinstall {package}"
_REPAIR: Final = {
    Way.DEBIAN: "install the package of Wattridge again: sudo apt install --reinstall ./wattridge_*.deb",
    Way.FOLDER: "unpack the archive of Wattridge again",
    Way.PIPX: "pipx reinstall {program}",
    Way.UV_TOOL: "uv tool install --reinstall {program}",
    Way.UV: "uv pip install --reinstall {package}",
    Way.CHECKOUT: _FORCED,
    Way.PIP: _FORCED,
}

_PIECE: Final = 1 << 20


def load_library(place: str) -> ctypes.CDLL:
    """As `ctypes.CDLL(place)`. Raises OSError."""
    _load(place, os.RTLD_LOCAL | os.RTLD_NOW if sys.platform != "win32" else 0)
    return ctypes.CDLL(place)


@cache
def import_beside_the_main_thread() -> None:
    """From now on, extension modules that any other thread imports are loaded so too."""
    create = ExtensionFileLoader.create_module

    def create_module(self: ExtensionFileLoader, spec: ModuleSpec) -> ModuleType:
        if spec.origin and threading.current_thread() is not threading.main_thread():
            _read(spec.origin)
            _load(spec.origin, sys.getdlopenflags() if sys.platform != "win32" else 0)
        return create(self, spec)

    ExtensionFileLoader.create_module = create_module  # type: ignore[method-assign]


def _read(place: str) -> None:
    """Have all of a file in memory. Its pages are read one by one otherwise, many while its code runs with the lock."""
    with suppress(OSError), open(place, "rb", buffering=0) as file:
        while file.read(_PIECE):
            pass


def _load(place: str, mode: int) -> None:
    """What does not load is left to Python, which says why."""
    dlopen = _dlopen()
    if dlopen is not None:
        dlopen(os.fsencode(place), mode)


@cache
def _dlopen() -> Any:
    if sys.platform == "win32":
        return None  # Python lets go of its lock there
    function = ctypes.CDLL(None).dlopen
    function.argtypes, function.restype = (ctypes.c_char_p, ctypes.c_int), ctypes.c_void_p
    return function


# shared object -> Debian and Ubuntu package
_ALWAYS = {
    "libGL.so.1": "libgl1",
    "libEGL.so.1": "libegl1",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libdbus-1.so.3": "libdbus-1-3",
    "libfontconfig.so.1": "libfontconfig1",
}
_X11 = {
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
}
_FONT_CONFIGURATIONS = ("/etc/fonts/fonts.conf", "/usr/local/etc/fonts/fonts.conf")


def has_display() -> bool:
    """Whether a window can be shown: a screen, or a Qt platform that the user chose."""
    if not sys.platform.startswith("linux"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"))


def why_no_display() -> WattridgeError | None:
    """Why no window can be shown, for want of a screen."""
    if has_display():
        return None
    return WattridgeError("no display", "window", "use wattridge monitor, tune, replay or fit here, or set DISPLAY")


def why_no_libraries() -> WattridgeError | None:
    """Which of the libraries that Qt needs here are missing."""
    missing = missing_packages()
    if not missing:
        return None
    return WattridgeError("system libraries of Qt are missing", "window", f"sudo apt-get install {' '.join(missing)}")


def missing_packages() -> tuple[str, ...]:
    """Debian packages of Qt's libraries that do not load here; empty off Linux, and where all is well."""
    if not sys.platform.startswith("linux"):
        return ()
    needed = dict(_ALWAYS)
    platform = os.environ.get("QT_QPA_PLATFORM", "")
    on_x11 = platform.startswith("xcb") or (not platform and not os.environ.get("WAYLAND_DISPLAY"))
    if on_x11 and os.environ.get("DISPLAY"):
        needed |= _X11
    lend_to_qt()
    return tuple(package for library, package in needed.items() if not _loads(library))


def lend_to_qt() -> None:
    """Libraries and a typeface that the frozen program brings, where the machine has none. Before Qt is imported.

    A library that is loaded is found by its name when another needs it; they are loaded in the order in which they
    need each other, which one that fails waits for.
    """
    folder = frozen_folder()
    if folder is None:
        return
    if not any(map(os.path.exists, _FONT_CONFIGURATIONS)):
        os.environ.setdefault("FONTCONFIG_FILE", str(folder / "fonts" / "fonts.conf"))
    waiting = sorted((folder / "system").glob("*.so*"))
    while left := [path for path in waiting if not _loads(path.name) and not _loads(str(path))]:
        if left == waiting:
            return
        waiting = left


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
