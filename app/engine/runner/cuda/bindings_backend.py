"""CUDA's driver by NVIDIA's cuda-bindings, on which cuda-core stands too. Imported in the runner process only.

Their functions are the driver's own, so that nothing of cuda-core, whose interface still moves, is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np
from cuda.bindings import driver as cuda

from ...workloads.kernel_arguments import Launch
from ..kernels.backend import Array, DeviceFault, Mark
from .device import DeviceBackend
from .driver import Value

NOT_READY: Final = 600  # CUDA_ERROR_NOT_READY: the event has not passed
CAPTURE_MODE: Final = cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
NAME_BYTES: Final = 256


def open_backend(device: str) -> DeviceBackend:
    """A context on the device of that number (among those that CUDA shows), or of that UUID. Raises DeviceFault."""
    return DeviceBackend(BindingsDriver(device))


def _device_of(text: str) -> Any:
    """The device of a number or of a UUID as `nvidia-smi -L` has it."""
    if text.isdigit():
        return _call(cuda.cuDeviceGet, int(text))
    wanted = text.removeprefix("GPU-").replace("-", "").lower()
    for number in range(_call(cuda.cuDeviceGetCount)):
        device = _call(cuda.cuDeviceGet, number)
        if bytes(_call(cuda.cuDeviceGetUuid, device).bytes)[:16].hex() == wanted:
            return device
    raise DeviceFault(f"CUDA shows no device {text} here", fatal=True)


def _call(function: Callable[..., tuple[Any, ...]], *arguments: Any) -> Any:
    """What the function gives beside its status: one value, several, or none."""
    try:
        status, *values = function(*arguments)
    except RuntimeError as error:  # there is no driver, or one too old for this function
        raise DeviceFault(f"{function.__name__} failed: {error}") from None
    if status:
        raise _fault(function.__name__, status)
    return values[0] if len(values) == 1 else values


def _fault(name: str, status: Any) -> DeviceFault:
    """The driver's message, and whether the context still lives."""
    _, words = cuda.cuGetErrorString(status)
    message = words.decode("utf-8", "replace") if words else f"status {int(status)}"
    (lost,) = cuda.cuCtxSynchronize()
    return DeviceFault(f"{name} failed: {message}", fatal=bool(lost))


class BindingsDriver:
    """Implements `Driver`. The context is the device's primary one, as the libraries of CUDA's runtime use."""

    def __init__(self, device: str) -> None:
        try:
            _call(cuda.cuInit, 0)
            self._device = _device_of(device)
            _call(cuda.cuCtxSetCurrent, _call(cuda.cuDevicePrimaryCtxRetain, self._device))
        except DeviceFault as fault:
            raise DeviceFault(str(fault), fatal=True) from None
        self._stream = _call(cuda.cuStreamCreate, 0)
        name: bytes = _call(cuda.cuDeviceGetName, NAME_BYTES, self._device)
        self.name = name.partition(b"\0")[0].decode("utf-8", "replace")
        self.version = int(_call(cuda.cuDriverGetVersion))
        parts = (self.attribute(f"COMPUTE_CAPABILITY_{part}") for part in ("MAJOR", "MINOR"))
        major, minor = (part or 0 for part in parts)
        self.compute_capability = (major, minor)
        self.stream = int(self._stream)

    def attribute(self, name: str) -> int | None:
        known = getattr(cuda.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}", None)
        return None if known is None else int(_call(cuda.cuDeviceGetAttribute, known, self._device))

    def allocate(self, nbyte: int) -> int:
        return int(_call(cuda.cuMemAlloc, nbyte))

    def free(self, address: int) -> None:
        _call(cuda.cuMemFree, address)

    def write(self, address: int, array: Array) -> None:
        _call(cuda.cuMemcpyHtoD, address, array.ctypes.data, array.nbytes)

    def read(self, address: int, array: Array) -> None:
        _call(cuda.cuStreamSynchronize, self._stream)
        _call(cuda.cuMemcpyDtoH, array.ctypes.data, address, array.nbytes)

    def copy(self, source: int, target: int, nbyte: int) -> None:
        _call(cuda.cuMemcpyDtoDAsync, target, source, nbyte, self._stream)

    def load(self, image: bytes) -> BindingsModule:
        return BindingsModule(_call(cuda.cuModuleLoadData, image), self._stream)

    def mark(self) -> BindingsMark:
        return BindingsMark(self._stream)

    def record(self, queue: Callable[[], Any]) -> BindingsRecording:
        return BindingsRecording(self._stream, queue)

    def close(self) -> None:
        _call(cuda.cuDevicePrimaryCtxRelease, self._device)


