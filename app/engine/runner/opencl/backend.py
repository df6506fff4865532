"""OpenCL in the runner process: one device, one queue in order, times by profiling events."""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

os.environ["PYOPENCL_NO_CACHE"] = "1"

import numpy as np
import pyopencl as cl

from ....sensors.limits import DeviceLimits
from ...workloads.kernel_arguments import Launch
from ..kernels.backend import Array, Backend, DeviceFault, KernelFacts, LocalMemory, Mark
from .build import device_of
from .image import read_image

# pyopencl's own; a script's warnings, in whose process this may be, are its own
for where in (r"pyopencl\b", re.escape(__name__)):
    warnings.filterwarnings("ignore", module=where)
COMPLETE: Final = cl.command_execution_status.COMPLETE
# Errors of drivers' own, of which pyopencl has the number alone.
_OF_DRIVERS: Final = {-9999: "NVIDIA's for an illegal read or write of memory"}
P = ParamSpec("P")
R = TypeVar("R")


def open_backend(number: str) -> OpenclBackend:
    """The device PLATFORM.DEVICE. Raises DeviceFault."""
    try:
        return OpenclBackend(device_of(number))
    except (cl.Error, LookupError, ValueError) as error:
        raise DeviceFault(f"no OpenCL device {number}: {error}") from None


def _faults(fatal: bool) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Errors of OpenCL as DeviceFault. `fatal`: what is queued is lost, and the context with it."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*arguments: P.args, **named: P.kwargs) -> R:
            try:
                return function(*arguments, **named)
            except cl.Error as error:
                raise DeviceFault(_in_words(error), fatal=fatal) from None

        return call

    return decorate


def _in_words(error: Any) -> str:
    """An error of pyopencl's in one line."""
    line = str(error).splitlines()[0]
    return line.replace(f"<unknown error {error.code}>", _status(error.code))


def _status(code: int) -> str:
    return f"error {code}, {_OF_DRIVERS[code]}" if code in _OF_DRIVERS else f"error {code}"


class OpenclBackend(Backend):
    """Implements `Backend`."""

    def __init__(self, device: Any) -> None:
        """Raises cl.Error."""
        self.device = device
        self.context = cl.Context([device])
        self.queue = cl.CommandQueue(self.context, properties=cl.command_queue_properties.PROFILING_ENABLE)
        self.launched: list[Any] = []  # events since the last mark
        self._last: OpenclMark | None = None

    def describe(self) -> dict[str, Any]:
        device = self.device
        limits = DeviceLimits(
            compute_capability=0.0,
            multiprocessors=device.max_compute_units,
            max_threads_per_block=device.max_work_group_size,
            shared_memory_per_block=device.local_mem_size,
            shared_memory_per_multiprocessor=device.local_mem_size,
        )
        return {"name": device.name.strip(), "limits": limits.as_names(), "driver": device.driver_version.strip()}

    # --- memory -----------------------------------------------------------------------------------------------------

    @_faults(fatal=False)
    def upload(self, array: Array) -> Any:
        buffer = cl.Buffer(self.context, cl.mem_flags.READ_WRITE, max(1, array.nbytes))
        self.write(buffer, array)
        return buffer

    @_faults(fatal=True)
    def write(self, buffer: Any, array: Array) -> None:
        if array.nbytes:
            cl.enqueue_copy(self.queue, buffer, np.ascontiguousarray(array)).wait()

    @_faults(fatal=True)
    def read(self, buffer: Any, like: Array) -> Array:
        array = np.empty(like.shape, like.dtype)
        if array.nbytes:
            cl.enqueue_copy(self.queue, array, buffer).wait()
        return array

    @_faults(fatal=True)
    def copy(self, source: Any, target: Any, nbyte: int) -> None:
        if nbyte:
            cl.enqueue_copy(self.queue, target, source, byte_count=nbyte)

    def free(self, buffer: Any) -> None:
        buffer.release()

    # --- kernels ----------------------------------------------------------------------------------------------------

    @_faults(fatal=False)
    def load(
        self, image: bytes, launch: Launch, arguments: Sequence[Any], constants: Mapping[str, Array]
    ) -> OpenclKernel:
        return OpenclKernel(self, image, launch, arguments)

    @_faults(fatal=True)
    def mark(self) -> OpenclMark:
        mark = OpenclMark(self._last, cl.enqueue_marker(self.queue), self.launched)
        self.queue.flush()
        self._last, self.launched = mark, []
        return mark

    def close(self) -> None:
        self.queue.finish()


