"""CUDA's kernels on AMD's boards: HIP has the same words, and hipRTC compiles them."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...children.python import python_command
from ...measurement import State
from ...specification.model import Specification
from ...workloads.source_kernel import Build, Prepared, SourceKernel
from ..base import OnPreparation
from ..kernels.compiler import Compiler
from ..kernels.drift import Drift
from ..kernels.gpu import ProcessGpu
from ..kernels.language import MakesKernel
from ..kernels.process import KernelFailed

_KERNEL: Final = re.compile(rb"([\w$]+)\.kd\0")  # a kernel's descriptor among the names of a code object


@dataclass(frozen=True, slots=True)
class HipTarget:
    """Implements `Target`: hipRTC, for one target."""

    version: str
    target: str  # gfx90a:sramecc+:xnack-
    suffix: str = ".hip"

    @property
    def identity(self) -> str:
        return f"hipRTC {self.version} for {self.target}"

    def call(self, source: Path, image: Path, options: Sequence[str]) -> list[str]:
        architecture = f"--offload-arch={self.target}"
        return python_command(f"{__package__}.hiprtc", architecture, *options, "-o", str(image), str(source))


class HipLanguage:
    """Implements `Language` on a board of AMD's."""

    comparer: Build | None = None  # CUDA's has instructions of NVIDIA's in it
    feature_names: tuple[str, ...] = ()
    drift: Drift | None = None

    def __init__(self, gpu: ProcessGpu, version: str, jobs: int | None = None) -> None:
        self._gpu = gpu
        self.compiler = Compiler(HipTarget(version, str(gpu.described["target"])), jobs=jobs)

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
