"""The way to a real board: whether kernels can run there, and the runner that runs them."""

from __future__ import annotations

from contextlib import ExitStack

from ....errors import WattridgeError
from ....sensors.device_limits import DeviceLimits
from ....sensors.gpu import Gpu
from ...control.guard import DeviceGuard
from ...metering.condition import Condition
from ...space.search_space import SearchSpace
from ...specification.model import Specification
from ...workloads.source_kernel import SourceKernel
from ..kernels.runner import KernelRunner
from ..kernels.script_side import ScriptSide
from .backends import find_library, usable_libraries
from .gpu import CudaGpu
from .language import CudaLanguage
from .toolchain import Toolchain, find_toolchain


def require_cuda(gpu: Gpu) -> None:
    """Raises WattridgeError, with the remedy, where kernels cannot run on a real board from here."""
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


def require_kernel(spec: Specification, gpu: Gpu, limits: DeviceLimits) -> None:
    """Raises WattridgeError where the specification cannot run on a real board, before anything is started."""
    SourceKernel.of(spec, limits)
    require_cuda(gpu)


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

    `script` is what a script contributes. Unless `isolated`, kernels are launched in this process, which one that
    faults takes along.
    """
    with ExitStack() as undo:
        gpu = CudaGpu(sensors, backend=backend, isolated=isolated)
        undo.callback(gpu.close)
        language = CudaLanguage(gpu, toolchain=toolchain, jobs=jobs)
        undo.callback(language.compiler.close)
        runner = KernelRunner(gpu, spec, space, guard, language, condition, script)
        undo.pop_all()
    return runner
