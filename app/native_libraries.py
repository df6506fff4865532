"""Shared libraries are loaded without holding up the other threads of this process.

Python keeps its lock while the system loads a library, for `ctypes` as for an extension module. Where the file is not
in memory yet that takes long: 140 ms for the 106 MB of NVRTC, 60 ms for one of SciPy's modules (2 cores, a local disk),
and the window answers nobody meanwhile. A function that `ctypes` calls is called without the lock, and `dlopen` is one:
what it has loaded, Python's own call finds loaded.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from contextlib import suppress
from functools import cache
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from types import ModuleType
from typing import Any, Final

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
