"""Products of halves as cuBLASLt's and Triton's kernels compute them on tensor cores, on simulated boards.

No count of theirs is known here: the shares are constants, near what an H200 showed for five shapes
[tests/benchmarks/triton_on_board.py], and stand for no other board. What a library takes by itself is its tile with the
fewest waves, split once where half of the board would be idle: with a long depth that need not be the best.
"""

from __future__ import annotations

import math
from typing import Final

from ...gpu import Load
from ...limits import DeviceLimits
from .arguments import Arguments
from .residency import LaunchRefused

MAKER: Final = "maker"
LIBRARY: Final = "library"
TRITON: Final = "triton"
_USUAL: Final = ((128, 256), (256, 128), (128, 128), (64, 256), (128, 64), (64, 64), (32, 64), (16, 64))
_REACH: Final = 0.84  # of the peak, of the best tiles in the middle of a long depth
_OF_TRITON: Final = 0.98  # of that
_SMALL: Final = 0.55  # exponent of what a smaller tile loses
_LARGE: Final = 128 * 256  # outputs of a tile from which on it loses nothing
_BEGINNING: Final = 2.5  # steps that a tile's beginning and end take
_PART_STEPS: Final = 2.0  # and for each of several parts, to add it
_LONG: Final = 1024  # a depth that is split
_WORD: Final = 2  # bytes


def made_product(given: Arguments, limits: DeviceLimits, sizes: tuple[int, int, int, int]) -> Load:
    """One launch. Raises LaunchRefused where the board has no such tensor cores."""
    if limits.compute_capability < 8.0:
        raise LaunchRefused("compile", "these products need compute capability 8.0")
    batch, m, n, k = sizes
    if given.word(MAKER, TRITON) == LIBRARY:
        block_m, block_n = min(_USUAL, key=lambda tile: _expected(sizes, tile, limits))
        half_idle = 2 * batch * -(-m // block_m) * -(-n // block_n) <= limits.multiprocessors
        block_k, split, reach = 64, 2 if half_idle and k >= _LONG else 1, _REACH
    else:
        block_m, block_n = given.whole(128, "block_m", most=4096), given.whole(128, "block_n", most=4096)
        block_k, split = given.whole(64, "block_k", most=4096), given.whole(1, "split_k", most=64)
        reach = _REACH
    if given.word(MAKER, TRITON) == TRITON:
        stages, warps = given.whole(4, "stages", most=16), given.whole(4, "warps", most=32)
        outputs = block_m * block_n / warps
        reach *= _OF_TRITON * min(1.0, (stages / 4.0) ** 0.3) * min(1.0, (4096.0 / outputs) ** 0.5)
        descriptors = given.switch(False, "tma")
        reach *= 1.0 + 0.01 * given.whole(0, "persistent", least=0) - 0.02 * (descriptors and m < 256)
        if block_m < 64 and not given.whole(0, "swap", least=0):
            reach *= 0.9  # tensor cores take 64 rows
    tiles = batch * -(-m // block_m) * -(-n // block_n)
    blocks = tiles * split
    steps = -(-k // (block_k * split))
    busy = blocks / (math.ceil(blocks / limits.multiprocessors) * limits.multiprocessors)
    hidden = steps / (steps + _BEGINNING + _PART_STEPS * (split > 1))
    wanted, done = float(batch) * m * n * k, float(tiles) * block_m * block_n * steps * split * block_k
    parts = 8.0 * blocks * block_m * block_n if split > 1 else 0.0
    active = min(1.0, blocks / limits.multiprocessors)
    return Load(
        name="mm",
        precision="fp16_tensor",
        work_flop=2.0 * wanted,
        traffic_byte=_WORD * float(batch) * (m * k + k * n + m * n),
        occupancy=0.25 * active,
        issue_efficiency=min(1.0, reach * busy * hidden * _size_share(block_m, block_n) * wanted / done),
        onchip_byte=3.0 * done * _WORD * (1.0 / block_m + 1.0 / block_n) + 2.0 * parts,
    )


def _expected(sizes: tuple[int, int, int, int], tile: tuple[int, int], limits: DeviceLimits) -> float:
    """What a tile's time is proportional to, whatever the depth."""
    batch, m, n, _ = sizes
    waves = math.ceil(batch * -(-m // tile[0]) * -(-n // tile[1]) / limits.multiprocessors)
    return waves * tile[0] * tile[1] / _size_share(*tile)


def _size_share(block_m: int, block_n: int) -> float:
    return float(min(1.0, max(block_m, 64) * block_n / _LARGE) ** _SMALL)
