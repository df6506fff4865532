"""The parameters of the operators' kernels (`resources/kernels/operators`), and which values of them make sense."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ..measurement import Value
from .shapes import PRECISIONS, Operator

_BRAIN: Final[dict[str, dict[str, Value]]] = {"bf16": {"BRAIN": 1}}  # halves are FP16 unless it is defined
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


def tile_space(operator: Operator) -> KernelSpace:
    """The space of matrix products and convolutions (`tiles.cuh`):

    block_m, block_n, block_k: a block's tile of the output, and the step along the depth. thread_m, thread_n: a
    thread's share of the tile. lanes_n: threads of a warp beside each other along N. slices_k: sets of threads that
    share the tile, each with its part of every step. stages: buffers in shared memory. copy_async: 1 fills them by
    cp.async, 0 through registers. split_k: blocks that share a tile. stream_k: 0, or the blocks per multiprocessor
    among which the steps of all tiles are dealt out. min_blocks: those of a multiprocessor that the compiler leaves
    registers for. group_m: rows of tiles in a band that blocks running at once belong to.

    On tensor cores a warp's share, warp_m x warp_n, takes the place of thread_m, thread_n and lanes_n.
    """
    units = _core_units() if operator.precision == "fp32" else _tensor_units(operator)
    size = PRECISIONS[operator.precision][1]
    batch, rows, columns, depth = operator.product
    outputs = batch * rows * columns
    workspace = min(max(16 * outputs, _WORKSPACE[0]), _WORKSPACE[1])
    threads = f"(slices_k * {units.slice})"
    tiles = f"({batch} * (({rows} + block_m - 1) // block_m) * (({columns} + block_n - 1) // block_n))"
    steps = f"(({depth} + block_k - 1) // block_k)"
    a_vector, b_vector = _vector(_along(operator), size), _vector(columns, size)
    a_pad = 16 // size
    stripes = f"stages * {size} * (block_m * (block_k + {a_pad}) + block_k * (block_n + {units.b_pad}))"
    shared = f"max({stripes}, (slices_k > 1) * 4 * block_m * block_n)"
    slots = f"(2 * stream_k * multiprocessors if stream_k > 0 else split_k * {tiles})"
    asynchronous: list[Value] = [0, 1] if min(a_vector, b_vector) * size >= 4 else [0]
    return KernelSpace(
        constants={"WORKSPACE": workspace, **units.constants},
        parameters={
            "block_m": _extents(rows, (16, 32, 64, 128, 256)),
            "block_n": _extents(columns, (32, 64, 128, 256)),
            "block_k": _extents(depth, units.steps),
            **units.parameters,
            "slices_k": [1, 2, 4],
            "stages": [1, 2, 3, 4],
            "copy_async": asynchronous,
            "split_k": [each for each in (1, 2, 3, 4, 6, 8, 12, 16) if each <= max(1, depth // 32)],
            "stream_k": [0, 1, 2, 3, 4],
            "min_blocks": [1, 2, 3, 4],
            "group_m": [each for each in (1, 4, 16) if each == 1 or each < -(-rows // 32)],
        },
        restrictions=[
            f"32 * slices_k <= {threads} <= min(512, max_threads_per_block)",
            # as many vectors for every thread
            f"block_m * block_k % ({a_vector} * {threads}) == 0 and block_k * block_n % ({b_vector} * {threads}) == 0",
            f"{threads} * {a_vector} % block_k == 0",
            *units.restrictions,
            # a thread's sums and fragments live in registers
            f"{units.registers} <= 255 and {units.registers} * {threads} <= registers_per_block",
            # more blocks than would fit anyway, and as few registers as that takes
            f"min_blocks == 1 or (min_blocks - 1) * {threads} * {units.registers} < registers_per_multiprocessor"
            f" and min_blocks * {threads} * {units.registers} > registers_per_multiprocessor"
            f" and min_blocks * {threads} * {units.tight} <= registers_per_multiprocessor",
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


@dataclass(frozen=True, slots=True)
class _Units:
    """What multiplies, as far as a space depends on it."""

    constants: dict[str, Value]
    parameters: dict[str, list[Value]]
    steps: tuple[int, ...]  # along the depth
    slice: str  # threads that cover a tile once
    b_pad: int
    registers: str  # of a thread, if it may have what it likes
    tight: str  # at least
    restrictions: tuple[str, ...]


def _core_units() -> _Units:
    return _Units(
        constants={},
        parameters={"thread_m": [2, 4, 8, 16], "thread_n": [4, 8, 16], "lanes_n": [4, 8, 16]},
        steps=(8, 16, 32),
        slice="(block_m * block_n // (thread_m * thread_n))",
        b_pad=0,
        registers="(thread_m * thread_n + 4 * thread_m + 2 * thread_n + 32)",
        tight="(thread_m * thread_n + 2 * thread_m + thread_n + 24)",
        restrictions=(
            "block_m % (32 // lanes_n * thread_m) == 0 and block_n % (lanes_n * thread_n) == 0",  # whole warps
            "slices_k == 1 or 4 * slices_k <= block_k and block_m * block_n <= 8192 and thread_m * thread_n >= 32",
        ),
    )


def _tensor_units(operator: Operator) -> _Units:
    return _Units(
        constants={"TENSOR": 1, **_BRAIN.get(operator.precision, {}), "precision": operator.arithmetic},
        parameters={"warp_m": [16, 32, 64], "warp_n": [16, 32, 64]},
        steps=(16, 32, 64),
        slice="(block_m * block_n // (warp_m * warp_n) * 32)",
        b_pad=8,
        registers="(warp_m * warp_n // 32 + (warp_m + warp_n) // 4 + 40)",
        tight="(warp_m * warp_n // 32 + (warp_m + warp_n) // 4 + 24)",
        restrictions=(
            "compute_capability >= 8.0",
            "block_m % warp_m == 0 and block_n % warp_n == 0",
            "16 * slices_k <= block_k and (slices_k == 1 or block_m * block_n <= 8192)",
        ),
    )


def row_space(operator: Operator) -> KernelSpace:
    """The space of matrix-vector products (`mv.cu`):

    block_size_x: threads. lanes_k: those that share a row. rows_at_once: rows that they take together. vector_width:
    numbers at once. loads_ahead: vectors of a row that are asked for before any is used. split_k: blocks that share a
    row. x_shared: 1 copies the vector to shared memory first. streaming: 1 reads the matrix past the L1 cache.
    """
    batch, rows, _, depth = operator.product
    halves = operator.precision != "fp32"
    word = PRECISIONS[operator.precision][1]
    widest = _vector(depth, word)
    of_block = "(block_size_x // lanes_k * rows_at_once)"
    sets = f"(({rows} + {of_block} - 1) // {of_block})"
    chunk = "(lanes_k * vector_width)"
    part = f"(({depth} + split_k * {chunk} - 1) // (split_k * {chunk}) * {chunk})"
    shared = f"max(x_shared * {word} * {part}, block_size_x // 32 * rows_at_once * 4, 16)"
    return KernelSpace(
        constants={"HALVES": 1, **_BRAIN.get(operator.precision, {}), "precision": "fp32"} if halves else {},
        parameters={
            "block_size_x": [64, 128, 256, 512, 1024],
            "lanes_k": [4, 8, 16, 32, 64, 128, 256, 512],
            "rows_at_once": [1, 2, 4, 8],
            "vector_width": [each for each in (1, 2, 4, 8) if 2 * each >= widest >= each],
            "loads_ahead": [1, 2, 4, 8, 16],
            "split_k": [each for each in (1, 2, 4, 8, 16, 32) if each == 1 or 512 * each <= depth],
            "x_shared": [0, 1],
            "streaming": [0, 1],
        },
        restrictions=[
            "lanes_k <= block_size_x",
            f"rows_at_once * loads_ahead * vector_width <= {256 // word}",  # registers
            f"loads_ahead == 1 or loads_ahead * {chunk} <= {part}",
            f"{chunk} <= 2 * {part} and (split_k - 1) * {part} < {depth}",
            f"{shared} <= shared_memory_per_block",
            "streaming == 0 or compute_capability >= 7.0 and vector_width > 1",
            f"split_k == 1 or {batch} * {sets} * split_k <= 64 * multiprocessors",
        ],
        problem_size=[f"{batch} * {sets} * split_k"],
        block=["block_size_x", "1", "1"],
        shared_memory=shared,
        scratch=[
            {"name": "workspace", "type": "float32", "shape": [str(32 * batch * rows)], "fill": "zeros"},
            {"name": "arrived", "type": "uint32", "shape": [str(batch * rows)], "fill": "zeros"},
        ],
    )


def _most_tiles(operator: Operator) -> str:
    """Of any configuration: those of the smallest tile."""
    batch, rows, columns, _ = operator.product
    return str(batch * -(-rows // 16) * -(-columns // 32))


def _extents(size: int, candidates: tuple[int, ...]) -> list[Value]:
    """The candidates that are not twice as large as they need be; the smallest in any case."""
    return [each for each in candidates if each == candidates[0] or each < 2 * size]


def _vector(size: int, byte: int) -> int:
    """Numbers at once of a row of so many: up to 16 bytes."""
    return next(width for width in (16 // byte, 4, 2, 1) if size % width == 0)


def _along(operator: Operator) -> int:
    """How many numbers of the left matrix follow each other."""
    return operator.sizes["Cin"] if operator.kind == "conv2d" else operator.sizes["K"]
