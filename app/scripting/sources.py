"""The kernel's source as Kernel Tuner takes it: text, a file, several files, or a function of the parameters."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ..errors import InputError
from ..files import read_text

_FILE: Final = re.compile(r"[^\n(){};\\]{1,250}\.(cu|cuh|cpp|cc|c|cl|opencl|F|F90|f90|hip|jl|h)")
_LANGUAGES: Final = {  # what scripts call them -> what specifications do
    "CUDA": "CUDA",
    "CUPY": "CUDA",
    "NVCUDA": "CUDA",
    "OPENCL": "OpenCL",
    "HIP": "HIP",
    "C": "C",
    "C++": "C",
    "FORTRAN": "Fortran",
    "JULIA": "Julia",
}
_SIGNS: Final = (("__global__", "CUDA"), ("__kernel", "OpenCL"), ("subroutine", "Fortran"), ("function ", "Fortran"))


@dataclass(frozen=True, slots=True)
class KernelSource:
    """The kernel's text, or the function that makes it, in which language, and where it includes files from."""

    text: str | Callable[[dict[str, Any]], str]
    language: str
    folders: tuple[Path, ...]


def read_source(given: Any, lang: str | None) -> KernelSource:
    """Raises InputError for what is no source, a file that is not there, a language that is not known."""
    folders: tuple[Path, ...] = (Path.cwd(),)
    first = given
    if isinstance(given, Sequence) and not isinstance(given, str):
        if not given or not all(isinstance(each, str | Path) for each in given):
            raise InputError("the list holds something else than files", "kernel_source", "list paths of files")
        for each in given[1:]:
            if not Path(each).is_file():
                raise InputError("there is no such file", str(each), "check kernel_source")
        folders = tuple(dict.fromkeys((*(Path(each).resolve().parent for each in given), Path.cwd())))
        first = given[0]
    if callable(first):
        return KernelSource(first, _language(lang, ""), folders)
    if isinstance(first, Path) or (isinstance(first, str) and _FILE.fullmatch(first.strip())):
        path = Path(first)
        if not path.is_file():
            raise InputError(
                "there is no such file",
                str(first),
                "check kernel_source; it is relative to the script's working directory",
            )
        text = read_text(path)
        return KernelSource(text, _language(lang, text, path), tuple(dict.fromkeys((path.resolve().parent, *folders))))
    if isinstance(first, str):
        return KernelSource(first, _language(lang, first), folders)
    what = f"it is of type {type(first).__name__}"
    raise InputError(what, "kernel_source", "pass text, a file, a list of files, or a function of the parameters")


def _language(asked: str | None, text: str, path: Path | None = None) -> str:
    if asked is not None:
        found = _LANGUAGES.get(str(asked).upper())
        if found is None:
            raise InputError(
                f"'{asked}' is no language", "lang", f"one of {', '.join(dict.fromkeys(_LANGUAGES.values()))}"
            )
        return found
    for sign, language in _SIGNS:
        if sign in text and (language != "Fortran" or (path is not None and path.suffix.lower().startswith(".f"))):
            return language
    return "CUDA" if not text else "C"


def kernel_symbol(name: str) -> tuple[str, str]:
    """A kernel's name, and the arguments of its template where it is one: 'add<float, tile>' is 'add' and the rest."""
    bare, _, template = name.strip().partition("<")
    return bare.strip(), template.rpartition(">")[0].strip()
