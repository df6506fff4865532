"""What images of a session are made for, so that a machine without the board can make the same ones."""

from __future__ import annotations

from dataclasses import dataclass

from ....sensors.device_limits import DeviceLimits


@dataclass(frozen=True, slots=True)
class ImageTarget:
    """A device for CUDA kernels, and what compiles for it beside the device."""

    capability: tuple[int, int]
    limits: DeviceLimits
    shared_opt_in: int  # bytes of shared memory per block by opting in
    compiler: str  # with its version: `Compiler.identity`; another one gives other images
