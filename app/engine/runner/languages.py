"""The registry of kernel languages and the boards on which each runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...base.errors import InputError
from ...sensors.gpu import Gpu
from ...sensors.limits import DeviceLimits
from ...sensors.select import HOST, OPENCL
from ..control.guard import DeviceGuard
from ..metering.condition import Condition
from ..space.search_space import SearchSpace
from ..specification.model import DEVICE_COMPILERS, LANGUAGES, OF_THE_HOST, KernelSpec, Specification
from ..workloads.source_kernel import SourceKernel
from .base import Runner

if TYPE_CHECKING:
    from .kernels.language import Language
    from .kernels.script_side import ScriptSide


def require_language(spec: Specification, gpu: Gpu, limits: DeviceLimits) -> None:
    """Raises WattridgeError and InputError if the kernel cannot run on a real device, before anything is started."""
    kernel, where = _kernel_of(spec), str(spec.path)
    if kernel.language == "CUDA" and gpu.info.source != "amd":  # what is wrong with the board comes first
        from .cuda.language import require_nvidia

        require_nvidia(gpu)
    SourceKernel.of(spec, limits)
    require_device(kernel, gpu, where)


def require_device(kernel: KernelSpec, gpu: Gpu, where: str) -> None:
    """Raises WattridgeError and InputError where kernels in that language cannot run on a real device."""
    _require_run(kernel, where)
    if kernel.language == "CUDA" and gpu.info.source == "amd":
        from .hip.language import require_hip

        require_hip(gpu)
    elif kernel.language == "CUDA":
        from .cuda.language import require_cuda

        require_cuda(gpu)
    elif kernel.language == "OpenCL":
        from .opencl.language import opencl_device_of

        opencl_device_of(gpu)
    else:
        from .host.language import find_compiler

        find_compiler(kernel, where)


def kernel_runner(
    spec: Specification,
    gpu: Gpu,
    space: SearchSpace,
    guard: DeviceGuard,
    condition: Condition | None = None,
    *,
    script: ScriptSide | None = None,
    isolated: bool = True,
) -> Runner:
    """The runner of a specification on a real device, its processes started. Takes over the guard.

    `script` is what a script contributes. Unless `isolated`, kernels are launched in this process, which one that
    faults takes along. Raises WattridgeError and InputError.
    """
    from .kernels.runner import KernelRunner

    kernel, where = _kernel_of(spec), str(spec.path)
    language = open_device(kernel, gpu, where, scripted=script is not None, isolated=isolated)
    return KernelRunner.on(language, spec, space, guard, condition, script)


def open_device(kernel: KernelSpec, gpu: Gpu, where: str, *, scripted: bool = False, isolated: bool = True) -> Language:
    """A real device that runs kernels in that language, its processes started. Raises WattridgeError and InputError.

    A `scripted` function of the host is compiled with the script's own options, and no others.
    """
    if kernel.language == "CUDA" and gpu.info.source == "amd":
        from .hip.language import open_hip

        return open_hip(gpu, isolated=isolated)
    if kernel.language == "CUDA":
        from .cuda.language import open_cuda

        return open_cuda(gpu, isolated=isolated)
    if kernel.language == "OpenCL":
        from .opencl.language import open_opencl

        return open_opencl(gpu, isolated=isolated)
    from .host.language import open_host

    return open_host(kernel, where, gpu, isolated=isolated, as_they_are=scripted)


def usual_device(kernel: KernelSpec, real_boards: bool) -> str | None:
    """What `--gpu` is for a kernel where the user chooses none; None: as for CUDA.

    A function of the host runs on the processor, unless its compiler is one for GPUs and there is one.
    """
    if kernel.language in OF_THE_HOST:
        return None if real_boards and kernel.compiler in DEVICE_COMPILERS else HOST
    return OPENCL if kernel.language == "OpenCL" and not real_boards and not kernel.profile else None


def _kernel_of(spec: Specification) -> KernelSpec:
    if spec.kernel is None:
        raise InputError("there is no [kernel]", str(spec.path), "add one, or a [command]")
    _require_run(spec.kernel, str(spec.path))
    return spec.kernel


def _require_run(kernel: KernelSpec, where: str) -> None:
    if kernel.language not in LANGUAGES:
        what = f"its kernel is written in {kernel.language}"
        raise InputError(what, where, f"kernels in {', '.join(LANGUAGES)} are run")
