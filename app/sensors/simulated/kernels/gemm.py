"""Matrix product C = A B, tiled as in `resources/kernels/gemm.cu`: block_size x tile_size outputs per block."""

from __future__ import annotations

from ...device_limits import DeviceLimits
from ...load import Load
from .arguments import Arguments
from .residency import LaunchRefused, bank_conflicts
from .tiled_product import TiledProduct


def load(given: Arguments, limits: DeviceLimits) -> Load:
    """One launch. Sizes `m, n, k` (or one `n` for all), `block_size_x/y`, `tile_size_x/y`; optional `tile_size_k`,
    `vector_width`, `unroll`, `use_shared_memory`, `precision`.

    Raises LaunchRefused, also where the sizes are no multiples of the tiles.
    """
    precision, word = given.precision()
    n = given.size(4096, most=10**6)
    m, k = given.whole(n, "m", "M", most=10**6), given.whole(n, "k", "K", most=10**6)
    (block_x, block_y), (tile_x, tile_y) = given.block(16, 16), given.tile()
    depth = min(k, given.whole(block_x, "tile_size_k", "block_size_k", "blk_k", most=4096))
    vector = given.whole(1, "vector_width", "vector", most=16)
    rows, columns = block_y * tile_y, block_x * tile_x
    if m % rows or n % columns or k % depth:
        raise LaunchRefused("compile", f"{m} x {n} x {k} is no multiple of the tiles {rows} x {columns} x {depth}")
    run_byte = min(block_x, depth) * word * vector
    return TiledProduct(
        name="gemm",
        precision=precision,
        word=word,
        m=m,
        n=n,
        k=k,
        threads=block_x * block_y,
        rows=rows,
        columns=columns,
        depth=depth,
        tile_rows=tile_y,
        tile_columns=tile_x,
        unroll=min(depth, given.whole(depth, "unroll", "loop_unroll_factor", most=4096)),
        a_run_byte=run_byte,
        b_run_byte=run_byte,
        fetch_width=vector,
        read_width=min(vector, tile_x),
        # the rows of A that a warp reads at once
        a_cost=bank_conflicts(lane // block_x * depth for lane in range(limits.warp_size)),
        shared=given.shared(True),
    ).load(limits)
