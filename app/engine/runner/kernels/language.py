"""The `Language` seam: what differs between kernels of one language and of another, outside the runner process."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import ExitStack
from typing import ClassVar, TypeVar

from ....sensors.limits import DeviceLimits
from ...specification.model import Specification
from ...workloads.source_kernel import Build, Prepared, SourceKernel
from ..base import OnPreparation
from .compiler import Compiler
from .gpu import ProcessGpu
from .reference import Drift

MakesKernel = Callable[[Specification, DeviceLimits, int], SourceKernel]  # the last: shared memory by opting in, bytes


class Language(ABC):
    """One language on one device: the processes of the device, and the compiler of what runs in them."""

    comparer: ClassVar[Build | None] = None  # kernels that compare outputs on the device; else the host compares
    feature_names: ClassVar[tuple[str, ...]] = ()  # of `workloads.machine_code.FEATURES`, those that `features` gives
    drift: Drift | None = None  # the reference kernel of a session; None if there is none

    def __init__(self, gpu: ProcessGpu, compiler: Compiler) -> None:
        self.gpu = gpu
        self.compiler = compiler

    def kernel(self, spec: Specification, make: MakesKernel = SourceKernel.of) -> SourceKernel:
        """The kernel of a specification, made for the device. Raises InputError if it cannot run."""
        return make(spec, self.gpu.limits, 0)

    @abstractmethod
    def symbol(self, image: bytes, name: str) -> str:
        """The kernel of that name as the image has it. Raises KernelFailed if it has none."""

    def features(self, image: bytes, prepared: Prepared) -> dict[str, float]:
        """Those of `feature_names` that follow from this image. Raises KernelFailed if it has no such kernel."""
        return {}

    def prepare(self, stop: threading.Event, on_progress: OnPreparation) -> None:  # noqa: B027 - most need nothing
        """What a board needs before its first measurement. Raises PreparationFailed."""

    def close(self) -> None:
        """End the compilers and the processes."""
        self.compiler.close()
        self.gpu.close()


_L = TypeVar("_L", bound=Language)


def language_on(gpu: ProcessGpu, make: Callable[[], _L]) -> _L:
    """The language that `make` returns for a device; what `make` raises closes the device."""
    with ExitStack() as undo:
        undo.callback(gpu.close)
        language = make()
        undo.pop_all()
    return language
