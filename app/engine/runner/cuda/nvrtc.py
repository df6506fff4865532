"""NVRTC, with nvcc's options: the processes of `compile_worker` compile with it, this one reads its version alone.

It has no headers of its own before CUDA 13.3: those of a toolkit, or of pip's `nvidia-cuda-runtime-cu12` and
`nvidia-cuda-cccl-cu12`, are used.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final

from ....base.installation import how_to_add, load_library
from ....base.paths import private_folder
from .toolkit import library_places, pip_folders, toolkits

_VERSIONS: Final = ("13", "12", "11.2")
_RELEASE: Final = re.compile(r"^#define CUDART_VERSION +(\d+)\d{3}$", re.MULTILINE)
_BRINGS_HEADERS: Final = (13, 3)
# nvcc's options without effect on the device's code: they are for the host's compiler, the linker or nvcc itself
_NOT_OF_THE_CODE: Final = re.compile(
    r"(-O[0-3]?|--optimize|-Xcompiler|--compiler-options|-ccbin|--compiler-bindir|-x|-t|--threads)(=.*)?"
    r"|-g|--debug|-m64|-keep|--keep|-l(?!ineinfo).+|-L.+|-Wno-deprecated-gpu-targets|(-|--)allow-unsupported-compiler"
    r"|--expt-relaxed-constexpr|(-|--)(expt-)?extended-lambda"
)
_WITH_A_WORD: Final = frozenset(
    ("-O", "--optimize", "-Xcompiler", "--compiler-options", "-ccbin", "--compiler-bindir", "-x", "-t", "--threads")
)
_OTHER_WORDS: Final = {
    "-isystem": ("-I",),
    "--system-include": ("-I",),
    "-res-usage": ("-Xptxas", "-v"),
    "--resource-usage": ("-Xptxas", "-v"),
}
_TO_THE_ASSEMBLER: Final = ("-Xptxas", "--ptxas-options")
OLDER: Final = f"for Maxwell, Pascal and Volta {how_to_add('cuda')}; for Kepler a CUDA 11 toolkit and '[pycuda]'"
_ARCHITECTURE: Final = re.compile(r"-arch=sm_(\d+)")


def library_version() -> str | None:
    """The library's version, or None if there is none."""
    library = _library()
    return None if library is None else ".".join(map(str, library.version()))


def compile_text(text: str, options: Sequence[str]) -> tuple[bytes, str]:
    """The image (empty if it does not compile) and the compiler's messages.

    The image is machine code for the requested architecture, or PTX where that is newer than the library.
    """
    library = _library()
    if library is None:
        return b"", f"NVRTC is not here: {how_to_add('cuda')}"
    arguments, as_ptx = architecture_options(device_options(options), library.architectures())
    if not arguments:
        release = ".".join(map(str, library.version()))
        return b"", f"NVRTC {release} does not compile for a board as old as this: {OLDER}"
    return library.image(text, [*arguments, *library.headers], "kernel.cu", "PTX" if as_ptx else "CUBIN")


class RuntimeCompiler:
    """The functions of NVRTC, which hipRTC has under a prefix of its own."""

    def __init__(self, library: ctypes.CDLL, prefix: str, name: str) -> None:
        self._library = library
        self._prefix = prefix
        self._name = name

    def version(self) -> tuple[int, int]:
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._function("Version")(ctypes.byref(major), ctypes.byref(minor))
        return major.value, minor.value

    def image(self, text: str, options: Sequence[str], file: str, kind: str) -> tuple[bytes, str]:
        """An image of that kind (empty if the text does not compile) and the compiler's messages."""
        program = ctypes.c_void_p()
        failed = self._function("CreateProgram")(ctypes.byref(program), text.encode(), file.encode(), 0, None, None)
        if failed:
            return b"", self._error(failed)
        arguments = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        failed = self._function("CompileProgram")(program, len(options), arguments)
        message = self._read("ProgramLog", program).rstrip(b"\0").decode("utf-8", "replace").strip()
        if failed:
            return b"", message or self._error(failed)
        image = self._read(kind, program)
        return image, message if image else message or f"{self._name} makes no machine code with these options"

    def _function(self, name: str) -> Any:
        return getattr(self._library, f"{self._prefix}{name}")

    def _error(self, code: int) -> str:
        error_string = self._function("GetErrorString")
        error_string.restype = ctypes.c_char_p
        return f"{self._name}: {error_string(code).decode('utf-8', 'replace')}"

    def _read(self, kind: str, program: ctypes.c_void_p) -> bytes:
        size = ctypes.c_size_t()
        if self._function(f"Get{kind}Size")(program, ctypes.byref(size)) or not size.value:
            return b""
        buffer = ctypes.create_string_buffer(size.value)
        return b"" if self._function(f"Get{kind}")(program, buffer) else buffer.raw


