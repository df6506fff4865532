"""Matrix product C = A B, tiled as in `resources/kernels/gemm.cu`: block_size x tile_size outputs per block."""

from __future__ import annotations

from typing import Final

from app.sensors.device_limits import DeviceLimits
from app.sensors.load import Load
from app.sensors.simulated.kernels.arguments import Arguments
from app.sensors.simulated.kernels.residency import (
    LaunchRefused,
    bank_conflicts,
    issue_slots_per_fma,
    latency_hiding,
    residency,
    softly_capped,
)

_FIXED_REGISTERS: Final = 22  # addresses, indices, loop counters
_GLOBAL_LATENCY_CYCLES: Final = 600.0  # load, store to shared memory, two barriers
_UNSHARED: Final = 0.6  # of the issue rate, where every operand comes through the L1 cache
_L2_DRIFT: Final = 1.3  # blocks of a wave do not keep step: some stripes are fetched again


def load(given: Arguments, limits: DeviceLimits) -> Load:
    """One launch. Sizes `m, n, k` (or one `n` for all), `block_size_x/y`, `tile_size_x/y`; optional `tile_size_k`,
    `vector_width`, `unroll`, `use_shared_memory`, `precision`.

    Per thread and step of k: tile_x tile_y multiply-adds, tile_x + tile_y loads from shared memory. Device traffic: the
    stripes that a wave of concurrent blocks reads, once per wave. Raises LaunchRefused, also where the sizes are no
    multiples of the tiles.
    """
    precision, word = given.precision()
    n = given.whole(4096, "n", "N", "size", most=10**6)
    m, k = given.whole(n, "m", "M", most=10**6), given.whole(n, "k", "K", most=10**6)
    block_x = given.whole(16, "block_size_x", most=4096)
    block_y = given.whole(16, "block_size_y", most=4096)
    tile_x = given.whole(1, "tile_size_x", most=256)
    tile_y = given.whole(1, "tile_size_y", most=256)
    depth = min(k, given.whole(block_x, "tile_size_k", "block_size_k", "blk_k", most=4096))
    vector = given.whole(1, "vector_width", "vector", most=16)
    unroll = min(depth, given.whole(depth, "unroll", "loop_unroll_factor", most=4096))
    shared = given.switch(True, "use_shared_memory", "use_shared", "use_shmem")

    threads, outputs = block_x * block_y, tile_x * tile_y
    rows, columns = block_y * tile_y, block_x * tile_x
    words_of_4 = max(1, word // 4)
    registers = _FIXED_REGISTERS + words_of_4 * (outputs + tile_x + tile_y) + 2 * vector + unroll // 8
    if m % rows or n % columns or k % depth:
        raise LaunchRefused("compile", f"{m} x {n} x {k} is no multiple of the tiles {rows} x {columns} x {depth}")
    seat = residency(
        limits,
        threads=threads,
        registers=registers,
        shared_byte=(rows + columns) * depth * word if shared else 0,
        blocks=(m // rows) * (n // columns),
    )

    # Instructions per thread and step of k.
    slots = issue_slots_per_fma(limits.compute_capability)
    wide = min(vector, tile_x)
    reads = tile_y + tile_x / wide
    spills = 2.0 * seat.spilled / max(1.0, depth)
    fetches = (rows + columns) / threads / min(vector, depth)  # global loads, each with a store and an address
    others = reads + 3.0 * fetches + 2.5 / unroll + 4.0 * spills
    busy = ((slots * outputs) ** 4 + (outputs + others) ** 4) ** 0.25
    issue = slots * outputs / busy
    issue *= latency_hiding(seat.warps, min(outputs, 16.0))
    # Between two barriers a block waits for its loads, unless other blocks fill the time.
    step_cycles = depth * outputs * threads * slots / 128.0
    issue *= softly_capped(seat.blocks_per_multiprocessor * step_cycles / (step_cycles + _GLOBAL_LATENCY_CYCLES) + 0.15)
    issue *= seat.wave_share * threads / (seat.warps_per_block * limits.warp_size)

    multiply_adds = float(m) * n * k
    uneven = max(1.0, 128.0 / (min(block_x, depth) * word * vector)) ** 0.5  # rows shorter than a cache line
    from_l2 = multiply_adds * word * (1.0 / columns + 1.0 / rows) * uneven
    if shared:
        lanes = range(limits.warp_size)
        conflicts = bank_conflicts(lane // block_x * depth for lane in lanes)  # rows of A that a warp reads at once
        onchip = multiply_adds * word * (tile_y * conflicts + tile_x / wide) / outputs + 2.0 * from_l2
    else:
        onchip = 2.0 * multiply_adds * word * (tile_y + tile_x) / outputs + 2.0 * from_l2
        issue *= _UNSHARED
    onchip += multiply_adds / outputs * spills * 8.0
    concurrent = seat.blocks_per_multiprocessor * limits.multiprocessors
    return Load(
        name="gemm",
        precision=precision,
        work_flop=2.0 * multiply_adds,
        traffic_byte=_device_traffic(m, n, k, rows, columns, word, concurrent),
        occupancy=seat.occupancy,
        issue_efficiency=max(1e-3, min(1.0, issue)),
        onchip_byte=onchip,
    )


def _device_traffic(m: int, n: int, k: int, rows: int, columns: int, word: int, concurrent: int) -> float:
    """Bytes through device memory: per wave the stripes of A and B under it, and C once."""
    across, down = n // columns, m // rows
    concurrent = min(concurrent, across * down)
    wave_columns = min(across, concurrent)
    wave_rows = max(1.0, concurrent / across)
    waves = across * down / concurrent
    stripes = waves * (wave_rows * rows + wave_columns * columns) * k * word * _L2_DRIFT
    return max(stripes, float(m * k + k * n) * word) + m * n * word
