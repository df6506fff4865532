"""The way to a real board: whether kernels can run there, and the runner that runs them."""

from __future__ import annotations

import importlib.util
from contextlib import ExitStack

from ....errors import WattridgeError
from ....sensors.device_limits import DeviceLimits
from ....sensors.gpu import Gpu
from ...control.guard import DeviceGuard
from ...space.search_space import SearchSpace
from ...specification.model import Specification
from ...workloads.cuda_kernel import CudaKernel
from .compiler import Compiler
from .gpu import BACKEND, CudaGpu
from .runner import CudaRunner
from .toolchain import Toolchain, find_toolchain


def require_cuda(gpu: Gpu) -> None:
    """Raises WattridgeError, with the remedy, where kernels cannot run on a real board from here."""
    if not _installed("pycuda"):
        raise WattridgeError(
            "kernels run on real GPUs by PyCUDA, which is not installed",
            gpu.info.label,
            "pip install 'wattridge[cuda]', or choose --gpu simulated:NAME",
        )
    find_toolchain()


def _installed(package: str) -> bool:
    """Whether it can be found; nothing of it is run."""
    try:
        return importlib.util.find_spec(package) is not None
    except ValueError:  # something is there that is no package
        return False


def require_kernel(spec: Specification, gpu: Gpu, limits: DeviceLimits) -> None:
    """Raises WattridgeError where the specification cannot run on a real board, before anything is started."""
    CudaKernel.of(spec, limits)
    require_cuda(gpu)


def open_cuda_runner(
    spec: Specification,
    sensors: Gpu,
    space: SearchSpace,
    guard: DeviceGuard,
    *,
    backend: str = BACKEND,
    toolchain: Toolchain | None = None,
    jobs: int | None = None,
) -> CudaRunner:
    """A runner, its processes started. Takes over the guard. Raises WattridgeError and InputError."""
    with ExitStack() as undo:
        gpu = CudaGpu(sensors, backend=backend)
        undo.callback(gpu.close)
        compiler = Compiler(gpu.compute_capability, toolchain=toolchain, jobs=jobs)
        undo.callback(compiler.close)
        runner = CudaRunner(gpu, spec, space, guard, compiler)
        undo.pop_all()
    return runner
