"""HIP (`libamdhip64.so`) by ctypes, as the `Driver` of a `DeviceBackend`. Imported in the runner process only.

Not yet run on a real board. Functions and numbers are those of `hip_runtime_api.h` of ROCm 6, whose statuses and
attributes of functions have CUDA's numbers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np

from ....sensors.amd.library import library_places
from ...workloads.kernel_arguments import Launch
from ..cuda.driver import Value
from ..kernels.backend import Array, DeviceFault, Mark

LIBRARY: Final = "libamdhip64.so"
NOT_READY: Final = 600  # hipErrorNotReady: the event has not passed
CAPTURE_RELAXED: Final = 2
_NAME_BYTES: Final = 256
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
_SHARED, _LOCAL, _REGISTERS = 1, 3, 4  # hipFunction_attribute

_Handle = ctypes.c_void_p


def _load() -> ctypes.CDLL:
    for place in library_places(LIBRARY):
        with suppress(OSError):
            library = ctypes.CDLL(place)
            library.hipGetErrorString.restype = ctypes.c_char_p
            return library
    raise DeviceFault(f"{LIBRARY} is not here: install ROCm's HIP runtime", fatal=True)


class Hip:
    """The library; what it refuses raises DeviceFault."""

    def __init__(self) -> None:
        self._library = _load()

    def call(self, name: str, *arguments: Any) -> None:
        status = self.status(name, *arguments)
        if status:
            raise self.fault(name, status)

    def status(self, name: str, *arguments: Any) -> int:
        try:
            function = getattr(self._library, name)
        except AttributeError:
            raise DeviceFault(f"this HIP has no {name}", fatal=True) from None
        return int(function(*arguments))

    def fault(self, name: str, status: int) -> DeviceFault:
        """The library's message, and whether the device still answers."""
        words = self._library.hipGetErrorString(status)
        message = words.decode("utf-8", "replace") if words else f"status {status}"
        return DeviceFault(f"{name} failed: {message}", fatal=bool(self.status("hipDeviceSynchronize")))


class HipDriver:
    """Implements `Driver`."""

    def __init__(self, device: str) -> None:
        """`device` is a number among those that HIP shows, or a PCI address."""
        self._hip = hip = Hip()
        number = ctypes.c_int()
        try:
            hip.call("hipInit", 0)
            if device.isdigit():
                number.value = int(device)
            else:
                hip.call("hipDeviceGetByPCIBusId", ctypes.byref(number), device.encode())
            hip.call("hipSetDevice", number)
        except DeviceFault as fault:
            raise DeviceFault(str(fault), fatal=True) from None
        self._device = number
        self._stream = _Handle()
        hip.call("hipStreamCreate", ctypes.byref(self._stream))
        name = ctypes.create_string_buffer(_NAME_BYTES)
        hip.call("hipDeviceGetName", name, _NAME_BYTES, number)
        self.name = name.value.decode("utf-8", "replace")
        version = ctypes.c_int()
        hip.call("hipRuntimeGetVersion", ctypes.byref(version))
        self.version = version.value
        major, minor = (self.attribute(f"COMPUTE_CAPABILITY_{part}") or 0 for part in ("MAJOR", "MINOR"))
        self.compute_capability = (major, minor)
        self.stream = self._stream.value or 0
        more, usual = (self.attribute(f"MAX_SHARED_MEMORY_PER_BLOCK{opt_in}") or 0 for opt_in in ("_OPTIN", ""))
        self._most_shared = max(more, usual)

    @property
    def target(self) -> str:
        """What the compiler calls the device, such as gfx90a:sramecc+:xnack-."""
        room = ctypes.create_string_buffer(_PROPERTIES_BYTES)
        self._hip.call("hipGetDevicePropertiesR0600", room, self._device)
        return room.raw[_TARGET_AT:].split(b"\0")[0].decode("ascii", "replace")

    def attribute(self, name: str) -> int | None:
        value = ctypes.c_int()
        known = _ATTRIBUTES.get(name)
        if known is None or self._hip.status("hipDeviceGetAttribute", ctypes.byref(value), known, self._device):
            return None
        return value.value or None  # nothing of these is 0 where it is known, but the minor capability

    def allocate(self, nbyte: int) -> int:
        address = _Handle()
        self._hip.call("hipMalloc", ctypes.byref(address), ctypes.c_size_t(nbyte))
        return address.value or 0

    def free(self, address: int) -> None:
        self._hip.call("hipFree", _Handle(address))

    def write(self, address: int, array: Array) -> None:
        self._hip.call("hipMemcpyHtoD", _Handle(address), _Handle(array.ctypes.data), ctypes.c_size_t(array.nbytes))

    def read(self, address: int, array: Array) -> None:
        self._hip.call("hipStreamSynchronize", self._stream)
        self._hip.call("hipMemcpyDtoH", _Handle(array.ctypes.data), _Handle(address), ctypes.c_size_t(array.nbytes))

    def copy(self, source: int, target: int, nbyte: int) -> None:
        size = ctypes.c_size_t(nbyte)
        self._hip.call("hipMemcpyDtoDAsync", _Handle(target), _Handle(source), size, self._stream)

    def load(self, image: bytes) -> HipModule:
        module = _Handle()
        self._hip.call("hipModuleLoadData", ctypes.byref(module), image)
        return HipModule(self._hip, module, self._stream, self._most_shared)

    def mark(self) -> HipMark:
        return HipMark(self._hip, self._stream)

    def record(self, queue: Callable[[], Any]) -> HipRecording:
        return HipRecording(self._hip, self._stream, queue)

    def close(self) -> None:
        self._hip.call("hipStreamDestroy", self._stream)


