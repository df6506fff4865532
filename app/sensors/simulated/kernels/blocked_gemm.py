"""Matrix product with the parameters of [Anzt2015], as in `resources/kernels/blocked_gemm.cu`."""

from __future__ import annotations

from ...device_limits import DeviceLimits
from ...load import Load
from .arguments import Arguments
from .residency import LaunchRefused, bank_conflicts
from .tiled_product import TiledProduct


def load(given: Arguments, limits: DeviceLimits) -> Load:
    """One launch. Sizes `m, n, k` (or one `n` for all), threads `dim_m, dim_n`, tile `blk_m, blk_n, blk_k`, shapes in
    which the threads read the stripes `blk_m_a, blk_n_a, blk_m_b, blk_n_b`, `simd` (16 bytes at once), `real`.

    Raises LaunchRefused, also where the threads do not divide a tile or a stripe.
    """
    precision, word = given.precision()
    n = given.size(4096, most=10**6)
    dim_m, dim_n = given.whole(16, "dim_m", most=4096), given.whole(16, "dim_n", most=4096)
    blk_m, blk_n = given.whole(64, "blk_m", most=4096), given.whole(64, "blk_n", most=4096)
    blk_k = given.whole(16, "blk_k", most=4096)
    threads = dim_m * dim_n
    m_a, n_a = given.whole(dim_m, "blk_m_a", most=4096), given.whole(dim_n, "blk_n_a", most=4096)
    m_b, n_b = given.whole(dim_m, "blk_m_b", most=4096), given.whole(dim_n, "blk_n_b", most=4096)
    width = 16 // word if given.switch(False, "simd") else 1
    if m_a * n_a != threads or m_b * n_b != threads:
        raise LaunchRefused("compile", f"{m_a} x {n_a} or {m_b} x {n_b} are not the {threads} threads of a block")
    whole = blk_m % dim_m == 0 == blk_n % dim_n
    if not whole or blk_m % (m_a * width) or blk_k % n_a or blk_k % (m_b * width) or blk_n % n_b:
        raise LaunchRefused("compile", f"the threads do not divide the stripes {blk_m} x {blk_k} x {blk_n}")
    padding = int((blk_m + blk_n + 1) * blk_k * word <= limits.shared_memory_per_block)
    lanes = range(limits.warp_size)
    words_of_4 = max(1, word // 4)
    # a warp's stores of b: neighbours lie down a column, and so in different rows of shared memory
    stores = bank_conflicts((lane % m_b * width * (blk_n + padding) + lane // m_b) * words_of_4 for lane in lanes)
    return TiledProduct(
        name="blocked_gemm",
        precision=precision,
        word=word,
        m=given.whole(n, "m", "M", most=10**6),
        n=n,
        k=given.whole(n, "k", "K", most=10**6),
        threads=threads,
        rows=blk_m,
        columns=blk_n,
        depth=blk_k,
        tile_rows=blk_m // dim_m,
        tile_columns=blk_n // dim_n,
        padding=padding,
        unroll=blk_k,
        a_run_byte=m_a * width * word,
        b_run_byte=m_b * width * word,
        fetch_width=width,
        a_cost=_row_cost(min(dim_m, limits.warp_size), word),
        b_cost=_row_cost(-(-limits.warp_size // dim_m), word),
        b_store_cost=stores,
        reads_c=True,
    ).load(limits)


def _row_cost(different: int, word: int) -> float:
    """Bytes of shared memory's time per byte read, where a warp reads so many different neighbouring numbers.

    One read serves 128 different bytes to however many threads.
    """
    return max(1.0, different * word / 128.0) * 128.0 / (32 * word)
