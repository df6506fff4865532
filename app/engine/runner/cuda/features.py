"""What is known of a CUDA kernel without running it, from its image and its launch."""

from __future__ import annotations

import math

from ....sensors.limits import DeviceLimits
from ...space.array_expressions import number_type
from ...workloads.machine_code import FROM_CAPABILITY, LaunchShape, code_features, granted, instruction_mix, kernel_code
from ...workloads.source_kernel import Prepared
from .compiler import symbol
from .occupancy import resident_blocks

_RESERVED_BYTE = 1024  # of static shared memory, counted in images from this compute capability on
_RESERVED_FROM = 9.0


def image_features(image: bytes, prepared: Prepared, limits: DeviceLimits) -> dict[str, float]:
    """The features of FEATURES that an image gives; what it does not is left out. Raises KernelFailed."""
    launch = prepared.launch
    name = symbol(image, launch.name)
    arrays = [argument for argument in prepared.calls.arguments if argument.shape is not None]
    byte = sum(math.prod(array.shape or ()) * number_type(array.type).itemsize for array in arrays)
    result: dict[str, float] = {"argument_byte": float(byte)}
    resources = (granted(image) or {}).get(name)
    if resources is not None:
        static = resources.shared_byte
        if static and limits.compute_capability >= _RESERVED_FROM:
            static -= _RESERVED_BYTE
        threads, shared = math.prod(launch.block), static + launch.shared_byte
        resident = resident_blocks(limits, threads=threads, registers=resources.registers, shared_byte=shared)
        shape = LaunchShape(
            grid_blocks=math.prod(launch.grid),
            block_threads=threads,
            blocks_per_multiprocessor=resident,
            multiprocessors=limits.multiprocessors,
            max_threads_per_multiprocessor=limits.max_threads_per_multiprocessor,
            registers_per_thread=float(resources.registers),
            shared_memory_byte=float(shared),
            local_memory_byte=float(resources.local_byte),
        )
        result |= shape.features()
    code = (kernel_code(image) or {}).get(name)
    if code is not None and limits.compute_capability >= FROM_CAPABILITY:
        result |= code_features(*instruction_mix(code, limits.compute_capability))
    return result
