"""The way to functions of the host, and what calls them."""

from __future__ import annotations

from dataclasses import replace

from ....sensors.gpu import Gpu
from ...specification.model import KernelSpec
from ..kernels.gpu import ProcessGpu
from ..kernels.opened import Opened, opened
from .compilers import find_compiler
from .language import HostLanguage

BACKEND = f"{__package__}.backend"


def open_host(
    kernel: KernelSpec,
    where: str,
    sensors: Gpu,
    *,
    jobs: int | None = None,
    isolated: bool = True,
    as_they_are: bool = False,
) -> Opened:
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
    gpu = ProcessGpu(sensors, BACKEND, kernel.language, visible, context=context, isolated=isolated)
    return opened(gpu, lambda: HostLanguage(gpu, target, jobs))
