"""The runner process's CUDA, by PyCUDA. Imported in that process only: the default install has no PyCUDA."""

from __future__ import annotations

import ctypes
import ctypes.util
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import numpy as np
import pycuda.driver as cuda

from ....sensors.device_limits import DeviceLimits
from ...workloads.cuda_arguments import Launch
from .backend import Array, DeviceFault, Difference, KernelFacts, difference, occupancy, resident_blocks
from .comparer import TYPES, compared_type
from .cublas import BYTES, Product, cublas

GRAPHED: Final = 64  # launches in one captured graph: Python queues a launch in ~5 us, kernels may be quicker
CAPTURE_MODE: Final = 2  # CU_STREAM_CAPTURE_MODE_RELAXED

T = TypeVar("T")


def open_backend(device: str) -> PyCudaBackend:
    """A context on the device of that number (among those that CUDA shows). Raises DeviceFault."""
    return PyCudaBackend(int(device))


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


class PyCudaBackend:
    """One context, current in the thread that made it."""

    def __init__(self, number: int) -> None:
        try:
            cuda.init()
            self._device = cuda.Device(number)
            self._context = self._device.make_context()
        except cuda.Error as error:
            raise DeviceFault(str(error), fatal=True) from None
        self._stream = cuda.Stream()
        self._limits = self._read_limits()
        self._comparers: Any = None
        self._compared = cuda.mem_alloc(24)

    # --- the device -------------------------------------------------------------------------------------------------

    def _read_limits(self) -> DeviceLimits:
        limit: Callable[[str], int] = lambda name: int(  # noqa: E731
            self._device.get_attribute(getattr(cuda.device_attribute, name))
        )
        major, minor = self._device.compute_capability()
        blocks = getattr(cuda.device_attribute, "MAX_BLOCKS_PER_MULTIPROCESSOR", None)
        return DeviceLimits(
            compute_capability=major + minor / 10,
            multiprocessors=limit("MULTIPROCESSOR_COUNT"),
            max_threads_per_block=limit("MAX_THREADS_PER_BLOCK"),
            max_threads_per_multiprocessor=limit("MAX_THREADS_PER_MULTIPROCESSOR"),
            max_blocks_per_multiprocessor=32 if blocks is None else int(self._device.get_attribute(blocks)),
            registers_per_block=limit("MAX_REGISTERS_PER_BLOCK"),
            registers_per_multiprocessor=limit("MAX_REGISTERS_PER_MULTIPROCESSOR"),
            shared_memory_per_block=limit("MAX_SHARED_MEMORY_PER_BLOCK"),
            shared_memory_per_multiprocessor=limit("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"),
            warp_size=limit("WARP_SIZE"),
        )

    def describe(self) -> dict[str, Any]:
        optin = self._device.get_attribute(cuda.device_attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
        major, minor = self._device.compute_capability()
        return {
            "name": self._device.name(),
            "compute_capability": [major, minor],
            "limits": self._limits.as_names(),
            "shared_memory_opt_in": int(optin),
            "driver": cuda.get_driver_version(),
        }

    # --- memory -----------------------------------------------------------------------------------------------------

    def upload(self, array: Array) -> Any:
        buffer = _checked(cuda.mem_alloc, max(1, array.nbytes))
        if array.nbytes:
            _checked(cuda.memcpy_htod, buffer, np.ascontiguousarray(array))
        return buffer

    def write(self, buffer: Any, array: Array) -> None:
        if array.nbytes:
            _checked(cuda.memcpy_htod, buffer, np.ascontiguousarray(array))

    def copy(self, source: Any, target: Any, nbyte: int) -> None:
        if nbyte:
            _checked(cuda.memcpy_dtod_async, target, source, nbyte, self._stream)

    def free(self, buffer: Any) -> None:
        _checked(buffer.free)

    # --- kernels ----------------------------------------------------------------------------------------------------

    def load(self, image: bytes, launch: Launch, arguments: Sequence[Any], constants: Mapping[str, Array]) -> Any:
        return PyCudaKernel(self._stream, self._limits, image, launch, arguments, constants)

    def product(self) -> VendorProduct | None:
        library = cublas()
        if library is None:
            return None
        try:
            return VendorProduct(library, self._stream)
        except (OSError, cuda.Error):  # another release than the driver's, or no memory left
            return None

    def mark(self) -> PyCudaMark:
        return PyCudaMark(self._stream)

    def use_comparer(self, image: bytes) -> None:
        self._comparers = _checked(cuda.module_from_buffer, image)

    def difference(self, output: Any, reference: Any, like: Array, rtol: float, atol: float) -> Difference:
        kind, parts = compared_type(like.dtype.name)
        if self._comparers is None or kind not in TYPES:
            on_host, expected = np.empty_like(like), np.empty_like(like)
            _checked(self._stream.synchronize)
            _checked(cuda.memcpy_dtoh, on_host, output)
            _checked(cuda.memcpy_dtoh, expected, reference)
            return difference(on_host, expected, rtol, atol)
        result = np.array([0, 2**64 - 1, 0], dtype=np.uint64)
        _checked(cuda.memcpy_htod_async, self._compared, result, self._stream)
        compare = self._comparers.get_function(f"difference_{kind}")
        compare.prepare("PPQddP")
        size = like.size * parts
        blocks = max(1, min(4 * self._limits.multiprocessors, -(-size // 256)))
        _checked(
            compare.prepared_async_call,
            *((blocks, 1), (256, 1, 1), self._stream, output, reference, size, rtol, atol, self._compared),
        )
        _checked(cuda.memcpy_dtoh_async, result, self._compared, self._stream)
        _checked(self._stream.synchronize)
        count = int(result[0])
        return Difference(count, int(result[1]) // parts if count else -1, float(result[2:].view(np.float64)[0]))

    def close(self) -> None:
        self._context.pop()


class PyCudaMark:
    """An event."""

    def __init__(self, stream: Any) -> None:
        self._event = cuda.Event()
        _checked(self._event.record, stream)

    @property
    def passed(self) -> bool:
        return bool(_checked(self._event.query))

    def wait(self) -> None:
        _checked(self._event.synchronize)

    def seconds_since(self, earlier: PyCudaMark) -> float:
        return float(_checked(self._event.time_since, earlier._event)) * 1e-3


class PyCudaKernel:
    """A function of a module, prepared, and a graph of many launches of it once those are asked for."""

    def __init__(
        self,
        stream: Any,
        limits: DeviceLimits,
        image: bytes,
        launch: Launch,
        arguments: Sequence[Any],
        constants: Mapping[str, Array],
    ) -> None:
        self._stream = stream
        self._launch = launch
        self._module = _checked(cuda.module_from_buffer, image)
        self._function = _checked(self._module.get_function, launch.name)
        for name, array in constants.items():
            address, size = _checked(self._module.get_global, name)
            if array.nbytes > size:
                raise DeviceFault(f"the constant {name} has {size} bytes, {array.nbytes} are given")
            _checked(cuda.memcpy_htod, address, np.ascontiguousarray(array))
        formats, self._arguments = _packed(arguments)
        self._function.prepare(formats)
        if launch.shared_byte > limits.shared_memory_per_block:
            _checked(
                self._function.set_attribute,
                *(cuda.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, launch.shared_byte),
            )
        threads = launch.block[0] * launch.block[1] * launch.block[2]
        registers = int(self._function.num_regs)
        shared = int(self._function.shared_size_bytes) + launch.shared_byte
        figures = {"threads": threads, "registers": registers, "shared_byte": shared}
        self.facts = KernelFacts(
            registers=registers,
            shared_byte=shared,
            local_byte=int(self._function.local_size_bytes),
            blocks_per_multiprocessor=resident_blocks(limits, **figures),
            occupancy=occupancy(limits, **figures),
        )
        self._graph: Graph | None = None

    def launch(self, times: int) -> None:
        if times >= 2 * GRAPHED:
            if self._graph is None:
                self._graph = Graph(self._stream, lambda: self._queue(GRAPHED))
            for _ in range(times // GRAPHED):
                self._graph.launch()
            times %= GRAPHED
        self._queue(times)

    def unload(self) -> None:
        if self._graph is not None:
            self._graph.destroy()
        self._graph = self._function = self._module = None

    def _queue(self, times: int) -> None:
        launch, call = self._launch, self._function.prepared_async_call
        try:
            for _ in range(times):
                call(launch.grid, launch.block, self._stream, *self._arguments, shared_size=launch.shared_byte)
        except cuda.Error as error:
            raise _fault(error) from None


class VendorProduct:
    """cuBLAS's matrix product of random operands, as a kernel."""

    facts = KernelFacts(0, 0, 0, 0, math.nan)

    def __init__(self, library: ctypes.CDLL, stream: Any) -> None:
        """Raises OSError and PyCUDA's errors."""
        self._buffers = [cuda.mem_alloc(BYTES) for _ in range(3)]
        operand = np.random.default_rng(0).random(BYTES // 4, dtype=np.float32)
        for buffer in self._buffers[1:]:
            cuda.memcpy_htod(buffer, operand)
        c, a, b = (int(buffer) for buffer in self._buffers)
        self._product = Product(library, stream.handle, (c, a, b))

    def launch(self, times: int) -> None:
        try:
            self._product.launch(times)
        except OSError as error:
            raise DeviceFault(str(error), fatal=False) from None

    def unload(self) -> None:
        self._product.close()
        for buffer in self._buffers:
            buffer.free()


def _packed(arguments: Sequence[Any]) -> tuple[str, list[Any]]:
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


class Graph:
    """A captured graph of launches, by the driver's own functions: PyCUDA has none for graphs."""

    def __init__(self, stream: Any, queue: Callable[[], None]) -> None:
        self._driver = _driver()
        self._stream = ctypes.c_void_p(stream.handle)
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


# CUresult values after which a context is of no use: illegal address, launch failed, timeout, misaligned and the like
FATAL: Final = frozenset({700, 702, 709, 714, 715, 716, 717, 718, 719, 720})


def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else ctypes.util.find_library("cuda") or "libcuda.so.1")
