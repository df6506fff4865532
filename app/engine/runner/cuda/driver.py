"""The `Driver` of a `DeviceBackend`: one device, its context and one stream, for the thread that made it.

CUDA's driver and HIP have the same functions under other names. They are called through cuda-bindings, or through
ctypes for PyCUDA and HIP. Addresses are integers. What the library refuses raises DeviceFault.
"""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Final

import numpy as np

from ....base.installation import how_to_add
from ...workloads.kernel_arguments import Launch
from ..kernels.backend import Array, DeviceFault
from ..kernels.backend import Mark as AnyMark

Value = int | np.generic  # what a kernel is given: an address, or a scalar of NumPy's

NOT_READY: Final = 600  # CUDA_ERROR_NOT_READY, hipErrorNotReady: the event has not passed
CAPTURE_RELAXED: Final = 2
NAME_BYTES: Final = 256
GRAPHED: Final = 64  # launches in one recorded graph
SHARED, LOCAL, REGISTERS, MOST_DYNAMIC_SHARED = 1, 3, 4, 8  # CUfunction_attribute, hipFunction_attribute


class Driver(ABC):
    """A device's context and the driver's functions, by CUDA's names without `cu`."""

    prefix = "cu"

    def __init__(self, device: str) -> None:
        """`device` is a number among those that the library shows, or what it takes besides. Raises DeviceFault."""
        try:
            self.device = self.open(device)
        except DeviceFault as fault:
            raise DeviceFault(str(fault), fatal=True) from None
        self.queue = self.call("StreamCreate", 0)
        self.stream = int(self.queue)  # its handle
        self.whole = self.queue  # of all SMs; `queue` may be a part's
        name: bytes = self.call("DeviceGetName", NAME_BYTES, self.device)
        self.name = name.partition(b"\0")[0].decode("utf-8", "replace")
        self.version = int(self.call("DriverGetVersion"))  # of CUDA that the driver knows, as 12090
        major, minor = (self.attribute(f"COMPUTE_CAPABILITY_{part}") or 0 for part in ("MAJOR", "MINOR"))
        self.compute_capability = (major, minor)

    # --- what libraries do in their own ways ------------------------------------------------------------------------

    @abstractmethod
    def open(self, device: str) -> Any:
        """Make a context on that device the thread's own; the device's handle. Raises DeviceFault."""

    @abstractmethod
    def close(self) -> None:
        """Let the context go."""

    @abstractmethod
    def attribute(self, name: str) -> int | None:
        """Of the device, by its name without CU_DEVICE_ATTRIBUTE_; None if the library has none of that name."""

    @abstractmethod
    def function(self, name: str) -> Callable[..., tuple[Any, ...]]:
        """A function that gives its status, 0 if it succeeds, and its values."""

    @abstractmethod
    def launches(self, function: Any, sizes: Sequence[int], places: int) -> Callable[[int], None]:
        """A function that queues so many launches; at `places` are the addresses of the kernel's arguments."""

    def error_string(self, status: Any) -> bytes | None:
        return self.function("GetErrorString")(status)[1]  # type: ignore[no-any-return]

    def instantiate(self, graph: Any) -> Any:
        """An executable graph."""
        return self.call("GraphInstantiate", graph, 0)

    def allow_shared(self, function: Any, nbyte: int) -> None:
        """Let a kernel have more dynamic shared memory per block than the default allows."""
        self.call("FuncSetAttribute", function, MOST_DYNAMIC_SHARED, nbyte)

    def partition(self, count: int) -> tuple[Any, int]:
        """A queue on a part of the SMs, of at least so many, and how many it has. Raises DeviceFault."""
        raise DeviceFault(f"kernels run on a part of the SMs by cuda-bindings alone: {how_to_add('cuda')}")

    @property
    def granularity(self) -> tuple[int, int] | None:
        """The fewest SMs of a part, and the step between two sizes; None where there are no parts."""
        return None

    # --- what all do alike ------------------------------------------------------------------------------------------

    def call(self, name: str, *arguments: Any) -> Any:
        """What the function gives beside its status: one value, several, or none."""
        try:
            status, *values = self.function(name)(*arguments)
        except RuntimeError as error:  # there is no driver, or one too old for this function
            raise DeviceFault(f"{self.prefix}{name} failed: {error}") from None
        if status:
            raise self.fault(name, status)
        return values[0] if len(values) == 1 else values

    def fault(self, name: str, status: Any) -> DeviceFault:
        """The driver's message, and whether the context still lives."""
        text = self.error_string(status)
        message = text.decode("utf-8", "replace") if text else f"status {int(status)}"
        return DeviceFault(f"{self.prefix}{name} failed: {message}", fatal=bool(self.function("CtxSynchronize")()[0]))

    def allocate(self, nbyte: int) -> int:
        return int(self.call("MemAlloc", nbyte))

    def free(self, address: int) -> None:
        self.call("MemFree", address)

    def write(self, address: int, array: Array) -> None:
        """From the host; returns once it is there."""
        self.call("MemcpyHtoD", address, array.ctypes.data, array.nbytes)
        if self.queue is not self.whole:  # which does not wait for what CUDA copies by itself
            self.call("StreamSynchronize", 0)

    def read(self, address: int, array: Array) -> None:
        """Into a contiguous array of the host, once what is queued has run."""
        self.call("StreamSynchronize", self.queue)
        self.call("MemcpyDtoH", array.ctypes.data, address, array.nbytes)

    def copy(self, source: int, target: int, nbyte: int) -> None:
        """On the device, in the stream's order."""
        self.call("MemcpyDtoDAsync", target, source, nbyte, self.queue)

    def use(self, queue: Any) -> None:
        """Go on in another queue, after what is in the present one."""
        if queue is not self.queue:
            before, self.queue = self.mark(), queue
            before.hold(queue)

    def load(self, image: bytes) -> Module:
        return Module(self, self.call("ModuleLoadData", image))

    def mark(self) -> Mark:
        """An event, recorded now."""
        return Mark(self)

    def record(self, queue: Callable[[int], Any], launches: int) -> Recording:
        """So many launches of `queue`, without running them."""
        return Recording(self, queue, launches)


