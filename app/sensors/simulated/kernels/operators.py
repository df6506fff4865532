"""Matrix products, convolutions and matrix-vector products of `resources/kernels/operators` on simulated boards.

The formulas depend on a configuration's parameters, not on a board. They count what `tiles.cuh` and `mv.cu` execute and
move. What the vendor's library does by itself in FP32 is modelled as one of these configurations, as textbooks have it.
Figures that no count gives (latencies, the share of the L2 cache) are constants here. A matrix-vector product takes the
time of reading the matrix once, as far as enough of it is in flight at any moment.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Final

from ...gpu import Counts, Load, Precision
from ...limits import DeviceLimits
from .arguments import Arguments
from .made_products import LIBRARY, MAKER, made_product
from .residency import (
    LaunchRefused,
    Residency,
    bounded,
    issue_cycles,
    issue_slots_per_fma,
    latency_hiding,
    residency,
    softly_capped,
)

_SHARED_LINE_BYTE: Final = 128.0
_WARP: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """What multiplies, as `cores.cuh` has it; per thread, unless it says otherwise."""

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


def units_of(given: Arguments, block_m: int, block_n: int, limits: DeviceLimits) -> Units:
    """Of a configuration. Raises LaunchRefused where the tile does not divide into warps, as the source has it.

    A warp's read of 16 bytes a thread takes two turns of 128 bytes, as neighbours share rows and columns.
    """
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
    )


_WORD: Final = 4  # bytes of what is written, and of what blocks leave for each other
_TILE_REGISTERS: Final = 34  # addresses, places, loop counters
_FETCH_CYCLES: Final = 700.0  # from asking device memory or the L2 cache to having it in shared memory
_TILE_CYCLES: Final = 500.0  # a tile's beginning and end: places, first addresses, writing
_SLICE_CYCLES: Final = 120.0  # to add the sums of another set of threads
_PART_CYCLES: Final = 900.0  # to leave a part of a tile, to know of it, to fetch it
_STEP_INSTRUCTIONS: Final = 14.0  # per step and thread: barrier, loop, buffers
_FETCH_INSTRUCTIONS: Final = 3.0  # per vector and thread: the copy, its address, its edge
_L2_BYTE: Final = {8.0: 370e3, 9.0: 380e3}  # per multiprocessor: 40 MB of the A100's 108, 50 MB of the H200's 132
_SMALL_L2_BYTE: Final = 72e3  # of the others: 6 MB for 80 to 84
_L2_DRIFT: Final = 1.15  # blocks of a wave do not keep step: some stripes are fetched again


@dataclass(frozen=True, slots=True, kw_only=True)
class TiledOperator:
    """`batch` products of rows x depth and depth x columns, in the tiles of a configuration."""

    name: str
    batch: int
    rows: int
    columns: int
    depth: int
    operand_byte: float  # of both operands, once
    gathering: float  # more instructions for each vector of A, where its place has to be found
    block_m: int
    block_n: int
    block_k: int
    units: Units
    slices_k: int
    stages: int
    copy_async: bool
    split_k: int
    stream_k: int
    min_blocks: int
    group_m: int

    @classmethod
    def of(cls, given: Arguments, limits: DeviceLimits, **sizes: float | str) -> TiledOperator:
        """Of a configuration; raises InputError for a senseless value, LaunchRefused where the tile does not divide."""

        def whole(name: str, default: int, least: int = 1) -> int:
            return given.whole(default, name, least=least, most=4096)

        block_m, block_n = whole("block_m", 64), whole("block_n", 64)
        return cls(
            units=units_of(given, block_m, block_n, limits),
            block_m=block_m,
            block_n=block_n,
            block_k=whole("block_k", 16),
            slices_k=whole("slices_k", 1),
            stages=whole("stages", 1),
            copy_async=bool(whole("copy_async", 0, least=0)),
            split_k=whole("split_k", 1),
            stream_k=whole("stream_k", 0, least=0),
            min_blocks=whole("min_blocks", 1),
            group_m=whole("group_m", 1),
            **sizes,  # type: ignore[arg-type]
        )

    def load(self, limits: DeviceLimits) -> Load:
        """One launch. Raises LaunchRefused where the parameters do not fit together or the board."""
        threads = self._threads(limits)
        units = self.units
        down, across = -(-self.rows // self.block_m), -(-self.columns // self.block_n)
        tiles, steps = self.batch * down * across, -(-self.depth // self.block_k)
        blocks = self.stream_k * limits.multiprocessors if self.stream_k else tiles * self.split_k
        fetches = self.block_k * (self.block_m + self.block_n) * units.word / (16.0 * threads)  # vectors in a step
        wish = round(_TILE_REGISTERS + units.sums + units.fragments + (0 if self.copy_async else 4 * fetches))
        granted = limits.registers_per_multiprocessor // (threads * self.min_blocks)
        seat = residency(
            _with_dynamic_shared(limits),
            threads=threads,
            registers=min(wish, granted),
            shared_byte=self._shared_byte,
            blocks=blocks,
        )

        # issue slots of a thread in a step
        share = self.block_k / self.slices_k
        useful, reads, slots = units.useful * share, units.reads * share, units.slots
        copies = fetches * ((1.0 if self.copy_async else 2.0) + _FETCH_INSTRUCTIONS + self.gathering)
        spills = 4.0 * seat.spilled
        busy = issue_cycles(slots * useful, useful + reads + copies + _STEP_INSTRUCTIONS + spills)
        issue = slots * useful / busy
        issue *= latency_hiding(seat.lanes, units.independent)
        issue *= min(1.0, (granted / wish) ** 0.2)  # fewer registers: fragments come later

        # waiting: for a step's stripes, for a tile's first ones, for the other parts of a tile
        step_cycles = busy * threads / 128.0  # of a multiprocessor's four schedulers
        ahead = self.stages - 1 if self.copy_async else self.stages - 0.5
        issue *= seat.unhidden_share(step_cycles * max(ahead, 0.25), _FETCH_CYCLES)
        steps_of_block = tiles * steps / blocks
        whole_cycles = step_cycles * steps_of_block
        parts = blocks / tiles if self._shares_tiles else 0.0
        waits = (_FETCH_CYCLES + _TILE_CYCLES) * max(1.0, tiles / blocks) / seat.blocks_per_multiprocessor
        waits += _SLICE_CYCLES * (self.slices_k - 1) * max(1.0, tiles / blocks)
        waits += _PART_CYCLES * (1.0 + parts) if self._shares_tiles else 0.0
        issue *= whole_cycles / (whole_cycles + waits)
        issue *= seat.busy_share(threads, limits)

        wanted = float(self.batch) * self.rows * self.columns * self.depth
        done = float(tiles) * self.block_m * self.block_n * steps * self.block_k  # edges included
        from_l2 = done * units.word * (1.0 / self.block_n + 1.0 / self.block_m)
        parted = blocks * self.block_m * self.block_n * _WORD * 2.0 if self._shares_tiles else 0.0
        active = min(1.0, blocks / limits.multiprocessors)  # of the multiprocessors
        return Load(
            name=self.name,
            precision=units.precision,
            work_flop=2.0 * wanted,
            traffic_byte=self._device_traffic(limits, down, across, seat)
            + (parted if self._spills_over(limits) else 0.0),
            occupancy=seat.occupancy * active,
            issue_efficiency=bounded(issue * wanted / done / _saturation_undone(seat.occupancy * active)),
            onchip_byte=done * units.shared_byte + 3.0 * from_l2 + 2.0 * parted,
            counts=Counts(
                instructions=(useful + reads + copies + _STEP_INSTRUCTIONS + spills)
                * (tiles * steps * threads / limits.warp_size),
                written_byte=float(self.batch) * self.rows * self.columns * _WORD,
                l2_read_byte=from_l2 + parted / 2.0,
                shared_load_byte=done * units.shared_byte,
                shared_store_byte=from_l2,
                loads_and_stores=(reads + fetches * (1.0 if self.copy_async else 2.0) + spills / 2.0)
                * (tiles * steps * threads / limits.warp_size),
                # copies to shared memory are no loads, which go through registers
                loaded_byte=math.nan if self.copy_async else from_l2 + parted / 2.0,
                wanted_byte=from_l2 + parted / 2.0,
                stored_byte=float(self.batch) * self.rows * self.columns * _WORD + parted / 2.0,
            ),
        )

    @property
    def _shared_byte(self) -> int:
        word, pad = self.units.word, 16 // self.units.word
        stripes = self.block_m * (self.block_k + pad) + self.block_k * (self.block_n)
        return max(self.stages * word * stripes, (self.slices_k > 1) * _WORD * self.block_m * self.block_n)

    @property
    def _shares_tiles(self) -> bool:
        return self.split_k > 1 or self.stream_k > 0

    def _threads(self, limits: DeviceLimits) -> int:
        """Of a block. Raises LaunchRefused where the tiles do not divide into warps, as the source's assertions do."""
        if self.block_k % (4 * self.slices_k):
            raise LaunchRefused("compile", f"a step of {self.block_k} does not divide into {self.slices_k} slices")
        if self.copy_async and (limits.compute_capability < 8.0 or self.stages < 2):
            raise LaunchRefused("compile", "cp.async needs compute capability 8.0 and two stages")
        return self.units.threads * self.slices_k

    def _spills_over(self, limits: DeviceLimits) -> bool:
        """Whether the operands and the output are more than the L2 cache holds."""
        moved = self.operand_byte + self.batch * self.rows * self.columns * _WORD
        return moved > _L2_BYTE.get(limits.compute_capability, _SMALL_L2_BYTE) * limits.multiprocessors

    def _device_traffic(self, limits: DeviceLimits, down: int, across: int, seat: Residency) -> float:
        """Bytes through device memory: operands and output once; where they do not fit the L2 cache, the stripes of A
        and B under a wave of blocks once per wave."""
        written = float(self.batch) * self.rows * self.columns * _WORD
        if not self._spills_over(limits):
            return self.operand_byte + written
        concurrent = min(down * across, seat.blocks_per_multiprocessor * limits.multiprocessors)
        high = min(down, self.group_m, concurrent)
        wide = min(across, math.ceil(concurrent / high))
        waves = self.batch * down * across / (high * wide)
        stripes = waves * (high * self.block_m + wide * self.block_n) * self.depth * self.units.word * _L2_DRIFT
        return max(min(stripes, 4.0 * self.operand_byte), self.operand_byte) + written


