"""CUDA's kernels on AMD's boards: HIP has the same words, and hipRTC compiles them."""

from __future__ import annotations

import re
import threading
from typing import Final

from ...results.measurement import State
from ...specification.model import Specification
from ...workloads.source_kernel import Build, Prepared, SourceKernel
from ..base import OnPreparation
from ..kernels.compiler import Compiler, ImageMaker, LibraryMaker
from ..kernels.gpu import ProcessGpu
from ..kernels.language import MakesKernel
from ..kernels.process import KernelFailed
from ..kernels.reference import Drift
from . import hiprtc

_KERNEL: Final = re.compile(rb"([\w$]+)\.kd\0")  # a kernel's descriptor among the names of a code object


def hip_maker(version: str, target: str) -> ImageMaker:
    """hipRTC of that version, for one target: gfx90a:sramecc+:xnack-."""
    return LibraryMaker(hiprtc.__name__, f"hipRTC {version} for {target}", (f"--offload-arch={target}",))


class HipLanguage:
    """Implements `Language` on a board of AMD's."""

    comparer: Build | None = None  # CUDA's has instructions of NVIDIA's in it
    feature_names: tuple[str, ...] = ()
    drift: Drift | None = None

    def __init__(self, gpu: ProcessGpu, version: str, jobs: int | None = None) -> None:
        self._gpu = gpu
        self.compiler = Compiler(hip_maker(version, str(gpu.described["target"])), jobs=jobs)

    def kernel(self, spec: Specification, make: MakesKernel = SourceKernel.of) -> SourceKernel:
        return make(spec, self._gpu.limits, 0)

    def symbol(self, image: bytes, name: str) -> str:
        names: list[str] = sorted({found.decode() for found in _KERNEL.findall(image)})
        mangled = re.compile(rf"_Z(N[\w$]*?)?{len(name)}{re.escape(name)}(?!\d)")
        for found in names:
            if found == name or mangled.match(found):
                return found
        raise KernelFailed(State.COMPILE, f"the source has no kernel '{name}'")

    def features(self, image: bytes, prepared: Prepared) -> dict[str, float]:
        return {}

    def prepare(self, stop: threading.Event, on_progress: OnPreparation) -> None:
        """Nothing: the energy counter, from which power is taken here, needs no look at a sensor."""
