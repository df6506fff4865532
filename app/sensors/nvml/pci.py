"""Where a real board sits: its PCI address, by which other libraries may know it."""

from __future__ import annotations

from ..errors import SensorError
from .library import LIBRARY, NvmlLibrary


def pci_address(uuid: str, library: NvmlLibrary = LIBRARY) -> str:
    """DOMAIN:BUS:DEVICE.FUNCTION, hexadecimal; empty where the driver does not tell it."""
    try:
        found = library.call("nvmlDeviceGetPciInfo", library.call("nvmlDeviceGetHandleByUUID", uuid)).busId
    except SensorError:
        return ""
    return found.decode("ascii", "replace") if isinstance(found, bytes) else str(found)
