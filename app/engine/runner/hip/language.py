"""CUDA's kernels on AMD's boards: HIP has the same words, and hipRTC compiles them. Not yet run on a real board."""

from __future__ import annotations

import re
from typing import Final

from ....base.errors import WattridgeError
from ....sensors.gpu import Gpu
from ....sensors.select import pci_address
from ..kernels.compiler import Compiler, LibraryMaker, symbol_among
from ..kernels.gpu import ProcessGpu
from ..kernels.language import Language, language_on
from . import hiprtc

NEEDS_HIPRTC: Final = "kernels on AMD's boards need hipRTC (libhiprtc.so)"
ROCM_REMEDY: Final = "install ROCm's hip-runtime-amd and hiprtc, or choose --gpu simulated:mi210"
_BACKEND: Final = f"{__package__}.backend"
_KERNEL: Final = re.compile(rb"([\w$]+)\.kd\0")  # a kernel's descriptor among the names of a code object


class HipLanguage(Language):
    """Implements `Language` on a board of AMD's.

    The host compares outputs, because CUDA's comparer uses instructions that only NVIDIA GPUs have. Power is taken from
    the energy counter here, which needs no characterisation.
    """

    def __init__(self, gpu: ProcessGpu, version: str) -> None:
        """`version` is hipRTC's; it compiles for one target, such as gfx90a:sramecc+:xnack-."""
        target = str(gpu.described["target"])
        identity, options = f"hipRTC {version} for {target}", (f"--offload-arch={target}",)
        super().__init__(gpu, Compiler(LibraryMaker(hiprtc.__name__, identity, options)))

    def symbol(self, image: bytes, name: str) -> str:
        return symbol_among(sorted({symbol.decode() for symbol in _KERNEL.findall(image)}), name)


def require_hip(gpu: Gpu) -> str:
    """The version of hipRTC. Raises WattridgeError, with the remedy, if there is none."""
    version = hiprtc.library_version()
    if version is None:
        raise WattridgeError(NEEDS_HIPRTC, gpu.info.label, ROCM_REMEDY)
    return version


def hip_in_words() -> str:
    """What compiles kernels for AMD's boards here, or why none can run."""
    version = hiprtc.library_version()
    return f"compiled by hipRTC {version}" if version else "none can run from here: libhiprtc.so is not found"


def open_hip(sensors: Gpu, *, isolated: bool = True) -> HipLanguage:
    """A board that runs kernels, its processes started. Raises WattridgeError.

    Unless `isolated`, kernels are launched in this process, which one that faults takes along.
    """
    version = require_hip(sensors)
    device = pci_address(sensors.info.uuid)
    if not device:
        raise WattridgeError("it is not known which of HIP's devices this board is", sensors.info.label)
    gpu = ProcessGpu(sensors, _BACKEND, device, context="HIP context", isolated=isolated)
    return language_on(gpu, lambda: HipLanguage(gpu, version))
