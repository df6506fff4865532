"""Matrix products C = A B in tiles, as in `gemm.cu` and `blocked_gemm.cu` of `resources/kernels`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from ...gpu import Counts, Load, Precision
from ...limits import DeviceLimits
from .arguments import Arguments
from .residency import (
    LaunchRefused,
    bank_conflicts,
    bounded,
    issue_cycles,
    issue_slots_per_fma,
    latency_hiding,
    residency,
)

_FIXED_REGISTERS: Final = 22  # addresses, indices, loop counters
_GLOBAL_LATENCY_CYCLES: Final = 600.0  # load, store to shared memory, two barriers
_UNSHARED: Final = 0.6  # of the issue rate, where every operand comes through the L1 cache
_L2_DRIFT: Final = 1.3  # blocks of a wave do not keep step: some stripes are fetched again
_LINE_BYTE: Final = 128.0
_SECTOR_BYTE: Final = 32.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TiledProduct:
    """C (m x n) = A (m x k) B (k x n). A block takes `rows` x `columns` of C in steps of `depth` along k."""

    name: str
    precision: Precision
    word: int  # bytes per number
    m: int
    n: int
    k: int
    threads: int
    rows: int
    columns: int
    depth: int
    tile_rows: int  # of C per thread
    tile_columns: int
    unroll: int  # of the steps of one number along k
    a_run_byte: float  # consecutive bytes that neighbouring threads fetch
    b_run_byte: float
    fetch_width: int = 1  # numbers per fetch from device memory
    read_width: int = 1  # numbers of a row of B per read from shared memory
    a_cost: float = 1.0  # of shared memory's time, per byte that a thread reads: conflicts cost more, sharing less
    b_cost: float = 1.0
    b_store_cost: float = 1.0
    padding: int = 0  # more columns of B's stripe in shared memory
    shared: bool = True
    reads_c: bool = False

    def load(self, limits: DeviceLimits) -> Load:
        """One launch.

        Per thread and step of k: tile_rows tile_columns multiply-adds, tile_rows + tile_columns loads from shared
        memory. Device traffic: the stripes that a wave of concurrent blocks reads, once per wave. Raises LaunchRefused.
        """
        outputs = self.tile_rows * self.tile_columns
        across, down = -(-self.n // self.columns), -(-self.m // self.rows)
        steps = -(-self.k // self.depth)
        words_of_4 = max(1, self.word // 4)
        accumulators = words_of_4 * (outputs + self.tile_rows + self.tile_columns)
        seat = residency(
            limits,
            threads=self.threads,
            registers=_FIXED_REGISTERS + accumulators + 2 * self.fetch_width + self.unroll // 8,
            shared_byte=(self.rows + self.columns + self.padding) * self.depth * self.word if self.shared else 0,
            blocks=across * down,
        )

        # Instructions per thread and step of k.
        slots = issue_slots_per_fma(limits.compute_capability, self.precision)
        slowness = slots / issue_slots_per_fma(limits.compute_capability)
        reads = self.tile_rows + self.tile_columns / self.read_width
        spills = 2.0 * seat.spilled / max(1.0, self.depth)
        fetches = (self.rows + self.columns) / self.threads / min(self.fetch_width, self.depth)
        guarded = self.m % self.rows or self.n % self.columns or self.k % self.depth
        per_fetch = 5.0 if guarded else 3.0  # a load, a store, an address; two comparisons at edges
        others = reads + per_fetch * fetches + 2.5 / self.unroll + 4.0 * spills
        busy = issue_cycles(slots * outputs, outputs + others)
        issue = slots * outputs / busy
        issue *= latency_hiding(seat.lanes, min(outputs, 16.0), slowness)
        issue *= seat.unhidden_share(self.depth * outputs * self.threads * slots / 128.0, _GLOBAL_LATENCY_CYCLES)
        issue *= seat.busy_share(self.threads, limits)

        wanted = float(self.m) * self.n * self.k
        done = float(down * self.rows) * (across * self.columns) * (steps * self.depth)  # edges included
        a_from_l2 = done * self.word / self.columns * _uneven(self.a_run_byte)
        b_from_l2 = done * self.word / self.rows * _uneven(self.b_run_byte)
        if self.shared:
            reads_byte = self.tile_rows * self.a_cost + self.tile_columns / self.read_width * self.b_cost
            loaded = done * self.word * reads_byte / outputs
            stored = a_from_l2 + self.b_store_cost * b_from_l2
            onchip = loaded + 2.0 * a_from_l2 + (1.0 + self.b_store_cost) * b_from_l2
        else:
            loaded = stored = 0.0
            onchip = 2.0 * done * self.word * (self.tile_rows + self.tile_columns) / outputs
            onchip += 2.0 * (a_from_l2 + b_from_l2)
            issue *= _UNSHARED
        onchip += done / outputs * spills * 8.0
        concurrent = seat.blocks_per_multiprocessor * limits.multiprocessors
        c_byte = float(self.m) * self.n * self.word
        return Load(
            name=self.name,
            precision=self.precision,
            work_flop=2.0 * wanted,
            traffic_byte=self._device_traffic(across, down, concurrent),
            occupancy=seat.occupancy,
            issue_efficiency=bounded(issue * wanted / done),
            onchip_byte=onchip,
            counts=Counts(
                instructions=done / outputs * (outputs + others) / limits.warp_size,
                written_byte=c_byte,
                l2_read_byte=a_from_l2 + b_from_l2 + c_byte * self.reads_c,
                shared_load_byte=loaded,
                shared_store_byte=stored,
                loads_and_stores=done / outputs * (reads + 2.0 * fetches + 2.0 * spills) / limits.warp_size,
                # without shared memory it depends on the cache what a warp's loads of the same numbers move
                loaded_byte=a_from_l2 + b_from_l2 + c_byte * self.reads_c if self.shared else math.nan,
                wanted_byte=done * self.word * (1.0 / self.columns + 1.0 / self.rows) + c_byte * self.reads_c,
                stored_byte=c_byte,
            ),
        )

    def _device_traffic(self, across: int, down: int, concurrent: int) -> float:
        """Bytes through device memory: per wave the stripes of A and B under it, and C once, or twice if read too."""
        concurrent = min(concurrent, across * down)
        wave_columns = min(across, concurrent)
        wave_rows = max(1.0, concurrent / across)
        waves = across * down / concurrent
        stripe_byte = wave_rows * self.rows * _part_sectors(self.a_run_byte)
        stripe_byte += wave_columns * self.columns * _part_sectors(self.b_run_byte)
        stripes = waves * stripe_byte * self.k * self.word * _L2_DRIFT
        once = float(self.m * self.k + self.k * self.n) * self.word
        return max(stripes, once) + self.m * self.n * self.word * (2 if self.reads_c else 1)


def gemm(given: Arguments, limits: DeviceLimits) -> Load:
    """One launch, in which a block takes block_size x tile_size numbers of C.

    Sizes `m, n, k` (or one `n` for all), `block_size_x/y`, `tile_size_x/y`; optional `tile_size_k`, `vector_width`,
    `unroll`, `use_shared_memory`, `precision`.
    Raises LaunchRefused, also where the sizes are no multiples of the tiles.
    """
    precision, word = given.precision()
    n = given.size(4096, most=10**6)
    m, k = given.whole(n, "m", "M", most=10**6), given.whole(n, "k", "K", most=10**6)
    (block_x, block_y), (tile_x, tile_y) = given.block(16, 16), given.tile()
    depth = min(k, given.whole(block_x, "tile_size_k", "block_size_k", "blk_k", most=4096))
    vector = given.whole(1, "vector_width", "vector", most=16)
    rows, columns = block_y * tile_y, block_x * tile_x
    if m % rows or n % columns or k % depth:
        raise LaunchRefused("compile", f"{m} x {n} x {k} is no multiple of the tiles {rows} x {columns} x {depth}")
    run_byte = min(block_x, depth) * word * vector
    return TiledProduct(
        name="gemm",
        precision=precision,
        word=word,
        m=m,
        n=n,
        k=k,
        threads=block_x * block_y,
        rows=rows,
        columns=columns,
        depth=depth,
        tile_rows=tile_y,
        tile_columns=tile_x,
        unroll=min(depth, given.whole(depth, "unroll", "loop_unroll_factor", most=4096)),
        a_run_byte=run_byte,
        b_run_byte=run_byte,
        fetch_width=vector,
        read_width=min(vector, tile_x),
        # the rows of A that a warp reads at once
        a_cost=bank_conflicts(lane // block_x * depth for lane in range(limits.warp_size)),
        shared=given.shared(True),
    ).load(limits)


def blocked_gemm(given: Arguments, limits: DeviceLimits) -> Load:
    """One launch, with the parameters of [Anzt2015].

    Sizes `m, n, k` (or one `n` for all), threads `dim_m, dim_n`, tile `blk_m, blk_n, blk_k`, shapes in which the
    threads read the stripes `blk_m_a, blk_n_a, blk_m_b, blk_n_b`, `simd` (16 bytes at once), `real`.
    Raises LaunchRefused, also where the threads do not divide a tile or a stripe.
    """
    precision, word = given.precision()
    n = given.size(4096, most=10**6)
    dim_m, dim_n = given.whole(16, "dim_m", most=4096), given.whole(16, "dim_n", most=4096)
    blk_m, blk_n = given.whole(64, "blk_m", most=4096), given.whole(64, "blk_n", most=4096)
    blk_k = given.whole(16, "blk_k", most=4096)
    threads = dim_m * dim_n
    m_a, n_a = given.whole(dim_m, "blk_m_a", most=4096), given.whole(dim_n, "blk_n_a", most=4096)
    m_b, n_b = given.whole(dim_m, "blk_m_b", most=4096), given.whole(dim_n, "blk_n_b", most=4096)
    width = 16 // word if given.switch(False, "simd") else 1
    if m_a * n_a != threads or m_b * n_b != threads:
        raise LaunchRefused("compile", f"{m_a} x {n_a} or {m_b} x {n_b} are not the {threads} threads of a block")
    whole = blk_m % dim_m == 0 == blk_n % dim_n
    if not whole or blk_m % (m_a * width) or blk_k % n_a or blk_k % (m_b * width) or blk_n % n_b:
        raise LaunchRefused("compile", f"the threads do not divide the stripes {blk_m} x {blk_k} x {blk_n}")
    padding = int((blk_m + blk_n + 1) * blk_k * word <= limits.shared_memory_per_block)
    lanes = range(limits.warp_size)
    words_of_4 = max(1, word // 4)
    # a warp's stores of b: neighbours lie down a column, and so in different rows of shared memory
    stores = bank_conflicts((lane % m_b * width * (blk_n + padding) + lane // m_b) * words_of_4 for lane in lanes)
    return TiledProduct(
        name="blocked_gemm",
        precision=precision,
        word=word,
        m=given.whole(n, "m", "M", most=10**6),
        n=n,
        k=given.whole(n, "k", "K", most=10**6),
        threads=threads,
        rows=blk_m,
        columns=blk_n,
        depth=blk_k,
        tile_rows=blk_m // dim_m,
        tile_columns=blk_n // dim_n,
        padding=padding,
        unroll=blk_k,
        a_run_byte=m_a * width * word,
        b_run_byte=m_b * width * word,
        fetch_width=width,
        a_cost=_row_cost(min(dim_m, limits.warp_size), word),
        b_cost=_row_cost(-(-limits.warp_size // dim_m), word),
        b_store_cost=stores,
        reads_c=True,
    ).load(limits)


def _uneven(run_byte: float) -> float:
    """Extra bytes from the L2 cache where neighbouring threads fetch less than a line."""
    return math.sqrt(max(1.0, _LINE_BYTE / run_byte))


def _part_sectors(run_byte: float) -> float:
    """Bytes fetched from device memory per byte wanted: it answers in sectors."""
    return max(1.0, _SECTOR_BYTE / run_byte)


def _row_cost(different: int, word: int) -> float:
    """Bytes of shared memory's time per byte read, where a warp reads so many different neighbouring numbers.

    One read serves 128 different bytes to however many threads.
    """
    return max(1.0, different * word / 128.0) * 128.0 / (32 * word)
