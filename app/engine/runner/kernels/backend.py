"""The `Backend` seam inside the runner process: what a worker needs of a device, in whatever language."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ...space.array_expressions import widened
from ...workloads.kernel_arguments import Launch

Array = npt.NDArray[Any]


class DeviceFault(Exception):
    """The driver refused or failed. `fatal`: the context is lost, and with it the process."""

    def __init__(self, message: str, *, fatal: bool = False) -> None:
        super().__init__(message)
        self.fatal = fatal


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """What the driver reports of a loaded kernel; None if it does not."""

    registers: int | None = None  # per thread
    shared_byte: int | None = None  # per block, static and dynamic
    local_byte: int | None = None  # per thread: spills and local arrays
    blocks_per_multiprocessor: int | None = None  # resident ones
    occupancy: float | None = None  # theoretical: resident threads over the multiprocessor's
    sms: int | None = None  # that it runs on, counted where the configuration asks for some


class Difference(NamedTuple):
    """How an output differs from its reference."""

    wrong: int  # elements beyond the tolerance
    first: int  # flat index of the first one; -1 if there is none
    worst: float  # the largest absolute difference


class Kernel(Protocol):
    """A loaded kernel with its arguments bound."""

    facts: KernelFacts

    def launch(self, times: int) -> None:
        """Queue that many launches; returns before they have run."""
        ...

    def unload(self) -> None: ...


@runtime_checkable
class VendorKernel(Kernel, Protocol):
    """An operator of the vendor's library."""

    @property
    def library(self) -> str:
        """Its name and version."""
        ...

    def deliver(self) -> None:
        """Once what is queued has run: put the output where our kernels write it, if it is elsewhere."""
        ...


class Mark(Protocol):
    """A point in the queue of launches, with a time stamp once the device has passed it."""

    @property
    def passed(self) -> bool:
        """Raises DeviceFault if a launch before it failed."""
        ...

    def wait(self) -> None:
        """Until it has passed. Raises DeviceFault."""
        ...

    def seconds_since(self, earlier: Mark) -> float:
        """Device time between two marks that have passed."""
        ...


@runtime_checkable
class ReportingMark(Protocol):
    """A mark with what the launches before it reported of themselves, besides the time on the device's clock."""

    def reported_since(self, earlier: Mark) -> float:
        """The sum over the launches since then: seconds, or what a function of the host returned."""
        ...


@dataclass(frozen=True, slots=True)
class PageLocked:
    """A buffer of the host that a function is given page-locked and mapped, as its script has it."""

    buffer: Any


@dataclass(frozen=True, slots=True)
class LocalMemory:
    """An argument that is memory of a work-group."""

    nbyte: int


class Backend(ABC):
    """One device and its context, used by one thread."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Facts about the device: name, limits as in DeviceLimits, and what its language needs besides."""

    @abstractmethod
    def upload(self, array: Array) -> Any:
        """A copy on the device."""

    @abstractmethod
    def write(self, buffer: Any, array: Array) -> None:
        """From the host into a buffer."""

    @abstractmethod
    def read(self, buffer: Any, like: Array) -> Array:
        """A buffer of the type and shape of `like`, on the host, once what is queued has run."""

    @abstractmethod
    def copy(self, source: Any, target: Any, nbyte: int) -> None:
        """From one device buffer to another, in the queue's order."""

    @abstractmethod
    def free(self, buffer: Any) -> None: ...

    @abstractmethod
    def load(self, image: bytes, launch: Launch, arguments: Sequence[Any], constants: Mapping[str, Array]) -> Kernel:
        """Load a kernel and bind its arguments: buffers, alone or as `PageLocked`, NumPy scalars, `LocalMemory`.

        Raises DeviceFault.
        """

    def product(self) -> Kernel | None:
        """The vendor library's matrix product on operands of its own, where the library and the memory are there."""
        return None

    def vendor(self, facts: Mapping[str, Any], operands: Mapping[str, tuple[Any, Array]]) -> VendorKernel:
        """An operator by the vendor's library, on buffers and the arrays that they hold, by their arguments' names.

        The `facts` are those of its image: the operator's notation, its maker, and the maker's word for an algorithm.
        Raises DeviceFault, saying what is missing, where no library does it.
        """
        raise DeviceFault("no vendor library is known for this device")

    @abstractmethod
    def mark(self) -> Mark:
        """Put a mark into the queue."""

    def use_comparer(self, image: bytes) -> None:  # noqa: B027 - what has none compares on the host
        """Kernels that compare on the device; without them the host compares."""

    def difference(self, output: Any, reference: Any, like: Array, rtol: float, atol: float) -> Difference:
        """Compare two buffers of the type and size of `like`."""
        return difference(self.read(output, like), self.read(reference, like), rtol, atol)

    @abstractmethod
    def close(self) -> None: ...


def difference(output: Array, reference: Array, rtol: float, atol: float) -> Difference:
    """Elements with |output - reference| > atol + rtol |reference|, NaN against a number included."""
    wide = np.complex128 if reference.dtype.kind == "c" else np.float64
    given, expected = (widened(value).ravel().astype(wide) for value in (output, reference))
    with np.errstate(all="ignore"):
        apart = np.abs(given - expected)
        close = np.isfinite(apart) & (apart <= atol + rtol * np.abs(expected))
        off = ~close & ~(np.isnan(given) & np.isnan(expected)) & (given != expected)
    where = np.flatnonzero(off)
    finite = apart[np.isfinite(apart)]
    worst = float("inf") if where.size and not np.isfinite(apart[where]).all() else float(finite.max(initial=0.0))
    return Difference(int(where.size), int(where[0]) if where.size else -1, worst)
