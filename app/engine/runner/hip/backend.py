"""A device of HIP. Imported in the runner process only."""

from __future__ import annotations

from typing import Any

from ..cuda.device import DeviceBackend
from .driver import HipDriver


class HipBackend(DeviceBackend):
    """Implements `Backend`."""

    def __init__(self, driver: HipDriver) -> None:
        super().__init__(driver)
        self._target = driver.target

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "target": self._target}

    def product(self) -> None:
        """No library's product is run here."""
        return


def open_backend(device: str) -> HipBackend:
    """The device of that number, or at that PCI address. Raises DeviceFault."""
    return HipBackend(HipDriver(device))
