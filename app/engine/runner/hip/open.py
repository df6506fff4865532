"""The way to a board of AMD's that runs kernels. Not yet run on a real one."""

from __future__ import annotations

from typing import Final

from ....base.errors import WattridgeError
from ....sensors.gpu import Gpu
from ....sensors.pci import pci_address
from ..kernels.gpu import ProcessGpu
from ..kernels.opened import Opened, opened
from .hiprtc import library_version
from .language import HipLanguage

BACKEND = f"{__package__}.backend"
NEEDS_HIPRTC: Final = "kernels on AMD's boards need hipRTC (libhiprtc.so)"
ROCM_REMEDY: Final = "install ROCm's hip-runtime-amd and hiprtc, or choose --gpu simulated:mi210"


def require_hip(gpu: Gpu) -> str:
    """The version of hipRTC. Raises WattridgeError, with the remedy, if there is none."""
    version = library_version()
    if version is None:
        raise WattridgeError(NEEDS_HIPRTC, gpu.info.label, ROCM_REMEDY)
    return version


def hip_in_words() -> str:
    """What compiles kernels for AMD's boards here, or why none can run."""
    version = library_version()
    return f"compiled by hipRTC {version}" if version else "none can run from here: libhiprtc.so is not found"


def open_hip(sensors: Gpu, *, jobs: int | None = None, isolated: bool = True) -> Opened:
    """A board that runs kernels, its processes started. Raises WattridgeError.

    Unless `isolated`, kernels are launched in this process, which one that faults takes along.
    """
    version = require_hip(sensors)
    device = pci_address(sensors.info.uuid)
    if not device:
        raise WattridgeError("it is not known which of HIP's devices this board is", sensors.info.label)
    gpu = ProcessGpu(sensors, BACKEND, device, context="HIP context", isolated=isolated)
    return opened(gpu, lambda: HipLanguage(gpu, version, jobs))
