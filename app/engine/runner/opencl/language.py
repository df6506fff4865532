"""OpenCL as a language of the runner."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from ....sensors.opencl.devices import OpenclDevice
from ...children.python import python_command
from ...metering.characterisation.store import stored_characterisation
from ...results.measurement import State
from ..base import OnPreparation, PreparationFailed
from ..kernels.compiler import Compiler, ProgramMaker
from ..kernels.gpu import ProcessGpu
from ..kernels.language import Language
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

    def __init__(self, gpu: ProcessGpu, device: OpenclDevice, jobs: int | None = None) -> None:
        super().__init__(gpu, Compiler(ProgramMaker(OpenclTarget(device)), jobs=jobs))

    def symbol(self, image: bytes, name: str) -> str:
        names, _ = read_image(image)
        if name not in names:
            raise KernelFailed(State.COMPILE, f"the source has no kernel '{name}'; it has {', '.join(names) or 'none'}")
        return name

    def prepare(self, stop: threading.Event, on_progress: OnPreparation) -> None:
        info = self._gpu.info
        if info.live and stored_characterisation(info) is None:
            what = "the power sensor is not characterised, and its defaults are used"
            raise PreparationFailed(what, remedy=f"once for this board: wattridge characterise --gpu {info.index}")
