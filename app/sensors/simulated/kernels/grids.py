"""Kernels on grids whose blocks share a halo: 2-D convolution and 7-point stencil, as in `resources/kernels`.

A convolution tiles its image with a halo in shared memory; the stencil goes through a 3-D grid plane by plane.
"""

from __future__ import annotations

from typing import Final

from ...gpu import Load
from ...limits import DeviceLimits
from .arguments import Arguments
from .residency import bank_conflicts, bounded, issue_cycles, issue_slots_per_fma, latency_hiding, residency

_CONVOLUTION_REGISTERS: Final = 20
_FILL_LATENCY_CYCLES: Final = 700.0
_HALO_MISSES: Final = 0.4  # share of the halo that neighbours have not left in the L2 cache


def convolution(given: Arguments, limits: DeviceLimits) -> Load:
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
        registers=_CONVOLUTION_REGISTERS + words_of_4 * (2 * outputs + tile_x) + min(unroll, filter_x) // 2,
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


_STENCIL_REGISTERS: Final = 26
_FLOP: Final = 9.0  # five sums, then twice a product and a sum
_ARITHMETIC: Final = 7.0  # instructions of it
_BOUNDS: Final = 8.0  # comparisons and addresses per point
_RIM_MISSES: Final = 0.4  # share of the rim of a plane that neighbours have not left in the L2 cache
_PLANE_MISSES: Final = 0.7  # of the planes that blocks above and below have in common: they run much later
_L1_COST: Final = 1.0  # a byte through the L1 cache against one through shared memory: they are one memory
_LINE_BYTE: Final = 128.0
_IN_FLIGHT: Final = 3.0  # points under way per thread at full occupancy that make the bandwidth full


def stencil(given: Arguments, limits: DeviceLimits) -> Load:
    """One launch. `width, height, depth` (or `n`), `block_size_x/y`, `tile_size_y` (points per thread in a plane),
    `tile_size_z` (planes per block); optional `use_shared_memory`, `keep_planes`, `loop_unroll_factor`, `precision`.

    Every point is read and written once, and the rims of a block's planes and the planes below and above it again as
    far as the caches have lost them. Raises LaunchRefused.
    """
    precision, word = given.precision()
    n = given.size(512, most=10**5)
    width = given.whole(n, "width", most=10**5)
    height = given.whole(n, "height", most=10**5)
    depth = given.whole(n, "depth", most=10**5)
    block_x, block_y = given.block(32, 8)
    tile_y = given.whole(1, "tile_size_y", most=256)
    planes = given.whole(8, "tile_size_z", most=4096)
    shared = given.shared(False)
    kept = given.switch(False, "keep_planes")
    unroll = min(planes, given.whole(1, "loop_unroll_factor", "unroll", most=1024))

    threads, rows = block_x * block_y, block_y * tile_y
    words_of_4 = max(1, word // 4)
    blocks = -(-width // block_x) * -(-height // rows) * -(-depth // planes)
    seat = residency(
        limits,
        threads=threads,
        registers=_STENCIL_REGISTERS + words_of_4 * tile_y * ((2 if kept else 0) + min(unroll, 8)),
        shared_byte=(block_x + 2) * (rows + 2) * word if shared else 0,
        blocks=blocks,
    )

    points = float(width) * height * depth
    done = float(blocks) * block_x * rows * planes  # edges included
    rim = (block_x + 2.0) * (rows + 2.0) / (block_x * rows) - 1.0
    again = _RIM_MISSES * rim + _PLANE_MISSES * min(2.0 / planes, 1.0)
    vertical = 1.0 if kept else 2.0  # reads of the points below and above
    through_l1 = vertical + (2.0 / planes if kept else 0.0) + (1.0 + rim if shared else 5.0 - float(kept))
    through_shared = (1.0 + rim) + 5.0 - float(kept) if shared else 0.0
    lines = max(1.0, _LINE_BYTE / (block_x * word)) ** 0.5

    slots = issue_slots_per_fma(limits.compute_capability, precision)
    others = through_l1 + through_shared + _BOUNDS * (1.0 / tile_y + 0.5 / unroll) + 4.0 * seat.spilled
    busy = issue_cycles(slots * _ARITHMETIC, _ARITHMETIC + others)
    issue = slots * _FLOP / 2.0 / busy * latency_hiding(seat.lanes, tile_y * min(unroll, 4))

    under_way = tile_y * (1.0 if shared else min(unroll, 4) ** 0.5) * words_of_4
    concurrency = min(1.0, seat.occupancy * (0.4 + under_way / _IN_FLIGHT)) * seat.wave_share**0.5
    if shared:  # two barriers per plane, at which a block waits unless others fill the time
        concurrency *= seat.blocks_per_multiprocessor / (seat.blocks_per_multiprocessor + 0.5)
    return Load(
        name="stencil",
        precision=precision,
        work_flop=_FLOP * points,
        traffic_byte=points * word * (2.0 + again),
        occupancy=concurrency * points / done,
        issue_efficiency=bounded(issue * points / done),
        onchip_byte=done * word * (_L1_COST * lines * max(0.0, through_l1 - 1.0) + through_shared + 8.0 * seat.spilled),
    )
