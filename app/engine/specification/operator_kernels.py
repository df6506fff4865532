"""An operator as the document of a specification: kernel, parameters, restrictions, metrics and goals.

Nothing in it depends on the board: ranges and restrictions name the device's limits, so that a space fits any.

The parameters of the operators' kernels (`resources/kernels/operators`), and which values of them make sense.

Configurations of the operators' kernels that are suggested to a search: tiles as hand-written kernels cut them.

A space has some hundred thousand configurations, of which few are good, and a first generation draws a few hundred of
them. These are tiles with large shares of a thread, as CUTLASS and cuBLAS have them for large products, and those that
did best on an H200 for small ones [tests/benchmarks/operators.txt]. Which of them fits, and what is better, the search
finds out; what a board or shape does not allow is left out by the space.

The specification of an operator as a file of the program's own, for what is planned and resumed by its file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, Final

from ...base.files import write_text
from ...base.paths import private_folder, resources
from ..results.measurement import Configuration, Value
from ..space.expression import parse
from .kernel_space import KernelSpace, useful_extents
from .operator_shapes import AXES, PRECISIONS, Operator
from .triton_kernels import triton_space, triton_starts

_BRAIN: Final[dict[str, dict[str, Value]]] = {"bf16": {"BRAIN": 1}}  # halves are FP16 unless it is defined
_WORKSPACE: Final = (2**20, 2**24)  # numbers for parts of tiles, at least and at most


def tile_space(operator: Operator) -> KernelSpace:
    """The space of matrix products and convolutions (`tiles.cuh`):

    block_m, block_n, block_k: a block's tile of the output, and the step along the depth. thread_m, thread_n: a
    thread's share of the tile. lanes_n: threads of a warp beside each other along N. slices_k: sets of threads that
    share the tile, each with its part of every step. stages: buffers in shared memory. copy_async: 1 fills them by
    cp.async, 0 through registers. split_k: blocks that share a tile. stream_k: 0, or the blocks per multiprocessor
    among which the steps of all tiles are dealt out. min_blocks: those of a multiprocessor that the compiler leaves
    registers for. group_m: rows of tiles in a band that blocks running at once belong to.
    """
    units = _core_units()
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
            "block_m": useful_extents(rows, (16, 32, 64, 128, 256)),
            "block_n": useful_extents(columns, (32, 64, 128, 256)),
            "block_k": useful_extents(depth, units.steps),
            **units.parameters,
            "slices_k": [1, 2, 4],
            "stages": [1, 2, 3, 4],
            "copy_async": asynchronous,
            "split_k": [value for value in (1, 2, 3, 4, 6, 8, 12, 16) if value <= max(1, depth // 32)],
            "stream_k": [0, 1, 2, 3, 4],
            "min_blocks": [1, 2, 3, 4],
            "group_m": [item for item in (1, 4, 16) if item == 1 or item < -(-rows // 32)],
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
            "vector_width": [value for value in (1, 2, 4, 8) if 2 * value >= widest >= value],
            "loads_ahead": [1, 2, 4, 8, 16],
            "split_k": [item for item in (1, 2, 4, 8, 16, 32) if item == 1 or 512 * item <= depth],
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


def _vector(size: int, byte: int) -> int:
    """Numbers at once of a row of so many: up to 16 bytes."""
    return next(width for width in (16 // byte, 4, 2, 1) if size % width == 0)


def _along(operator: Operator) -> int:
    """How many numbers of the left matrix follow each other."""
    return operator.sizes["Cin"] if operator.kind == "conv2d" else operator.sizes["K"]


Document = dict[str, Any]
_METRICS: Final = {
    "GFLOP/s": "{flop} / time_s / 1e9",
    "GFLOPS/W": "{flop} / energy_j / 1e9",
    "GB/s": "{byte} / time_s / 1e9",
}


def document_of_operator(operator: Operator) -> Document:
    """What a specification of this operator holds where it says nothing else.

    Metrics: GFLOP/s and GFLOPS/W of the operator's own work, and GB/s of the bytes that it must move at least. The
    goal is the energy of one launch; the front is time against energy.
    """
    made = _KINDS[operator.kind](operator)
    metrics = _metrics(operator)
    objective = {"minimise": "energy_j", "front": ["time_s", "energy_j"]}
    search = {"strategy": "auto", "max_evaluations": 250}
    return {**made, "metrics": metrics, "objective": objective, "search": search}


def metrics_of(operator: Operator, time_s: float, energy_j: float) -> dict[str, float]:
    """The metrics of `document_of_operator` for a time and an energy per launch."""
    measured = {"time_s": time_s, "energy_j": energy_j}
    return {name: float(parse(text, name).evaluate(measured)) for name, text in _metrics(operator).items()}


def _metrics(operator: Operator) -> dict[str, str]:
    return {name: text.format(flop=operator.work_flop, byte=operator.least_byte) for name, text in _METRICS.items()}


def _mm(operator: Operator) -> Document:
    size = operator.sizes
    sizes = {"BATCH": size["batch"], "M": size["M"], "N": size["N"], "K": size["K"]}
    output = ("c", ["BATCH", "M", "N"])
    left, right = operator.transposed
    operands = [("a", ["BATCH", *("KM" if left else "MK")]), ("b", ["BATCH", *("NK" if right else "KN")])]
    operands += [("bias", ["N"])] if operator.has_bias else []
    factors = ["matrix_transpose(a)" if left else "a", "matrix_transpose(b)" if right else "b"]
    reference = " @ ".join(factors) + (" + bias" if operator.has_bias else "")
    function = operator.epilogue.removeprefix("bias").removeprefix("+")
    reference = f"{function}({reference})" if function else reference
    space = triton_space(operator) if operator.by_makers else tile_space(operator)
    return _document(operator, space, sizes, output, operands, reference)


def _mv(operator: Operator) -> Document:
    size = operator.sizes
    sizes = {"BATCH": size["batch"], "N": size["N"], "K": size["K"]}
    output = ("y", ["BATCH", "N", "1"])
    operands = [("w", ["BATCH", "N", "K"]), ("x", ["BATCH", "K", "1"])]
    return _document(operator, row_space(operator), sizes, output, operands, "w @ x")


def _conv2d(operator: Operator) -> Document:
    sizes = {name.upper(): size for name, size in operator.sizes.items()}
    high, wide = map(str, operator.output_extents)
    output = ("y", ["BATCH", high, wide, "COUT"])
    operands = [("x", ["BATCH", "H", "W", "CIN"]), ("w", ["KERNEL", "KERNEL", "CIN", "COUT"])]
    return _document(operator, tile_space(operator), sizes, output, operands, "conv2d(x, w, STRIDE, PAD)")


def _document(
    operator: Operator,
    space: KernelSpace,
    sizes: dict[str, int],
    output: tuple[str, list[str]],
    operands: list[tuple[str, list[str]]],
    reference: str,
) -> Document:
    number, _ = PRECISIONS[operator.precision]
    made = operator.by_makers
    written = {"name": output[0], "type": operator.output[0], "shape": output[1], "fill": "zeros", "output": True}
    fill = "normal" if made else "random"
    read = [{"name": name, "type": number, "shape": shape, "fill": fill} for name, shape in operands]
    # halves are rounded to 8 to 11 bits, also where parts of a sum are added up in them
    near = {"rtol": 1e-2, "atol": 0.01 * math.sqrt(operator.product[3])} if made else {"rtol": 1e-3}
    return {
        "constants": {**sizes, **space.constants},
        "parameters": space.parameters,
        "restrictions": space.restrictions,
        "kernel": {
            "name": operator.kind,
            "compiler_options": ["-std=c++17"],  # older compilers take C++14 by default
            "source": str(resources() / "kernels" / "operators" / ("mm_triton.py" if made else f"{operator.kind}.cu")),
            "problem_size": space.problem_size,
            "block_size_names": space.block,
            "shared_memory": space.shared_memory,
            "arguments": [written, *read, *space.scratch],
            "verify": {"reference": reference, **near},
            "profile": operator.kind,
        },
    }


_KINDS: Final[Mapping[str, Callable[[Operator], Document]]] = {"mm": _mm, "mv": _mv, "conv2d": _conv2d}


_CORE_TILES: Final = (  # block_m, block_n, thread_m, thread_n, lanes_n, slices_k
    (128, 128, 8, 16, 4, 1),
    (128, 128, 8, 8, 8, 1),
    (64, 128, 8, 8, 16, 2),
    (256, 128, 16, 8, 8, 1),
    (128, 256, 8, 16, 8, 1),
    (128, 64, 8, 8, 8, 1),
    (64, 64, 8, 8, 4, 2),
    (64, 64, 8, 4, 16, 2),
    (256, 64, 8, 8, 8, 1),
    (32, 64, 8, 4, 8, 1),
    (32, 64, 4, 4, 16, 1),
)
_CORE_STEPS: Final = ((16, 3), (8, 4), (32, 3))  # block_k and stages, the most usual first
_BLOCKS: Final = (96, 640)  # that boards of some hundred multiprocessors are kept busy with
_SPLITS: Final = (1, 2, 3, 4, 6)  # beyond, summing the parts costs more than larger tiles gain


def starts_of(operator: Operator) -> list[Configuration]:
    """Them, the most promising first; empty for matrix-vector products, whose spaces are small."""
    if operator.by_makers:
        return triton_starts(operator)
    if operator.kind == "mv":
        return []
    ways = [list(_ways(operator, tile)) for tile in _tiles()]
    return [value for value in chain.from_iterable(zip_longest(*ways)) if value is not None]


def _tiles() -> list[dict[str, Value]]:
    names: tuple[str, ...] = ("block_m", "block_n", "thread_m", "thread_n", "lanes_n", "slices_k")
    return [dict(zip(names, tile, strict=True)) for tile in _CORE_TILES]


def _ways(operator: Operator, tile: dict[str, Value]) -> Iterator[Configuration]:
    """What a tile is combined with: first blocks as many as keep a board busy, then the steps of all tiles dealt out.

    Nothing if the tile is too large for that.
    """
    batch, rows, columns, _ = operator.product
    tiles = batch * -(-rows // int(tile["block_m"])) * -(-columns // int(tile["block_n"]))
    split = next((value for value in _SPLITS if tiles * value >= _BLOCKS[0]), None)
    if split is None:
        return
    (usual, *others) = _CORE_STEPS
    for (block_k, stages), split_k, stream_k in (
        (usual, split, 0),
        (usual, 1, 2 if tiles * split < _BLOCKS[1] else 1),
        *((steps, split, 0) for steps in others),
    ):
        yield {
            **tile,
            "block_k": block_k,
            "stages": stages,
            "copy_async": 1,
            "split_k": split_k,
            "stream_k": stream_k,
            "min_blocks": 1,
            "group_m": 4 if rows > 128 else 1,
        }


def specification_text(operator: Operator) -> str:
    """A specification that says the operator and nothing else."""
    usual = {"precision": "fp32", "layout": "nn", "epilogue": ""}
    said = {key: getattr(operator, key) for key in usual}
    others = "".join(f'{key} = "{value}"\n' for key, value in said.items() if value != usual[key])
    shape = ", ".join(map(str, operator.shape))
    return (
        f"# Written by Wattridge: {operator.notation}. What else a specification says may be added.\n"
        f'[operator]\nkind = "{operator.kind}"\nshape = [{shape}]  # {", ".join(AXES[operator.kind])}\n{others}'
    )


def kept_specification(operator: Operator) -> Path:
    """Where it is kept, written if it is not there yet; one that the user has changed stays. Raises WattridgeError."""
    path = private_folder("operators") / f"{operator.name}.toml"
    if not path.is_file():
        write_text(path, specification_text(operator))
    return path
