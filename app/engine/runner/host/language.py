"""C, C++ and Fortran as languages of the runner."""

from __future__ import annotations

import re
import threading
from typing import Final

from ...results.measurement import State
from ...specification.model import Specification
from ...workloads.source_kernel import Build, Prepared, SourceKernel
from ..base import OnPreparation
from ..kernels.compiler import Compiler, ProgramMaker
from ..kernels.gpu import ProcessGpu
from ..kernels.language import MakesKernel
from ..kernels.process import KernelFailed
from ..kernels.reference import Drift
from .compilers import HostTarget

_NAME: Final = re.compile(rb"(?<=\0)[A-Za-z_][\w.$]*(?=\0)")


class HostLanguage:
    """Implements `Language` for functions of the host."""

    comparer: Build | None = None
    feature_names: tuple[str, ...] = ()
    drift: Drift | None = None

    def __init__(self, gpu: ProcessGpu, target: HostTarget, jobs: int | None = None) -> None:
        self._gpu = gpu
        self.compiler = Compiler(ProgramMaker(target), jobs=jobs)

    def kernel(self, spec: Specification, make: MakesKernel = SourceKernel.of) -> SourceKernel:
        return make(spec, self._gpu.limits, 0)

    def symbol(self, image: bytes, name: str) -> str:
        return function_name(image, name)

    def features(self, image: bytes, prepared: Prepared) -> dict[str, float]:
        return {}

    def prepare(self, stop: threading.Event, on_progress: OnPreparation) -> None:
        """Nothing: what a function of the host runs on a board is its own affair."""


def function_name(library: bytes, name: str) -> str:
    """The function of that name as a shared library has it. Raises KernelFailed.

    C++ mangles names that are not extern "C"; Fortran writes them small, with an underscore or the module's name.
    """
    names: set[str] = {found.decode() for found in _NAME.findall(library)}
    if name in names:
        return name
    small = re.escape(name.lower())
    mangled = re.compile(
        rf"{small}_?|__\w+_MOD_{small}|\w+_mp_{small}_|_Z(N[\w$]*?)?{len(name)}{re.escape(name)}(?!\d)\w*"
    )
    found = sorted(each for each in names if mangled.fullmatch(each))
    if not found:
        raise KernelFailed(State.COMPILE, f"the source has no function '{name}'")
    return found[0]
