"""The `Driver` seam: CUDA's driver API as far as `DeviceBackend` needs it, by cuda-bindings or by PyCUDA.

One device, its context and one stream, for the thread that made it. Addresses are integers. What the driver refuses
raises DeviceFault.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from ...workloads.kernel_arguments import Launch
from ..kernels.backend import Array, Mark

Value = int | np.generic  # what a kernel is given: an address, or a scalar of NumPy's


class Function(Protocol):
    """A kernel of a module, and what its compiler noted of it."""

    registers: int  # per thread
    shared_byte: int  # static, per block
    local_byte: int  # per thread

    def allow_shared(self, nbyte: int) -> None:
        """Let it have more dynamic shared memory per block than the default allows."""
        ...

    def bind(self, launch: Launch, values: Sequence[Value]) -> Callable[[int], None]:
        """A function that queues so many launches with these arguments."""
        ...


class Module(Protocol):
    """An image on the device."""

    def function(self, name: str) -> Function: ...

    def variable(self, name: str) -> tuple[int, int]:
        """Address and bytes of a global variable, one in constant memory included."""
        ...

    def unload(self) -> None: ...


class Recording(Protocol):
    """A graph of what was queued while it was recorded."""

    def launch(self) -> None:
        """Queue all of it at once."""
        ...

    def destroy(self) -> None: ...


class Driver(Protocol):
    """The device's context."""

    name: str
    version: int  # of CUDA that the driver knows, as 12090
    compute_capability: tuple[int, int]
    stream: int  # its handle

    def attribute(self, name: str) -> int | None:
        """Of the device, by its name without CU_DEVICE_ATTRIBUTE_; None where the library does not know it."""
        ...

    def allocate(self, nbyte: int) -> int: ...

    def free(self, address: int) -> None: ...

    def write(self, address: int, array: Array) -> None:
        """From the host; returns once it is there."""
        ...

    def read(self, address: int, array: Array) -> None:
        """Into a contiguous array of the host, once what is queued has run."""
        ...

    def copy(self, source: int, target: int, nbyte: int) -> None:
        """On the device, in the stream's order."""
        ...

    def load(self, image: bytes) -> Module: ...

    def mark(self) -> Mark:
        """An event, recorded now."""
        ...

    def record(self, queue: Callable[[], Any]) -> Recording:
        """What `queue` launches, without running it."""
        ...

    def close(self) -> None: ...
