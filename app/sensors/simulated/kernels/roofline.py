"""The microbenchmarks of the energy roofline: load, work on it, store, as in `roofline.cu` and `roofline_tensor.cu`."""

from __future__ import annotations

from typing import Final

from ...gpu import Load
from ...limits import DeviceLimits
from .arguments import Arguments
from .residency import issue_slots_per_fma, latency_hiding, residency

_LANE_BYTES: Final = 16  # of a load; each of its words is an independent chain, on tensor cores there are two
_STEP: Final = 128.0  # operations between two branches of the loop


def load(given: Arguments, limits: DeviceLimits) -> Load:
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