class HipMark:
    """An event."""

    def __init__(self, hip: Hip, stream: _Handle) -> None:
        self._hip = hip
        self._event = _Handle()
        hip.call("hipEventCreate", ctypes.byref(self._event))
        hip.call("hipEventRecord", self._event, stream)

    @property
    def passed(self) -> bool:
        status = self._hip.status("hipEventQuery", self._event)
        if status not in (0, NOT_READY):
            raise self._hip.fault("hipEventQuery", status)
        return not status

    def wait(self) -> None:
        self._hip.call("hipEventSynchronize", self._event)

    def seconds_since(self, earlier: Mark) -> float:
        assert isinstance(earlier, HipMark), "marks of one driver"
        passed_ms = ctypes.c_float()
        self._hip.call("hipEventElapsedTime", ctypes.byref(passed_ms), earlier._event, self._event)
        return passed_ms.value * 1e-3

    def __del__(self) -> None:
        with suppress(AttributeError, DeviceFault):  # it could not be made
            self._hip.status("hipEventDestroy", self._event)


class HipModule:
    """Implements `Module`."""

    def __init__(self, hip: Hip, module: _Handle, stream: _Handle, most_shared: int) -> None:
        self._hip = hip
        self._module = module
        self._stream = stream
        self._most_shared = most_shared

    def function(self, name: str) -> HipFunction:
        function = _Handle()
        self._hip.call("hipModuleGetFunction", ctypes.byref(function), self._module, name.encode())
        return HipFunction(self._hip, function, self._stream, self._most_shared)

    def variable(self, name: str) -> tuple[int, int]:
        address, size = _Handle(), ctypes.c_size_t()
        places = ctypes.byref(address), ctypes.byref(size)
        self._hip.call("hipModuleGetGlobal", *places, self._module, name.encode())
        return address.value or 0, size.value

    def unload(self) -> None:
        self._hip.call("hipModuleUnload", self._module)


class HipFunction:
    """Implements `Function`."""

    def __init__(self, hip: Hip, function: _Handle, stream: _Handle, most_shared: int) -> None:
        self._hip = hip
        self._function = function
        self._stream = stream
        self._most_shared = most_shared
        self.registers, self.shared_byte, self.local_byte = map(self._attribute, (_REGISTERS, _SHARED, _LOCAL))

    def allow_shared(self, nbyte: int) -> None:
        """Nothing has to be set: a block may have all there is. Raises DeviceFault where it asks for more."""
        if nbyte > self._most_shared:
            what = f"{nbyte} bytes of shared memory per block are invalid: {self._most_shared} at most"
            raise DeviceFault(what, fatal=False)

    def bind(self, launch: Launch, values: Sequence[Value]) -> Callable[[int], None]:
        return HipLaunches(self._hip, self._function, launch, self._stream, values)

    def _attribute(self, which: int) -> int:
        value = ctypes.c_int()
        self._hip.call("hipFuncGetAttribute", ctypes.byref(value), which, self._function)
        return value.value


class HipLaunches:
    """Queues launches of one function with the same arguments, which the library reads from here at each."""

    def __init__(self, hip: Hip, function: _Handle, launch: Launch, stream: _Handle, values: Sequence[Value]) -> None:
        self._hip = hip
        self._kept = [np.array(value if isinstance(value, np.generic) else np.uint64(value)) for value in values]
        self._places = (_Handle * len(values))(*(value.ctypes.data for value in self._kept))
        sizes = map(ctypes.c_uint, (*launch.grid, *launch.block, launch.shared_byte))
        self._words = (function, *sizes, stream, self._places, None)

    def __call__(self, times: int) -> None:
        for _ in range(times):
            self._hip.call("hipModuleLaunchKernel", *self._words)


class HipRecording:
    """A captured graph of launches."""

    def __init__(self, hip: Hip, stream: _Handle, queue: Callable[[], Any]) -> None:
        self._hip = hip
        self._stream = stream
        graph, self._executable = _Handle(), _Handle()
        hip.call("hipStreamBeginCapture", stream, CAPTURE_RELAXED)
        try:
            queue()
        finally:
            hip.call("hipStreamEndCapture", stream, ctypes.byref(graph))
        hip.call("hipGraphInstantiate", ctypes.byref(self._executable), graph, None, None, ctypes.c_size_t(0))
        hip.call("hipGraphDestroy", graph)

    def launch(self) -> None:
        self._hip.call("hipGraphLaunch", self._executable, self._stream)

    def destroy(self) -> None:
        self._hip.call("hipGraphExecDestroy", self._executable)
