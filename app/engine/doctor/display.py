"""Checks of what the window needs: Qt with its libraries, a display, and fonts. Run in a process of their own.

Qt is asked for by name: nothing in the engine imports it.
"""

from __future__ import annotations

import ctypes
import importlib
import sys
from typing import Any, Final

from ...own_installation import how_to_add_package
from ...qt_libraries import has_display, lend_to_qt, why_no_display, why_no_libraries
from .finding import Finding, as_missing, as_wrong, missing, ok, wrong

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
    screens = [f"{each.size().width()}x{each.size().height()}" for each in application.screens()]
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
    found = library.FcConfigGetFonts(ctypes.c_void_p(configuration), _SYSTEM_FONTS)
    count = found[0].count if found else 0
    if not count:
        return missing("no font is installed: the window would show boxes for letters", _FONTS)
    return ok(f"{count} fonts", count=count)
