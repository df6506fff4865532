"""CUDA's driver with a context of PyCUDA's, which stands alone where CUDA is too old for cuda-bindings.

Imported in the runner process only: the default install has no PyCUDA. Beside the context the driver's own functions
are called: PyCUDA has none for graphs.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import sys
from typing import ClassVar

import pycuda.driver as cuda

from ..kernels.backend import DeviceFault
from .device import DeviceBackend
from .driver import LibraryDriver


def open_backend(device: str) -> DeviceBackend:
    """A context on the device of that number (among those that CUDA shows). Raises DeviceFault."""
    if not device.isdigit():
        raise DeviceFault(f"PyCUDA does not find {device} by its UUID: install cuda-bindings", fatal=True)
    return DeviceBackend(PyCudaDriver(device))


class PyCudaDriver(LibraryDriver):
    """Implements `Driver`."""

    symbols: ClassVar[dict[str, str]] = {
        "GraphInstantiate": "GraphInstantiateWithFlags",
        **{name: f"{name}_v2" for name in ("EventDestroy", "MemAlloc", "MemFree", "ModuleGetGlobal")},
        **{name: f"{name}_v2" for name in ("MemcpyDtoDAsync", "MemcpyDtoH", "MemcpyHtoD", "StreamBeginCapture")},
    }

    def open(self, device: str) -> int:
        windows = sys.platform == "win32"
        self.library = ctypes.CDLL("nvcuda.dll" if windows else ctypes.util.find_library("cuda") or "libcuda.so.1")
        try:
            cuda.init()
            self._device = cuda.Device(int(device))
            self._context = self._device.make_context()
        except cuda.Error as error:
            raise DeviceFault(str(error), fatal=True) from None
        return int(device)

    def close(self) -> None:
        self._context.pop()

    def attribute(self, name: str) -> int | None:
        which = getattr(cuda.device_attribute, name, None)
        try:
            return None if which is None else int(self._device.get_attribute(which))
        except cuda.Error as error:
            raise DeviceFault(str(error)) from None