def _with_dynamic_shared(limits: DeviceLimits) -> DeviceLimits:
    """What a block may have of shared memory when it asks for more than by default."""
    if limits.compute_capability < 7.0:
        return limits
    return dataclasses.replace(limits, shared_memory_per_block=limits.shared_memory_per_multiprocessor - 1024)


def _saturation_undone(occupancy: float) -> float:
    """The share of the rate that `laws` gives to a low occupancy: it counts in `latency_hiding` already."""
    x = min(1.0, occupancy / 0.125)
    return max(0.05, x * (2.0 - x))


def mm(given: Arguments, limits: DeviceLimits) -> Load:
    """One launch of `mm.cu`, or of another maker's kernel: sizes `BATCH, M, N, K`. Raises LaunchRefused."""
    batch, m, n, k = (given.whole(1024 if name != "BATCH" else 1, name) for name in ("BATCH", "M", "N", "K"))
    operands = float(batch) * (m * k + k * n) * _WORD
    sizes = {"batch": batch, "rows": m, "columns": n, "depth": k, "operand_byte": operands}
    if given.word("precision", "fp32") != "fp32":
        return made_product(given, limits, (batch, m, n, k))
    given = _as_a_library_has_it(given, limits, batch, m, n, k)
    return TiledOperator.of(given, limits, name="mm", gathering=0.0, **sizes).load(limits)


