"""Checks of the program itself: its Python, optional packages and data folder, and what its window needs of Qt.

Qt is imported by name, since nothing in the engine may depend on it.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import platform
import re
import shutil
import sqlite3
import sys
import tempfile
import tomllib
from contextlib import closing
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from ... import __version__
from ...base.errors import WattridgeError
from ...base.installation import (
    DISTRIBUTION,
    has_display,
    how_to_add,
    how_to_add_package,
    lend_to_qt,
    own_way,
    why_no_display,
    why_no_libraries,
)
from ...base.paths import VARIABLE, data_folder
from ..store.schema import RECOVERY, is_damaged
from .finding import Finding, as_missing, as_wrong, missing, ok, wrong

_LEAST_FREE: Final = 200 << 20  # bytes: a session of 100,000 configurations takes some 50 MB
_OWN_EXTRAS: Final = ("test", "check", "all")  # of developers, and what only names others
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_EXTRA: Final = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")
_SYSTEM: Final = re.compile(r"""(sys_platform|platform_system|platform_machine)\s*(==|!=)\s*['"]([^'"]*)['"]""")


def program() -> Finding:
    """Which Wattridge and which Python these are, and whether the package is the one that is installed."""
    way = own_way().value
    here = f"Wattridge {__version__} ({way}), Python {platform.python_version()}, {platform.machine()}"
    facts = {"version": __version__, "python": platform.python_version(), "executable": sys.executable}
    facts["installed_by"] = way
    installed = _installed_version(DISTRIBUTION)
    if installed is not None and installed != __version__:
        what = f"{here}; but {installed} is what is installed in this Python"
        return wrong(what, "remove one of them: pip uninstall wattridge, or leave the folder of the checkout", **facts)
    return ok(here, **facts)


def extras() -> Finding:
    """Which optional parts are installed. Nothing of them is loaded."""
    declared = _declared_extras()
    if not declared:
        return ok("nothing says which optional parts there are: this copy was not installed by pip")
    if next(iter(metadata.distributions()), None) is None:
        return ok("this Python does not say which packages it has, so the optional parts are not known")
    needed = {
        name: [package for package in needs if _installed_version(package) is None] for name, needs in declared.items()
    }
    lacking = {name: packages for name, packages in needed.items() if packages}
    complete = [name for name in needed if name not in lacking]
    facts = {"installed": complete, "not_installed": list(lacking), "lacking": lacking}
    left_out = f"; not of: {', '.join(lacking)} ({how_to_add('NAME')})" if lacking else ""
    return ok(f"all packages are here of: {', '.join(complete) or 'none'}{left_out}", **facts)


def data() -> Finding:
    """The folder for sessions can be written, is the user's own, has space, and its store opens."""
    try:
        folder = data_folder()
    except WattridgeError as error:
        return as_wrong(error)
    remedy = f"correct that, or set {VARIABLE} to another folder"
    existing = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
    facts: dict[str, Any] = {"folder": str(folder), "made": existing == folder}
    if not existing.is_dir():
        return wrong(f"{existing} is not a folder", remedy, **facts)
    if existing == folder and os.name == "posix" and (owner := folder.stat().st_uid) != os.geteuid():
        return wrong(f"{folder} belongs to user {owner}", f"sudo chown -R $USER {folder}; or {remedy}", **facts)
    try:
        with tempfile.NamedTemporaryFile(dir=existing, prefix=".wattridge-doctor-") as file:
            file.write(bytes(4096))
            file.flush()
    except OSError as error:
        return wrong(f"{existing} cannot be written: {error.strerror}", remedy, **facts)
    free = shutil.disk_usage(existing).free
    facts["free_mb"] = free >> 20
    if free < _LEAST_FREE:
        return wrong(
            f"{folder}: only {free >> 20} MB are free", f"free space, or set {VARIABLE} to another folder", **facts
        )
    if damage := _damage(folder / "wattridge.sqlite"):
        return wrong(f"{folder / 'wattridge.sqlite'}: {damage}", RECOVERY, **facts)
    later = "" if existing == folder else ", made by the first session"
    return ok(f"{folder}{later}; {free >> 30} GB free", **facts)


# --- inside -----------------------------------------------------------------------------------------------------------


