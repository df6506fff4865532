"""Kernels bound by arithmetic: gravity between all pairs of bodies, and the microbenchmarks of the energy roofline.

They stand for `n_body.cu`, `roofline.cu` and `roofline_tensor.cu` of `resources/kernels`; the microbenchmarks load,
work on what they loaded, and store.
"""

from __future__ import annotations

from typing import Final

from ...gpu import Load
from ...limits import DeviceLimits
from .arguments import Arguments
from .residency import LaunchRefused, bounded, issue_cycles, issue_slots_per_fma, latency_hiding, residency

FLOP_PER_PAIR: Final = 20.0
_N_BODY_REGISTERS: Final = 20
_ARITHMETIC: Final = 13.0  # instructions per pair besides the root: 6 multiply-adds, 7 sums and products
_EXACT_ROOT: Final = 16.0  # more of them for a root and a division instead of the approximate inverse root
_ROOT_CYCLES: Final = 8.0  # a warp's root on the special units: 16 of them per multiprocessor
_BODY_BYTE: Final = 16.0
_L1_COST: Final = 2.0  # a read through the L1 cache against one of shared memory


def n_body(given: Arguments, limits: DeviceLimits) -> Load:
    """One launch. `n` bodies, `block_size_x`, `tile_size_x` (bodies per thread); optional `use_shared_memory`,
    `vector_width` (floats per load), `loop_unroll_factor`, `use_rsqrt`. Single precision.

    Per pair 20 operations in 13 instructions and a root; per tile_size_x pairs a body is read, the same one by a whole
    warp. All bodies fit in the caches. Raises LaunchRefused.
    """
    n = given.size(131072, most=10**8)
    threads = given.whole(256, "block_size_x", most=4096)
    tile = given.whole(1, "tile_size_x", most=64)
    shared = given.shared(True)
    vector = given.whole(4, "vector_width", "vector", most=16)
    unroll = given.whole(1, "loop_unroll_factor", "unroll", most=1024)
    fast = given.switch(True, "use_rsqrt")
    if vector not in (1, 2, 4):
        raise LaunchRefused("compile", f"a body's four floats are not read {vector} at once")

    blocks = -(-n // (threads * tile))
    seat = residency(
        limits,
        threads=threads,
        registers=_N_BODY_REGISTERS + 7 * tile + min(unroll, 16),
        shared_byte=int(_BODY_BYTE) * threads if shared else 0,
        blocks=blocks,
    )
    slots = issue_slots_per_fma(limits.compute_capability)
    arithmetic = _ARITHMETIC + (0.0 if fast else _EXACT_ROOT)
    reads = 4.0 / vector / tile
    others = 1.0 + reads * (1.0 if shared else 2.0) + 2.0 / (unroll * tile) + 4.0 * seat.spilled / tile
    busy = issue_cycles(slots * arithmetic, arithmetic + others, _ROOT_CYCLES)
    issue = slots * FLOP_PER_PAIR / 2.0 / busy
    issue *= latency_hiding(seat.lanes, min(16.0, tile * min(unroll, 4) ** 0.5))
    issue *= seat.busy_share(threads, limits)
    pairs = float(n) * n
    done = float(blocks * threads * tile) * n
    per_warp = 128.0 / limits.warp_size  # a read that all threads share takes as long as 4 bytes each
    onchip = done * reads * per_warp * (1.0 if shared else _L1_COST)
    if shared:
        onchip += 2.0 * blocks * n * _BODY_BYTE
    return Load(
        name="n_body",
        precision="fp32",
        work_flop=FLOP_PER_PAIR * pairs,
        traffic_byte=2.0 * n * _BODY_BYTE,
        occupancy=seat.occupancy,
        issue_efficiency=bounded(issue * pairs / done),
        onchip_byte=onchip + 8.0 * done * seat.spilled / tile,
    )


_LANE_BYTES: Final = 16  # of a load; each of its words is an independent chain, on tensor cores there are two
_STEP: Final = 128.0  # operations between two branches of the loop


def roofline(given: Arguments, limits: DeviceLimits) -> Load:
    """`operations` times `flop_per_word` (a fused multiply-add: 2) on each word of `n`.

    It is loaded and stored where `load_store` says so. `block_size_x` and `blocks_per_multiprocessor` make the
    occupancy, whether the grid stays on the board or has a thread for each load.
    """
    precision, word = given.precision()
    flop_per_word = given.whole(2, "flop_per_word")
    n = given.whole(2**26, "n")
    operations = given.whole(0, "operations", least=0, most=2**20)
    threads = given.whole(256, "block_size_x", most=4096)
    each = given.whole(8, "blocks_per_multiprocessor", most=64)
    seat = residency(limits, threads=threads, registers=24, shared_byte=0, blocks=each * limits.multiprocessors)
    moved = 2.0 * n * word if given.switch(True, "load_store") else 0.0
    slots = issue_slots_per_fma(limits.compute_capability, precision)
    chains = 2 if precision == "fp16_tensor" else _LANE_BYTES // word
    hidden = latency_hiding(seat.lanes, chains, slots)
    other = 1.0 / _STEP + (2.0 / max(1, operations) if moved else 0.0)  # instructions per operation
    return Load(
        name="roofline",
        precision=precision,
        work_flop=float(flop_per_word) * n * operations,
        traffic_byte=moved,
        occupancy=seat.occupancy,
        issue_efficiency=hidden / (1.0 + other / slots),
    )
