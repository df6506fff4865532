"""C, C++ and Fortran as languages of the runner."""

from __future__ import annotations

import re
from typing import Final

from ...results.measurement import State
from ..kernels.compiler import Compiler, ProgramMaker
from ..kernels.gpu import ProcessGpu
from ..kernels.language import Language
from ..kernels.process import KernelFailed
from .compilers import HostTarget

_NAME: Final = re.compile(rb"(?<=\0)[A-Za-z_][\w.$]*(?=\0)")


class HostLanguage(Language):
    """Implements `Language` for functions of the host: what one runs on a board is its own affair."""

    def __init__(self, gpu: ProcessGpu, target: HostTarget, jobs: int | None = None) -> None:
        super().__init__(gpu, Compiler(ProgramMaker(target), jobs=jobs))

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
