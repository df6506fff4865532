"""The way to a real board: whether kernels can run there, and the runner that runs them."""

from __future__ import annotations

from contextlib import ExitStack

from ....base.errors import WattridgeError
from ....sensors.gpu import Gpu
from ...control.guard import DeviceGuard
from ...metering.condition import Condition
from ...space.search_space import SearchSpace
from ...specification.model import Specification
from ..kernels.compiler import Compiler
from ..kernels.opened import Opened, opened
from ..kernels.runner import KernelRunner
from ..kernels.script_side import ScriptSide
from .backends import find_library, usable_libraries
from .compiler import cuda_compiler
from .gpu import CudaGpu
from .language import CudaLanguage
from .toolchain import Toolchain, find_toolchain


def require_nvidia(gpu: Gpu) -> None:
    """Raises WattridgeError for a device that is not a board of NVIDIA's."""
    if gpu.info.source != "nvml":
        remedy = "choose a GPU, or one that is simulated: --gpu simulated:NAME"
        raise WattridgeError("CUDA kernels run on NVIDIA's GPUs", gpu.info.label, remedy)


def require_cuda(gpu: Gpu) -> None:
    """Raises WattridgeError, with the remedy, where kernels cannot run on a real board from here."""
    require_nvidia(gpu)
    find_library(gpu.info.label)
    find_toolchain()


def cuda_in_use() -> dict[str, str | list[str] | None]:
    """What runs kernels here and what compiles them, what else could run them, or why nothing can."""
    try:
        library, toolchain = find_library("here"), find_toolchain()
    except WattridgeError as error:
        return {"library": None, "compiler": None, "other_libraries": [], "why_not": f"{error.what} ({error.remedy})"}
    others = [other.name for other in usable_libraries() if other != library]
    return {"library": str(library), "compiler": toolchain.version, "other_libraries": others, "why_not": None}


def open_cuda(
    sensors: Gpu,
    *,
    backend: str | None = None,
    toolchain: Toolchain | None = None,
    jobs: int | None = None,
    isolated: bool = True,
) -> Opened:
    """A board that runs CUDA kernels, its processes started. Raises WattridgeError.

    Unless `isolated`, kernels are launched in this process, which one that faults takes along.
    """

    def compiler(capability: tuple[int, int]) -> Compiler:
        return cuda_compiler(capability, toolchain=toolchain, jobs=jobs)

    known = sensors.info.compute_capability
    with ExitStack() as undo:
        ahead = compiler(known) if known is not None else None  # a library is loaded while the context is made
        if ahead is not None:
            undo.callback(ahead.close)
        gpu = CudaGpu(sensors, backend=backend, isolated=isolated)
        made = opened(gpu, lambda: CudaLanguage(gpu, ahead or compiler(gpu.compute_capability)))
        undo.pop_all()
    return made


def open_cuda_runner(
    spec: Specification,
    sensors: Gpu,
    space: SearchSpace,
    guard: DeviceGuard,
    *,
    condition: Condition | None = None,
    backend: str | None = None,
    toolchain: Toolchain | None = None,
    jobs: int | None = None,
    script: ScriptSide | None = None,
    isolated: bool = True,
) -> KernelRunner:
    """A runner, its processes started. Takes over the guard. Raises WattridgeError and InputError.

    `script` is what a script contributes; the rest is as for `open_cuda`.
    """
    board = open_cuda(sensors, backend=backend, toolchain=toolchain, jobs=jobs, isolated=isolated)
    return board.runner(spec, space, guard, condition, script)
