"""Transpose of a matrix, tile by tile, as in `resources/kernels/transpose.cu`."""

from __future__ import annotations

from typing import Final

from ...gpu import Load
from ...limits import DeviceLimits
from .arguments import Arguments
from .residency import LaunchRefused, bank_conflicts, residency

_FIXED_REGISTERS: Final = 16
_SECTOR_BYTE: Final = 32.0
_LINE_BYTE: Final = 128.0
_IN_FLIGHT: Final = 4.0  # numbers of 4 bytes under way per thread at full occupancy that make the bandwidth full
_HALF_WRITTEN: Final = 1.25  # sectors that leave the L2 cache before all their columns have come
_L2_COST: Final = 1.0  # a byte through the L2 cache against one through shared memory


def load(given: Arguments, limits: DeviceLimits) -> Load:
    """One launch. `width, height` (or `n`), `tile_dim`, `block_size_x/y`; optional `use_shared_memory`, `use_padding`,
    `precision`. The order of the tiles makes no difference here: these boards scatter addresses over their channels.

    Every number is read and written once. Through shared memory a warp reads columns of the tile, whose numbers meet in
    the same banks unless rows are padded; without, each write of a warp touches a sector per thread. Raises
    LaunchRefused.
    """
    precision, word = given.precision()
    n = given.size(8192, most=10**6)
    width = given.whole(n, "width", "image_width", most=10**6)
    height = given.whole(n, "height", "image_height", most=10**6)
    side = given.whole(32, "tile_dim", "tile_size_x", most=1024)
    block_x, block_y = given.block(min(32, side), min(8, side))
    shared = given.shared(True)
    padding = int(given.switch(False, "use_padding"))
    if side % block_x or side % block_y:
        raise LaunchRefused("compile", f"{block_x} x {block_y} threads do not divide a tile of {side} x {side}")

    threads, items = block_x * block_y, side * side / (block_x * block_y)
    across, down = -(-width // side), -(-height // side)
    seat = residency(
        limits,
        threads=threads,
        registers=_FIXED_REGISTERS + int(min(items, 16)) * max(1, word // 4),
        shared_byte=side * (side + padding) * word if shared else 0,
        blocks=across * down,
    )
    numbers = float(width) * height
    done = float(across * side) * (down * side)
    under_way = min(items, 16.0) * word / 4.0
    concurrency = min(1.0, seat.occupancy * (0.25 + under_way / _IN_FLIGHT)) * numbers / done * seat.wave_share**0.5
    if shared:
        # between reading and writing a block waits for all its threads, unless others fill the time
        concurrency *= seat.blocks_per_multiprocessor / (seat.blocks_per_multiprocessor + 0.3)
        lanes = range(limits.warp_size)
        conflicts = bank_conflicts(
            (lane % block_x * (side + padding) + lane // block_x) * max(1, word // 4) for lane in lanes
        )
        run_byte = min(_LINE_BYTE, block_x * word)
        lines = (_LINE_BYTE / run_byte) ** 0.5
        traffic, onchip = 2.0, word * (1.0 + conflicts + 2.0 * (lines - 1.0))
    else:
        part = max(1.0, _SECTOR_BYTE / (side * word))
        traffic, onchip = 1.0 + _HALF_WRITTEN * part, _L2_COST * _SECTOR_BYTE + word
    return Load(
        name="transpose",
        precision=precision,
        work_flop=0.0,
        traffic_byte=numbers * word * traffic,
        occupancy=concurrency,
        onchip_byte=done * onchip,
    )
