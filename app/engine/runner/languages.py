"""Which languages run where: the one place that knows all of them."""

from __future__ import annotations

from ...errors import InputError, WattridgeError
from ...sensors.device_limits import DeviceLimits
from ...sensors.gpu import Gpu
from ...sensors.select import HOST, OPENCL
from ..control.guard import DeviceGuard
from ..metering.condition import Condition
from ..space.search_space import SearchSpace
from ..specification.model import DEVICE_COMPILERS, LANGUAGES, OF_THE_HOST, KernelSpec, Specification
from ..workloads.source_kernel import SourceKernel
from .base import Runner


def require_language(spec: Specification, gpu: Gpu, limits: DeviceLimits) -> None:
    """Raises WattridgeError and InputError where the kernel cannot run on a real device, before anything is started."""
    kernel = _kernel_of(spec)
    if kernel.language == "CUDA":
        from .cuda.open import require_kernel

        if gpu.info.source != "nvml":
            remedy = "choose a GPU, or one that is simulated: --gpu simulated:NAME"
            raise WattridgeError("CUDA kernels run on NVIDIA's GPUs", gpu.info.label, remedy)
        require_kernel(spec, gpu, limits)
        return
    SourceKernel.of(spec, limits)
    if kernel.language == "OpenCL":
        from .opencl.open import opencl_device_of

        opencl_device_of(gpu)
    else:
        from .host.compilers import find_compiler

        find_compiler(kernel, str(spec.path))


def open_runner(
    spec: Specification, gpu: Gpu, space: SearchSpace, guard: DeviceGuard, condition: Condition | None = None
) -> Runner:
    """The runner of a specification on a real device, its processes started. Takes over the guard.

    Raises WattridgeError and InputError.
    """
    language = _kernel_of(spec).language
    if language == "CUDA":
        from .cuda.open import open_cuda_runner

        return open_cuda_runner(spec, gpu, space, guard, condition=condition)
    if language == "OpenCL":
        from .opencl.open import open_opencl_runner

        return open_opencl_runner(spec, gpu, space, guard, condition=condition)
    from .host.open import open_host_runner

    return open_host_runner(spec, gpu, space, guard, condition=condition)


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
    if spec.kernel.language not in LANGUAGES:
        what = f"its kernel is written in {spec.kernel.language}"
        raise InputError(what, str(spec.path), f"kernels in {', '.join(LANGUAGES)} are run")
    return spec.kernel
