"""The way to a device of OpenCL: which one a board is, and what runs kernels there."""

from __future__ import annotations

from ....base.errors import WattridgeError
from ....sensors.gpu import Gpu
from ....sensors.opencl.devices import OpenclDevice, device_of_board
from ....sensors.select import pci_address
from ....sensors.unmetered import UnmeteredDevice
from ..kernels.gpu import ProcessGpu
from ..kernels.opened import Opened, opened
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
        remedy = "wattridge doctor lists OpenCL's devices; --gpu opencl:NAME runs on another one, without energy"
        raise WattridgeError("no OpenCL device says that it is this board", gpu.info.label, remedy)
    return device


def open_opencl(sensors: Gpu, *, jobs: int | None = None, isolated: bool = True) -> Opened:
    """A device that runs OpenCL kernels, its processes started. Raises WattridgeError.

    Unless `isolated`, kernels are launched in this process, which one that faults takes along.
    """
    device = opencl_device_of(sensors)
    gpu = ProcessGpu(sensors, BACKEND, device.number, context="OpenCL context", isolated=isolated)
    return opened(gpu, lambda: OpenclLanguage(gpu, device, jobs))
