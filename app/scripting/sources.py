"""A kernel's source as Kernel Tuner takes it: text, a file, several files, or a function of the parameters.

Its language, and the compiler of functions of the host, follow from it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from ..base.errors import InputError
from ..base.files import read_text
from ..engine.specification.model import COMPILERS, OF_THE_HOST

_FILE: Final = re.compile(r"[^\n(){};\\]{1,250}\.(cu|cuh|cpp|cc|c|cl|opencl|F|F90|f90|hip|jl|h)")
_LANGUAGES: Final = {  # what scripts call them -> what specifications do
    **dict.fromkeys(("CUDA", "CUPY", "NVCUDA", "PYCUDA"), "CUDA"),
    "OPENCL": "OpenCL",
    "HIP": "HIP",
    **dict.fromkeys(("C", "C++"), "C++"),  # what is called C there is compiled by g++
    "FORTRAN": "Fortran",
    "JULIA": "Julia",
}
# What shows the language of a text, as Kernel Tuner looks for it; anything else is C.
_SIGNS: Final = (
    ("__global__", "CUDA"),
    ("__kernel", "OpenCL"),
    ("@cuda", "Julia"),
    ("@kernel", "Julia"),
    ("@device_code", "Julia"),
)
_OF_FORTRAN: Final = (*COMPILERS["Fortran"], "ftn", "ifort")
_FORTRAN_FILES: Final = (".f90", ".f", ".f95", ".f03", ".f08")
_NVCC: Final = "nvcc"  # compiles functions of the host that hold CUDA, ...
_MAYBE_CUDA: Final = ("__global", "__syncthreads()", "threadIdx", "#include <cuda", "cudaMemcpy")  # ... if it is there


@dataclass(frozen=True, slots=True)
class KernelSource:
    """The kernel's text, or the function that makes it, in which language, and where it includes files from."""

    text: str | Callable[[dict[str, Any]], str]
    language: str
    folders: tuple[Path, ...]
    compiler: str = ""  # of a function of the host; empty: the system's
    suffix: str = ""  # of the file that it was read from, in small letters

    @property
    def of_the_host(self) -> bool:
        """Whether it is a function that is called, not a kernel that is launched."""
        return self.language in OF_THE_HOST

    @property
    def libraries(self) -> tuple[str, ...]:
        """Options that name the libraries which the text says it needs."""
        needs = self.of_the_host and isinstance(self.text, str) and "CL/cl.h" in self.text
        return ("-lOpenCL",) if needs else ()


def read_source(given: Any, lang: str | None = None, compiler: Any = None) -> KernelSource:
    """Read a kernel's source and determine its language and its compiler.

    Languages that are not run are known by their names.

    Parameters
    ----------
    given : str, Path, sequence of these, or callable
        Text, a file, several files with the kernel in the first, or a function of the parameters.
    lang : str or None, optional
        The language, as scripts call it; None to find it in the text.
    compiler : str, Path or None, optional
        The compiler of a function of the host; None for the system's.

    Returns
    -------
    KernelSource
        Of a file the text, and the folders that it includes files from.

    Raises
    ------
    InputError
        For what is no source, a file that is not there, a language that is not known, or a compiler that is given for
        kernels.
    """
    source = _read(given, lang)
    if source.of_the_host:
        return _with_compiler(source, "" if compiler is None else str(compiler))
    if compiler:
        remedy = "leave it out: the compiler of kernels is found; options go to it by compiler_options"
        raise InputError(f"compiler={compiler!r} is for functions of the host", "compiler", remedy)
    return source


def _read(given: Any, lang: str | None) -> KernelSource:
    folders: tuple[Path, ...] = (Path.cwd(),)
    first = given
    if isinstance(given, Sequence) and not isinstance(given, str):
        if not given or not all(isinstance(item, str | Path) for item in given):
            raise InputError("the list holds something else than files", "kernel_source", "list paths of files")
        for value in given[1:]:
            if not Path(value).is_file():
                raise InputError("there is no such file", str(value), "check kernel_source")
        folders = tuple(dict.fromkeys((*(Path(item).resolve().parent for item in given), Path.cwd())))
        first = given[0]
    if callable(first):
        if lang is None:
            raise InputError("a function makes the source, and its language is not said", "lang", "say lang='CUDA'")
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
        beside = tuple(dict.fromkeys((path.resolve().parent, *folders)))
        return KernelSource(text, _language(lang, text), beside, suffix=path.suffix.lower())
    if isinstance(first, str):
        return KernelSource(first, _language(lang, first), folders)
    what = f"it is of type {type(first).__name__}"
    raise InputError(what, "kernel_source", "pass text, a file, a list of files, or a function of the parameters")


def _language(asked: str | None, text: str) -> str:
    if asked is not None:
        result = _LANGUAGES.get(str(asked).upper())
        if result is None:
            names = ", ".join(dict.fromkeys(_LANGUAGES.values()))
            raise InputError(f"'{asked}' is no language", "lang", f"one of {names}")
        return result
    small = text.lower()
    return next((language for sign, language in _SIGNS if sign in small), "C++")


def _with_compiler(source: KernelSource, compiler: str) -> KernelSource:
    """The language and the compiler that Kernel Tuner's own rules come to."""
    text = source.text if isinstance(source.text, str) else ""
    named = Path(compiler).name
    if source.language == "Fortran" or named in _OF_FORTRAN or source.suffix in _FORTRAN_FILES:
        return replace(source, language="Fortran", compiler=compiler)
    if named in ("", "g++"):
        holds_kernels = source.suffix == ".cu" or "__global__" in text
        if holds_kernels or (any(sign in text for sign in _MAYBE_CUDA) and shutil.which(_NVCC)):
            return replace(source, compiler=_NVCC)
    is_c = source.suffix == ".c" and named in COMPILERS["C"]
    return replace(source, language="C" if is_c else "C++", compiler=compiler)


def kernel_symbol(name: str) -> tuple[str, str]:
    """Split a kernel's name from the arguments of its template: 'add<float, tile>' is 'add' and the rest.

    Parameters
    ----------
    name : str
        As a script gives it.

    Returns
    -------
    symbol, template : str
        The bare name, and the arguments without their brackets; these are empty where it is no template.
    """
    bare, _, template = name.strip().partition("<")
    return bare.strip(), template.rpartition(">")[0].strip()