_GIVES_LAST: Final = frozenset(("GetErrorString", "StreamEndCapture"))  # others take the places of outputs first
_KINDS: Final[dict[str, Any]] = {
    "P": ctypes.c_void_p,
    "s": ctypes.c_char_p,
    "i": ctypes.c_int,
    "I": ctypes.c_uint,
    "N": ctypes.c_size_t,
    "Q": ctypes.c_ulonglong,
    "f": ctypes.c_float,
    "B": lambda: ctypes.create_string_buffer(NAME_BYTES),
}


class LibraryDriver(Driver):
    """A driver's library by ctypes."""

    signatures: ClassVar[dict[str, tuple[str, str]]] = {  # what a function gives, and what it takes
        "CtxSynchronize": ("", ""),
        "DeviceGetName": ("B", "ii"),
        "DriverGetVersion": ("i", ""),
        "EventCreate": ("P", "I"),
        "EventDestroy": ("", "P"),
        "EventElapsedTime": ("f", "PP"),
        "EventQuery": ("", "P"),
        "EventRecord": ("", "PP"),
        "EventSynchronize": ("", "P"),
        "FuncGetAttribute": ("i", "iP"),
        "FuncSetAttribute": ("", "Pii"),
        "GetErrorString": ("s", "i"),
        "GraphDestroy": ("", "P"),
        "GraphExecDestroy": ("", "P"),
        "GraphInstantiate": ("P", "PQ"),
        "GraphLaunch": ("", "PP"),
        "LaunchKernel": ("", "PIIIIIIIPPP"),
        "MemAlloc": ("P", "N"),
        "MemFree": ("", "P"),
        "MemcpyDtoDAsync": ("", "PPNP"),
        "MemcpyDtoH": ("", "PPN"),
        "MemcpyHtoD": ("", "PPN"),
        "ModuleGetFunction": ("P", "Ps"),
        "ModuleGetGlobal": ("PN", "Ps"),
        "ModuleLoadData": ("P", "s"),
        "ModuleUnload": ("", "P"),
        "StreamBeginCapture": ("", "Pi"),
        "StreamCreate": ("P", "I"),
        "StreamEndCapture": ("P", "P"),
        "StreamSynchronize": ("", "P"),
    }
    symbols: ClassVar[dict[str, str]]  # of those functions whose symbol is not the prefix and the name

    library: ctypes.CDLL

    def __init__(self, device: str) -> None:
        self._functions: dict[str, Callable[..., tuple[Any, ...]]] = {}
        super().__init__(device)

    def symbol(self, name: str) -> Any:
        """The function. Raises DeviceFault if this release has none."""
        symbol = self.prefix + self.symbols.get(name, name)
        try:
            return getattr(self.library, symbol)
        except AttributeError:
            raise DeviceFault(f"the driver's library has no {symbol}", fatal=True) from None

    def function(self, name: str) -> Callable[..., tuple[Any, ...]]:
        if name in self._functions:
            return self._functions[name]
        symbol, last = self.symbol(name), name in _GIVES_LAST
        gives, takes = ([_KINDS[kind] for kind in kinds] for kinds in self.signatures[name])
        places = [ctypes.c_void_p for _ in gives]
        symbol.argtypes = [*takes, *places] if last else [*places, *takes]

        def function(*arguments: Any) -> tuple[Any, ...]:
            if not gives:
                return (symbol(*arguments),)
            outputs = [kind() for kind in gives]
            given = map(ctypes.byref, outputs)
            status = symbol(*arguments, *given) if last else symbol(*given, *arguments)
            return (status, *[output.value for output in outputs])

        self._functions[name] = function
        return function

    def launches(self, function: Any, sizes: Sequence[int], places: int) -> Callable[[int], None]:
        call, given = self.symbol("LaunchKernel"), (function, *sizes, self.queue, places, None)
        kinds = self.signatures["LaunchKernel"][1]
        arguments = [_KINDS[kind](value) for kind, value in zip(kinds, given, strict=True)]

        def queue(times: int) -> None:
            for _ in range(times):
                if status := call(*arguments):
                    raise self.fault("LaunchKernel", status)

        return queue


