"""Matrix-vector products of `resources/kernels/operators/mv.cu`, as the simulated boards cost them.

Simulated: formulas of a configuration's parameters, not of a board. The time is that of reading the matrix once, as far
as enough of it is on its way at any moment.
"""

from __future__ import annotations

from typing import Final

from ...gpu import Load
from ...limits import DeviceLimits
from .arguments import Arguments
from .residency import LaunchRefused, bounded, issue_slots_per_fma, residency, softly_capped

_WORD: Final = 4  # bytes of what is written, and of what blocks leave for each other
_FIXED_REGISTERS: Final = 26
_LATENCY_CYCLES: Final = 800.0  # of a loaded device memory
_NEEDED_BYTE: Final = 20e3  # on its way per multiprocessor, for all of the bandwidth
_ROW_CYCLES: Final = 250.0  # a row's end: its threads' sums
_PART_CYCLES: Final = 900.0  # to know of the other parts of a row, and to fetch them
_FULL_LANES: Final = 8.0 * 32  # of a multiprocessor, from which on its schedulers do not wait for each other


def mv(given: Arguments, limits: DeviceLimits) -> Load:
    """One launch of `mv.cu`: sizes `BATCH, N, K`; `HALVES` of two bytes each. Raises LaunchRefused."""
    batch, rows, depth = given.whole(1, "BATCH"), given.whole(4096, "N"), given.whole(4096, "K")
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
        registers=_FIXED_REGISTERS + at_once * (ahead * width * word // _WORD + 3) + width,
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
