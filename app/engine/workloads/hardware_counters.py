"""The hardware counters that explain energy: what each is, and which metrics of today's profiler give it.

`COUNTERS` are called what the published studies call them, as nvprof did; it is the table of the user guide. What is
stored are the metrics of Nsight Compute [NsightCompute, nvprof metric comparison], by their own names and in base
units; a counter is a product of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ...base.records import Finite

_SECTOR_BYTE: Final = 32.0  # of the caches and of device memory
_WAVEFRONT_BYTE: Final = 128.0  # that shared memory serves at once


@dataclass(frozen=True, slots=True)
class Counter:
    """One of them: `factor` times the product of its metrics."""

    unit: str  # '' if it has none
    meaning: str
    metrics: tuple[str, ...]  # of Nsight Compute
    published: str  # the study that has it, and under which name where that is another
    factor: Finite = 1.0

    def value(self, metrics: Mapping[str, float]) -> float:
        """Of a launch with these metrics, in `unit`; NaN if one of them is unknown."""
        return self.factor * math.prod(metrics.get(name, math.nan) for name in self.metrics)


_MM: Final = "Anzt2015"
_SEARCH: Final = "Zhang2024, table 5"
_LOADED: Final = "l1tex__t_bytes_pipe_lsu_mem_global_op_ld.sum.per_second"
_STORED: Final = "l1tex__t_bytes_pipe_lsu_mem_global_op_st.sum.per_second"
_LOAD_USE: Final = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct"
_STORE_USE: Final = "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct"
_SHARED_LOAD: Final = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
_SHARED_STORE: Final = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"

COUNTERS: Final[Mapping[str, Counter]] = {
    "achieved_occupancy": Counter(
        "%",
        "active warps of an active cycle over the most that a multiprocessor holds",
        ("sm__warps_active.avg.pct_of_peak_sustained_active",),
        f"{_MM}: occupancy",
    ),
    "sm_efficiency": Counter(
        "%",
        "of the time in which a multiprocessor has a warp at all",
        ("smsp__cycles_active.avg.pct_of_peak_sustained_elapsed",),
        _SEARCH,
    ),
    "ipc": Counter(
        "inst/cycle",
        "instructions executed per active cycle and multiprocessor",
        ("sm__inst_executed.avg.per_cycle_active",),
        f"{_MM}: ipc, ipc_instance",
    ),
    "issued_ipc": Counter(
        "inst/cycle",
        "instructions issued per active cycle and multiprocessor",
        ("sm__inst_issued.avg.per_cycle_active",),
        _MM,
    ),
    "inst_executed": Counter("inst", "instructions executed by warps", ("smsp__inst_executed.sum",), _MM),
    "inst_issued": Counter("inst", "instructions issued, repeated ones included", ("smsp__inst_issued.sum",), _MM),
    "ldst_executed": Counter(
        "inst",
        "instructions of the pipe that loads and stores; those issued are not counted any more",
        ("smsp__inst_executed_pipe_lsu.sum",),
        f"{_MM}: ldst_executed, ldst_issued",
    ),
    "stall_inst_fetch": Counter(
        "%",
        "of the time of active warps, waiting for the next instruction",
        ("smsp__warp_issue_stalled_no_instruction_per_warp_active.pct",),
        _MM,
    ),
    "stall_memory_dependency": Counter(
        "%",
        "of the time of active warps, waiting for what they load from global or local memory",
        ("smsp__warp_issue_stalled_long_scoreboard_per_warp_active.pct",),
        "",
    ),
    "dram_read_throughput": Counter(
        "byte/s", "from device memory", ("dram__bytes_read.sum.per_second",), f"{_MM}: and in figure 9"
    ),
    "dram_write_throughput": Counter("byte/s", "to device memory", ("dram__bytes_write.sum.per_second",), ""),
    "dram_utilization": Counter(
        "%",
        "of what device memory can move at most",
        ("dram__throughput.avg.pct_of_peak_sustained_elapsed",),
        f"{_MM}: 0 to 10 there",
    ),
    "dram_read_byte": Counter("byte", "from device memory, in one launch", ("dram__bytes_read.sum",), ""),
    "dram_write_byte": Counter("byte", "to device memory, in one launch", ("dram__bytes_write.sum",), ""),
    "l2_read_throughput": Counter(
        "byte/s",
        "read from the L2 cache, without atomics",
        ("lts__t_sectors_op_read.sum.per_second",),
        f"{_MM}: figure 9",
        _SECTOR_BYTE,
    ),
    "l2_read_transactions": Counter("sectors", "read from the L2 cache", ("lts__t_sectors_op_read.sum",), ""),
    "l2_texture_read_hit_rate": Counter(
        "%", "of the sectors read from the L2 cache", ("lts__t_sector_op_read_hit_rate.pct",), _MM
    ),
    "l2_tex_read_throughput": Counter(
        "byte/s",
        "read from the L2 cache by the L1 and texture caches, which are one since Volta",
        ("lts__t_sectors_srcunit_tex_op_read.sum.per_second",),
        f"{_MM}: texture read throughput, figure 9",
        _SECTOR_BYTE,
    ),
    "gld_requested_throughput": Counter(
        "byte/s", "that threads ask of global memory", (_LOAD_USE, _LOADED), _MM, 0.01
    ),
    "gst_requested_throughput": Counter(
        "byte/s", "that threads write to global memory", (_STORE_USE, _STORED), _MM, 0.01
    ),
    "gld_transactions": Counter(
        "sectors",
        "loaded from global memory through the L1 cache",
        ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",),
        f"{_SEARCH}: glb_ld",
    ),
    "gst_transactions": Counter(
        "sectors",
        "stored to global memory through the L1 cache",
        ("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",),
        f"{_SEARCH}: glb_st",
    ),
    "shared_load_throughput": Counter(
        "byte/s", "that shared memory could serve in the time of the loads", (f"{_SHARED_LOAD}.per_second",), _MM,
        _WAVEFRONT_BYTE,
    ),
    "shared_load_transactions": Counter(
        "wavefronts", "loads from shared memory, conflicts counted", (_SHARED_LOAD,), f"{_MM}; {_SEARCH}: shared_ld"
    ),
    "shared_store_transactions": Counter(
        "wavefronts", "stores to shared memory, conflicts counted", (_SHARED_STORE,), f"{_SEARCH}: shared_st"
    ),
}  # fmt: skip

DURATION: Final = "gpu__time_duration.sum"  # s, of the launch under the profiler
METRICS: Final[tuple[str, ...]] = tuple(
    dict.fromkeys([DURATION, *(metric for counter in COUNTERS.values() for metric in counter.metrics)])
)
# What a profiler calls a metric where it does not know the name above: from Blackwell on.
OTHER_NAMES: Final[Mapping[str, str]] = {
    name: name.replace("dram__bytes_", "dram__bytes_op_") for name in METRICS if name.startswith("dram__bytes_")
}


def counters_of(metrics: Mapping[str, float]) -> dict[str, float]:
    """The COUNTERS of a launch with these metrics, those that are known."""
    values = {name: counter.value(metrics) for name, counter in COUNTERS.items()}
    return {name: value for name, value in values.items() if math.isfinite(value)}


def counter_units(names: Iterable[str]) -> dict[str, str]:
    """The units of those of `names` that are counters and have one."""
    return {name: unit for name in names if name in COUNTERS and (unit := COUNTERS[name].unit)}
