"""The way to a device of OpenCL: which one a board is, and the runner that runs kernels there."""

from __future__ import annotations

from contextlib import ExitStack

from ....errors import WattridgeError
from ....sensors.gpu import Gpu
from ....sensors.nvml.pci import pci_address
from ....sensors.opencl.devices import OpenclDevice, device_of_board
from ....sensors.unmetered import UnmeteredDevice
from ...control.guard import DeviceGuard
from ...metering.condition import Condition
from ...space.search_space import SearchSpace
from ...specification.model import Specification
from ..kernels.gpu import ProcessGpu
from ..kernels.runner import KernelRunner
from .language import OpenclLanguage

BACKEND = f"{__package__}.backend"


def opencl_device_of(gpu: Gpu) -> OpenclDevice:
    """The device that a board is. Raises WattridgeError where OpenCL does not say that one is."""
    if isinstance(gpu, UnmeteredDevice):
        if gpu.opencl is None:
            remedy = "choose --gpu opencl, or one of those that wattridge gpus --verbose lists"
            raise WattridgeError("OpenCL runs on a device of OpenCL", gpu.info.label, remedy)
        return gpu.opencl
    device = device_of_board(gpu.info.uuid, pci_address(gpu.info.uuid))
    if device is None:
        remedy = "is its OpenCL driver installed? --gpu opencl:NAME runs on another device, without energy"
        raise WattridgeError("no OpenCL device says that it is this board", gpu.info.label, remedy)
    return device


def open_opencl_runner(
    spec: Specification,
    sensors: Gpu,
    space: SearchSpace,
    guard: DeviceGuard,
    *,
    condition: Condition | None = None,
    jobs: int | None = None,
) -> KernelRunner:
    """A runner, its processes started. Takes over the guard. Raises WattridgeError and InputError."""
    device = opencl_device_of(sensors)
    with ExitStack() as undo:
        gpu = ProcessGpu(sensors, BACKEND, device.number, context="OpenCL context")
        undo.callback(gpu.close)
        language = OpenclLanguage(gpu, device, jobs)
        undo.callback(language.compiler.close)
        runner = KernelRunner(gpu, spec, space, guard, language, condition)
        undo.pop_all()
    return runner
