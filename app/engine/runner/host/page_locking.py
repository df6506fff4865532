"""Page-locked memory for functions of the host whose kernels use it: the driver maps it for the board."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from ..kernels.backend import Array, DeviceFault

_LIBRARY: Final = "libcuda.so.1"
_PORTABLE_AND_MAPPED: Final = 1 | 2  # CU_MEMHOSTREGISTER_PORTABLE, CU_MEMHOSTREGISTER_DEVICEMAP


class PageLocks:
    """Arrays that are page-locked, until they are let go."""

    def __init__(self) -> None:
        self._locked: dict[int, Array] = {}  # by address; a function may keep it

    def lock(self, array: Array) -> None:
        """Lock it, unless it is. Raises DeviceFault if the driver refuses."""
        address = array.ctypes.data
        if address not in self._locked:
            nbyte, flags = ctypes.c_size_t(array.nbytes), ctypes.c_uint(_PORTABLE_AND_MAPPED)
            _driver()("cuMemHostRegister_v2", ctypes.c_void_p(address), nbyte, flags)
            self._locked[address] = array

    def unlock(self, array: Array) -> None:
        """Let it go, where it is locked. Raises DeviceFault if the driver refuses."""
        if self._locked.pop(array.ctypes.data, None) is not None:
            _driver()("cuMemHostUnregister", ctypes.c_void_p(array.ctypes.data))


@lru_cache(maxsize=1)
def _driver() -> Callable[..., None]:
    """Calls a function of the driver, in the context that CUDA's runtime uses. Raises DeviceFault, as it does."""
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError as error:
        raise DeviceFault(f"page-locked memory needs NVIDIA's driver: {error}") from None

    def call(name: str, *arguments: Any) -> None:
        if code := getattr(library, name)(*arguments):
            raise DeviceFault(f"{name} failed: error {code}")

    device, context = ctypes.c_int(), ctypes.c_void_p()
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)
    return call
