"""Lists OpenCL's devices as JSON on standard output. Run as a program of its own: a vendor's library may crash.

It stands alone, so that nothing but pyopencl is imported.
"""

from __future__ import annotations

import ctypes
import json
import struct
import sys
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from ctypes.util import find_library
from pathlib import Path
from typing import Any, Final

import pyopencl as cl

UUID: Final = 0x106A  # CL_DEVICE_UUID_KHR
PCI_BUS_INFO: Final = 0x410F  # CL_DEVICE_PCI_BUS_INFO_KHR: domain, bus, device, function


def loaders() -> list[str]:
    """Where OpenCL's own library may be: the one that comes with pyopencl first."""
    package = Path(cl.__file__).parent
    beside = [*package.glob(".libs/*OpenCL*"), *package.parent.glob("pyopencl.libs/*OpenCL*")]
    return [*map(str, beside), *filter(None, [find_library("OpenCL")])]


def asking(places: Sequence[str]) -> Callable[[Any, int, int], bytes]:
    """A function that asks a device for what pyopencl has no name for: (device, what, bytes) -> bytes, or none.

    Whichever of OpenCL's libraries is asked hands the question to the driver that the device belongs to.
    """
    library = None
    for place in places:
        with suppress(OSError):
            library = ctypes.CDLL(place)
            break

    def ask(device: Any, what: int, length: int) -> bytes:
        answer, there = ctypes.create_string_buffer(length), ctypes.c_size_t()
        handle = ctypes.c_void_p(device.int_ptr)
        if library is None or library.clGetDeviceInfo(
            handle, ctypes.c_uint(what), ctypes.c_size_t(length), answer, ctypes.byref(there)
        ):
            return b""
        return answer.raw if there.value == length else b""

    return ask


def uuid_of(device: Any, ask: Callable[[Any, int, int], bytes]) -> str:
    """The device's UUID (cl_khr_device_uuid) as NVML writes it; empty if it tells none."""
    raw = ask(device, UUID, 16)
    return str(uuid.UUID(bytes=raw)) if any(raw) else ""


def pci_of(device: Any, ask: Callable[[Any, int, int], bytes]) -> str:
    """The device's PCI address (cl_khr_pci_bus_info) as NVML writes it; empty if it tells none."""
    raw = ask(device, PCI_BUS_INFO, 16)
    return "{:08x}:{:02x}:{:02x}.{:x}".format(*struct.unpack("4I", raw)) if raw else ""


def describe(device: Any, platform: Any, number: str, ask: Callable[[Any, int, int], bytes]) -> dict[str, Any]:
    """What is known of a device. `number` is PLATFORM.DEVICE."""
    return {
        "number": number,
        "name": device.name.strip(),
        "platform": platform.name.strip(),
        "driver": f"{platform.version.strip()}, {device.driver_version.strip()}",
        "kind": next(
            (kind for kind in ("GPU", "CPU", "ACCELERATOR") if device.type & getattr(cl.device_type, kind)), ""
        ),
        "uuid": uuid_of(device, ask),
        "pci": pci_of(device, ask),
        "compute_units": device.max_compute_units,
        "work_group_size": device.max_work_group_size,
        "local_byte": device.local_mem_size,
        "memory_mib": device.global_mem_size / 2**20,
    }


def main() -> None:
    """All devices of all platforms; a platform that fails is left out."""
    found: list[dict[str, Any]] = []
    ask = asking(loaders())
    try:
        platforms = cl.get_platforms()
    except cl.Error:
        platforms = []
    for index, platform in enumerate(platforms):
        try:
            devices = platform.get_devices()
        except cl.Error:
            continue
        found += [describe(device, platform, f"{index}.{number}", ask) for number, device in enumerate(devices)]
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
