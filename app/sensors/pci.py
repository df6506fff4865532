"""Where a real board sits: its PCI address, by which other libraries may know it."""

from __future__ import annotations


def pci_address(uuid: str) -> str:
    """DOMAIN:BUS:DEVICE.FUNCTION, hexadecimal, of either maker's board; empty where the driver does not tell it."""
    if uuid.startswith("AMD-"):
        from .amd.gpu import pci_address as of_amd

        return of_amd(uuid)
    from .nvml.gpu import pci_address as of_nvidia

    return of_nvidia(uuid)
