"""NVRTC in a process of its own, called as nvcc is: for machines that have the library and not the compiler.

`python -m app.engine.runner.cuda.nvrtc -cubin -arch=sm_90 [options] -o IMAGE SOURCE`
"""

from __future__ import annotations

import ctypes
import ctypes.util
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

_NAMES: Final = ("libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "nvrtc64_120_0.dll")


@lru_cache(maxsize=1)
def _library() -> ctypes.CDLL | None:
    places = [str(path) for folder in sys.path for path in Path(folder or ".").glob("nvidia/*/lib/libnvrtc.so.*")]
    found = ctypes.util.find_library("nvrtc")
    for name in (*([found] if found else []), *_NAMES, *places):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def library_version() -> str | None:
    """The library's version, or None where there is none."""
    library = _library()
    if library is None:
        return None
    major, minor = ctypes.c_int(), ctypes.c_int()
    library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value}"


def compile_text(text: str, options: Sequence[str]) -> tuple[bytes, str]:
    """The image (empty where it does not compile) and what the compiler says. Needs the library."""
    library = _library()
    assert library is not None, "library_version tells"
    program = ctypes.c_void_p()
    library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None)
    given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    failed = library.nvrtcCompileProgram(program, len(options), given)
    said = _told(library.nvrtcGetProgramLogSize, library.nvrtcGetProgramLog, program)
    image = b"" if failed else _told(library.nvrtcGetCUBINSize, library.nvrtcGetCUBIN, program)
    return image, said.rstrip(b"\0").decode("utf-8", "replace")


def _told(size_of: Any, get: Any, program: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    size_of(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    get(program, buffer)
    return buffer.raw[: size.value]


def main(words: Sequence[str]) -> int:
    """Compile as the command line says; the exit status is nvcc's: 0 done, else failed."""
    options = [word for word in words if word != "-cubin"]
    at = options.index("-o")
    target, source = Path(options[at + 1]), Path(options[at + 2])
    image, said = compile_text(source.read_text(encoding="utf-8"), options[:at])
    print(said)
    if image:
        target.write_bytes(image)
    return 0 if image else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
