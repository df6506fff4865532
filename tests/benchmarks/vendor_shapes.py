"""The ten products on which an answer is compared with the vendor's library, drawn before the work on it began.

    python tests/benchmarks/vendor_shapes.py

Three decode, three prefill, two batched and two square products in BF16, outputs x tokens x inputs (x batch), by a
seed that was committed first. The six beside them are for development.
"""

from __future__ import annotations

import random
from itertools import product
from typing import NamedTuple

SEED = 20261129
WEIGHTS = (
    (4096, 4096),
    (6144, 4096),
    (14336, 4096),
    (4096, 14336),
    (5120, 5120),
    (13824, 5120),
    (8192, 8192),
    (28672, 8192),
    (8192, 28672),
    (11008, 4096),
    (4096, 11008),
    (2048, 2048),
    (8192, 2048),
    (3584, 18944),
)


class Shape(NamedTuple):
    """Sizes of one product: ``y[b, t, o] = sum over i of x[b, t, i] w[b, o, i]``, both contiguous along the inputs."""

    kind: str
    outputs: int
    tokens: int
    inputs: int
    batch: int = 1


DEVELOPMENT = (
    Shape("decode", 4096, 16, 4096),
    Shape("decode", 14336, 64, 4096),
    Shape("square", 1024, 1024, 1024),
    Shape("square", 4096, 4096, 4096),
    Shape("prefill", 4096, 512, 4096),
    Shape("square", 2048, 2048, 2048),
)


def drawn(seed: int = SEED) -> list[Shape]:
    """The ten shapes of a seed; none is among those for development."""
    choose = random.Random(seed)
    lists = {
        "decode": [Shape("decode", o, t, i) for (o, i), t in product(WEIGHTS, (1, 4, 8, 16, 32, 48, 64, 96, 128))],
        "prefill": [Shape("prefill", o, t, i) for (o, i), t in product(WEIGHTS, (256, 512, 1024, 2048, 4096))],
        "batched": [
            Shape("batched", o, t, i, b)
            for b, (o, t, i) in product((8, 16, 32, 64, 128), ((512, 512, 64), (2048, 2048, 128), (128, 2048, 2048),
                                                               (1024, 1024, 1024), (512, 64, 512), (768, 196, 768)))
        ],
        "square": [Shape("square", n, n, n) for n in (512, 768, 1280, 1536, 2560, 3072, 3584, 5120, 6144, 8192)],
    }  # fmt: skip
    counts = {"decode": 3, "prefill": 3, "batched": 2, "square": 2}
    return [
        each
        for kind, count in counts.items()
        for each in choose.sample([shape for shape in lists[kind] if shape not in DEVELOPMENT], count)
    ]


if __name__ == "__main__":
    for each in drawn():
        print(*each)
