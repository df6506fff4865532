"""`CudaGpu`: a real board that runs CUDA kernels."""

from __future__ import annotations

from ....sensors.gpu import Gpu
from ..kernels.gpu import ProcessGpu
from .backends import find_library, other_library


class CudaGpu(ProcessGpu):
    """Implements `LaunchingGpu` with CUDA, over the sensors of a board."""

    def __init__(self, sensors: Gpu, *, backend: str | None = None, isolated: bool = True) -> None:
        """Starts the runner process and waits for its context. Raises WattridgeError if there is none.

        `backend` is the module that opens the device, by default that of the library which `backends` chooses. Unless
        `isolated`, the context is this process's own.
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
