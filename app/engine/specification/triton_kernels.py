"""Products of halves by our kernel in Triton: its space, configurations to begin with, and the file to take home.

Sizes, layout and epilogue of an operator are constants of `resources/kernels/operators/mm_triton.py`, whose first lines
say what its parameters are. `stages` (buffers in shared memory) and `warps` are options of Triton's compiler.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from ...base.files import read_text
from ...base.paths import resources
from ..results.measurement import Configuration
from .kernel_space import KernelSpace, useful_extents
from .operator_shapes import PRECISIONS, Operator

TRITON_KERNEL: Final = resources() / "kernels" / "operators" / "mm_triton.py"
_TILE: Final = ("block_m", "block_n", "block_k", "group_m", "persistent", "tma", "split_k", "swap")
_OPTIONS: Final = {"num_warps": "warps", "num_stages": "stages"}
_SPLITS: Final = (1, 2, 3, 4, 6, 8)
_WORKSPACE: Final = 2**24  # numbers for parts of tiles
_ROW: Final = 8  # numbers: rows that begin at multiples of 16 bytes can be read by tensor descriptors
_BLOCKS: Final = 96  # programs that boards of some hundred multiprocessors are kept busy with
# block_m, block_n, block_k, stages, warps, persistent, tma, swap: as published kernels for Hopper and Ampere cut tiles
_STARTS: Final = (
    (128, 256, 64, 4, 8, 1, 1, 0),
    (128, 256, 64, 3, 8, 1, 2, 0),
    (128, 256, 64, 4, 8, 0, 1, 0),
    (256, 128, 64, 4, 8, 0, 1, 0),
    (128, 128, 64, 4, 8, 0, 1, 0),
    (128, 128, 64, 3, 4, 2, 1, 0),
    (64, 128, 64, 6, 4, 0, 1, 0),
    (64, 128, 64, 6, 4, 0, 1, 1),
    (128, 64, 64, 6, 4, 0, 1, 0),
    (64, 64, 128, 4, 4, 0, 1, 0),
    (32, 64, 128, 4, 4, 0, 1, 1),
    (16, 32, 128, 4, 4, 0, 0, 0),
    (16, 64, 128, 4, 4, 0, 0, 1),
    (16, 128, 64, 6, 4, 0, 0, 1),
    (16, 64, 128, 4, 4, 0, 1, 1),
    (16, 128, 128, 4, 4, 0, 1, 1),
)


def triton_space(operator: Operator) -> KernelSpace:
    """The space of products of halves; see the kernel for its parameters.

    Shared memory is estimated from what Triton 3.6 takes, at most a buffer too high: an image states its own.
    """
    batch, rows, columns, depth = operator.product
    tiles = f"({batch} * (({rows} + block_m - 1) // block_m) * (({columns} + block_n - 1) // block_n))"
    most_tiles = batch * -(-rows // 16) * -(-columns // 16)
    steps = f"(({depth} + block_k - 1) // block_k)"
    part = f"(({steps} + split_k - 1) // split_k)"
    # the tensor cores of 9.0 and 10.0 read shared memory themselves, also the step that is being multiplied
    buffers = "(stages - (compute_capability < 9.0 or compute_capability >= 12.0))"
    filled = f"{buffers} * 2 * block_k * (block_m + block_n)"
    number = "(2 + 2 * (split_k > 1))"
    output = f"({number} * block_m * block_n if tma == 2 else min(block_m * block_n, 16384) * {number})"
    shared = f"({filled} + {output} if persistent > 0 else max({filled}, {output})) + 64 + 4 * block_n"
    return KernelSpace(
        constants={
            "WORKSPACE": min(8 * batch * rows * columns + 2**20, _WORKSPACE),
            "precision": operator.arithmetic,
        },
        parameters={
            "block_m": useful_extents(rows, (16, 32, 64, 128, 256)),
            "block_n": useful_extents(columns, (16, 32, 64, 128, 256)),
            "block_k": useful_extents(depth, (32, 64, 128, 256)),
            "stages": [2, 3, 4, 6],
            "warps": [2, 4, 8],
            "group_m": [item for item in (1, 8) if item == 1 or rows >= 128],
            "persistent": [0, 1, 2],
            "tma": list(range(_most_tma(operator) + 1)),
            "split_k": [item for item in _SPLITS if item == 1 or 128 * item <= depth],
            "swap": [0, 1],
        },
        restrictions=[
            "compute_capability >= 8.0",
            "tma == 0 or compute_capability >= 9.0",
            f"{shared} <= shared_memory_per_multiprocessor - 1024",
            # sums in registers, and something to load for every thread
            "128 * warps <= block_m * block_n <= 4096 * warps and block_k * block_n >= 256 * warps",
            f"block_k * (block_m + block_n) <= {2048 * _vector(operator)} * warps",
            f"stages <= max(2, {part})",
            "block_m <= 2 * block_n and (block_n <= 4 * block_m or block_m == 16)",
            # tiles below 64 rows are for few rows; there, and only there, columns may take the place of rows
            *(["block_m >= 64"] if rows > 256 else []),
            "swap == 0 or block_m <= 64 and block_n >= 64 and warps >= 4 and compute_capability >= 9.0",
            f"group_m == 1 or 2 * block_m <= {rows}",
            # a program takes several tiles, or is none that stays
            f"persistent == 0 or split_k == 1 and {tiles} > persistent * multiprocessors",
            f"persistent < 2 or 2 * ({shared} + 1024) <= shared_memory_per_multiprocessor",
            *(["persistent == 0 or tma == 0"] if batch > 1 else []),
            "tma < 2 or persistent > 0",
            # no more tiles than a few waves, unless they are large
            f"block_m * block_n >= 16384 or split_k * {tiles} <= 16 * multiprocessors",
            f"split_k == 1 or 2 * split_k <= {steps} and (split_k - 1) * {part} < {steps}"
            f" and split_k * {tiles} <= 4 * multiprocessors and split_k * {tiles} * block_m * block_n <= WORKSPACE",
        ],
        problem_size=[
            f"min({tiles}, persistent * multiprocessors) if persistent > 0 else split_k * {tiles}",
        ],
        block=["32 * warps", "1", "1"],
        shared_memory=shared,
        scratch=[
            {"name": "workspace", "type": "float32", "shape": ["WORKSPACE"], "fill": "zeros"},
            {"name": "arrived", "type": "uint32", "shape": [str(most_tiles)], "fill": "zeros"},
        ],
    )


def triton_starts(operator: Operator) -> list[Configuration]:
    """Configurations that are suggested to a search, the most promising first: large tiles that fill a board."""
    ordered = sorted(_starts(operator), key=lambda item: item[0])
    starts = [start for _, start in ordered]
    starts += [{**start, "persistent": 0, "tma": 0, "swap": 0} for start in starts]  # for boards before 9.0
    return list({tuple(start.values()): start for start in starts}.values())


def _starts(operator: Operator) -> Iterator[tuple[tuple[bool, int, int], Configuration]]:
    batch, rows, columns, depth = operator.product
    for block_m, block_n, widest_k, stages, warps, persistent, tma, swap in _STARTS:
        if (block_m > 16 and block_m >= 2 * rows) or (block_m < 64 and rows > 256):
            continue
        tiles = batch * -(-rows // block_m) * -(-columns // block_n)
        widest = 2048 * _vector(operator) * warps // (block_m + block_n)
        block_k = max(item for item in (32, 64, 128) if item == 32 or item <= min(widest_k, widest, depth))
        most = min(-(-_BLOCKS // tiles), max(1, depth // (2 * block_k)))
        split = max(item for item in _SPLITS if item <= most)
        yield (
            (tiles * split < _BLOCKS, split, -block_m * block_n),
            {
                "block_m": block_m,
                "block_n": block_n,
                "block_k": block_k,
                "stages": min(stages, max(2, -(-depth // (block_k * split)))),
                "warps": warps,
                "group_m": 8 if 128 <= max(rows, 2 * block_m) <= rows else 1,
                "persistent": persistent if split == 1 else 0,
                "tma": min(tma, _most_tma(operator)),
                "split_k": split,
                "swap": swap,
            },
        )


def _vector(operator: Operator) -> int:
    """Numbers of an operand's row that can be read at once: 1 to 8."""
    _, rows, columns, depth = operator.product
    across_a, across_b = operator.transposed
    along = (rows if across_a else depth, depth if across_b else columns)
    return math.gcd(_ROW, *along)