class BindingsMark:
    """An event."""

    def __init__(self, stream: Any) -> None:
        self._event = _call(cuda.cuEventCreate, 0)
        _call(cuda.cuEventRecord, self._event, stream)

    @property
    def passed(self) -> bool:
        (status,) = cuda.cuEventQuery(self._event)
        if status and int(status) != NOT_READY:
            raise _fault("cuEventQuery", status)
        return not status

    def wait(self) -> None:
        _call(cuda.cuEventSynchronize, self._event)

    def seconds_since(self, earlier: Mark) -> float:
        assert isinstance(earlier, BindingsMark), "marks of one driver"
        return float(_call(cuda.cuEventElapsedTime, earlier._event, self._event)) * 1e-3

    def __del__(self) -> None:
        with suppress(AttributeError):  # it could not be made
            cuda.cuEventDestroy(self._event)


class BindingsModule:
    """Implements `Module`."""

    def __init__(self, module: Any, stream: Any) -> None:
        self._module = module
        self._stream = stream

    def function(self, name: str) -> BindingsFunction:
        return BindingsFunction(_call(cuda.cuModuleGetFunction, self._module, name.encode()), self._stream)

    def variable(self, name: str) -> tuple[int, int]:
        address, nbyte = _call(cuda.cuModuleGetGlobal, self._module, name.encode())
        return int(address), int(nbyte)

    def unload(self) -> None:
        _call(cuda.cuModuleUnload, self._module)


class BindingsFunction:
    """Implements `Function`."""

    def __init__(self, function: Any, stream: Any) -> None:
        self._function = function
        self._stream = stream
        of = cuda.CUfunction_attribute
        self.registers = self._attribute(of.CU_FUNC_ATTRIBUTE_NUM_REGS)
        self.shared_byte = self._attribute(of.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)
        self.local_byte = self._attribute(of.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)

    def allow_shared(self, nbyte: int) -> None:
        which = cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        _call(cuda.cuFuncSetAttribute, self._function, which, nbyte)

    def bind(self, launch: Launch, values: Sequence[Value]) -> Callable[[int], None]:
        return BindingsLaunches(self._function, launch, self._stream, values)

    def _attribute(self, which: Any) -> int:
        return int(_call(cuda.cuFuncGetAttribute, which, self._function))


class BindingsLaunches:
    """Queues launches of one function with the same arguments, which the driver reads from here at each."""

    def __init__(self, function: Any, launch: Launch, stream: Any, values: Sequence[Value]) -> None:
        self._kept = [np.array(value if isinstance(value, np.generic) else np.uint64(value)) for value in values]
        self._places = np.array([value.ctypes.data for value in self._kept], np.uintp)
        where = self._places.ctypes.data
        self._words = (function, *launch.grid, *launch.block, launch.shared_byte, stream, where, 0)

    def __call__(self, times: int) -> None:
        call, words = cuda.cuLaunchKernel, self._words
        for _ in range(times):
            (status,) = call(*words)
            if status:
                raise _fault("cuLaunchKernel", status)


class BindingsRecording:
    """A captured graph of launches."""

    def __init__(self, stream: Any, queue: Callable[[], Any]) -> None:
        self._stream = stream
        _call(cuda.cuStreamBeginCapture, stream, CAPTURE_MODE)
        try:
            queue()
        finally:
            graph = _call(cuda.cuStreamEndCapture, stream)
        self._executable = _call(cuda.cuGraphInstantiate, graph, 0)
        _call(cuda.cuGraphDestroy, graph)

    def launch(self) -> None:
        _call(cuda.cuGraphLaunch, self._executable, self._stream)

    def destroy(self) -> None:
        _call(cuda.cuGraphExecDestroy, self._executable)
