"""OpenCL as a language of the runner, and which of its devices a board is."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from ....base.errors import WattridgeError
from ....sensors.gpu import Gpu
from ....sensors.opencl.devices import OpenclDevice, device_of_board
from ....sensors.select import pci_address
from ....sensors.unmetered import UnmeteredDevice
from ...children.python import python_command
from ...metering.characterisation.store import stored_characterisation
from ...results.measurement import State
from ..base import OnPreparation, PreparationFailed
from ..kernels.compiler import Compiler, ProgramMaker
from ..kernels.gpu import ProcessGpu
from ..kernels.language import Language, language_on
from ..kernels.process import KernelFailed
from .image import read_image


@dataclass(frozen=True, slots=True)
class OpenclTarget:
    """Implements `Target`: the compiler that comes with a device."""

    device: OpenclDevice
    suffix: str = ".cl"

    @property
    def identity(self) -> str:
        device = self.device
        return f"OpenCL {device.number} {device.platform} {device.driver} {device.name}, pyopencl {version('pyopencl')}"

    def call(self, source: Path, image: Path, options: Sequence[str]) -> list[str]:
        return python_command(f"{__package__}.build", self.device.number, *options, "-o", str(image), str(source))


class OpenclLanguage(Language):
    """Implements `Language` on a device."""

    def __init__(self, gpu: ProcessGpu, device: OpenclDevice) -> None:
        super().__init__(gpu, Compiler(ProgramMaker(OpenclTarget(device))))

    def symbol(self, image: bytes, name: str) -> str:
        names, _ = read_image(image)
        if name not in names:
            raise KernelFailed(State.COMPILE, f"the source has no kernel '{name}'; it has {', '.join(names) or 'none'}")
        return name

    def prepare(self, stop: threading.Event, on_progress: OnPreparation) -> None:
        info = self.gpu.info
        if info.live and stored_characterisation(info) is None:
            what = "the power sensor is not characterised, and its defaults are used"
            raise PreparationFailed(what, remedy=f"once for this board: wattridge characterise --gpu {info.index}")


def opencl_device_of(gpu: Gpu) -> OpenclDevice:
    """The device that a board is. Raises WattridgeError where no device of OpenCL is reported as this board."""
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


def open_opencl(sensors: Gpu, *, isolated: bool = True) -> OpenclLanguage:
    """A device that runs OpenCL kernels, its processes started. Raises WattridgeError.

    Unless `isolated`, kernels are launched in this process, which one that faults takes along.
    """
    device = opencl_device_of(sensors)
    gpu = ProcessGpu(sensors, f"{__package__}.backend", device.number, context="OpenCL context", isolated=isolated)
    return language_on(gpu, lambda: OpenclLanguage(gpu, device))
