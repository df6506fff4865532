"""hipRTC in a process of its own, called as a compiler is: `hiprtc --offload-arch=gfx90a [options] -o IMAGE SOURCE`.

Not yet run on a real board.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from ....sensors.amd.rocm import library_places

LIBRARY: Final = "libhiprtc.so"


@lru_cache(maxsize=1)
def _library() -> ctypes.CDLL | None:
    for place in library_places(LIBRARY):
        with suppress(OSError):
            library = ctypes.CDLL(place)
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


def main(words: Sequence[str]) -> int:
    """Compile as the command line says; 0 done, else failed."""
    at = words.index("-o")
    target, source = Path(words[at + 1]), Path(words[at + 2])
    image, said = compile_text(source.read_text(encoding="utf-8"), words[:at])
    print(said)  # noqa: T201  (a compiler says it there)
    if image:
        target.write_bytes(image)
    return 0 if image else 1


def _error(library: ctypes.CDLL, code: int) -> str:
    return f"hipRTC: {library.hiprtcGetErrorString(code).decode('utf-8', 'replace')}"


def _read(size_of: Any, get: Any, program: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    if size_of(program, ctypes.byref(size)) or not size.value:
        return b""
    buffer = ctypes.create_string_buffer(size.value)
    return b"" if get(program, buffer) else buffer.raw


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
