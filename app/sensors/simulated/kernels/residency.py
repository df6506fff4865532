"""Which blocks fit on a multiprocessor, and what that means for speed: common to all kernels."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, Literal

from ...gpu import Precision
from ...limits import DeviceLimits

_REGISTER_GRAIN: Final = 8  # registers per thread are handed out in eights, per warp
_MOST_REGISTERS: Final = 255  # of one thread
_RESERVED_SHARED_BYTE: Final = 1024  # per block, from compute capability 8.0 on
_LATENCY_LANES: Final = 80.0 * 32  # lanes x root of independent instructions that hide the latency of arithmetic
_LANES: Final = 128.0  # of a multiprocessor's four schedulers
_FP64_UNITS: Final = {3.5: 64, 3.7: 64, 6.0: 32, 7.0: 32, 8.0: 32, 9.0: 64, 10.0: 64}  # per multiprocessor


class LaunchRefused(Exception):
    """A real board would not run this configuration. Carries the measurement's state."""

    def __init__(self, state: Literal["compile", "runtime", "constraints"], message: str) -> None:
        super().__init__(message)
        self.state = state


_SEEN: ContextVar[list[Residency] | None] = ContextVar("_SEEN", default=None)


@dataclass(frozen=True, slots=True)
class Residency:
    """How a kernel sits on the board."""

    blocks_per_multiprocessor: int
    warps_per_block: int
    warp_size: int
    occupancy: float  # resident share of the multiprocessor's threads, 0..1
    spilled: int  # registers per thread that went to memory
    wave_share: float  # blocks over the places of the waves they need: idle places and multiprocessors, 0..1
    blocks: int  # of the launch
    threads: int  # of a block
    registers: int  # granted to a thread
    shared_byte: int  # per block
    fits: int  # blocks that a multiprocessor has room for

    @property
    def lanes(self) -> int:
        """Of all resident warps, which have 32 or 64 each."""
        return self.blocks_per_multiprocessor * self.warps_per_block * self.warp_size

    def busy_share(self, threads: int, limits: DeviceLimits) -> float:
        """Share of the lanes with work, 0..1: waves are not full, and neither is a block's last warp."""
        return self.wave_share * threads / (self.warps_per_block * limits.warp_size)

    def unhidden_share(self, cycles: float, latency: float) -> float:
        """Share of the issue rate, 0..1, where a block waits for `latency` between barriers after `cycles` of work.

        Other blocks fill the time as far as there are any.
        """
        return softly_capped(self.blocks_per_multiprocessor * cycles / (cycles + latency) + 0.15)


def residency(limits: DeviceLimits, *, threads: int, registers: int, shared_byte: int, blocks: int) -> Residency:
    """Blocks per multiprocessor by threads, registers and shared memory, as CUDA's occupancy calculation has it.

    The compiler knows the block size of the kernels, so that a block's registers always fit and the excess spills.
    Raises LaunchRefused: too much static shared memory does not compile, too many threads do not launch.
    """
    if shared_byte > limits.shared_memory_per_block:
        raise LaunchRefused(
            "compile", f"{shared_byte} bytes of shared memory, {limits.shared_memory_per_block} are the most per block"
        )
    if threads > limits.max_threads_per_block:
        raise LaunchRefused("runtime", f"{threads} threads, {limits.max_threads_per_block} are the most per block")
    warps = -(-threads // limits.warp_size)
    most = limits.registers_per_block // (warps * limits.warp_size) // _REGISTER_GRAIN * _REGISTER_GRAIN
    wanted = -(-registers // _REGISTER_GRAIN) * _REGISTER_GRAIN
    granted = min(wanted, most, _MOST_REGISTERS)
    fits = min(
        limits.max_threads_per_multiprocessor // (warps * limits.warp_size),
        limits.registers_per_multiprocessor // (granted * warps * limits.warp_size),
        limits.max_blocks_per_multiprocessor,
    )
    if shared_byte:
        reserved = _RESERVED_SHARED_BYTE if limits.compute_capability >= 8.0 else 0
        fits = min(fits, limits.shared_memory_per_multiprocessor // (shared_byte + reserved))
    fits = max(1, fits)
    resident = min(fits, -(-blocks // limits.multiprocessors))  # on the fullest multiprocessor
    places = resident * limits.multiprocessors
    waves = -(-blocks // places)
    seat = Residency(
        blocks_per_multiprocessor=resident,
        warps_per_block=warps,
        warp_size=limits.warp_size,
        occupancy=min(1.0, resident * threads / limits.max_threads_per_multiprocessor),
        spilled=max(0, registers - granted),
        wave_share=blocks / (waves * places),
        blocks=blocks,
        threads=threads,
        registers=granted,
        shared_byte=shared_byte,
        fits=fits,
    )
    seen = _SEEN.get()
    if seen is not None:
        seen.append(seat)
    return seat


@contextmanager
def residencies() -> Iterator[list[Residency]]:
    """A list that every `residency` found meanwhile is added to: what a compiler would report of a profile's kernel."""
    seen: list[Residency] = []
    token = _SEEN.set(seen)
    try:
        yield seen
    finally:
        _SEEN.reset(token)


def bank_conflicts(addresses: Iterable[int]) -> int:
    """How often a read of shared memory repeats: the most different words that one warp wants from one of 32 banks."""
    per_bank = Counter(address % 32 for address in set(addresses))
    return max(per_bank.values())


def latency_hiding(lanes: int, independent: float, slowness: float = 1.0) -> float:
    """Share of the issue rate reached with so many lanes and independent instructions per thread, 0..1.

    `slowness`: how much slower than FP32 the units are, since slow ones are kept busy by fewer.
    """
    return softly_capped(lanes * math.sqrt(independent) * slowness / _LATENCY_LANES)


def issue_cycles(*bounds: float) -> float:
    """Cycles per step under several bounds on the issue rate: the largest of them, with the corners rounded."""
    total = 0.0
    for bound in bounds:
        total += bound**4
    cycles: float = total**0.25
    return cycles


def bounded(efficiency: float) -> float:
    """An efficiency within 0.001..1."""
    return max(1e-3, min(1.0, efficiency))


def softly_capped(x: float) -> float:
    """min(x, 1) with its corner rounded."""
    capped: float = x / (1.0 + x**4) ** 0.25
    return capped


def issue_slots_per_fma(compute_capability: float, precision: Precision = "fp32") -> float:
    """Issue slots that pass while a multiprocessor's units accept one warp: its four schedulers' 128 lanes over units.

    FP32: Volta, Turing and GA100 have 64 units per multiprocessor; the others 128 (Kepler 192, of which 128 count).
    FP64: the boards for computing have 64 (GK110, Hopper) or 32, the others 2. Tensor cores: a product of 16 x 8 x 16
    takes eight (GA100: 2048 flop per clock and multiprocessor). Others count as FP32.
    """
    if precision == "fp16_tensor":
        return 8.0
    if precision == "fp64":
        return _LANES / _FP64_UNITS.get(compute_capability, 2)
    return 2.0 if compute_capability in (6.0, 7.0, 7.5, 8.0) else 1.0
