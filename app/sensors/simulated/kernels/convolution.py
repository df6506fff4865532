"""2-D convolution of an image, tiled with a halo in shared memory, as in `resources/kernels/convolution.cu`."""

from __future__ import annotations

from typing import Final

from ...gpu import Load
from ...limits import DeviceLimits
from .arguments import Arguments
from .residency import bank_conflicts, bounded, issue_cycles, issue_slots_per_fma, latency_hiding, residency

_FIXED_REGISTERS: Final = 20
_FILL_LATENCY_CYCLES: Final = 700.0
_HALO_MISSES: Final = 0.4  # share of the halo that neighbours have not left in the L2 cache


def load(given: Arguments, limits: DeviceLimits) -> Load:
    """One launch. `image_width, image_height` (or `n`), `filter_width, filter_height`, `block_size_x/y`,
    `tile_size_x/y`; optional `use_padding`, `use_shared_memory`, `read_only`, `unroll`, `precision`.

    Per output and filter tap one multiply-add and one load of the input; the filter's tap comes from constant memory,
    once for the tile_x tile_y outputs of a thread. Raises LaunchRefused.
    """
    precision, word = given.precision()
    n = given.size(4096, most=10**6)
    width = given.whole(n, "image_width", "width", most=10**6)
    height = given.whole(n, "image_height", "height", most=10**6)
    filter_x = given.whole(15, "filter_width", "fw", most=512)
    filter_y = given.whole(filter_x, "filter_height", "fh", most=512)
    (block_x, block_y), (tile_x, tile_y) = given.block(32, 8), given.tile()
    shared = given.shared(True)
    cached = given.switch(False, "read_only")
    unroll = given.whole(filter_x, "unroll", "loop_unroll_factor", most=512)

    threads, outputs = block_x * block_y, tile_x * tile_y
    columns, rows = block_x * tile_x, block_y * tile_y
    halo_x, halo_y = columns + filter_x - 1, rows + filter_y - 1
    row_words = halo_x + int(given.switch(False, "use_padding"))
    words_of_4 = max(1, word // 4)
    seat = residency(
        limits,
        threads=threads,
        registers=_FIXED_REGISTERS + words_of_4 * (2 * outputs + tile_x) + min(unroll, filter_x) // 2,
        shared_byte=row_words * halo_y * word if shared else 0,
        blocks=-(-width // columns) * -(-height // rows),
    )

    slots = issue_slots_per_fma(limits.compute_capability)
    taps = filter_x * filter_y
    fill = 4.0 * halo_x * halo_y / (threads * taps)  # instructions per thread and tap that fill the tile
    others = outputs + 1.0 + 2.0 / min(unroll, filter_x) + (fill if shared else outputs) + 4.0 * seat.spilled / taps
    busy = issue_cycles(slots * outputs, outputs + others)
    issue = slots * outputs / busy * latency_hiding(seat.lanes, min(outputs, 16.0))
    if shared:
        issue *= seat.unhidden_share(taps * outputs * threads * slots / 128.0, _FILL_LATENCY_CYCLES)
    else:
        issue *= 0.75 if cached else 0.55
    issue *= seat.busy_share(threads, limits)

    covered = float(-(-width // columns) * columns) * (-(-height // rows) * rows)
    lanes = range(limits.warp_size)
    conflicts = bank_conflicts(lane // block_x * row_words + lane % block_x for lane in lanes) if shared else 1
    reads = covered * taps * (conflicts + 1.0 / outputs)
    per_tile = halo_x * halo_y / (columns * rows)
    traffic = width * height * word * (1.0 + _HALO_MISSES * (per_tile - 1.0) + 1.0)
    return Load(
        name="convolution",
        precision=precision,
        work_flop=2.0 * width * height * taps,
        traffic_byte=traffic,
        occupancy=seat.occupancy,
        issue_efficiency=bounded(issue * width * height / covered),
        onchip_byte=word * (reads * (1.0 if shared else 1.5) + covered * per_tile),
    )
