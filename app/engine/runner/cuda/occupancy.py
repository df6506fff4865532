"""How many blocks of a kernel are resident on a multiprocessor."""

from __future__ import annotations

from typing import Final

from ....sensors.limits import DeviceLimits

_REGISTER_GRAIN: Final = 256  # registers are given to a warp in such portions, from compute capability 3.0 on
_RESERVED_BYTE: Final = 1024  # of shared memory per block, from 8.0 on


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
