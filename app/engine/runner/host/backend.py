"""Functions of a shared library, called in the runner process; a function that faults or hangs costs that process."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from ....sensors.limits import DeviceLimits
from ...children.scratch import scratch_folder
from ...workloads.kernel_arguments import Launch
from ..kernels.backend import Array, Backend, DeviceFault, Difference, KernelFacts, Mark, PageLocked, difference

_LIBRARY: Final = "libcuda.so.1"
_PORTABLE_AND_MAPPED: Final = 1 | 2  # CU_MEMHOSTREGISTER_PORTABLE, CU_MEMHOSTREGISTER_DEVICEMAP
ALIGNED: Final = 64  # bytes: what vector instructions want
_SCALARS: Final[dict[str, Any]] = {
    "bool": ctypes.c_bool,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
    **{f"{sign}int{bits}": getattr(ctypes, f"c_{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


def open_backend(language: str) -> HostBackend:
    """The processor of this computer; functions of every language are called alike."""
    return HostBackend()


class HostBackend(Backend):
    """Implements `Backend`. Buffers are arrays; calls run at once."""

    def __init__(self) -> None:
        self.returned = 0.0  # the sum over all calls
        self.locks = PageLocks()

    def describe(self) -> dict[str, Any]:
        limits = DeviceLimits(compute_capability=0.0, multiprocessors=os.cpu_count() or 1)
        return {"name": "host", "limits": limits.as_names()}

    def upload(self, array: Array) -> Array:
        buffer = aligned(array)
        self.write(buffer, array)
        return buffer

    def write(self, buffer: Array, array: Array) -> None:
        buffer[...] = array

    def read(self, buffer: Array, like: Array) -> Array:
        return buffer.copy()

    def copy(self, source: Array, target: Array, nbyte: int) -> None:
        target[...] = source

    def free(self, buffer: Array) -> None:
        self.locks.unlock(buffer)

    def load(
        self, image: bytes, launch: Launch, arguments: Sequence[Any], constants: Mapping[str, Array]
    ) -> HostFunction:
        return HostFunction(self, image, launch.name, arguments)

    def mark(self) -> HostMark:
        return HostMark(time.monotonic_ns(), self.returned)

    def difference(self, output: Array, reference: Array, like: Array, rtol: float, atol: float) -> Difference:
        return difference(output, reference, rtol, atol)

    def close(self) -> None:
        pass


class HostFunction:
    """Implements `Kernel`: a function of a library with its arguments."""

    facts = KernelFacts()

    def __init__(self, backend: HostBackend, image: bytes, name: str, arguments: Sequence[Any]) -> None:
        """Raises DeviceFault."""
        self._backend = backend
        try:
            self._function = getattr(_library(image), name)
        except (OSError, AttributeError) as error:
            raise DeviceFault(str(error)) from None
        self._function.restype = ctypes.c_float
        for argument in arguments:
            if isinstance(argument, PageLocked):
                backend.locks.lock(argument.buffer)
        self._kept = [_argument(item.buffer if isinstance(item, PageLocked) else item) for item in arguments]
        self._arguments = [given for given, _ in self._kept]

    def launch(self, times: int) -> None:
        function, arguments, returned = self._function, self._arguments, 0.0
        for _ in range(times):
            returned += function(*arguments)
        self._backend.returned += returned

    def unload(self) -> None:
        """A library stays loaded: what it started, such as threads of OpenMP, may still be there."""


class HostMark:
    """Implements `Mark` and `ReportingMark`."""

    passed = True

    def __init__(self, at_ns: int, returned: float) -> None:
        self._at_ns = at_ns
        self._returned = returned

    def wait(self) -> None:
        pass

    def seconds_since(self, earlier: Mark) -> float:
        assert isinstance(earlier, HostMark), "marks of one backend"
        return (self._at_ns - earlier._at_ns) * 1e-9

    def reported_since(self, earlier: Mark) -> float:
        assert isinstance(earlier, HostMark), "marks of one backend"
        return self._returned - earlier._returned


def aligned(like: Array) -> Array:
    """An array of that shape and type at an aligned address."""
    room = np.empty(like.nbytes + ALIGNED, np.uint8)
    start = -room.ctypes.data % ALIGNED
    return room[start : start + like.nbytes].view(like.dtype).reshape(like.shape)


def _library(image: bytes) -> ctypes.CDLL:
    """The library, loaded from a temporary file that is deleted afterwards."""
    path = Path(scratch_folder()) / "function.so"
    path.write_bytes(image)
    try:
        return ctypes.CDLL(str(path))
    finally:
        if os.name == "posix":
            path.unlink()
            path.parent.rmdir()


def _argument(argument: Any) -> tuple[Any, Any]:
    """What the function is given, and what has to live as long. An array, of no dimensions too, by its address."""
    if isinstance(argument, np.ndarray):
        return ctypes.c_void_p(argument.ctypes.data), argument
    kind = _SCALARS.get(argument.dtype.name)
    if kind is None:
        raise DeviceFault(f"a scalar of type {argument.dtype.name} cannot be passed to a function")
    value = kind(argument.item())
    return value, value


class PageLocks:
    """Page-locked arrays, which the driver maps for the board: memory of functions whose kernels use it."""

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
