"""Configurations of the operators' kernels that are suggested to a search: tiles as hand-written kernels cut them.

A space has some hundred thousand configurations, of which few are good, and a first generation draws a few hundred of
them. These are tiles with large shares of a thread, as CUTLASS and cuBLAS have them for large products, and those that
did best on an H200 for small ones [tests/benchmarks/operators.txt]. Which of them fits, and what is better, the search
finds out; what a board or shape does not allow is left out by the space.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, zip_longest
from typing import Final

from ..measurement import Configuration, Value
from .shapes import Operator

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
_TENSOR_TILES: Final = (  # block_m, block_n, warp_m, warp_n
    (128, 128, 64, 64),
    (128, 128, 64, 32),
    (128, 256, 64, 64),
    (256, 128, 64, 64),
    (128, 64, 64, 32),
    (64, 64, 32, 32),
    (32, 64, 16, 32),
)
_CORE_STEPS: Final = ((16, 3), (8, 4), (32, 3))  # block_k and stages, the most usual first
_TENSOR_STEPS: Final = ((32, 3), (64, 3), (32, 4))
_BLOCKS: Final = (96, 640)  # that boards of some hundred multiprocessors are kept busy with
_SPLITS: Final = (1, 2, 3, 4, 6)  # beyond, summing the parts costs more than larger tiles gain


def starts_of(operator: Operator) -> list[Configuration]:
    """Them, the most promising first; empty for matrix-vector products, whose spaces are small."""
    if operator.kind == "mv":
        return []
    ways = [list(_ways(operator, tile)) for tile in _tiles(operator)]
    return [each for each in chain.from_iterable(zip_longest(*ways)) if each is not None]


def _tiles(operator: Operator) -> list[dict[str, Value]]:
    if operator.precision == "fp32":
        names: tuple[str, ...] = ("block_m", "block_n", "thread_m", "thread_n", "lanes_n", "slices_k")
        return [dict(zip(names, tile, strict=True)) for tile in _CORE_TILES]
    names = ("block_m", "block_n", "warp_m", "warp_n")
    return [{**dict(zip(names, tile, strict=True)), "slices_k": 1} for tile in _TENSOR_TILES]


def _ways(operator: Operator, tile: dict[str, Value]) -> Iterator[Configuration]:
    """What a tile is combined with: first blocks as many as keep a board busy, then the steps of all tiles dealt out.

    Nothing where the tile is too large for that.
    """
    batch, rows, columns, _ = operator.product
    tiles = batch * -(-rows // int(tile["block_m"])) * -(-columns // int(tile["block_n"]))
    split = next((each for each in _SPLITS if tiles * each >= _BLOCKS[0]), None)
    if split is None:
        return
    (usual, *others) = _CORE_STEPS if operator.precision == "fp32" else _TENSOR_STEPS
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