class OpenclKernel:
    """Implements `Kernel`."""

    def __init__(self, backend: OpenclBackend, image: bytes, launch: Launch, arguments: Sequence[Any]) -> None:
        """Raises cl.Error and DeviceFault."""
        self._backend = backend
        _, binary = read_image(image)
        program = cl.Program(backend.context, [backend.device], [binary]).build()
        self._kernel = cl.Kernel(program, launch.name)
        if self._kernel.num_args != len(arguments):
            what = f"the kernel {launch.name} has {self._kernel.num_args} parameters, {len(arguments)} are given"
            raise DeviceFault(what)
        for index, argument in enumerate(arguments):
            self._kernel.set_arg(index, _given(argument))
        self._local = launch.block
        self._global = tuple(blocks * size for blocks, size in zip(launch.grid, launch.block, strict=True))
        self.facts = KernelFacts(
            shared_byte=self._figure(cl.kernel_work_group_info.LOCAL_MEM_SIZE),
            local_byte=self._figure(cl.kernel_work_group_info.PRIVATE_MEM_SIZE),
        )

    @_faults(fatal=False)
    def launch(self, times: int) -> None:
        backend = self._backend
        for _ in range(times):
            try:
                event = cl.enqueue_nd_range_kernel(backend.queue, self._kernel, self._global, self._local)
            except cl.LogicError as error:
                if error.code != cl.status_code.INVALID_WORK_GROUP_SIZE:
                    raise
                # queried only now: a driver may allow more than it reports
                most = self._figure(cl.kernel_work_group_info.WORK_GROUP_SIZE)
                what = f"{math.prod(self._local)} work-items, {most} are the most per group for this kernel"
                raise DeviceFault(f"{what}: {_in_words(error)}") from None
            backend.launched.append(event)

    def unload(self) -> None:
        del self._kernel

    def _figure(self, which: int) -> int | None:
        """The figures that the device's compiler reports for the kernel; None if it does not."""
        try:
            return int(self._kernel.get_work_group_info(which, self._backend.device))
        except cl.Error:
            return None


class OpenclMark:
    """Implements `Mark` and `ReportingMark`: what launches report of themselves is their time between profiling events.

    Between launches that are short the queue may be idle; their own time does not contain that.
    """

    def __init__(self, before: OpenclMark | None, event: Any, launched: list[Any]) -> None:
        self._before = before
        self._event = event
        self._launched = launched
        self._at_ns: int | None = None  # once it has passed
        self._own_ns = 0  # of all launches before it

    @property
    @_faults(fatal=True)
    def passed(self) -> bool:
        if self._at_ns is None:
            status = self._event.command_execution_status
            if status < 0:
                raise DeviceFault(f"the queue failed: {_status(status)}", fatal=True)
            if status == COMPLETE:
                self._settle()
        return self._at_ns is not None

    @_faults(fatal=True)
    def wait(self) -> None:
        self._event.wait()
        self._settle()

    def seconds_since(self, earlier: Mark) -> float:
        assert isinstance(earlier, OpenclMark), "marks of one backend"
        return (self._stamp() - earlier._stamp()) * 1e-9

    def reported_since(self, earlier: Mark) -> float:
        assert isinstance(earlier, OpenclMark), "marks of one backend"
        return (self._own_ns - earlier._own_ns) * 1e-9

    def _stamp(self) -> int:
        assert self._at_ns is not None, "it has passed"
        return self._at_ns

    def _settle(self) -> None:
        """Keep the time stamps and let the events go; so do those before it, which have passed too."""
        waiting: list[OpenclMark] = []
        mark: OpenclMark | None = self
        while mark is not None and mark._at_ns is None:
            waiting.append(mark)
            mark = mark._before
        for item in reversed(waiting):
            before = item._before
            own_ns = sum(event.profile.end - event.profile.start for event in item._launched)
            item._own_ns = own_ns + (before._own_ns if before is not None else 0)
            item._at_ns = int(item._event.profile.end)
            item._launched, item._before = [], None


def _given(argument: Any) -> Any:
    """An argument as OpenCL takes it: flags as bytes."""
    if isinstance(argument, LocalMemory):
        return cl.LocalMemory(argument.nbyte)
    return np.uint8(argument) if isinstance(argument, np.bool_) else argument
