"""The parameters of the operators' kernels (`resources/kernels/operators`), and which values of them make sense."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ..measurement import Value
from .shapes import Operator

_WORKSPACE: Final = (2**20, 2**24)  # numbers for parts of tiles, at least and at most


@dataclass(frozen=True, slots=True)
class KernelSpace:
    """A kernel's parameters and launch, as expressions of a specification."""

    constants: dict[str, Value]
    parameters: dict[str, list[Value]]
    restrictions: list[str]
    problem_size: list[str]  # of the grid: blocks
    block: list[str]  # threads
    shared_memory: str  # bytes
    scratch: list[dict[str, Any]]  # arguments that hold what blocks leave for each other


def space_of_mm(operator: Operator) -> KernelSpace:
    """The space of `tiles.cuh`. Its parameters:

    block_m, block_n, block_k: a block's tile of the output, and the step along the depth. thread_m, thread_n: a
    thread's share of the tile. lanes_n: threads of a warp beside each other along N. stages: buffers in shared memory.
    copy_async: 1 fills them by cp.async, 0 through registers. split_k: blocks that share a tile. stream_k: 0, or the
    blocks per multiprocessor among which the steps of all tiles are dealt out. group_m: rows of tiles in a band that
    blocks running at once belong to.
    """
    batch, rows, columns, depth = operator.product
    outputs = batch * rows * columns
    workspace = min(max(16 * outputs, _WORKSPACE[0]), _WORKSPACE[1])
    threads = "(block_m * block_n // (thread_m * thread_n))"
    tiles = f"({batch} * (({rows} + block_m - 1) // block_m) * (({columns} + block_n - 1) // block_n))"
    steps = f"(({depth} + block_k - 1) // block_k)"
    a_vector, b_vector = _vector(depth), _vector(columns)
    shared = "stages * 4 * (block_m * (block_k + 4) + block_k * block_n)"
    registers = "(thread_m * thread_n + 4 * thread_m + 2 * thread_n + 32)"
    slots = f"(2 * stream_k * multiprocessors if stream_k > 0 else split_k * {tiles})"
    return KernelSpace(
        constants={"WORKSPACE": workspace},
        parameters={
            "block_m": _extents(rows, (16, 32, 64, 128, 256)),
            "block_n": _extents(columns, (32, 64, 128, 256)),
            "block_k": _extents(depth, (8, 16, 32)),
            "thread_m": [2, 4, 8, 16],
            "thread_n": [4, 8, 16],
            "lanes_n": [4, 8, 16],
            "stages": [1, 2, 3, 4],
            "copy_async": [0, 1],
            "split_k": [each for each in (1, 2, 3, 4, 6, 8, 12, 16) if each <= max(1, depth // 32)],
            "stream_k": [0, 1, 2, 3, 4],
            "group_m": [each for each in (1, 4, 16) if each == 1 or each < -(-rows // 32)],
        },
        restrictions=[
            f"32 <= {threads} <= min(512, max_threads_per_block)",
            # whole warps, and as many vectors for every thread
            "block_m % (32 // lanes_n * thread_m) == 0 and block_n % (lanes_n * thread_n) == 0",
            f"block_m * block_k % ({a_vector} * {threads}) == 0 and block_k * block_n % ({b_vector} * {threads}) == 0",
            # a thread's sums and fragments live in registers
            f"{registers} <= 255 and {registers} * {threads} <= registers_per_block",
            "copy_async == 0 and stages <= 2 or copy_async == 1 and stages >= 2 and compute_capability >= 8.0",
            # of the shared memory a block may ask for all but what the system keeps
            f"{shared} <= (shared_memory_per_multiprocessor - 1024 if compute_capability >= 7.0"
            " else shared_memory_per_block)",
            # steps for every part of a tile; no more parts than the board can run in a few waves
            f"split_k == 1 or stream_k == 0 and 2 * split_k <= {steps} and split_k * {tiles} <= 8 * multiprocessors",
            f"stream_k == 0 or {tiles} % (stream_k * multiprocessors) > 0"
            f" and {tiles} <= 4 * stream_k * multiprocessors and stream_k * multiprocessors <= {tiles} * {steps} // 2",
            f"{slots} * block_m * block_n <= WORKSPACE or split_k == 1 and stream_k == 0",
        ],
        problem_size=[f"stream_k * multiprocessors if stream_k > 0 else split_k * {tiles}"],
        block=[threads, "1", "1"],
        shared_memory=shared,
        scratch=[
            {"name": "workspace", "type": "float32", "shape": ["WORKSPACE"], "fill": "zeros"},
            {"name": "arrived", "type": "uint32", "shape": [_most_tiles(operator)], "fill": "zeros"},
        ],
    )


def _most_tiles(operator: Operator) -> str:
    """Of any configuration: those of the smallest tile."""
    batch, rows, columns, _ = operator.product
    return str(batch * -(-rows // 16) * -(-columns // 32))


def _extents(size: int, candidates: tuple[int, ...]) -> list[Value]:
    """The candidates that are not twice as large as they need be; the smallest in any case."""
    return [each for each in candidates if each == candidates[0] or each < 2 * size]


def _vector(size: int) -> int:
    """Numbers at once of a row of so many: up to 16 bytes."""
    return next(width for width in (4, 2, 1) if size % width == 0)
