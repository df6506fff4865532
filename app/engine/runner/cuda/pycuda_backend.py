"""CUDA's driver by PyCUDA. Imported in the runner process only: the default install has no PyCUDA."""

from __future__ import annotations

import ctypes
import ctypes.util
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import numpy as np
import pycuda.driver as cuda

from ...workloads.kernel_arguments import Launch
from ..kernels.backend import Array, DeviceFault, Mark
from .device import DeviceBackend
from .driver import Value

CAPTURE_MODE: Final = 2  # CU_STREAM_CAPTURE_MODE_RELAXED
# CUresult values after which a context is of no use: illegal address, launch failed, timeout, misaligned and the like
FATAL: Final = frozenset({700, 702, 709, 714, 715, 716, 717, 718, 719, 720})

T = TypeVar("T")


def open_backend(device: str) -> DeviceBackend:
    """A context on the device of that number (among those that CUDA shows). Raises DeviceFault."""
    if not device.isdigit():
        raise DeviceFault(f"PyCUDA does not find {device} by its UUID: install cuda-bindings", fatal=True)
    return DeviceBackend(PyCudaDriver(int(device)))


def _fault(error: cuda.Error) -> DeviceFault:
    """The driver's message, and whether the context still lives."""
    fatal = False
    try:
        cuda.Context.synchronize()
    except cuda.Error:
        fatal = True
    return DeviceFault(str(error).strip() or type(error).__name__, fatal=fatal)


def _checked(call: Callable[..., T], *arguments: Any, **named: Any) -> T:
    try:
        return call(*arguments, **named)
    except cuda.Error as error:
        raise _fault(error) from None


class PyCudaDriver:
    """Implements `Driver`."""

    def __init__(self, number: int) -> None:
        try:
            cuda.init()
            self._device = cuda.Device(number)
            self._context = self._device.make_context()
        except cuda.Error as error:
            raise DeviceFault(str(error), fatal=True) from None
        self._stream = cuda.Stream()
        self._allocated: dict[int, Any] = {}  # PyCUDA frees what nobody holds
        self.name = str(self._device.name())
        self.version = int(cuda.get_driver_version())
        self.compute_capability: tuple[int, int] = self._device.compute_capability()
        self.stream = int(self._stream.handle)

    def attribute(self, name: str) -> int | None:
        known = getattr(cuda.device_attribute, name, None)
        return None if known is None else int(_checked(self._device.get_attribute, known))

    def allocate(self, nbyte: int) -> int:
        allocation = _checked(cuda.mem_alloc, nbyte)
        self._allocated[int(allocation)] = allocation
        return int(allocation)

    def free(self, address: int) -> None:
        _checked(self._allocated.pop(address).free)

    def write(self, address: int, array: Array) -> None:
        _checked(cuda.memcpy_htod, address, array)

    def read(self, address: int, array: Array) -> None:
        _checked(self._stream.synchronize)
        _checked(cuda.memcpy_dtoh, array, address)

    def copy(self, source: int, target: int, nbyte: int) -> None:
        _checked(cuda.memcpy_dtod_async, target, source, nbyte, self._stream)

    def load(self, image: bytes) -> PyCudaModule:
        return PyCudaModule(_checked(cuda.module_from_buffer, image), self._stream)

    def mark(self) -> PyCudaMark:
        return PyCudaMark(self._stream)

    def record(self, queue: Callable[[], Any]) -> PyCudaRecording:
        return PyCudaRecording(self.stream, queue)

    def close(self) -> None:
        self._context.pop()


class PyCudaMark:
    """An event."""

    def __init__(self, stream: Any) -> None:
        self._event = _checked(cuda.Event)
        _checked(self._event.record, stream)

    @property
    def passed(self) -> bool:
        return bool(_checked(self._event.query))

    def wait(self) -> None:
        _checked(self._event.synchronize)

    def seconds_since(self, earlier: Mark) -> float:
        assert isinstance(earlier, PyCudaMark), "marks of one driver"
        return float(_checked(self._event.time_since, earlier._event)) * 1e-3


class PyCudaModule:
    """Implements `Module`."""

    def __init__(self, module: Any, stream: Any) -> None:
        self._module = module
        self._stream = stream

    def function(self, name: str) -> PyCudaFunction:
        return PyCudaFunction(_checked(self._module.get_function, name), self._stream)

    def variable(self, name: str) -> tuple[int, int]:
        address, nbyte = _checked(self._module.get_global, name)
        return int(address), int(nbyte)

    def unload(self) -> None:
        self._module = None  # PyCUDA unloads it with the last of its functions


class PyCudaFunction:
    """Implements `Function`."""

    def __init__(self, function: Any, stream: Any) -> None:
        self._function = function
        self._stream = stream
        self.registers = int(function.num_regs)
        self.shared_byte = int(function.shared_size_bytes)
        self.local_byte = int(function.local_size_bytes)

    def allow_shared(self, nbyte: int) -> None:
        which = cuda.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
        _checked(self._function.set_attribute, which, nbyte)

    def bind(self, launch: Launch, values: Sequence[Value]) -> Callable[[int], None]:
        formats, arguments = _packed(values)
        self._function.prepare(formats)
        call, stream, shared_byte = self._function.prepared_async_call, self._stream, launch.shared_byte

        def queue(times: int) -> None:
            try:
                for _ in range(times):
                    call(launch.grid, launch.block, stream, *arguments, shared_size=shared_byte)
            except cuda.Error as error:
                raise _fault(error) from None

        return queue


def _packed(arguments: Sequence[Value]) -> tuple[str, list[Any]]:
    """Format characters as in `struct`, and values for them."""
    formats, values = "", []
    for argument in arguments:
        if not isinstance(argument, np.generic):
            formats += "P"
            values.append(argument)
        elif argument.dtype == np.float16:
            formats += "H"
            values.append(int(np.asarray(argument).view(np.uint16)))
        else:
            formats += argument.dtype.char
            values.append(argument.item())
    return formats, values


class PyCudaRecording:
    """A captured graph of launches, by the driver's own functions: PyCUDA has none for graphs."""

    def __init__(self, stream: int, queue: Callable[[], Any]) -> None:
        self._driver = _driver()
        self._stream = ctypes.c_void_p(stream)
        graph, self._executable = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuStreamBeginCapture_v2", self._stream, ctypes.c_int(CAPTURE_MODE))
        try:
            queue()
        finally:
            self._call("cuStreamEndCapture", self._stream, ctypes.byref(graph))
        self._call("cuGraphInstantiateWithFlags", ctypes.byref(self._executable), graph, ctypes.c_ulonglong(0))
        self._call("cuGraphDestroy", graph)

    def launch(self) -> None:
        self._call("cuGraphLaunch", self._executable, self._stream)

    def destroy(self) -> None:
        self._call("cuGraphExecDestroy", self._executable)

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._driver, name)(*arguments)
        if code:
            raise DeviceFault(f"{name} failed with code {code}", fatal=code in FATAL)


def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else ctypes.util.find_library("cuda") or "libcuda.so.1")
