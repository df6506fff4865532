"""Which of Qt's system libraries are missing, in the words of the package manager. No Qt is imported to find out."""

from __future__ import annotations

import ctypes
import os
import sys

from .errors import WattridgeError
from .own_modules import frozen_folder

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
