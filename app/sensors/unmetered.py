"""`UnmeteredDevice`: a device that runs kernels and reports neither power nor energy. Time alone is measured on it."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from .channel import CHANNELS, Channel, PowerSample, Reading, channel
from .clock import Clock, HostClock
from .gpu import GpuInfo, NotSupported, PowerLimit
from .limits import DeviceLimits
from .opencl.devices import OpenclDevice

NO_ENERGY: Final = "no energy: this device reports none"
NO_SENSORS: Final = "no sensors of this device are known"


class UnmeteredDevice:
    """Implements `Gpu`."""

    def __init__(self, info: GpuInfo, limits: DeviceLimits, opencl: OpenclDevice | None = None) -> None:
        """`opencl` is the device as OpenCL knows it; None for the processor as such, which runs functions."""
        self.info = info
        self.limits = limits
        self.opencl = opencl
        self.clock: Clock = HostClock()
        self.channels: tuple[Channel, ...] = tuple(channel(name, NO_SENSORS) for name in CHANNELS)

    def read(self) -> Reading:
        return Reading(self.clock.now_ns(), (math.nan,) * len(self.channels))

    def power_samples(self, since_ns: int) -> Sequence[PowerSample]:
        raise NotSupported(NO_ENERGY)

    def energy_j(self) -> float:
        raise NotSupported(NO_ENERGY)

    def graphics_clocks_mhz(self) -> Sequence[int]:
        return ()

    def memory_clocks_mhz(self) -> Sequence[int]:
        return ()

    def close(self) -> None:
        pass


def this_processor() -> UnmeteredDevice:
    """The processor of this computer."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return UnmeteredDevice(_info("host", _processor_name(), "", cores), DeviceLimits(0.0, cores))


def opencl_device(device: OpenclDevice) -> UnmeteredDevice:
    """A device of OpenCL that no sensors are known of."""
    limits = DeviceLimits(
        compute_capability=0.0,
        multiprocessors=device.compute_units,
        max_threads_per_block=device.work_group_size,
        shared_memory_per_block=device.local_byte,
        shared_memory_per_multiprocessor=device.local_byte,
    )
    info = _info(f"opencl:{device.number}", device.name, device.driver, device.compute_units, device.memory_mib)
    return UnmeteredDevice(info, limits, device)


def _info(uuid: str, name: str, driver: str, cores: int, memory_mib: float | None = None) -> GpuInfo:
    limit = PowerLimit(None, None, None, None)
    return GpuInfo(
        index=0,
        uuid=uuid,
        name=name,
        source="unmetered",
        driver=driver,
        power_limit=limit,
        multiprocessors=cores,
        memory_mib=memory_mib,
        power_source=NO_ENERGY,
    )


def _processor_name() -> str:
    """As the system calls it."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine() or "this computer"
