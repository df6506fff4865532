"""`DeviceBackend`: a real device, independent of the library that calls its driver."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from ....sensors.limits import DeviceLimits
from ...space.array_expressions import type_name
from ...specification.operator_shapes import ALGORITHM, CUBLASLT, MAKER, parse_operator
from ...workloads.kernel_arguments import Launch
from ..kernels.backend import Array, Backend, DeviceFault, Difference, KernelFacts, Mark
from ..kernels.made_image import facts_of
from .comparer import TYPES, compared_type
from .driver import Driver, Module, Recording, launch_recorded
from .occupancy import occupancy, resident_blocks
from .vendor import KeptOfLibraries, Operands, VendorOperator, VendorProduct, cublas

SCRATCH: Final = ("scratch_byte", "profile_byte")  # of a block, that a kernel of Triton's is given at the end
_PROBE_BLOCKS: Final = 16  # for each SM: more than it holds at a time
NONE_YET: Final = 2**64 - 1  # no element differs
_LIMITS: Final = {  # of DeviceLimits, as the driver calls them; where its library does not know one, the default stays
    "multiprocessors": "MULTIPROCESSOR_COUNT",
    "max_threads_per_block": "MAX_THREADS_PER_BLOCK",
    "max_threads_per_multiprocessor": "MAX_THREADS_PER_MULTIPROCESSOR",
    "max_blocks_per_multiprocessor": "MAX_BLOCKS_PER_MULTIPROCESSOR",
    "registers_per_block": "MAX_REGISTERS_PER_BLOCK",
    "registers_per_multiprocessor": "MAX_REGISTERS_PER_MULTIPROCESSOR",
    "shared_memory_per_block": "MAX_SHARED_MEMORY_PER_BLOCK",
    "shared_memory_per_multiprocessor": "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR",
    "warp_size": "WARP_SIZE",
}


class DeviceBackend(Backend):
    """Implements `Backend`. Buffers are addresses."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._limits = _limits(driver)
        self._comparers: Module | None = None
        self._seen: dict[Any, int] = {}  # SMs that were counted, by queue
        self._compared = driver.allocate(24)
        self._kept = KeptOfLibraries(driver)

    def describe(self) -> dict[str, Any]:
        driver = self._driver
        return {
            "name": driver.name,
            "compute_capability": list(driver.compute_capability),
            "limits": self._limits.as_names(),
            "shared_memory_opt_in": driver.attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN") or 0,
            "driver": driver.version,
            "sm_granularity": driver.granularity,
        }

    # --- memory -----------------------------------------------------------------------------------------------------

    def upload(self, array: Array) -> int:
        buffer = self._driver.allocate(max(1, array.nbytes))
        self.write(buffer, array)
        return buffer

    def write(self, buffer: int, array: Array) -> None:
        if array.nbytes:
            self._driver.write(buffer, np.ascontiguousarray(array))

    def read(self, buffer: int, like: Array) -> Array:
        array = np.empty(like.shape, like.dtype)
        if array.nbytes:
            self._driver.read(buffer, array)
        return array

    def copy(self, source: int, target: int, nbyte: int) -> None:
        if nbyte:
            self._driver.copy(source, target, nbyte)

    def free(self, buffer: int) -> None:
        self._driver.free(buffer)

    # --- kernels ----------------------------------------------------------------------------------------------------

    def load(
        self, image: bytes, launch: Launch, arguments: Sequence[Any], constants: Mapping[str, Array]
    ) -> DeviceKernel:
        queue, had = self._driver.partition(launch.sms) if launch.sms else (self._driver.whole, 0)
        self._driver.use(queue)
        if launch.sms:
            had = self._seen_sms(queue) or had
        made = facts_of(image)
        if made is None:
            return DeviceKernel(self._driver, self._limits, image, launch, arguments, constants, had)
        facts, code = made
        as_made = replace(launch, block=(int(facts["threads"]), 1, 1), shared_byte=int(facts["shared_byte"]))
        blocks = math.prod(launch.grid)
        needed = [blocks * int(facts[name]) for name in SCRATCH][: int(facts["appended"])]
        rooms = [self._driver.allocate(nbyte) if nbyte else 0 for nbyte in needed]
        return DeviceKernel(self._driver, self._limits, code, as_made, [*arguments, *rooms], constants, had, rooms)

    def _seen_sms(self, queue: Any) -> int:
        """How many SMs run what is in a queue, as the blocks of a kernel see them; 0 without that kernel."""
        if queue not in self._seen and self._comparers is not None:
            most = 4 * self._limits.multiprocessors  # numbers may have gaps
            seen = self.upload(np.zeros(most, np.uint32))
            launch = Launch("seen_sms", (_PROBE_BLOCKS * self._limits.multiprocessors, 1, 1), (1024, 1, 1))
            self._comparers.function(launch.name).bind(launch, (seen, np.uint32(most)))(1)
            self._seen[queue] = int(np.count_nonzero(self.read(seen, np.zeros(most, np.uint32))))
            self.free(seen)
        return self._seen.get(queue, 0)

    def product(self) -> VendorProduct | None:
        library = cublas()
        if library is None:
            return None
        self._driver.use(self._driver.whole)
        try:
            return VendorProduct(self._driver, library)
        except (OSError, DeviceFault):  # another release than the driver's, or no memory left
            return None

    def vendor(self, facts: Mapping[str, Any], operands: Operands) -> VendorOperator:
        self._driver.use(self._driver.whole)
        algorithm = str(facts[ALGORITHM]) if facts[MAKER] == CUBLASLT else ""
        return VendorOperator(self._driver, parse_operator(facts["operator"]), operands, algorithm, self._kept)

    def mark(self) -> Mark:
        return self._driver.mark()

    def use_comparer(self, image: bytes) -> None:
        self._comparers = self._driver.load(image)

    def difference(self, output: int, reference: int, like: Array, rtol: float, atol: float) -> Difference:
        kind, parts = compared_type(type_name(like.dtype))
        if self._comparers is None or kind not in TYPES:
            return super().difference(output, reference, like, rtol, atol)
        size = like.size * parts
        blocks = max(1, min(4 * self._limits.multiprocessors, -(-size // 256)))
        launch = Launch(f"difference_{kind}", (blocks, 1, 1), (256, 1, 1))
        values = (output, reference, np.uint64(size), np.float64(rtol), np.float64(atol), self._compared)
        result = np.array([0, NONE_YET, 0], dtype=np.uint64)
        self._driver.write(self._compared, result)
        self._comparers.function(launch.name).bind(launch, values)(1)
        self._driver.read(self._compared, result)
        count = int(result[0])
        return Difference(count, int(result[1]) // parts if count else -1, float(result[2:].view(np.float64)[0]))

    def close(self) -> None:
        self._kept.close()
        self._driver.close()


class DeviceKernel:
    """A function of a module with its arguments, and a recording of many launches once so many are queued."""

    def __init__(
        self,
        driver: Driver,
        limits: DeviceLimits,
        image: bytes,
        launch: Launch,
        arguments: Sequence[Any],
        constants: Mapping[str, Array],
        sms: int,
        rooms: Sequence[int] = (),
    ) -> None:
        """Make it in the queue that is in use; `sms` were counted there, 0 if nobody asked.

        It gives back the `rooms` in device memory that it was loaded with.
        """
        self._driver, self._in = driver, driver.queue
        self._rooms = [room for room in rooms if room]
        self._module = driver.load(image)
        for name, array in constants.items():
            address, size = self._module.variable(name)
            if array.nbytes > size:
                raise DeviceFault(f"the constant {name} has {size} bytes, {array.nbytes} are given")
            driver.write(address, np.ascontiguousarray(array))
        function = self._module.function(launch.name)
        if launch.shared_byte > limits.shared_memory_per_block:
            function.allow_shared(launch.shared_byte)
        self._queue = function.bind(launch, arguments)
        self._recording: Recording | None = None
        threads = launch.block[0] * launch.block[1] * launch.block[2]
        shared = function.shared_byte + launch.shared_byte
        figures = {"threads": threads, "registers": function.registers, "shared_byte": shared}
        self.facts = KernelFacts(
            registers=function.registers,
            shared_byte=shared,
            local_byte=function.local_byte,
            blocks_per_multiprocessor=resident_blocks(limits, **figures),
            occupancy=occupancy(limits, **figures),
            sms=sms or None,
        )

    def launch(self, times: int) -> None:
        self._driver.use(self._in)
        self._recording = launch_recorded(self._driver, self._queue, self._recording, times)

    def unload(self) -> None:
        if self._recording is not None:
            self._recording.destroy()
            self._recording = None
        self._module.unload()
        for room in self._rooms:
            self._driver.free(room)


def _limits(driver: Driver) -> DeviceLimits:
    major, minor = driver.compute_capability
    limits = {name: driver.attribute(theirs) for name, theirs in _LIMITS.items()}
    return DeviceLimits(
        compute_capability=major + minor / 10,
        **{name: value for name, value in limits.items() if value is not None},
    )