def _most_tma(operator: Operator) -> int:
    """2 where operands and output have rows that tensor descriptors take, 1 where operands do, else 0."""
    if _vector(operator) < _ROW:
        return 0
    return 1 if operator.product[2] % _ROW else 2


def sizes_of(operator: Operator) -> dict[str, Any]:
    """An operator as files of Python have it, whoever makes its kernel: sizes, layout, and what follows the sums."""
    batch, rows, columns, depth = operator.product
    return {
        "BATCH": batch,
        "M": rows,
        "N": columns,
        "K": depth,
        "A_ACROSS": int(operator.transposed[0]),
        "B_ACROSS": int(operator.transposed[1]),
        "ACTIVATION": operator.epilogue.removeprefix("bias").removeprefix("+"),
    }


def triton_constants(operator: Operator, configuration: Configuration) -> dict[str, dict[str, Any]]:
    """What the kernel is compiled for: SIZES and TILE are its constants, OPTIONS those of the compiler."""
    return {
        "SIZES": sizes_of(operator),
        "TILE": {name: int(configuration[name]) for name in _TILE},
        "OPTIONS": {theirs: int(configuration[name]) for theirs, name in _OPTIONS.items()},
    }


def triton_script(operator: Operator, configuration: Configuration) -> str:
    """A file of Python that runs the kernel by itself, with PyTorch and Triton: `mm(a, b, bias)`, a check, a time."""
    made = {
        **triton_constants(operator, configuration),
        "TYPE": PRECISIONS[operator.precision][0],
        "HAS_BIAS": operator.has_bias,
    }
    parts = (
        f'"""{operator.notation} by a Triton kernel of Wattridge: run this file for a check and a time.\n',
        'Needs PyTorch with Triton, and an NVIDIA GPU. `mm(a, b, bias)` is the function to import.\n"""\n',
        read_text(TRITON_KERNEL),
        "\n# The operator, and the configuration that was chosen for it.",
        *(f"{name} = {value!r}" for name, value in made.items()),
        "",
        read_text(TRITON_KERNEL.with_name("mm_triton_alone.py")),
        "",
        read_text(TRITON_KERNEL.with_name("mm_alone.py")),
    )
    return "\n".join(parts)
