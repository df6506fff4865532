"""Limits of a board that restrictions may use and that decide occupancy."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeviceLimits:
    """As in the CUDA C++ Programming Guide, 'Technical Specifications per Compute Capability'. Bytes and counts."""

    compute_capability: float
    multiprocessors: int
    max_threads_per_block: int = 1024
    max_threads_per_multiprocessor: int = 2048
    max_blocks_per_multiprocessor: int = 32
    registers_per_block: int = 65536
    registers_per_multiprocessor: int = 65536
    shared_memory_per_block: int = 49152  # without opting in to more
    shared_memory_per_multiprocessor: int = 167936
    warp_size: int = 32

    def as_names(self) -> dict[str, int | float]:
        """The names that a specification's expressions may use."""
        return dataclasses.asdict(self)


# compute capability -> what differs from the defaults: threads, blocks and shared memory per multiprocessor
_BY_CAPABILITY: dict[tuple[int, int], tuple[int, int, int]] = {
    (3, 5): (2048, 16, 49152),
    (3, 7): (2048, 16, 114688),
    (5, 0): (2048, 32, 65536),
    (5, 2): (2048, 32, 98304),
    (6, 0): (2048, 32, 65536),
    (6, 1): (2048, 32, 98304),
    (7, 0): (2048, 32, 98304),
    (7, 5): (1024, 16, 65536),
    (8, 0): (2048, 32, 167936),
    (8, 6): (1536, 16, 102400),
    (8, 9): (1536, 24, 102400),
    (9, 0): (2048, 32, 233472),
    (10, 0): (2048, 32, 233472),
    (12, 0): (1536, 32, 102400),
}


# target of AMD's compiler -> (threads, blocks, registers, shared bytes) per compute unit, threads that run in step
# (LLVM, "User Guide for AMDGPU Backend"; ROCm, "Accelerator and GPU hardware specifications")
_BY_TARGET: dict[str, tuple[int, int, int, int, int]] = {
    "gfx90a": (2048, 32, 131072, 65536, 64),
}


def limits_of(
    compute_capability: tuple[int, int], multiprocessors: int | None = None, *, target: str = ""
) -> DeviceLimits:
    """The limits of a compute capability; the nearest older one we know where it is not in the table.

    A `target` of AMD's compiler goes before it: its capability is a number of another maker.
    """
    if target in _BY_TARGET:
        threads, blocks, registers, shared, in_step = _BY_TARGET[target]
        return DeviceLimits(
            compute_capability=compute_capability[0] + compute_capability[1] / 10,
            multiprocessors=multiprocessors if multiprocessors is not None else 104,
            max_threads_per_multiprocessor=threads,
            max_blocks_per_multiprocessor=blocks,
            registers_per_multiprocessor=registers,
            shared_memory_per_block=shared,
            shared_memory_per_multiprocessor=shared,
            warp_size=in_step,
        )
    capability = max((c for c in _BY_CAPABILITY if c <= compute_capability), default=(8, 0))
    threads, blocks, shared = _BY_CAPABILITY[capability]
    return DeviceLimits(
        compute_capability=compute_capability[0] + compute_capability[1] / 10,
        multiprocessors=multiprocessors if multiprocessors is not None else 108,
        max_threads_per_multiprocessor=threads,
        max_blocks_per_multiprocessor=blocks,
        shared_memory_per_multiprocessor=shared,
    )
