"""The `CudaBackend` seam inside the runner process: what a worker needs of CUDA. `DeviceBackend` in earnest, a fake
one in tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ....sensors.device_limits import DeviceLimits
from ...workloads.cuda_arguments import Launch

Array = npt.NDArray[Any]
_REGISTER_GRAIN: Final = 256  # registers are given to a warp in such portions, from compute capability 3.0 on
_RESERVED_BYTE: Final = 1024  # of shared memory per block, from 8.0 on


class DeviceFault(Exception):
    """The driver refused or failed. `fatal`: the context is lost, and with it the process."""

    def __init__(self, message: str, *, fatal: bool = False) -> None:
        super().__init__(message)
        self.fatal = fatal


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """What the driver reports of a loaded kernel."""

    registers: int  # per thread
    shared_byte: int  # per block, static and dynamic
    local_byte: int  # per thread: spills and local arrays
    blocks_per_multiprocessor: int  # resident ones
    occupancy: float  # theoretical: resident threads over the multiprocessor's


class Difference(NamedTuple):
    """How an output differs from its reference."""

    wrong: int  # elements beyond the tolerance
    first: int  # flat index of the first one; -1 where there is none
    worst: float  # the largest absolute difference


class Kernel(Protocol):
    """A loaded kernel with its arguments bound."""

    facts: KernelFacts

    def launch(self, times: int) -> None:
        """Queue that many launches; returns before they have run."""
        ...

    def unload(self) -> None: ...


class Mark(Protocol):
    """A point in the queue of launches, with a time stamp once the device has passed it."""

    @property
    def passed(self) -> bool:
        """Raises DeviceFault where a launch before it failed."""
        ...

    def wait(self) -> None:
        """Until it has passed. Raises DeviceFault."""
        ...

    def seconds_since(self, earlier: Mark) -> float:
        """Device time between two marks that have passed."""
        ...


class CudaBackend(Protocol):
    """One device and its context, used by one thread."""

    def describe(self) -> dict[str, Any]:
        """Facts about the device: name, compute_capability, limits as in DeviceLimits."""
        ...

    def upload(self, array: Array) -> Any:
        """A copy on the device."""
        ...

    def write(self, buffer: Any, array: Array) -> None:
        """From the host into a buffer."""
        ...

    def read(self, buffer: Any, array: Array) -> None:
        """From a buffer to the host, after all that is queued. Raises DeviceFault."""
        ...

    def copy(self, source: Any, target: Any, nbyte: int) -> None:
        """From one device buffer to another, in the queue's order."""
        ...

    def free(self, buffer: Any) -> None: ...

    def load(self, image: bytes, launch: Launch, arguments: Sequence[Any], constants: Mapping[str, Array]) -> Kernel:
        """Load a kernel and bind its arguments: buffers, and NumPy scalars. Raises DeviceFault."""
        ...

    def product(self) -> Kernel | None:
        """The vendor library's matrix product on operands of its own, where the library and the memory are there."""
        ...

    def mark(self) -> Mark:
        """Put a mark into the queue."""
        ...

    def use_comparer(self, image: bytes) -> None:
        """Kernels that compare on the device (`comparer.SOURCE`); without them the host compares."""
        ...

    def difference(self, output: Any, reference: Any, like: Array, rtol: float, atol: float) -> Difference:
        """Compare two buffers of the type and size of `like`."""
        ...

    def close(self) -> None: ...


def difference(output: Array, reference: Array, rtol: float, atol: float) -> Difference:
    """Elements with |output - reference| > atol + rtol |reference|, NaN against a number included."""
    wide = np.complex128 if reference.dtype.kind == "c" else np.float64
    given, expected = output.ravel().astype(wide), reference.ravel().astype(wide)
    with np.errstate(all="ignore"):
        apart = np.abs(given - expected)
        close = np.isfinite(apart) & (apart <= atol + rtol * np.abs(expected))
        off = ~close & ~(np.isnan(given) & np.isnan(expected)) & (given != expected)
    where = np.flatnonzero(off)
    finite = apart[np.isfinite(apart)]
    worst = float("inf") if where.size and not np.isfinite(apart[where]).all() else float(finite.max(initial=0.0))
    return Difference(int(where.size), int(where[0]) if where.size else -1, worst)


def resident_blocks(limits: DeviceLimits, *, threads: int, registers: int, shared_byte: int) -> int:
    """Blocks of a kernel that fit on a multiprocessor at once, as in the CUDA programming guide's occupancy chapter."""
    warps = -(-threads // limits.warp_size)
    most = min(
        limits.max_blocks_per_multiprocessor, limits.max_threads_per_multiprocessor // (warps * limits.warp_size)
    )
    if registers:
        per_warp = -(-registers * limits.warp_size // _REGISTER_GRAIN) * _REGISTER_GRAIN
        most = min(most, limits.registers_per_multiprocessor // per_warp // warps)
    reserved = _RESERVED_BYTE if limits.compute_capability >= 8.0 else 0
    if shared_byte + reserved:
        grain = 128 if limits.compute_capability >= 8.0 else 256
        per_block = -(-(shared_byte + reserved) // grain) * grain
        most = min(most, limits.shared_memory_per_multiprocessor // per_block)
    return max(0, most)


def occupancy(limits: DeviceLimits, *, threads: int, registers: int, shared_byte: int) -> float:
    """Resident threads over the most a multiprocessor can hold, 0..1."""
    blocks = resident_blocks(limits, threads=threads, registers=registers, shared_byte=shared_byte)
    warps = -(-threads // limits.warp_size)
    return blocks * warps * limits.warp_size / limits.max_threads_per_multiprocessor
