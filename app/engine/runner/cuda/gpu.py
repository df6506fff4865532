"""`CudaGpu`, a real board that runs CUDA kernels, and the library for CUDA's driver that its process uses.

The library is chosen once, before that process starts. cuda-bindings come first: NVIDIA's own, with wheels for Linux
and Windows, and queueing a launch takes less of the host (0.80 us, with PyCUDA 1.31 us:
`tests/benchmarks/cuda_libraries.py` with the stand-in of the tests for the driver). PyCUDA does the same where it alone
is installed, or where WATTRIDGE_CUDA asks for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from ....base.configuration import setting
from ....base.errors import InputError, WattridgeError
from ....base.installation import how_to_add
from ....sensors.gpu import Gpu
from ..kernels.gpu import ProcessGpu

CHOICE: Final = "WATTRIDGE_CUDA"


@dataclass(frozen=True, slots=True)
class Library:
    """A library, by the name of its package, and the module that opens a device with it."""

    name: str
    module: str
    extra: str  # of ours, that installs it
    least: int = 0  # its first release that will do

    @property
    def version(self) -> str | None:
        """The installed one; None if there is none. Nothing of it is run."""
        try:
            return version(self.name)
        except PackageNotFoundError:
            return None

    @property
    def usable(self) -> bool:
        release = re.match(r"\d+", self.version or "")
        return release is not None and int(release[0]) >= self.least

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


LIBRARIES: Final = (
    Library("cuda-bindings", f"{__package__}.bindings_backend", "cuda", least=12),
    Library("pycuda", f"{__package__}.pycuda_backend", "pycuda"),
)
_REMEDY: Final = f"{how_to_add('cuda')} (newest boards: '[cuda13]'); or choose --gpu simulated:NAME"


def usable_libraries() -> list[Library]:
    """Those that are installed, the preferred one first."""
    return [library for library in LIBRARIES if library.usable]


def other_library(module: str) -> str:
    """What to try where the library of that module fails: empty if nothing else is installed."""
    others = [library.name for library in usable_libraries() if library.module != module]
    return f" Else try {CHOICE}={others[0]}" if others else ""


def find_library(where: str) -> Library:
    """The library to use for a board. Raises WattridgeError, with the remedy, if there is none."""
    asked = setting(CHOICE)
    if not asked:
        usable = usable_libraries()
        if not usable:
            raise WattridgeError("kernels need cuda-bindings or PyCUDA, and neither is installed", where, _REMEDY)
        return usable[0]
    for library in LIBRARIES:
        if library.name == asked:
            if library.usable:
                return library
            remedy = f"{how_to_add(library.extra)}; or unset {CHOICE}"
            raise WattridgeError(f"{asked} is not installed, and {CHOICE} asks for it", where, remedy)
    raise InputError(f"{asked!r} is no library for CUDA", CHOICE, " or ".join(library.name for library in LIBRARIES))


class CudaGpu(ProcessGpu):
    """Implements `LaunchingGpu` with CUDA, over the sensors of a board."""

    def __init__(self, sensors: Gpu, *, backend: str | None = None, isolated: bool = True) -> None:
        """Starts the runner process and waits for its context. Raises WattridgeError if there is none.

        `backend` is the module that opens the device, by default that of the library which `find_library` chooses.
        Unless `isolated`, the context is this process's own.
        """
        backend = backend or find_library(sensors.info.label).module
        # the runner sees this board alone: CUDA numbers boards in another order than NVML
        uuid = sensors.info.uuid
        visible = {"CUDA_VISIBLE_DEVICES": uuid} if uuid.startswith(("GPU-", "MIG-")) else {}
        remedy = "end what holds the board; wattridge doctor looks at its driver." + other_library(backend)
        # ... and so may this process's own, which sees them all
        device = uuid if uuid.startswith("GPU-") and not isolated else "0"
        super().__init__(sensors, backend, device, visible, context="CUDA context", remedy=remedy, isolated=isolated)
        self.compute_capability: tuple[int, int] = tuple(self.described["compute_capability"])
        self.shared_memory_opt_in = int(self.described["shared_memory_opt_in"])