class Mark:
    """An event."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._event = driver.call("EventCreate", 0)
        driver.call("EventRecord", self._event, driver.queue)

    @property
    def passed(self) -> bool:
        (status,) = self._driver.function("EventQuery")(self._event)
        if status and int(status) != NOT_READY:
            raise self._driver.fault("EventQuery", status)
        return not status

    def wait(self) -> None:
        self._driver.call("EventSynchronize", self._event)

    def seconds_since(self, earlier: AnyMark) -> float:
        assert isinstance(earlier, Mark), "marks of one driver"
        return float(self._driver.call("EventElapsedTime", earlier._event, self._event)) * 1e-3

    def hold(self, queue: Any) -> None:
        """What comes into that queue waits until this has passed."""
        self._driver.call("StreamWaitEvent", queue, self._event, 0)

    def __del__(self) -> None:
        with suppress(AttributeError, DeviceFault):  # it could not be made
            self._driver.function("EventDestroy")(self._event)


class Module:
    """An image on the device."""

    def __init__(self, driver: Driver, module: Any) -> None:
        self._driver = driver
        self._module = module

    def function(self, name: str) -> Function:
        return Function(self._driver, self._driver.call("ModuleGetFunction", self._module, name.encode()))

    def variable(self, name: str) -> tuple[int, int]:
        """Address and bytes of a global variable, one in constant memory included."""
        address, nbyte = self._driver.call("ModuleGetGlobal", self._module, name.encode())
        return int(address), int(nbyte)

    def unload(self) -> None:
        self._driver.call("ModuleUnload", self._module)


class Function:
    """A kernel of a module, and what its compiler noted of it."""

    def __init__(self, driver: Driver, function: Any) -> None:
        self._driver = driver
        self._function = function
        self.registers = self._attribute(REGISTERS)  # per thread
        self.shared_byte = self._attribute(SHARED)  # static, per block
        self.local_byte = self._attribute(LOCAL)  # per thread

    def allow_shared(self, nbyte: int) -> None:
        """Let it have more dynamic shared memory per block than the default allows."""
        self._driver.allow_shared(self._function, nbyte)

    def bind(self, launch: Launch, values: Sequence[Value]) -> Launches:
        """A function that queues so many launches with these arguments."""
        return Launches(self._driver, self._function, launch, values)

    def _attribute(self, which: int) -> int:
        return int(self._driver.call("FuncGetAttribute", which, self._function))


class Launches:
    """Queues launches of one function with the same arguments, which the driver reads from here at each."""

    def __init__(self, driver: Driver, function: Any, launch: Launch, values: Sequence[Value]) -> None:
        self._kept = [np.array(value if isinstance(value, np.generic) else np.uint64(value)) for value in values]
        self._places = np.array([value.ctypes.data for value in self._kept], np.uintp)
        sizes = (*launch.grid, *launch.block, launch.shared_byte)
        self._queue = driver.launches(function, sizes, self._places.ctypes.data)

    def __call__(self, times: int) -> None:
        self._queue(times)


class Recording:
    """A captured graph of launches."""

    def __init__(self, driver: Driver, queue: Callable[[int], Any], launches: int) -> None:
        self._driver = driver
        self.launches = launches
        driver.call("StreamBeginCapture", driver.queue, CAPTURE_RELAXED)
        try:
            queue(launches)
        finally:
            graph = driver.call("StreamEndCapture", driver.queue)
        self._executable = driver.instantiate(graph)
        driver.call("GraphDestroy", graph)

    def launch(self) -> None:
        """Queue all of it at once."""
        self._driver.call("GraphLaunch", self._executable, self._driver.queue)

    def destroy(self) -> None:
        self._driver.call("GraphExecDestroy", self._executable)


def launch_recorded(
    driver: Driver,
    queue: Callable[[int], None],
    recording: Recording | None,
    times: int,
    fewest: int = 2 * GRAPHED,
) -> Recording | None:
    """Queue so many launches, in graphs as far as it pays; the recording, made now if there is none and one pays.

    Python queues a launch in microseconds, and kernels may be quicker: from `fewest` launches on half of them are
    recorded, GRAPHED at most. On a part of the SMs nothing is.
    """
    if times >= fewest and driver.queue is driver.whole:
        launches = min(GRAPHED, times // 2)
        if recording is None or launches > 2 * recording.launches:  # a launch is shorter than it seemed by then
            before, recording = recording, driver.record(queue, launches)
            if before is not None:
                before.destroy()
        for _ in range(times // recording.launches):
            recording.launch()
        times %= recording.launches
    queue(times)
    return recording
