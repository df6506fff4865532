"""Kernels bound by bandwidth: copy, vector sum, dot product, reduction and transpose, as in `resources/kernels`.

eps_mem is fitted on kernels like these, so it holds their way through the caches: of all but the transpose no on-chip
bytes are counted again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from ...gpu import Load
from ...limits import DeviceLimits
from .arguments import Arguments
from .residency import LaunchRefused, Residency, bank_conflicts, residency

_ITEMS: Final = ("items_per_thread", "tile_size_x", "elements_per_thread")
_IN_FLIGHT: Final = 4.0  # numbers of 4 bytes under way per thread at full occupancy that make the bandwidth full
_SHARED_STEP: Final = 4.0  # instructions of one step of a sum in shared memory, its barrier included


@dataclass(frozen=True, slots=True)
class _Stream:
    """How a kernel walks along its vectors."""

    seat: Residency
    threads: int
    items: float  # numbers per thread
    vector: int  # numbers per load
    unroll: int  # vectors
    word: int

    @property
    def concurrency(self) -> float:
        """Occupancy that would keep as many bytes under way with one number per thread, 0..1."""
        under_way = self.vector * self.word / 4.0 * math.pow(self.unroll, 0.7)
        full = min(1.0, self.seat.occupancy * (0.25 + under_way / _IN_FLIGHT))
        return full * math.sqrt(self.seat.wave_share)

    @property
    def split(self) -> float:
        """Extra traffic where a vector is longer than 16 bytes and needs several instructions."""
        return 1.0 + 0.03 * max(0, self.vector * self.word // 16 - 1)


def copy(given: Arguments, limits: DeviceLimits) -> Load:
    """b = a for `n` numbers. `block_size_x`, optional `vector_width`, `items_per_thread`, `unroll`, `precision`."""
    return _streamed("copy", given, limits, vectors=2, flop=0)


def vector_add(given: Arguments, limits: DeviceLimits) -> Load:
    """c = a + b for `n` numbers. Parameters as for copy; which numbers a thread takes makes no difference here."""
    return _streamed("vector_add", given, limits, vectors=3, flop=1)


def _streamed(name: str, given: Arguments, limits: DeviceLimits, *, vectors: int, flop: int) -> Load:
    precision, word = given.precision()
    n = given.size(2**26)
    stream = _stream(given, limits, n, word)
    return Load(
        name=name,
        precision=precision,
        work_flop=float(flop) * n,
        traffic_byte=float(vectors) * n * word * stream.split,
        occupancy=stream.concurrency,
        issue_efficiency=1.0 / (2.0 + 4.0 / stream.vector + 2.0 / stream.unroll),
    )


def dot(given: Arguments, limits: DeviceLimits) -> Load:
    """sum(a b) over `n` numbers, reduced per block. Parameters as for copy."""
    precision, word = given.precision()
    n = given.size(2**26)
    stream = _stream(given, limits, n, word)
    _whole_warps(stream.threads, limits)
    reduction = 6.0 * math.log2(max(2, stream.threads)) / stream.items  # instructions per number
    other = 2.0 / stream.vector + 2.0 / stream.unroll + reduction
    return Load(
        name="dot",
        precision=precision,
        work_flop=2.0 * n,
        traffic_byte=2.0 * n * word * stream.split + n / (stream.items * stream.threads) * 32.0,
        occupancy=stream.concurrency,
        issue_efficiency=1.0 / (1.0 + other),
        onchip_byte=n / stream.items * 2.0 * word,
    )


def reduction(given: Arguments, limits: DeviceLimits) -> Load:
    """sum(a) over `n` numbers by `blocks_per_multiprocessor` blocks (or `blocks` in all), the last of which adds up
    their sums. Optional `use_shuffle`, else parameters as for copy, without items per thread.
    """
    precision, word = given.precision()
    n = given.size(2**26)
    threads = given.whole(256, "block_size_x", most=4096)
    blocks = limits.multiprocessors * given.whole(8, "blocks_per_multiprocessor", most=65536)
    blocks = given.whole(blocks, "blocks", "num_blocks", most=2**31)
    _whole_warps(threads, limits)
    stream = _stream(given, limits, n, word, blocks=blocks, shared_byte=threads * word)
    shuffled = given.switch(True, "use_shuffle")
    step = _SHARED_STEP / (2.0 if shuffled else 1.0)
    ending = step * math.log2(max(2, threads)) / stream.items  # instructions per number of the block's sum
    ending += 2.0 * step * blocks / n * limits.multiprocessors  # while the last block works, the others wait
    other = 1.0 / stream.vector + 2.0 / stream.unroll + ending
    return Load(
        name="reduction",
        precision=precision,
        work_flop=float(n),
        traffic_byte=n * word * stream.split + 2.0 * blocks * 32.0,  # each block's sum fills a sector
        occupancy=stream.concurrency,
        issue_efficiency=0.5 / (1.0 + other),
        onchip_byte=n / stream.items * word * (2.0 if shuffled else 6.0),
    )


def _stream(
    given: Arguments, limits: DeviceLimits, n: int, word: int, *, blocks: int | None = None, shared_byte: int = 0
) -> _Stream:
    """`blocks`: of a grid that is given; without, each thread takes its number of items."""
    threads = given.whole(256, "block_size_x", most=4096)
    vector = given.whole(1, "vector_width", "vector", most=16)
    if blocks is None:
        items = max(vector, given.whole(4, *_ITEMS, most=2**20))
        if items % vector:
            raise LaunchRefused("compile", f"{items} numbers per thread are no multiple of vectors of {vector}")
        blocks = max(1, -(-n // (threads * items)))
    else:
        items = max(vector, -(-n // (threads * blocks)))
    unroll = max(1, min(items // vector, given.whole(1, "unroll", "loop_unroll_factor", most=1024)))
    seat = residency(
        limits, threads=threads, registers=14 + 2 * vector * min(unroll, 16), shared_byte=shared_byte, blocks=blocks
    )
    return _Stream(seat, threads, float(items), vector, unroll, word)


def _whole_warps(threads: int, limits: DeviceLimits) -> None:
    if threads % limits.warp_size:
        raise LaunchRefused("compile", f"{threads} threads are no whole number of warps")


_TRANSPOSE_REGISTERS: Final = 16
_SECTOR_BYTE: Final = 32.0
_LINE_BYTE: Final = 128.0
_HALF_WRITTEN: Final = 1.25  # sectors that leave the L2 cache before all their columns have come
_L2_COST: Final = 1.0  # a byte through the L2 cache against one through shared memory


def transpose(given: Arguments, limits: DeviceLimits) -> Load:
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
        registers=_TRANSPOSE_REGISTERS + int(min(items, 16)) * max(1, word // 4),
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
