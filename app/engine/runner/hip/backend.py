"""A device of HIP (`libamdhip64.so`), by ctypes. Imported in the runner process only.

Not yet run on a real board. Functions and numbers are those of `hip_runtime_api.h` of ROCm 6, whose statuses and
attributes of functions have CUDA's numbers.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress
from typing import Any, ClassVar, Final

from ....sensors.amd.library import library_places
from ..cuda.device import DeviceBackend
from ..cuda.driver import LibraryDriver
from ..kernels.backend import DeviceFault

LIBRARY: Final = "libamdhip64.so"
_PROPERTIES_BYTES, _TARGET_AT = 8192, 1160  # hipDeviceProp_tR0600 has 1472; its gcnArchName begins there
_ATTRIBUTES: Final = {  # hipDeviceAttribute_t by CUDA's names
    "COMPUTE_CAPABILITY_MAJOR": 23,
    "COMPUTE_CAPABILITY_MINOR": 61,
    "MAX_BLOCKS_PER_MULTIPROCESSOR": 25,
    "MAX_REGISTERS_PER_BLOCK": 71,
    "MAX_REGISTERS_PER_MULTIPROCESSOR": 72,
    "MAX_SHARED_MEMORY_PER_BLOCK": 74,
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 75,
    "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": 10002,
    "MAX_THREADS_PER_BLOCK": 56,
    "MAX_THREADS_PER_MULTIPROCESSOR": 57,
    "MULTIPROCESSOR_COUNT": 63,
    "WARP_SIZE": 87,
}


def _load() -> ctypes.CDLL:
    for place in library_places(LIBRARY):
        with suppress(OSError):
            library = ctypes.CDLL(place)
            library.hipGetErrorString.restype = ctypes.c_char_p
            return library
    raise DeviceFault(f"{LIBRARY} is not here: install ROCm's HIP runtime", fatal=True)


class HipDriver(LibraryDriver):
    """Implements `Driver`. A device is a number among those that HIP shows, or a PCI address."""

    prefix = "hip"
    signatures: ClassVar[dict[str, tuple[str, str]]] = LibraryDriver.signatures | {
        "DeviceGetAttribute": ("i", "ii"),
        "DeviceGetByPCIBusId": ("i", "s"),
        "GetDeviceProperties": ("", "Pi"),
        "GraphInstantiate": ("P", "PPPN"),
        "Init": ("", "I"),
        "SetDevice": ("", "i"),
        "StreamDestroy": ("", "P"),
    }
    symbols: ClassVar[dict[str, str]] = {
        "CtxSynchronize": "DeviceSynchronize",
        "DriverGetVersion": "RuntimeGetVersion",
        "EventCreate": "EventCreateWithFlags",
        "GetDeviceProperties": "GetDevicePropertiesR0600",
        "LaunchKernel": "ModuleLaunchKernel",
        "MemAlloc": "Malloc",
        "MemFree": "Free",
        "StreamCreate": "StreamCreateWithFlags",
    }

    def open(self, device: str) -> int:
        self.library = _load()
        self.call("Init", 0)
        number = int(device) if device.isdigit() else int(self.call("DeviceGetByPCIBusId", device.encode()))
        self.call("SetDevice", number)
        return number

    def close(self) -> None:
        self.call("StreamDestroy", self.queue)

    def attribute(self, name: str) -> int | None:
        which = _ATTRIBUTES.get(name)
        if which is None:
            return None
        status, value = self.function("DeviceGetAttribute")(which, self.device)
        return None if status else value or None  # nothing of these is 0 if it is known, but the minor capability

    def error_string(self, status: Any) -> bytes | None:
        return self.library.hipGetErrorString(status)  # type: ignore[no-any-return]

    def instantiate(self, graph: Any) -> Any:
        return self.call("GraphInstantiate", graph, None, None, 0)

    def allow_shared(self, function: Any, nbyte: int) -> None:
        """Nothing has to be set: a block may have all there is. Raises DeviceFault for more."""
        most = max(self.attribute(f"MAX_SHARED_MEMORY_PER_BLOCK{opt_in}") or 0 for opt_in in ("_OPTIN", ""))
        if nbyte > most:
            what = f"{nbyte} bytes of shared memory per block are invalid: {most} at most"
            raise DeviceFault(what, fatal=False)

    @property
    def target(self) -> str:
        """What the compiler calls the device, such as gfx90a:sramecc+:xnack-."""
        room = ctypes.create_string_buffer(_PROPERTIES_BYTES)
        self.call("GetDeviceProperties", ctypes.addressof(room), self.device)
        return room.raw[_TARGET_AT:].split(b"\0")[0].decode("ascii", "replace")


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
