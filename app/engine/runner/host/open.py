"""The way to functions of the host, and the runner that calls them."""

from __future__ import annotations

from contextlib import ExitStack

from ....sensors.gpu import Gpu
from ...control.guard import DeviceGuard
from ...metering.condition import Condition
from ...space.search_space import SearchSpace
from ...specification.model import Specification
from ..kernels.gpu import ProcessGpu
from ..kernels.runner import KernelRunner
from .compilers import find_compiler
from .language import HostLanguage

BACKEND = f"{__package__}.backend"


def open_host_runner(
    spec: Specification,
    sensors: Gpu,
    space: SearchSpace,
    guard: DeviceGuard,
    *,
    condition: Condition | None = None,
    jobs: int | None = None,
) -> KernelRunner:
    """A runner, its processes started. Takes over the guard. Raises WattridgeError and InputError.

    On a real board the function launches its own work there, and the board is the only one that its process sees.
    """
    assert spec.kernel is not None, "a kernel, as was checked"
    target = find_compiler(spec.kernel, str(spec.path))
    uuid = sensors.info.uuid
    visible = {"CUDA_VISIBLE_DEVICES": uuid} if uuid.startswith(("GPU-", "MIG-")) else {}
    with ExitStack() as undo:
        gpu = ProcessGpu(sensors, BACKEND, spec.kernel.language, visible, context="process for functions")
        undo.callback(gpu.close)
        language = HostLanguage(gpu, target, jobs)
        undo.callback(language.compiler.close)
        runner = KernelRunner(gpu, spec, space, guard, language, condition)
        undo.pop_all()
    return runner
