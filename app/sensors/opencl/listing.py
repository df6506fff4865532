"""Lists OpenCL's devices as JSON on standard output. Run as a program of its own: a vendor's library may crash.

It stands alone, so that nothing but pyopencl is imported.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import pyopencl as cl


def uuid_of(device: Any) -> str:
    """The device's UUID (cl_khr_device_uuid) as NVML writes it; empty where it tells none."""
    try:
        raw = bytes(device.get_info(0x106A))  # CL_DEVICE_UUID_KHR
    except (cl.Error, TypeError, ValueError, AttributeError):
        return ""
    if len(raw) != 16 or not any(raw):
        return ""
    text = raw.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def pci_of(device: Any) -> str:
    """The device's PCI address as NVML writes it (DOMAIN:BUS:DEVICE.0); empty where it tells none."""
    try:
        bus, slot = device.pci_bus_id_nv, device.pci_slot_id_nv
    except (cl.Error, AttributeError):
        return ""
    try:
        domain = device.pci_domain_id_nv
    except (cl.Error, AttributeError):
        return ""  # without the domain it could be another board
    return f"{domain:08x}:{bus:02x}:{slot >> 3:02x}.0"


def describe(device: Any, platform: Any, number: str) -> dict[str, Any]:
    """What is known of a device. `number` is PLATFORM.DEVICE."""
    return {
        "number": number,
        "name": device.name.strip(),
        "platform": platform.name.strip(),
        "driver": f"{platform.version.strip()}, {device.driver_version.strip()}",
        "kind": next(
            (kind for kind in ("GPU", "CPU", "ACCELERATOR") if device.type & getattr(cl.device_type, kind)), ""
        ),
        "uuid": uuid_of(device),
        "pci": pci_of(device),
        "compute_units": device.max_compute_units,
        "work_group_size": device.max_work_group_size,
        "local_byte": device.local_mem_size,
        "memory_mib": device.global_mem_size / 2**20,
    }


def main() -> None:
    """All devices of all platforms; a platform that fails is left out."""
    found = []
    try:
        platforms = cl.get_platforms()
    except cl.Error:
        platforms = []
    for at, platform in enumerate(platforms):
        try:
            devices = platform.get_devices()
        except cl.Error:
            continue
        found += [describe(device, platform, f"{at}.{number}") for number, device in enumerate(devices)]
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
