"""C, C++ and Fortran as languages of the runner, each compiled to a shared library by a compiler of the system's."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from ....base.errors import WattridgeError
from ....sensors.gpu import Gpu
from ...results.measurement import State
from ...specification.model import COMPILERS, DEVICE_COMPILERS, KernelSpec
from ...workloads.subprocesses import answer_of
from ..kernels.compiler import Compiler, ProgramMaker
from ..kernels.gpu import ProcessGpu
from ..kernels.language import Language, language_on
from ..kernels.process import KernelFailed

_SUFFIXES: Final = {"C": ".c", "C++": ".cpp", "Fortran": ".F90"}  # .F90: its #defines are read
_PACKAGES: Final = {"C": "gcc", "C++": "g++", "Fortran": "gfortran"}  # as distributions call them
_NAME: Final = re.compile(rb"(?<=\0)[A-Za-z_][\w.$]*(?=\0)")
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
        """Libraries come after the source, as linkers require."""
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


class HostLanguage(Language):
    """Implements `Language` for functions of the host: what one runs on a board is its own affair."""

    def __init__(self, gpu: ProcessGpu, target: HostTarget) -> None:
        super().__init__(gpu, Compiler(ProgramMaker(target)))

    def symbol(self, image: bytes, name: str) -> str:
        return function_name(image, name)


def function_name(library: bytes, name: str) -> str:
    """The function of that name as a shared library has it. Raises KernelFailed.

    C++ mangles names that are not extern "C"; Fortran writes them small, with an underscore or the module's name.
    """
    names: set[str] = {match.decode() for match in _NAME.findall(library)}
    if name in names:
        return name
    small = re.escape(name.lower())
    mangled = re.compile(
        rf"{small}_?|__\w+_MOD_{small}|\w+_mp_{small}_|_Z(N[\w$]*?)?{len(name)}{re.escape(name)}(?!\d)\w*"
    )
    matches = sorted(value for value in names if mangled.fullmatch(value))
    if not matches:
        raise KernelFailed(State.COMPILE, f"the source has no function '{name}'")
    return matches[0]


def open_host(
    kernel: KernelSpec,
    where: str,
    sensors: Gpu,
    *,
    isolated: bool = True,
    as_they_are: bool = False,
) -> HostLanguage:
    """The process that calls functions in the language of that kernel, started. Raises WattridgeError.

    On a real board the function launches its own work there, and the board is the only one that its process sees.
    Unless `isolated`, functions are called in this process, which one that faults takes along. `as_they_are` leaves the
    level of optimisation to the kernel's own options.
    """
    target = find_compiler(kernel, where)
    if as_they_are:
        target = replace(target, optimised=False)
    uuid = sensors.info.uuid
    visible = {"CUDA_VISIBLE_DEVICES": uuid} if uuid.startswith(("GPU-", "MIG-")) else {}
    context = "process for functions"
    gpu = ProcessGpu(sensors, f"{__package__}.backend", kernel.language, visible, context=context, isolated=isolated)
    return language_on(gpu, lambda: HostLanguage(gpu, target))
