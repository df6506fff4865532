"""The hardware counters of a simulated board: what the formulas of a kernel's cost count, by the names of a profiler.

The truth is the formula itself: device memory moves Q = `traffic_byte`, of which the output is written; instructions
and the bytes of caches and shared memory are those whose time and energy the board is charged for (`laws`). What no
formula counts is left out, never guessed.
"""

from __future__ import annotations

from typing import Final

from ..load import Load
from . import laws
from .figures import Twin

_SECTOR_BYTE: Final = 32.0
_WAVEFRONT_BYTE: Final = 128.0
_SHARED: Final = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op"


def metrics_of(twin: Twin, load: Load, clock_mhz: float, memory_clock_mhz: int, limit_w: float) -> dict[str, float]:
    """Metrics of one launch in base units, by Nsight Compute's names, under clocks and a limit in force.

    Raises NotSupported for a precision the board lacks.
    """
    point, _, _ = laws.settled_under_limits(twin, load, clock_mhz, memory_clock_mhz, limit_w)
    time_s = point.launch_s - twin.rate.launch_overhead_us * 1e-6
    found = {
        "gpu__time_duration.sum": time_s,
        "sm__warps_active.avg.pct_of_peak_sustained_active": 100.0 * load.occupancy,
        "dram__throughput.avg.pct_of_peak_sustained_elapsed": 100.0 * _bandwidth_share(twin, load, time_s),
    }
    if load.counts is None:
        return found
    counts = load.counts
    read_byte = max(0.0, load.traffic_byte - counts.written_byte)
    per_multiprocessor = time_s * point.clock_mhz * 1e6 * twin.board.multiprocessors
    sums = {
        "dram__bytes_read.sum": read_byte,
        "dram__bytes_write.sum": counts.written_byte,
        "lts__t_sectors_op_read.sum": counts.l2_read_byte / _SECTOR_BYTE,
        f"{_SHARED}_ld.sum": counts.shared_load_byte / _WAVEFRONT_BYTE,
    }
    return {
        **found,
        **sums,
        **{f"{name}.per_second": value / time_s for name, value in sums.items()},
        "lts__t_sectors_srcunit_tex_op_read.sum.per_second": counts.l2_read_byte / _SECTOR_BYTE / time_s,
        "lts__t_sector_op_read_hit_rate.pct": 100.0 * max(0.0, 1.0 - read_byte / max(counts.l2_read_byte, read_byte)),
        f"{_SHARED}_st.sum": counts.shared_store_byte / _WAVEFRONT_BYTE,
        "smsp__inst_executed.sum": counts.instructions,
        "smsp__inst_issued.sum": counts.instructions,  # no formula repeats one
        "sm__inst_executed.avg.per_cycle_active": counts.instructions / per_multiprocessor,
        "sm__inst_issued.avg.per_cycle_active": counts.instructions / per_multiprocessor,
    }


def _bandwidth_share(twin: Twin, load: Load, time_s: float) -> float:
    """Of the board's nominal bandwidth, 0..1."""
    return min(1.0, load.traffic_byte / time_s / (twin.rate.bandwidth_gb_s * 1e9))
