"""What the vendor's library has for an operator on a board, asked in a process of its own before a session is planned.

Run as `python -P -m PACKAGE.engine.runner.cuda.offers MODULE OPERATOR`, it makes a context, which a session's process
has not made by then, and prints the rows as JSON.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Sequence
from itertools import product
from typing import Final

from ....sensors.gpu import Gpu
from ....sensors.limits import DeviceLimits
from ...children.python import python_command, python_environment
from ...results.measurement import Configuration
from ...specification.operator_shapes import ALGORITHM, CUBLASLT, LIBRARY, MAKER, Operator, parse_operator
from ...workloads.subprocesses import run_process
from .cublaslt import Algorithm, Product, cublaslt
from .gpu import find_library
from .vendor import why_no_library

_SECONDS: Final = 60.0
_MODELLED_TILES: Final = (312, 13, 15, 18, 17, 20, 33, 21, 19, 32, 31, 23, 24)  # 64 x 16 to 256 x 128


def offers_on(gpu: Gpu, operator: Operator) -> tuple[list[Configuration], str]:
    """The rows that the library has for an operator, what it takes by itself first; and why not, where it has none."""
    uuid = gpu.info.uuid
    visible = {"CUDA_VISIBLE_DEVICES": uuid} if uuid.startswith(("GPU-", "MIG-")) else {}
    words = python_command(__name__, find_library(gpu.info.label).module, operator.notation)
    ended = run_process(words, timeout_s=_SECONDS, environment=python_environment(visible))
    try:
        said = json.loads(ended.output)
        return [dict(row) for row in said["rows"]], str(said["why_not"])
    except (ValueError, LookupError, TypeError):
        last = (ended.errors.strip().splitlines() or [ended.how])[-1]
        return [], f"the vendor's library was not asked: {last}"


def offered(operator: Operator) -> tuple[list[Configuration], str]:
    """The same, on the context of this thread."""
    why_not = why_no_library(operator)
    rows: list[Configuration] = [] if why_not else [{MAKER: LIBRARY}]
    library = cublaslt()
    if operator.kind != "mm" or library is None:
        return rows, why_not
    try:
        asked = Product(library, operator)
    except OSError as error:
        return rows, why_not or str(error)
    try:
        return [*rows, *map(row_of, asked.offered())], why_not
    except OSError as error:
        return rows, why_not or str(error)
    finally:
        asked.close()


def modelled_offers(operator: Operator, limits: DeviceLimits) -> list[Configuration]:
    """Rows as a library might have them, for simulated boards: itself, and algorithms by their tiles and parts."""
    rows: list[Configuration] = [{MAKER: LIBRARY}]
    if not operator.by_makers:
        return rows
    batch, m, n, k = operator.product
    for tile, split in product(_MODELLED_TILES, (1, 2, 4)):
        algorithm = Algorithm(id=66, tile=tile, split_k=split, reduction=2 * (split > 1), stages=35, cluster=3)
        columns, high = algorithm.tile_shape
        tiles = batch * -(-m // high) * -(-n // columns)
        if high < 2 * max(m, 16) and (split == 1 or (tiles < limits.multiprocessors and k >= 256 * split)):
            rows.append(row_of(algorithm))
    return rows


def row_of(algorithm: Algorithm) -> Configuration:
    """An algorithm as a configuration, with the parameters that kernels of other makers have, too."""
    columns, rows = algorithm.tile_shape
    tile = {"block_m": rows, "block_n": columns, "block_k": algorithm.stage_depth, "stages": algorithm.stage_count}
    others = {"split_k": algorithm.split_k, "group_m": algorithm.swizzle}
    return {MAKER: CUBLASLT, ALGORITHM: algorithm.word, **tile, **others}


def main(words: Sequence[str]) -> None:
    """The process's life."""
    module, notation = words
    backend = importlib.import_module(module).open_backend("0")
    rows, why_not = offered(parse_operator(notation))
    sys.stdout.write(json.dumps({"rows": rows, "why_not": why_not}))
    backend.close()


if __name__ == "__main__":
    main(sys.argv[1:])