def _installed_version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _declared_extras() -> dict[str, list[str]]:
    """The packages of each extra that this system needs: of the installed package, else of the checkout."""
    try:
        requirements = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return _of_checkout()
    declared: dict[str, list[str]] = {
        name: [] for name in metadata.metadata(DISTRIBUTION).get_all("Provides-Extra") or []
    }
    for requirement in requirements:
        for name in _EXTRA.findall(requirement):
            declared.setdefault(name, []).append(requirement)
    return _needed(declared)


def _of_checkout() -> dict[str, list[str]]:
    file = Path(__file__).resolve().parents[3] / "pyproject.toml"
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
        return _needed(document["project"]["optional-dependencies"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _needed(extras: dict[str, list[str]]) -> dict[str, list[str]]:
    """The names of packages by extra, of users' extras and for this system."""
    return {
        name: [match[0] for text in needs if _is_for_this_system(text) and (match := _NAME.match(text))]
        for name, needs in extras.items()
        if name not in _OWN_EXTRAS
    }


def _is_for_this_system(requirement: str) -> bool:
    """Whether all conditions of its marker on the system hold; ours are joined by `and`."""
    here = {
        "sys_platform": sys.platform,
        "platform_system": platform.system(),
        "platform_machine": platform.machine(),
    }
    marker = requirement.partition(";")[2]
    return all((here[name] == value) == (how == "==") for name, how, value in _SYSTEM.findall(marker))


def _damage(store: Path) -> str:
    """Why the store does not open, found without changing it; empty if it does or is not there."""
    if not store.exists():
        return ""
    try:
        with closing(sqlite3.connect(f"{store.as_uri()}?mode=ro", uri=True, timeout=1.0)) as connection:
            connection.execute("SELECT count(*) FROM sessions").fetchone()
    except sqlite3.Error as error:
        return f"it is damaged ({error})" if is_damaged(error) else ""  # busy is not damaged
    return ""


_SYSTEM_FONTS: Final = 0  # FcSetSystem
_FONTS: Final = "sudo apt-get install fonts-dejavu-core"


class _FontSet(ctypes.Structure):
    """The beginning of fontconfig's FcFontSet."""

    _fields_ = (("count", ctypes.c_int), ("room", ctypes.c_int))


def qt() -> Finding:
    """PySide6 is installed, and all that it needs of the system loads."""
    lacking = why_no_libraries()
    if lacking is not None:
        return as_wrong(lacking) if has_display() else as_missing(lacking)
    try:
        version = importlib.import_module("PySide6.QtCore").qVersion()
        importlib.import_module("PySide6.QtWidgets")
    except ModuleNotFoundError:
        remedy = f"{how_to_add_package('PySide6-Essentials')}; commands work without it"
        return missing("PySide6 is not installed", remedy)
    except ImportError as error:
        return wrong(f"Qt does not load: {error}", "install the package of that library, or PySide6-Essentials again")
    return ok(f"Qt {version}", version=version)


def display() -> Finding:
    """Qt can show a window here."""
    none = why_no_display()
    if none is not None:
        return as_missing(none)
    lend_to_qt()
    try:
        gui: Any = importlib.import_module("PySide6.QtGui")
    except ImportError as error:
        return missing(f"not tried: {error}", "see the line of Qt")
    application = gui.QGuiApplication([])  # aborts where the display does not answer; the caller sees that
    screens = [f"{screen.size().width()}x{screen.size().height()}" for screen in application.screens()]
    platform = str(application.platformName())
    if not screens:
        return wrong(f"{platform} shows no screen", "is a screen connected?", platform=platform)
    return ok(f"{platform}, {', '.join(screens)}", platform=platform, screens=screens)


def fonts() -> Finding:
    """There is a font to draw text with, where the system's list of fonts decides."""
    if not sys.platform.startswith("linux"):
        return ok("the system's own")
    lend_to_qt()
    try:
        library = ctypes.CDLL("libfontconfig.so.1")
    except OSError:
        return missing("libfontconfig.so.1 does not load", "sudo apt-get install libfontconfig1")
    library.FcInitLoadConfigAndFonts.restype = ctypes.c_void_p
    library.FcConfigGetFonts.restype = ctypes.POINTER(_FontSet)
    configuration = library.FcInitLoadConfigAndFonts()
    fonts = library.FcConfigGetFonts(ctypes.c_void_p(configuration), _SYSTEM_FONTS)
    count = fonts[0].count if fonts else 0
    if not count:
        return missing("no font is installed: the window would show boxes for letters", _FONTS)
    return ok(f"{count} fonts", count=count)
