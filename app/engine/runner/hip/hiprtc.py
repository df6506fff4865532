"""hipRTC: the processes of `compile_worker` compile with it, this one asks for its version alone.

Not yet run on a real board.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final

from ....base.installation import load_library
from ....sensors.amd.library import library_places

LIBRARY: Final = "libhiprtc.so"


@lru_cache(maxsize=1)
def _library() -> ctypes.CDLL | None:
    for place in library_places(LIBRARY):
        with suppress(OSError):
            library = load_library(place)
            library.hiprtcGetErrorString.restype = ctypes.c_char_p
            return library
    return None


def library_version() -> str | None:
    """The library's version; None where it is not here."""
    library = _library()
    if library is None:
        return None
    major, minor = ctypes.c_int(), ctypes.c_int()
    library.hiprtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value}"


def compile_text(text: str, options: Sequence[str]) -> tuple[bytes, str]:
    """The image (empty where it does not compile) and what the compiler says."""
    library = _library()
    if library is None:
        return b"", f"{LIBRARY} is not here: install ROCm's hipRTC"
    program = ctypes.c_void_p()
    failed = library.hiprtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.hip", 0, None, None)
    if failed:
        return b"", _error(library, failed)
    words = (ctypes.c_char_p * len(options))(*(word.encode() for word in options))
    failed = library.hiprtcCompileProgram(program, len(options), words)
    said = _read(library.hiprtcGetProgramLogSize, library.hiprtcGetProgramLog, program)
    message = said.rstrip(b"\0").decode("utf-8", "replace").strip()
    if failed:
        return b"", message or _error(library, failed)
    return _read(library.hiprtcGetCodeSize, library.hiprtcGetCode, program), message


def _error(library: ctypes.CDLL, code: int) -> str:
    return f"hipRTC: {library.hiprtcGetErrorString(code).decode('utf-8', 'replace')}"


def _read(size_of: Any, get: Any, program: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    if size_of(program, ctypes.byref(size)) or not size.value:
        return b""
    buffer = ctypes.create_string_buffer(size.value)
    return b"" if get(program, buffer) else buffer.raw