class _Nvrtc(RuntimeCompiler):
    def __init__(self, library: ctypes.CDLL) -> None:
        super().__init__(library, "nvrtc", "NVRTC")
        self._path = Path(library._name)

    @cached_property
    def headers(self) -> list[str]:
        """The options that name CUDA's headers of its release."""
        return header_options(self._path, self.version())

    def architectures(self) -> list[int]:
        """Those that it compiles for, as 90; none where the library does not report them (before CUDA 11.2)."""
        count, library = ctypes.c_int(), self._library
        if not hasattr(library, "nvrtcGetSupportedArchs") or library.nvrtcGetNumSupportedArchs(ctypes.byref(count)):
            return []
        architectures = (ctypes.c_int * count.value)()
        return [] if library.nvrtcGetSupportedArchs(architectures) else list(architectures)


# --- the library ------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _library() -> _Nvrtc | None:
    for name in library_places("nvrtc", _VERSIONS):
        try:
            library = load(name)
        except OSError:
            continue
        if hasattr(library, "nvrtcGetCUBIN"):  # since CUDA 11.1
            return _Nvrtc(library)
    return None


def load(place: str) -> ctypes.CDLL:
    """The library there. Raises OSError.

    Its other half, nvrtc-builtins in the same folder, it looks for among the system's libraries alone; on Windows where
    programs are searched.
    """
    folder = Path(place).parent
    if sys.platform == "win32" and folder.is_absolute():
        os.add_dll_directory(str(folder))
        os.environ["PATH"] = os.pathsep.join((str(folder), os.environ.get("PATH", "")))
    elif folder.is_absolute():
        for other_half in folder.glob("libnvrtc-builtins.so*"):
            with suppress(OSError):
                load_library(str(other_half))
    return load_library(place)


# --- the options ------------------------------------------------------------------------------------------------------


def device_options(options: Sequence[str]) -> list[str]:
    """nvcc's options as NVRTC takes them, without those that have no effect on the device's code."""
    kept, rest = [], iter(options)
    for option in rest:
        name, _, value = option.partition("=")
        if _NOT_OF_THE_CODE.fullmatch(option):
            if option in _WITH_A_WORD:
                next(rest, None)
        elif name in _TO_THE_ASSEMBLER:  # nvcc takes several, comma-separated
            several = (value or next(rest, "")).split(",")
            kept += [part for item in several for part in ("-Xptxas", item)]
        elif name in _OTHER_WORDS:
            kept += [*_OTHER_WORDS[name], *([value] if value else [])]
        else:
            kept.append(option)
    return kept


def architecture_options(options: Sequence[str], supported: Sequence[int]) -> tuple[list[str], bool]:
    """The options with a supported architecture, and whether that gives PTX; no options where none would do."""
    for index, option in enumerate(options):
        architecture = _ARCHITECTURE.fullmatch(option)
        if architecture and supported and int(architecture[1]) not in supported:
            older = [value for value in supported if value < int(architecture[1])]
            if not older:
                return [], False
            return [*options[:index], f"-arch=compute_{max(older)}", *options[index + 1 :]], True
    return list(options), False


def header_options(library: Path, version: tuple[int, int]) -> list[str]:
    """Where CUDA's own headers of the library's release are: beside it, in another place, or in the library itself."""
    root = library.parent.parent
    near = [root, root.parent / "cuda_runtime"] if library.is_absolute() else []
    for folder in (*near, *toolkits(), *pip_folders()):
        include = folder / "include"
        if _release(include) == version[0]:
            libraries = [item for item in (include / "cccl", folder.parent / "cuda_cccl" / "include") if item.is_dir()]
            if libraries or version < _BRINGS_HEADERS:  # else the library has more than these
                return [f"-I{value}" for value in (include, *libraries)]
    if version >= _BRINGS_HEADERS:
        return [f"--use-bundled-headers={private_folder('cuda-headers') / '.'.join(map(str, version))}"]
    return []


def _release(include: Path) -> int | None:
    """CUDA's major release of a folder of headers; None if it is none."""
    try:
        match = _RELEASE.search((include / "cuda_runtime_api.h").read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None
    return int(match[1]) if match else None
