"""What a tiled matrix product asks of a board, whatever its parameters are called."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from ...device_limits import DeviceLimits
from ...load import Load, Precision
from .residency import bounded, issue_cycles, issue_slots_per_fma, latency_hiding, residency

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
        issue *= latency_hiding(seat.warps, min(outputs, 16.0), slowness)
        issue *= seat.unhidden_share(self.depth * outputs * self.threads * slots / 128.0, _GLOBAL_LATENCY_CYCLES)
        issue *= seat.busy_share(self.threads, limits)

        wanted = float(self.m) * self.n * self.k
        done = float(down * self.rows) * (across * self.columns) * (steps * self.depth)  # edges included
        a_from_l2 = done * self.word / self.columns * _uneven(self.a_run_byte)
        b_from_l2 = done * self.word / self.rows * _uneven(self.b_run_byte)
        if self.shared:
            reads_byte = self.tile_rows * self.a_cost + self.tile_columns / self.read_width * self.b_cost
            onchip = done * self.word * reads_byte / outputs
            onchip += 2.0 * a_from_l2 + (1.0 + self.b_store_cost) * b_from_l2
        else:
            onchip = 2.0 * done * self.word * (self.tile_rows + self.tile_columns) / outputs
            onchip += 2.0 * (a_from_l2 + b_from_l2)
            issue *= _UNSHARED
        onchip += done / outputs * spills * 8.0
        concurrent = seat.blocks_per_multiprocessor * limits.multiprocessors
        return Load(
            name=self.name,
            precision=self.precision,
            work_flop=2.0 * wanted,
            traffic_byte=self._device_traffic(across, down, concurrent),
            occupancy=seat.occupancy,
            issue_efficiency=bounded(issue * wanted / done),
            onchip_byte=onchip,
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


def _uneven(run_byte: float) -> float:
    """Extra bytes from the L2 cache where neighbouring threads fetch less than a line."""
    return math.sqrt(max(1.0, _LINE_BYTE / run_byte))


def _part_sectors(run_byte: float) -> float:
    """Bytes fetched from device memory per byte wanted: it answers in sectors."""
    return max(1.0, _SECTOR_BYTE / run_byte)
