"""CUDA's kernels on AMD's boards: HIP has the same words, and hipRTC compiles them."""

from __future__ import annotations

import re
from typing import Final

from ...results.measurement import State
from ..kernels.compiler import Compiler, ImageMaker, LibraryMaker
from ..kernels.gpu import ProcessGpu
from ..kernels.language import Language
from ..kernels.process import KernelFailed
from . import hiprtc

_KERNEL: Final = re.compile(rb"([\w$]+)\.kd\0")  # a kernel's descriptor among the names of a code object


def hip_maker(version: str, target: str) -> ImageMaker:
    """hipRTC of that version, for one target: gfx90a:sramecc+:xnack-."""
    return LibraryMaker(hiprtc.__name__, f"hipRTC {version} for {target}", (f"--offload-arch={target}",))


class HipLanguage(Language):
    """Implements `Language` on a board of AMD's.

    The host compares outputs, because CUDA's comparer uses instructions that only NVIDIA GPUs have. Power is taken from
    the energy counter here, which needs no characterisation.
    """

    def __init__(self, gpu: ProcessGpu, version: str, jobs: int | None = None) -> None:
        super().__init__(gpu, Compiler(hip_maker(version, str(gpu.described["target"])), jobs=jobs))

    def symbol(self, image: bytes, name: str) -> str:
        names: list[str] = sorted({name_bytes.decode() for name_bytes in _KERNEL.findall(image)})
        mangled = re.compile(rf"_Z(N[\w$]*?)?{len(name)}{re.escape(name)}(?!\d)")
        for match in names:
            if match == name or mangled.match(match):
                return match
        raise KernelFailed(State.COMPILE, f"the source has no kernel '{name}'")
