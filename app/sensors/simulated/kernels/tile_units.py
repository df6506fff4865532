"""What multiplies in a tile, counted in the code: the FP32 units by `cores.cuh`, or tensor cores by `tensor.cuh`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ...device_limits import DeviceLimits
from ...load import Precision
from .arguments import Arguments
from .residency import LaunchRefused, issue_slots_per_fma

_SHARED_LINE_BYTE: Final = 128.0
_WARP: Final = 32
_OLDER_INSTRUCTION: Final = 0.62  # of Hopper's tensor cores, which mma.sync does not fill as wgmma does (assumption)


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """Per thread, unless it says otherwise."""

    precision: Precision
    word: int  # bytes of an operand's number
    threads: int  # that cover the tile once
    sums: int  # registers
    fragments: int  # registers of A and B
    useful: float  # instructions that multiply, for one number along the depth
    reads: float  # of shared memory, for one number along the depth
    slots: float  # of issue that one useful instruction takes
    independent: float  # useful instructions that need not wait for each other
    shared_byte: float  # of shared memory's time for one multiply-add
    deep: int  # the least that a set of threads takes of a step
    b_pad: int  # numbers after a row of B's stripe
    reach: float = 1.0  # share of the rate that these instructions can have


def units_of(given: Arguments, block_m: int, block_n: int, limits: DeviceLimits) -> Units:
    """Of a configuration. Raises LaunchRefused where the tile does not divide into warps, as the source has it."""
    if given.switch(False, "TENSOR"):
        return _tensor(given, block_m, block_n, limits)
    return _cores(given, block_m, block_n, limits)


def _cores(given: Arguments, block_m: int, block_n: int, limits: DeviceLimits) -> Units:
    """A warp's read of 16 bytes a thread takes two turns of 128 bytes, as neighbours share rows and columns."""
    m, n, lanes_n = (given.whole(8, name, most=4096) for name in ("thread_m", "thread_n", "lanes_n"))
    lanes_m = limits.warp_size // lanes_n
    if not lanes_m or n % 4 or block_m % (lanes_m * m) or block_n % (lanes_n * n):
        what = f"a tile of {block_m} x {block_n} does not divide into warps of {lanes_m} x {lanes_n} threads"
        raise LaunchRefused("compile", f"{what} with {m} x {n} numbers")
    return Units(
        precision="fp32",
        word=4,
        threads=block_m * block_n // (m * n),
        sums=m * n,
        fragments=4 * m + n,
        useful=float(m * n),
        reads=(m + n) / 4.0,
        slots=issue_slots_per_fma(limits.compute_capability),
        independent=min(m * n, 64.0),
        shared_byte=2.0 * (m + n) / 4.0 * _SHARED_LINE_BYTE / (_WARP * m * n),
        deep=4,
        b_pad=0,
    )


def _tensor(given: Arguments, block_m: int, block_n: int, limits: DeviceLimits) -> Units:
    """Products of 16 x 8 x 16 by a warp; ldmatrix reads four matrices of 8 x 8."""
    m, n = (given.whole(32, name, most=4096) for name in ("warp_m", "warp_n"))
    if limits.compute_capability < 8.0:
        raise LaunchRefused("compile", "these products need compute capability 8.0")
    if m % 16 or n % 16 or block_m % m or block_n % n:
        raise LaunchRefused("compile", f"a tile of {block_m} x {block_n} does not divide into warps' {m} x {n}")
    products = m / 16 * n / 8
    return Units(
        precision="fp16_tensor",
        word=2,
        threads=block_m * block_n // (m * n) * _WARP,
        sums=m * n // _WARP,
        fragments=m // 4 + n // 4,
        useful=products / 16.0,
        reads=(m / 16 + n / 16) / 16.0,
        slots=issue_slots_per_fma(limits.compute_capability, "fp16_tensor"),
        independent=min(4.0 * products, 64.0),
        shared_byte=2.0 * (m + n) / (m * n),
        deep=16,
        b_pad=8,
        reach=_OLDER_INSTRUCTION if limits.compute_capability >= 9.0 else 1.0,
    )
