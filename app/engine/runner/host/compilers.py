"""The system's compilers of C, C++ and Fortran, and how each is called for a shared library."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from ....base.errors import WattridgeError
from ...specification.model import COMPILERS, DEVICE_COMPILERS, KernelSpec
from ...workloads.subprocesses import answer_of

_SUFFIXES: Final = {"C": ".c", "C++": ".cpp", "Fortran": ".F90"}  # .F90: its #defines are read
_PACKAGES: Final = {"C": "gcc", "C++": "g++", "Fortran": "gfortran"}  # as distributions call them
_TO_THE_LINKER: Final = re.compile(r"-[lL].*|-Wl,.*")


@dataclass(frozen=True, slots=True)
class HostTarget:
    """Implements `Target`: a compiler by its path."""

    language: str
    program: str
    optimised: bool = True  # with -O3 unless the options say how

    @property
    def identity(self) -> str:
        return f"{self.program} {_version(self.program)}"

    @property
    def suffix(self) -> str:
        return ".cu" if self._of_devices else _SUFFIXES[self.language]

    @property
    def _of_devices(self) -> bool:
        return Path(self.program).name in DEVICE_COMPILERS

    def call(self, source: Path, image: Path, options: Sequence[str]) -> list[str]:
        """Libraries come after the source, as linkers want them."""
        linked = [option for option in options if _TO_THE_LINKER.fullmatch(option)]
        rest = [option for option in options if option not in linked]
        chosen = any(option.startswith("-O") or option == "-fast" for option in rest)
        level = ["-O3"] if self.optimised and not chosen else []
        shared = ["-shared", *(["-Xcompiler", "-fPIC"] if self._of_devices else ["-fPIC"])]
        return [
            self.program,
            *shared,
            *level,
            *self._modules(image.parent),
            *rest,
            "-o",
            str(image),
            str(source),
            *linked,
        ]

    def _modules(self, folder: Path) -> list[str]:
        """Where Fortran's modules are written, and lines of any length."""
        if self.language != "Fortran":
            return []
        name = Path(self.program).name
        if name == "gfortran":
            return [f"-J{folder}", "-ffree-line-length-none"]
        return ["-module", str(folder)] if name in ("ifx", "nvfortran") else [f"-J{folder}"]


def find_compiler(kernel: KernelSpec, where: str) -> HostTarget:
    """The compiler that a kernel names, else the first of its language that is there. Raises WattridgeError."""
    wanted = (kernel.compiler,) if kernel.compiler else COMPILERS[kernel.language]
    for name in wanted:
        if (program := shutil.which(name)) is not None:
            return HostTarget(kernel.language, program)
    package = kernel.compiler or _PACKAGES[kernel.language]
    raise WattridgeError(
        f"there is no compiler for {kernel.language} ({', '.join(wanted)})", where, f"install {package}"
    )


@lru_cache(maxsize=16)
def _version(program: str) -> str:
    try:
        return " ".join(answer_of([program, "--version"]).split())[:200]
    except OSError:
        return "of unknown version"
