"""What one launch of a kernel asks of a GPU, as the simulated boards and the models count it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Precision = Literal["fp16", "fp16_tensor", "fp32", "fp64", "fp64_tensor"]
PRECISIONS: tuple[Precision, ...] = ("fp16", "fp16_tensor", "fp32", "fp64", "fp64_tensor")


@dataclass(frozen=True, slots=True)
class Counts:
    """What hardware counters would count of one launch, as far as the formulas of a kernel's cost tell it."""

    instructions: float  # executed, by warps
    written_byte: float  # to device memory: the rest of the traffic is read
    l2_read_byte: float  # from the L2 cache
    shared_load_byte: float  # of shared memory's time, so that conflicts count
    shared_store_byte: float


@dataclass(frozen=True, slots=True)
class Load:
    """Work and traffic of one launch. Nothing here depends on the board."""

    name: str
    precision: Precision
    work_flop: float  # W: floating-point operations
    traffic_byte: float  # Q: bytes through device memory
    occupancy: float = 1.0  # resident share of the board's threads, 0..1
    issue_efficiency: float = 1.0  # share of the peak rate the instruction mix can reach, 0..1
    onchip_byte: float = 0.0  # bytes through shared memory and caches, beyond what traffic brings along
    counts: Counts | None = None  # None: the kernel's formulas tell no more than what stands above


@dataclass(frozen=True, slots=True)
class Execution:
    """A series of back-to-back launches, timed by the device's own events."""

    launches: int
    time_s: float  # mean time of one launch: (last event - first event) / launches
    start_ns: int  # on the GPU's clock
    end_ns: int
    change: float = 0.0  # of the time of one launch, from the first half of them to the second; relative
    reported: float | None = None  # mean of what a launch reports of itself: its own seconds, or a value
