"""The truth behind a simulated board's sensors, to check the instruments against. The program never uses it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ...base.errors import InputError
from ..gpu import Load, NotSupported
from . import laws
from .profiles import PROFILES, full_load, load_of
from .twin import Twin

# A sensible configuration of each built-in kernel.
_USUAL: Final[Mapping[str, Mapping[str, int]]] = {
    "gemm": {"block_size_x": 16, "block_size_y": 16, "tile_size_x": 4, "tile_size_y": 4, "n": 4096},
    "convolution": {"block_size_x": 32, "block_size_y": 8, "tile_size_x": 2, "tile_size_y": 2, "n": 4096},
    "dot": {"block_size_x": 256, "vector_width": 4, "items_per_thread": 16, "n": 2**26},
    "copy": {"block_size_x": 256, "vector_width": 4, "items_per_thread": 16, "n": 2**26},
    "blocked_gemm": {"dim_m": 16, "dim_n": 16, "blk_m": 64, "blk_n": 64, "blk_k": 16, "n": 4096},
    "vector_add": {"block_size_x": 256, "vector_width": 4, "items_per_thread": 16, "n": 2**26},
    "reduction": {"block_size_x": 256, "vector_width": 4, "loop_unroll_factor": 4, "n": 2**26},
    "transpose": {"tile_dim": 32, "block_size_x": 32, "block_size_y": 8, "use_padding": 1, "n": 8192},
    "stencil": {"block_size_x": 32, "block_size_y": 8, "tile_size_z": 16, "keep_planes": 1, "n": 512},
    "roofline": {"load_store": 1, "operations": 32, "block_size_x": 256, "blocks_per_multiprocessor": 8},
    "mm": {"block_m": 128, "block_n": 64, "block_k": 16, "thread_m": 8, "thread_n": 8, "M": 4096, "N": 4096, "K": 4096},
    "mv": {"block_size_x": 256, "lanes_k": 32, "vector_width": 4, "loads_ahead": 4, "N": 32768, "K": 16384},
    "conv2d": {"block_m": 128, "block_n": 64, "thread_m": 8, "thread_n": 8, "BATCH": 64, "KERNEL": 3, "PAD": 1},
    "n_body": {"block_size_x": 256, "tile_size_x": 4, "loop_unroll_factor": 4, "n": 131072},
}
# The rate of these is in bytes through memory: they hardly calculate.
IN_BYTES: Final = ("copy", "dot", "vector_add", "reduction", "transpose", "stencil", "mv")


def fp64_gemm() -> Load:
    """A vendor library's matrix product in FP64 on the tensor cores, n = 8192.

    98 % of the peak, as the published H200 clock sweep has it (33.2 GFLOP/s per MHz of 33.8). Traffic: each matrix
    four times through device memory (an assumption; at 170 flop/B it hardly counts).
    """
    n = 8192.0
    return Load("fp64_gemm", "fp64_tensor", work_flop=2 * n**3, traffic_byte=4 * 3 * n * n * 8, issue_efficiency=0.98)


def workloads() -> tuple[str, ...]:
    """Names that `truth` knows."""
    return ("full_load", "fp64_gemm", *PROFILES)


def truth(
    twin: Twin, workload: str = "full_load", *, power_limit_w: float | None = None
) -> list[dict[str, float | str | bool]]:
    """One row per supported graphics clock, ascending, thermally steady under a power limit (default: the board's).

    Keys: clock_mhz (requested), observed_clock_mhz (the mean, where a limit acts), power_w, time_s and energy_j of one
    launch, rate and rate_unit (GFLOP/s, or GB/s for the workloads in IN_BYTES), capped (a power or thermal limit acts).
    Raises InputError for an unknown workload, or one whose precision this board lacks; PermissionRefused for a limit
    out of range.
    """
    limit_w = twin.power.limit_default_w if power_limit_w is None else power_limit_w
    twin.require_limit(limit_w)
    load = _load(twin, workload)
    amount, unit = (load.traffic_byte, "GB/s") if workload in IN_BYTES else (load.work_flop, "GFLOP/s")
    rows: list[dict[str, float | str | bool]] = []
    for clock in twin.clocks.graphics_mhz:
        try:
            point, drawn_w, capped = laws.settled_under_limits(twin, load, clock, twin.clocks.memory_mhz[-1], limit_w)
        except NotSupported as error:
            raise InputError(error.what, f"{twin.name}, {workload}", "choose another workload") from error
        rows.append(
            {
                "clock_mhz": clock,
                "observed_clock_mhz": point.clock_mhz,
                "power_w": drawn_w,
                "time_s": point.launch_s,
                "rate": amount / point.launch_s / 1e9,
                "rate_unit": unit,
                "energy_j": drawn_w * point.launch_s,
                "capped": capped,
            }
        )
    return rows


def _load(twin: Twin, workload: str) -> Load:
    simple: Mapping[str, Callable[[], Load]] = {"full_load": full_load, "fp64_gemm": fp64_gemm}
    if workload in simple:
        return simple[workload]()
    if workload in _USUAL:
        return load_of(workload, _USUAL[workload], {}, twin.limits)
    raise InputError(f"no workload is called '{workload}'", "workload", f"choose one of {', '.join(workloads())}")