def conv2d(given: Arguments, limits: DeviceLimits) -> Load:
    """One launch of `conv2d.cu`: sizes `BATCH, H, W, CIN, COUT, KERNEL, STRIDE, PAD`. Raises LaunchRefused."""
    names = ("BATCH", "H", "W", "CIN", "COUT", "KERNEL", "STRIDE")
    usual = (8, 56, 56, 64, 64, 3, 1)
    batch, h, w, channels, out, taps, stride = (
        given.whole(size, name) for name, size in zip(names, usual, strict=True)
    )
    pad = given.whole(0, "PAD", least=0)
    high, wide = ((size + 2 * pad - taps) // stride + 1 for size in (h, w))
    if high < 1 or wide < 1:
        raise LaunchRefused("compile", f"a kernel of {taps} x {taps} is larger than the padded image")
    sizes = {
        "batch": 1,
        "rows": batch * high * wide,
        "columns": out,
        "depth": taps * taps * channels,
        "operand_byte": float(batch * h * w * channels + taps * taps * channels * out) * _WORD,
    }
    direct = taps == 1 and stride == 1 and pad == 0
    given = _as_a_library_has_it(given, limits, 1, batch * high * wide, out, taps * taps * channels)
    return TiledOperator.of(given, limits, name="conv2d", gathering=0.0 if direct else 6.0, **sizes).load(limits)


def _as_a_library_has_it(given: Arguments, limits: DeviceLimits, batch: int, m: int, n: int, k: int) -> Arguments:
    """The configuration; of what the library does by itself, that of the largest usual tile that fills the board."""
    if given.word(MAKER, "") != LIBRARY:
        return given
    tiles = {edge: batch * -(-m // edge) * -(-n // edge) for edge in (128, 64)}
    edge = 128 if tiles[128] >= limits.multiprocessors else 64
    split = max(1, min(limits.multiprocessors // tiles[edge], k // 128))
    return given.with_values(
        {"block_m": edge, "block_n": edge, "block_k": 16, "thread_m": 8, "thread_n": 8, "lanes_n": 8, "slices_k": 1}
        | {"stages": 2, "copy_async": 1, "split_k": split, "stream_k": 0, "min_blocks": 1, "group_m": 1}
    )


_MV_OF_A_LIBRARY: Final = {"block_size_x": 128, "lanes_k": 32, "rows_at_once": 1, "loads_ahead": 2, "split_k": 1}
_ROW_REGISTERS: Final = 26
_LATENCY_CYCLES: Final = 800.0  # of a loaded device memory
_NEEDED_BYTE: Final = 20e3  # on its way per multiprocessor, for all of the bandwidth
_ROW_CYCLES: Final = 250.0  # a row's end: its threads' sums
_FULL_LANES: Final = 8.0 * 32  # of a multiprocessor, from which on its schedulers do not wait for each other


def mv(given: Arguments, limits: DeviceLimits) -> Load:
    """One launch of `mv.cu`: sizes `BATCH, N, K`; `HALVES` of two bytes each. Raises LaunchRefused."""
    batch, rows, depth = given.whole(1, "BATCH"), given.whole(4096, "N"), given.whole(4096, "K")
    if given.word(MAKER, "") == LIBRARY:
        width = next(width for width in (4, 2, 1) if depth % width == 0)
        given = given.with_values({**_MV_OF_A_LIBRARY, "vector_width": width, "x_shared": 0, "streaming": 0})
    threads = given.whole(256, "block_size_x", most=4096)
    lanes = given.whole(32, "lanes_k", most=4096)
    at_once, width = given.whole(1, "rows_at_once", most=64), given.whole(1, "vector_width", most=16)
    ahead, split = given.whole(1, "loads_ahead", most=64), given.whole(1, "split_k", most=4096)
    x_shared, streaming = given.switch(False, "x_shared"), given.switch(False, "streaming")
    word = 2 if given.switch(False, "HALVES") else _WORD
    if threads % lanes or depth % width:
        raise LaunchRefused("compile", f"{lanes} of {threads} threads and {width} of {depth} numbers leave a rest")
    chunk = lanes * width
    part = -(-depth // (split * chunk)) * chunk
    of_block = threads // lanes * at_once  # rows
    sets = -(-rows // of_block)
    blocks = batch * sets * split
    seat = residency(
        limits,
        threads=threads,
        registers=_ROW_REGISTERS + at_once * (ahead * width * word // _WORD + 3) + width,
        shared_byte=max(x_shared * part * word, threads // 32 * at_once * _WORD),
        blocks=blocks,
    )
    wanted, done = float(batch) * rows * depth, float(batch) * sets * of_block * part * split
    turns = part / chunk  # of a thread along its row
    in_flight = min(float(ahead), turns) * at_once * width * word * seat.lanes
    reach = softly_capped(in_flight / _NEEDED_BYTE * (1.1 if streaming else 1.0))
    reach *= softly_capped(seat.lanes / _FULL_LANES + 0.5)
    # of the time a block lives it does not read while it begins and ends
    reading = turns * at_once * _LATENCY_CYCLES / max(1.0, min(float(ahead), turns) * at_once)
    resting = _ROW_CYCLES * (1.0 + (lanes > limits.warp_size)) + _PART_CYCLES * (split > 1)
    resting += _LATENCY_CYCLES * x_shared
    hidden = max(1.0, float(seat.blocks_per_multiprocessor))
    reach *= reading / (reading + resting / hidden)
    reach *= seat.wave_share**0.5  # the last wave's blocks have the memory for themselves
    coalesced = min(1.0, chunk * word / 128.0) ** 0.5  # runs shorter than a line
    operand = float(batch) * depth * (rows + 1) * word
    parts = 2.0 * split * batch * rows * _WORD if split > 1 else 0.0
    x_reads = float(batch) * sets * split * part * word * (1.0 if x_shared else threads // lanes)

    # reading at less than all of the bandwidth is a bound of its own: so many multiply-adds while the bytes come
    slots = issue_slots_per_fma(limits.compute_capability)
    per_cycle = 18.0 * reach * coalesced  # bytes of a multiprocessor and cycle, where a board has enough for that
    issue = per_cycle / word * slots / 128.0 * wanted / done
    return Load(
        name="mv",
        precision="fp32",
        work_flop=2.0 * wanted,
        traffic_byte=operand / coalesced + batch * rows * _WORD + parts,
        occupancy=seat.occupancy * min(1.0, blocks / limits.multiprocessors),
        issue_efficiency=bounded(issue),
        onchip_byte=operand + 2.0 * x_reads + (operand if not streaming else 0.0),
    )
