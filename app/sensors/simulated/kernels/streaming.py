"""Kernels that live on bandwidth: dot product and copy, as in `resources/kernels/dot.cu` and `copy.cu`.

eps_mem is fitted on kernels like these, so it holds their way through the caches: no on-chip bytes are counted again.
"""

from __future__ import annotations

import math
from typing import Final

from app.sensors.device_limits import DeviceLimits
from app.sensors.load import Load
from app.sensors.simulated.kernels.arguments import Arguments
from app.sensors.simulated.kernels.residency import LaunchRefused, Residency, residency

_ITEMS: Final = ("items_per_thread", "tile_size_x", "elements_per_thread")
_IN_FLIGHT: Final = 4.0  # numbers of 4 bytes under way per thread at full occupancy that make the bandwidth full


def copy(given: Arguments, limits: DeviceLimits) -> Load:
    """b = a for `n` numbers. `block_size_x`, optional `vector_width`, `items_per_thread`, `unroll`, `precision`."""
    precision, word = given.precision()
    n = given.whole(2**26, "n", "N", "size")
    seat, _, vector, unroll = _seat(given, limits, n)
    return Load(
        name="copy",
        precision=precision,
        work_flop=0.0,
        traffic_byte=2.0 * n * word * _split_vectors(vector, word),
        occupancy=_concurrency(seat, vector, unroll, word) * seat.wave_share**0.5,
    )


def dot(given: Arguments, limits: DeviceLimits) -> Load:
    """sum(a b) over `n` numbers, reduced per block. Parameters as for copy."""
    precision, word = given.precision()
    n = given.whole(2**26, "n", "N", "size")
    seat, items, vector, unroll = _seat(given, limits, n)
    threads = given.whole(256, "block_size_x")
    if threads % limits.warp_size:
        raise LaunchRefused("compile", f"{threads} threads are no whole number of warps")
    reduction = 6.0 * math.log2(max(2, threads)) / items  # instructions per number of the block's reduction
    other = 2.0 / vector + 2.0 / unroll + reduction
    return Load(
        name="dot",
        precision=precision,
        work_flop=2.0 * n,
        traffic_byte=2.0 * n * word * _split_vectors(vector, word) + n / (items * threads) * 32.0,
        occupancy=_concurrency(seat, vector, unroll, word) * seat.wave_share**0.5,
        issue_efficiency=1.0 / (1.0 + other),
        onchip_byte=n / items * 2.0 * word,
    )


def _seat(given: Arguments, limits: DeviceLimits, n: int) -> tuple[Residency, int, int, int]:
    """Residency, numbers per thread, vector width and unrolling."""
    threads = given.whole(256, "block_size_x", most=4096)
    vector = given.whole(1, "vector_width", "vector", most=16)
    items = max(vector, given.whole(4, *_ITEMS, most=2**20))
    if items % vector:
        raise LaunchRefused("compile", f"{items} numbers per thread are no multiple of vectors of {vector}")
    unroll = min(items // vector, given.whole(1, "unroll", "loop_unroll_factor", most=1024))
    seat = residency(
        limits,
        threads=threads,
        registers=14 + 2 * vector * min(unroll, 16),
        shared_byte=0,
        blocks=max(1, -(-n // (threads * items))),
    )
    return seat, items, vector, unroll


def _concurrency(seat: Residency, vector: int, unroll: int, word: int) -> float:
    """Occupancy that would keep as many bytes under way with one number per thread, 0..1."""
    under_way = vector * word / 4.0 * math.pow(unroll, 0.7)
    return min(1.0, seat.occupancy * (0.25 + under_way / _IN_FLIGHT))


def _split_vectors(vector: int, word: int) -> float:
    """Extra traffic where a vector is longer than 16 bytes and needs several instructions."""
    return 1.0 + 0.03 * max(0, vector * word // 16 - 1)
